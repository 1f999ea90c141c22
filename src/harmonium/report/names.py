"""The structure drawings by name: what ``harmonium figure`` can draw without being given a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, SupportsIndex

from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.dbm import DBM
from harmonium.energy.dbn import DBN
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.report.drawing import Drawing
from harmonium.report.structure import (
    MOST_UNITS,
    Structure,
    bipartite_structure,
    classifier_labels,
    structure_of,
    unrolled_structure,
)
from harmonium.units.categorical import Categorical

_LABELS = 2
"""Classes of the classifier that is drawn."""


class Sketch(NamedTuple):
    """What a drawing shows, in a line, and how its panels are made: from machines that are built to be drawn."""

    summary: str
    panels: Callable[[SupportsIndex], tuple[Structure, ...]]


def _bm(most: SupportsIndex) -> tuple[Structure, ...]:
    return (structure_of(BoltzmannMachine(4), most=most), structure_of(BoltzmannMachine(3, 3), most=most))


def _bipartite(most: SupportsIndex) -> tuple[Structure, ...]:
    machine = DBM(3, [4, 3, 4])
    return (structure_of(machine, most=most), bipartite_structure(machine, most=most))


def _training(most: SupportsIndex) -> tuple[Structure, ...]:
    v, h1, h2, y = classifier_labels()
    joint = DBM(3, [4, 3, Categorical(_LABELS)])
    return (
        structure_of(RBM(3, 4), title="(a) CD on log P(v)", labels=(v, h1), most=most),
        structure_of(
            DBM(4, [3, Categorical(_LABELS)]),
            title="(b) CD-k on log P(h⁽¹⁾, y)",
            labels=(h1, h2, y),
            most=most,
        ),
        structure_of(joint, title="(c) SML, k = 5, on log P(v, y)", labels=(v, h1, h2, y), most=most),
        unrolled_structure(joint, title="(d) dropout on log P(y | v)", most=most),
    )


SKETCHES: Mapping[str, Sketch] = MappingProxyType(
    {
        "bm": Sketch("Boltzmann machines, fully visible and with hidden units: any pair is coupled", _bm),
        "rbm": Sketch(
            "a restricted Boltzmann machine: couplings between its two layers only",
            lambda most: (structure_of(RBM(3, 4), most=most),),
        ),
        "dbn": Sketch(
            "a deep belief network: directed downwards, but for its top two layers",
            lambda most: (structure_of(DBN(3, [4, 3]), most=most),),
        ),
        "dbm": Sketch(
            "a deep Boltzmann machine: undirected throughout",
            lambda most: (structure_of(DBM(3, [4, 3]), most=most),),
        ),
        "dbm-bipartite": Sketch(
            "its layers of even and of odd number as the two sides of a bipartite graph", _bipartite
        ),
        "dbm-training": Sketch("the four stages in which it becomes a classifier", _training),
    }
)


def sketch(name: str, most: SupportsIndex = MOST_UNITS) -> Drawing:
    """The drawing called ``name``. Raises `SettingError` where there is none.

    >>> sketch("rbm").panels[0].drawn_undirected
    12
    """
    if name not in SKETCHES:
        raise SettingError(
            f"no drawing is called {name!r}, and there is no such file; choose one of {', '.join(SKETCHES)}"
        )
    return Drawing(name, SKETCHES[name].panels(most))
