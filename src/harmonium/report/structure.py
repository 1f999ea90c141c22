"""What a machine consists of, as a drawing shows it: units in their places, and the couplings between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, SupportsIndex

import numpy as np

from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.couplings.absent import Absent
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.numerics.whole import whole_number

MOST_UNITS = 8
"""Units of a layer that are drawn, unless another number is asked for; the rest becomes one mark that counts them."""

_BLOCK_GAP = 0.6
_LINE_UP = 1.6
_SIDES_APART = 3.2


class Label(NamedTuple):
    """A letter with what stands above and below it: ``Label("h", "(1)", "2")`` is unit 2 of hidden layer 1."""

    base: str
    upper: str = ""
    lower: str = ""

    def __str__(self) -> str:
        return self.base + (f"^{self.upper}" if self.upper else "") + (f"_{self.lower}" if self.lower else "")


@dataclass(frozen=True)
class Node:
    """A circle of a drawing: one unit, or the ``units`` of a layer that are not drawn one by one (kind "more").

    ``kind`` is "visible" (of a layer that data are given for), "hidden", "label" or "more"; places are in steps to the
    right and upwards.
    """

    label: Label
    kind: str
    across: float
    up: float
    units: int = 1


@dataclass(frozen=True)
class Edge:
    """A coupling of two nodes by their numbers; a directed one points from ``start`` to ``end``."""

    start: int
    end: int
    directed: bool = False


@dataclass(frozen=True)
class Mark:
    """A label that belongs to no single node, such as the name of a weight matrix."""

    label: Label
    across: float
    up: float


@dataclass(frozen=True)
class Structure:
    """One panel of a drawing, and how many units and couplings there are, drawn or not."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    marks: tuple[Mark, ...]
    units: int
    undirected: int
    directed: int

    @property
    def drawn_units(self) -> int:
        """Units that have a circle of their own."""
        return sum(node.kind != "more" for node in self.nodes)

    @property
    def drawn_undirected(self) -> int:
        """Undirected couplings that have a line of their own."""
        return sum(not edge.directed for edge in self.edges)

    @property
    def drawn_directed(self) -> int:
        """Directed couplings that have an arrow of their own."""
        return sum(edge.directed for edge in self.edges)


class Layer(NamedTuple):
    """A row of units to be drawn: what they are called, how many there are, and of what kind they are."""

    label: Label
    size: int
    kind: str


class _Sheet:
    """Nodes and edges as they are laid out, layer by layer."""

    def __init__(self, most: int):
        self.most = most
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.marks: list[Mark] = []
        self.units = 0
        self.counts = [0, 0]

    def row(self, layers: Sequence[Layer], up: float) -> list[dict[int, int]]:
        """Lay layers side by side, centred; for each the node of every unit that is drawn."""
        shown = [shown_units(layer.size, self.most) for layer in layers]
        width = sum(len(units) - 1 for units in shown) + _BLOCK_GAP * (len(layers) - 1) + len(layers) - 1
        across, found = -width / 2, []
        for layer, units in zip(layers, shown, strict=True):
            found.append(self.layer(layer, [(unit, across + step, up) for step, unit in enumerate(units)]))
            across += len(units) + _BLOCK_GAP
        return found

    def layer(self, layer: Layer, places: Sequence[tuple[int | None, float, float]]) -> dict[int, int]:
        """Put the units of a layer in their places; None stands for those that are left out."""
        found: dict[int, int] = {}
        left_out = layer.size - sum(unit is not None for unit, _, _ in places)
        for unit, across, up in places:
            if unit is None:
                self.nodes.append(Node(layer.label, "more", across, up, left_out))
                continue
            found[unit] = len(self.nodes)
            self.nodes.append(Node(layer.label._replace(lower=str(unit + 1)), layer.kind, across, up))
        self.units += layer.size
        return found

    def join(
        self, starts: dict[int, int], ends: dict[int, int], couplings: int, directed: bool = False
    ) -> None:
        """Couple every unit of a layer with every unit of another one: so many couplings, which may be none."""
        if couplings:
            self.edges += [Edge(start, end, directed) for start in starts.values() for end in ends.values()]
        self.counts[directed] += couplings

    def structure(self, title: str) -> Structure:
        return Structure(
            title, tuple(self.nodes), tuple(self.edges), tuple(self.marks), self.units, *self.counts
        )


def shown_units(size: int, most: int) -> list[int | None]:
    """The units of a layer that are drawn: all, or the first ones, None for those between, and the last.

    >>> shown_units(3, 8), shown_units(784, 4)
    ([0, 1, 2], [0, 1, None, 783])
    """
    if size <= most:
        return list(range(size))
    return [*range(most - 2), None, size - 1]


