"""Drawings of machines as SVG: nodes, lines and arrows written out as text, without any library for pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex
from xml.sax.saxutils import escape, quoteattr

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.errors import SettingError
from harmonium.report.structure import (
    MOST_UNITS,
    Edge,
    Label,
    Mark,
    Node,
    Structure,
    bipartite_structure,
    structure_of,
)
from harmonium.train.atomic import write_atomically

_STEP = 52.0
"""Pixels from one node to the next."""

_RADIUS = 17.0
_MARGIN = 22.0
_HEAD = 44.0
_FOOT_LINE = 17.0
_LETTER = 6.6
"""Pixels that a letter of the words takes at most, on the average."""

_FILLS = {"visible": "#d6e4f0", "hidden": "#ffffff", "label": "#fbe3c4"}
_INK, _PALE, _PAPER, _ARROW = "#1b1b1b", "#707070", "#ffffff", "#8c2d19"


@dataclass(frozen=True)
class Drawing:
    """A structure, or several beside each other, ``columns`` in a row, drawn as the text ``svg``.

    The same machine gives the same text. A notebook shows the drawing; ``save`` writes it.
    """

    name: str
    panels: tuple[Structure, ...]
    columns: int = 2

    def __post_init__(self):
        if not self.panels:
            raise SettingError(f"the drawing {self.name} has no panels; give it one")

    @property
    def svg(self) -> str:
        """The drawing as SVG."""
        return _svg(self)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the drawing into a file, whole or not at all; returns the path written.

        Raises `FileError` when the file exists and ``force`` is False, or cannot be written.
        """
        return write_atomically(path, self.svg.encode(), overwrite=force, fault="figure")

    def describe(self) -> list[dict[str, Any]]:
        """Per panel its title, units, and undirected and directed couplings, each with how many of them are drawn."""
        return [
            {
                "title": panel.title,
                "units": panel.units,
                "undirected": panel.undirected,
                "directed": panel.directed,
                "drawn": {
                    "units": panel.drawn_units,
                    "undirected": panel.drawn_undirected,
                    "directed": panel.drawn_directed,
                },
            }
            for panel in self.panels
        ]

    def _repr_svg_(self) -> str:
        return self.svg


def figure(
    model: AbstractEnergyModel | Ensemble, *, bipartite: bool = False, most: SupportsIndex = MOST_UNITS
) -> Drawing:
    """Draw the units and couplings of a model.

    Layers in a row stand one above the other, the visible one at the bottom; ``bipartite`` shows beside them how those
    of even and of odd number form two sides. A deep belief network has arrows down from all layers but the topmost. Of
    a layer of more than ``most`` units the first ones and the last are drawn, and what is left out is counted, as are
    couplings, in a line below. Of an ensemble one member is drawn, as all are alike.

    Raises `SettingError` for a model that has no layers in a row, is no stack and no general machine; with
    ``bipartite`` for all but layers in a row.

    >>> from harmonium.energy.dbm import DBM
    >>> drawn = figure(DBM(3, [4, 3]))
    >>> drawn.panels[0].drawn_undirected, drawn.svg[:4]
    (24, '<svg')
    """
    title = None
    if isinstance(model, Ensemble):
        members, model = len(model), model.member(0)
        title = f"each of {members}: {structure_of(model, most=most).title}"
    plain = structure_of(model, title=title, most=most)
    return Drawing("model", (plain, bipartite_structure(model, most=most)) if bipartite else (plain,))


@dataclass(frozen=True)
class _Frame:
    """A panel with the size of its picture in pixels."""

    panel: Structure
    words: tuple[str, ...]
    width: float
    height: float


def _svg(drawing: Drawing) -> str:
    frames = [_frame(panel) for panel in drawing.panels]
    rows = [frames[start : start + drawing.columns] for start in range(0, len(frames), drawing.columns)]
    widths = [max(row[i].width for row in rows if i < len(row)) for i in range(len(rows[0]))]
    parts, top = [], 0.0
    for row in rows:
        height, left = max(frame.height for frame in row), 0.0
        for frame, width in zip(row, widths, strict=False):
            parts.append(_panel(frame, left + (width - frame.width) / 2, top, height))
            left += width
        top += height
    size = f"{_number(sum(widths))} {_number(top)}"
    words = " ".join(f"{frame.panel.title}: {', '.join(frame.words)}." for frame in frames)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width={quoteattr(size.split()[0])} '
            f'height={quoteattr(size.split()[1])} role="img" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f"<title>{escape('; '.join(panel.title for panel in drawing.panels))}</title>",
            f"<desc>{escape(words)}</desc>",
            # Paper of its own, so that the ink is seen on a dark page too.
            f'<rect width="100%" height="100%" rx="6" fill="{_PAPER}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _frame(panel: Structure) -> _Frame:
    places = [*panel.nodes, *panel.marks]
    words = tuple(_words(panel))
    width = 2 * (max(abs(place.across) for place in places) * _STEP + _RADIUS + _MARGIN)
    width = max(width, *(len(line) * _LETTER + 2 * _MARGIN for line in (*words, panel.title)))
    tall = max(node.up for node in panel.nodes) * _STEP + 2 * _RADIUS
    return _Frame(panel, words, width, _HEAD + tall + len(words) * _FOOT_LINE + _MARGIN)


