"""Figures of curves with bands, drawn by matplotlib where it is installed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO

from harmonium.errors import MissingExtraError, SettingError

_COLOURS = (
    *("#b03a2e", "#1f4e79", "#2e7d32", "#8e44ad", "#b9770e", "#00838f"),
    *("#4d4d4d", "#e377c2", "#17becf", "#9acd32", "#5d4037", "#ff7f0e"),
)


@dataclass(frozen=True)
class Curve:
    """Numbers along an axis, with a band from ``low`` to ``high``; numbers that are not finite leave a gap."""

    label: str
    along: tuple[float, ...]
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class CurvePanel:
    """Curves that are compared with each other under a title, and ``marks``: known levels by what they are."""

    title: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class CurveFigure:
    """Panels side by side over axes they share: ``along`` and ``axis`` say what is on them, and in which units.

    What lies below ``least`` is not shown.
    """

    name: str
    caption: str
    along: str
    axis: str
    panels: tuple[CurvePanel, ...]
    least: float | None = None


def draw_curves(figure: CurveFigure) -> bytes:
    """The figure as SVG, the same bytes for the same numbers.

    **Raises** `MissingExtraError` where matplotlib is not installed, `SettingError` for a figure without panels.

    >>> line = Curve("ours", (0.0, 1.0), (-3.0, -1.0), (-4.0, -2.0), (-2.0, 0.0))
    >>> draw_curves(CurveFigure("one", "", "updates", "nats", (CurvePanel("here", (line,), (("best", 0.0),)),)))[:5]
    b'<?xml'
    """
    if not figure.panels:
        raise SettingError(f"the figure {figure.name} has no panels; give it one")
    try:
        # Not pyplot, which would keep every figure and look for a screen.
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError(
            "figures are drawn by matplotlib, which is not installed; pip install 'harmonium[report]'"
        ) from error
    with matplotlib.rc_context(
        {"svg.hashsalt": f"harmonium {figure.name}", "svg.fonttype": "none", "font.size": 9}
    ):
        lines = max(len(panel.curves) + len(panel.marks) for panel in figure.panels)
        height = 3.2 + 0.16 * math.ceil(
            lines / 2
        )  # inches; names stand below the axes, where they hide no curve
        canvas = Canvas(figsize=(3.4 * len(figure.panels) + 0.8, height), layout="constrained")
        axes = canvas.subplots(1, len(figure.panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, figure.panels, strict=True):
            for place, curve in enumerate(panel.curves):
                colour = _COLOURS[place % len(_COLOURS)]
                low, value, high = (
                    [number if math.isfinite(number) else math.nan for number in numbers]
                    for numbers in (curve.low, curve.value, curve.high)
                )
                axis.fill_between(curve.along, low, high, color=colour, alpha=0.15, linewidth=0)
                axis.plot(curve.along, value, color=colour, linewidth=1.4, label=curve.label)
            for place, (label, level) in enumerate(panel.marks):
                style = ("--", ":", "-.")[place % 3]
                axis.axhline(level, color="black", linewidth=0.8, linestyle=style, label=label)
            axis.set_title(panel.title, fontsize=9)
            axis.grid(linewidth=0.4, alpha=0.5)
            axis.set_xlabel(figure.along, fontsize=9)
            axis.legend(
                fontsize=7,
                loc="upper center",
                bbox_to_anchor=(0.5, -0.16),
                ncols=2,
                frameon=False,
                columnspacing=1,
            )
        if figure.least is not None:
            axes[0].set_ylim(bottom=figure.least)
        canvas.supylabel(figure.axis, fontsize=9)
        buffer = BytesIO()
        FigureCanvasSVG(canvas).print_svg(buffer, metadata={"Date": None, "Title": figure.caption})
    return buffer.getvalue()
