"""Figures of numbers with their intervals, drawn by matplotlib where it is installed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO

from harmonium.errors import MissingExtraError, SettingError

_MARKED = "#b03a2e"
_PLAIN = "#1f4e79"


@dataclass(frozen=True)
class Bar:
    """A number with its interval; ``value`` None: only known to be at most ``high``."""

    label: str
    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """Numbers that are compared with each other, under a title; the first one is what the others are compared with."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side over one logarithmic axis: ``axis`` says what they are and in which units."""

    name: str
    caption: str
    axis: str
    panels: tuple[Panel, ...]


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw_figure(figure: Figure) -> bytes:
    """The figure as SVG, the same bytes for the same numbers.

    **Raises** `MissingExtraError` where matplotlib is not installed, `SettingError` for a figure without panels.

    >>> figure = Figure("one", "", "jumps", (Panel("here", (Bar("gibbs", None, 0.0, 0.1), Bar("pt", 3.0, 2.0, 4.0))),))
    >>> draw_figure(figure)[:5]
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
    most = max(len(panel.bars) for panel in figure.panels)
    with matplotlib.rc_context(
        {"svg.hashsalt": f"harmonium {figure.name}", "svg.fonttype": "none", "font.size": 9}
    ):
        canvas = Canvas(figsize=(2.6 * len(figure.panels) + 1.4, 0.32 * most + 1.3), layout="constrained")
        axes = canvas.subplots(1, len(figure.panels), sharex=True, squeeze=False)[0]
        low, high = _range_of(figure)
        for place, (axis, panel) in enumerate(zip(axes, figure.panels, strict=True)):
            for row, bar in enumerate(panel.bars):
                colour = _MARKED if row == 0 else _PLAIN
                if bar.value is None:
                    # An arrow to the left: only an upper bound is known.
                    axis.plot([bar.high], [row], marker="<", color=colour, markersize=5)
                    axis.plot([low, bar.high], [row, row], color=colour, linewidth=1, linestyle=":")
                    continue
                axis.plot([max(bar.low, low), bar.high], [row, row], color=colour, linewidth=2)
                axis.plot([bar.value], [row], marker="o", color=colour, markersize=4)
            axis.set_xscale("log")
            axis.set_xlim(low, high)
            axis.set_ylim(most - 0.5, -0.5)
            axis.set_yticks(range(len(panel.bars)), [bar.label for bar in panel.bars] if place == 0 else [])
            axis.set_title(panel.title, fontsize=9)
            axis.grid(axis="x", linewidth=0.4, alpha=0.5)
        canvas.supxlabel(figure.axis, fontsize=9)
        buffer = BytesIO()
        FigureCanvasSVG(canvas).print_svg(buffer, metadata={"Date": None, "Title": figure.caption})
    return buffer.getvalue()


def _range_of(figure: Figure) -> tuple[float, float]:
    """A range of whole decades around all numbers."""
    numbers = [
        number
        for panel in figure.panels
        for bar in panel.bars
        for number in (bar.value, bar.high)
        if number is not None and 0 < number < math.inf
    ]
    if not numbers:
        return 0.1, 10.0
    low, high = math.floor(math.log10(min(numbers)) - 0.3), math.ceil(math.log10(max(numbers)) + 0.01)
    return 10.0**low, 10.0 ** max(high, low + 1)