def _words(panel: Structure) -> list[str]:
    """How much is drawn of how many units and couplings."""
    edges = [
        _share(drawn, count, kind)
        for drawn, count, kind in (
            (panel.drawn_undirected, panel.undirected, "undirected"),
            (panel.drawn_directed, panel.directed, "directed"),
        )
        if count
    ]
    drawn = panel.drawn_undirected + panel.drawn_directed
    return [
        _share(panel.drawn_units, panel.units, "units") + _drawn(panel.drawn_units, panel.units),
        (" and ".join(edges) or "no") + " edges" + _drawn(drawn, panel.undirected + panel.directed),
    ]


def _share(drawn: int, count: int, what: str) -> str:
    return f"{count:,} {what}" if drawn == count else f"{drawn:,} of {count:,} {what}"


def _drawn(drawn: int, count: int) -> str:
    return "" if drawn == count else " drawn"


def _panel(frame: _Frame, left: float, top: float, height: float) -> str:
    panel = frame.panel
    bottom = top + height - _MARGIN - len(frame.words) * _FOOT_LINE - _RADIUS - 4

    middle = left + frame.width / 2

    def at(place: Node | Mark) -> tuple[float, float]:
        return middle + place.across * _STEP, bottom - place.up * _STEP

    lines = [
        f'<g><text x={_quoted(middle)} y={_quoted(top + 26)} text-anchor="middle" font-weight="bold" '
        f'fill="{_INK}">{escape(panel.title)}</text>'
    ]
    for edge in panel.edges:
        lines.append(_edge(edge, panel.nodes, at(panel.nodes[edge.start]), at(panel.nodes[edge.end])))
    lines += [_node(node, *at(node)) for node in panel.nodes]
    lines += [_text(mark.label, *at(mark), _PALE) for mark in panel.marks]
    for row, line in enumerate(frame.words):
        below = bottom + _RADIUS + 4 + (row + 1) * _FOOT_LINE
        lines.append(
            f'<text x={_quoted(middle)} y={_quoted(below)} text-anchor="middle" '
            f'fill="{_PALE}">{escape(line)}</text>'
        )
    return "\n".join([*lines, "</g>"])


def _edge(edge: Edge, nodes: Sequence[Node], start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line from rim to rim, with a head at its end where it is directed."""
    length = math.dist(start, end)
    right, down = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tip = end[0] - right * _RADIUS, end[1] - down * _RADIUS
    neck = (tip[0] - right * 7, tip[1] - down * 7) if edge.directed else tip
    ends = quoteattr(f"{nodes[edge.start].label} {nodes[edge.end].label}")
    colour = _ARROW if edge.directed else _INK
    line = (
        f"<line x1={_quoted(start[0] + right * _RADIUS)} y1={_quoted(start[1] + down * _RADIUS)} "
        f"x2={_quoted(neck[0])} y2={_quoted(neck[1])}"
    )
    kind = "directed" if edge.directed else "undirected"
    if not edge.directed:
        return f'{line} class="{kind}" data-ends={ends} stroke="{colour}" stroke-width="0.9"/>'
    sides = [(neck[0] - sign * down * 3, neck[1] + sign * right * 3) for sign in (1, -1)]
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in (tip, *sides))
    return (
        f'<g class="{kind}" data-ends={ends}>{line} stroke="{colour}" stroke-width="0.9"/>'
        f'<polygon points="{points}" fill="{colour}"/></g>'
    )


def _node(node: Node, x: float, y: float) -> str:
    if node.kind == "more":
        dots = "".join(
            f'<circle cx={_quoted(x + place * 7)} cy={_quoted(y)} r="2" fill="{_PALE}"/>'
            for place in (-1, 0, 1)
        )
        return (
            f'<g class="more" data-units="{node.units}">{dots}<text x={_quoted(x)} y={_quoted(y + 15)} '
            f'text-anchor="middle" font-size="10" fill="{_PALE}">{node.units:,} more</text></g>'
        )
    return (
        f'<g class="{node.kind}" data-unit={quoteattr(str(node.label))}><circle cx={_quoted(x)} cy={_quoted(y)} '
        f'r="{_number(_RADIUS)}" fill="{_FILLS[node.kind]}" stroke="{_INK}" stroke-width="1.2"/>'
        f"{_text(node.label, x, y, _INK)}</g>"
    )


def _text(label: Label, x: float, y: float, colour: str) -> str:
    """A letter whose right edge meets the left ones of what stands above and below it, whatever the font is."""
    both = bool(label.upper or label.lower)
    seam = x - 1.0 if both else x
    anchor = "end" if both else "middle"
    serif = f'font-family="Georgia, Times, serif" fill="{colour}"'
    parts = [
        f'<text x={_quoted(seam)} y={_quoted(y + 5)} text-anchor="{anchor}" font-style="italic" font-size="16" '
        f"{serif}>{escape(label.base)}</text>"
    ]
    for words, below in ((label.upper, -3.0), (label.lower, 9.0)):
        if words:
            parts.append(
                f'<text x={_quoted(seam + 0.5)} y={_quoted(y + below)} font-size="9" {serif}>{escape(words)}</text>'
            )
    return "".join(parts)


def _quoted(number: float) -> str:
    return f'"{_number(number)}"'


def _number(number: float) -> str:
    """A number with at most one decimal, the same text for the same number."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