def structure_of(
    model: AbstractEnergyModel,
    *,
    title: str | None = None,
    labels: Sequence[Label] | None = None,
    most: SupportsIndex = MOST_UNITS,
) -> Structure:
    """The units and couplings of a model, its visible layer at the bottom.

    Layers in a row are drawn one above the other. A stack is drawn as the network that it is read as: arrows downwards
    from every layer but the topmost, lines between the top two. The units of a general machine stand on a circle,
    visible ones below. Of a layer of more than ``most`` units the first ones and the last are drawn, with a mark for
    those between. ``labels`` name the layers where they are not to be called v, h and, observed ones above v, y.

    Raises `SettingError` for a model of another make and for a number of labels that is not that of the layers.

    >>> from harmonium.energy.rbm import RBM
    >>> drawn = structure_of(RBM(3, 4))
    >>> drawn.drawn_units, drawn.drawn_undirected
    (7, 12)
    """
    check_model(model)
    sheet = _Sheet(_checked_most(most))
    if isinstance(model, BoltzmannMachine):
        _lay_machine(sheet, model, labels)
    elif isinstance(model, AbstractStack):
        _lay_stack(sheet, model, labels)
    elif isinstance(model, AbstractLayered):
        _lay_layers(sheet, model, labels)
    else:
        raise SettingError(
            f"a drawing is of layers in a row, a stack or a general machine, got {type(model).__name__}; pass e.g. "
            "hm.DBM(3, [4, 3])"
        )
    return sheet.structure(_title_of(model) if title is None else title)


def bipartite_structure(
    model: AbstractEnergyModel, *, title: str | None = None, most: SupportsIndex = MOST_UNITS
) -> Structure:
    """The layers of even number beside each other, the visible one among them, below those of odd number.

    The couplings are those of the layers in a row, and none is inside a side: given one side the units of the other
    are independent, which is why a sweep is two blocks. Raises `SettingError` for a model that is not layers in a row.

    >>> from harmonium.energy.dbm import DBM
    >>> bipartite_structure(DBM(3, [4, 3, 4])).drawn_undirected
    36
    """
    check_model(model)
    if isinstance(model, AbstractStack) or not isinstance(model, AbstractLayered):
        raise SettingError(
            f"only layers in a row, all couplings undirected, have an even and an odd side, got "
            f"{type(model).__name__}; pass e.g. hm.DBM(3, [4, 3, 4])"
        )
    sheet = _Sheet(_checked_most(most))
    layers = layers_of(model)
    nodes: list[dict[int, int]] = [{}] * len(layers)
    for up, side in enumerate(model.sides):
        for index, laid in zip(side, sheet.row([layers[i] for i in side], up * _SIDES_APART), strict=True):
            nodes[index] = laid
    for index in range(len(layers) - 1):
        sheet.join(nodes[index], nodes[index + 1], _couplings(model, index))
    return sheet.structure(f"{_title_of(model)}, odd above even" if title is None else title)


def unrolled_structure(
    model: AbstractEnergyModel, *, title: str = "", most: SupportsIndex = MOST_UNITS
) -> Structure:
    r"""The network that a classifier v - h1 - h2 - y becomes: the data *and* the mean-field means of h2 go in.

    Arrows lead from v and from :math:`q(h_2 \mid v)` to h1, from there to h2, and from h2 to y. Raises `SettingError`
    for a model that has not four layers in a row. Source: the chapter's figure of the four stages, panel (d).

    >>> from harmonium.energy.dbm import DBM
    >>> drawn = unrolled_structure(DBM(3, [4, 3, 2]))
    >>> drawn.drawn_units, drawn.drawn_directed
    (15, 42)
    """
    check_model(model)
    if isinstance(model, AbstractStack) or not isinstance(model, AbstractLayered) or len(model.units) != 4:
        raise SettingError(
            f"what is unrolled is a machine of the four layers v, h1, h2 and y, got {type(model).__name__} of "
            f"{len(model.units)} layers; pass e.g. hm.DBM(3, [4, 3, 2])"
        )
    sheet = _Sheet(_checked_most(most))
    data, first, second, top = layers_of(model, classifier_labels())
    means = Layer(Label("q", second.label.upper), second.size, "visible")
    v, q = sheet.row([data, means], 0)
    (h1,), (h2,), (y,) = (
        sheet.row([layer], _LINE_UP * (up + 1)) for up, layer in enumerate((first, second, top))
    )
    sheet.join(v, h1, _couplings(model, 0), True)
    sheet.join(q, h1, _couplings(model, 1), True)
    sheet.join(h1, h2, _couplings(model, 1), True)
    sheet.join(h2, y, _couplings(model, 2), True)
    return sheet.structure(title)


def classifier_labels() -> tuple[Label, ...]:
    """What the layers of a classifier v - h1 - h2 - y are called."""
    return Label("v"), Label("h", "(1)"), Label("h", "(2)"), Label("y")


def layers_of(model: AbstractEnergyModel, labels: Sequence[Label] | None = None) -> list[Layer]:
    """The layers of a model as a drawing has them, the visible one first.

    Raises `SettingError` for a number of labels that is not that of the layers.
    """
    units = model.layers if isinstance(model, AbstractStack) else model.units
    names = [Label("v")]
    hidden = [index for index in range(1, len(units)) if index not in model.observed]
    names += [
        (
            Label("h", f"({hidden.index(index) + 1})" if len(hidden) > 1 else "")
            if index in hidden
            else Label("y")
        )
        for index in range(1, len(units))
    ]
    given = names if labels is None else list(labels)
    if len(given) != len(units):
        raise SettingError(f"labels must name {len(units)} layers, got {len(given)}")
    return [
        Layer(name, int(layer.size), _kind(name, index in model.observed))
        for index, (name, layer) in enumerate(zip(given, units, strict=True))
    ]


def _kind(name: Label, observed: bool) -> str:
    return "label" if name.base == "y" else "visible" if observed else "hidden"


def _lay_layers(sheet: _Sheet, model: AbstractLayered, labels: Sequence[Label] | None) -> None:
    rows = _rows(sheet, layers_of(model, labels))
    for index in range(len(rows) - 1):
        sheet.join(rows[index], rows[index + 1], _couplings(model, index))


def _lay_stack(sheet: _Sheet, model: AbstractStack, labels: Sequence[Label] | None) -> None:
    rows = _rows(sheet, layers_of(model, labels))
    for index, (lower, upper) in enumerate(pairwise(rows)):
        couplings = _couplings(model, 2 * index)
        if index == model.depth - 1:
            sheet.join(lower, upper, couplings)
        else:
            sheet.join(upper, lower, couplings, True)


def _lay_machine(sheet: _Sheet, model: BoltzmannMachine, labels: Sequence[Label] | None) -> None:
    """Units on a circle, visible ones around its lowest point, in the order of their numbers to the right."""
    layers = layers_of(model, labels)
    shown = [(layer, unit) for layer in layers for unit in shown_units(layer.size, sheet.most)]
    first = len(shown_units(layers[0].size, sheet.most))
    radius = max(1.0, len(shown) * 1.15 / (2 * math.pi))
    places: list[tuple[int | None, float, float]] = []
    for place, (_, unit) in enumerate(shown):
        angle = -math.pi / 2 + (place - (first - 1) / 2) * 2 * math.pi / len(shown)
        places.append((unit, radius * math.cos(angle), radius * (1 + math.sin(angle))))
    nodes = sheet.layer(layers[0], places[:first])
    for layer in layers[1:]:
        above = sheet.layer(layer, places[first:])
        nodes.update({layers[0].size + unit: node for unit, node in above.items()})
    pairs = model.couplings[0].graph.pairs
    drawn = np.isin(pairs, list(nodes)).all(axis=1)
    sheet.edges += [Edge(nodes[int(first)], nodes[int(second)]) for first, second in pairs[drawn]]
    sheet.counts[0] += len(pairs)


def _rows(sheet: _Sheet, layers: Sequence[Layer]) -> list[dict[int, int]]:
    rows = [sheet.row([layer], up * _LINE_UP)[0] for up, layer in enumerate(layers)]
    if layers[0].label.base != "v":
        return rows  # the matrices of a part of a machine are not numbered from its lowest layer
    left = min(node.across for node in sheet.nodes) - 1.2
    sheet.marks += [
        Mark(Label("W", f"({below + 1})" if len(layers) > 2 else ""), left, (below + 0.5) * _LINE_UP)
        for below in range(len(layers) - 1)
    ]
    return rows


def _couplings(model: AbstractLayered, index: int) -> int:
    """How many couplings there are between a layer and the next one."""
    coupling = model.couplings[index]
    return 0 if isinstance(coupling, Absent) else coupling.weights.size


def _title_of(model: AbstractEnergyModel) -> str:
    units = model.layers if isinstance(model, AbstractStack) else model.units
    return f"{type(model).__name__} {'-'.join(str(layer.size) for layer in units)}"


def _checked_most(most: SupportsIndex) -> int:
    return whole_number(
        most, "most must be a whole number of units of a layer, at least 3", "pass e.g. 8", least=3
    )
