"""What the study of mode-assisted training trains, for how long, and what is in print of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from harmonium.modes.descent import Descent
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import CD, PCD
from harmonium.rules.mode_assisted import ModeAssisted
from harmonium.studies.base import Table

CD_RBM, MA_RBM = "RBM, CD-1", "RBM, mode-assisted"
CD_DBM, MA_DBM = "DBM, CD-1", "DBM, mode-assisted"
OUR_RBM, OUR_DBM = "RBM, our settings", "DBM, our settings"

CD3, CD10, LONG = "CD-3", "CD-10", "CD-720 at the mode steps"
POOR, FEW, MANY = "1 start, 3 sweeps", "8 starts", "256 starts"
LARGE, SMALL = "push times 16", "push a fifth"
PCD_FAST = "PCD at rate 1"

RATIO = 0.2
"""Units of the second hidden layer over those of the first in figure 2."""

DIGITS_RATIO = 0.15
"""The same in figure 4."""

CLOSE = 0.01
"""Nats of divergence below which a net has learned its data."""


class Net(NamedTuple):
    """A machine of so many visible units, and so many in every hidden layer."""

    visible: int
    hidden: tuple[int, ...]

    @property
    def total(self) -> int:
        """Hidden units of all layers."""
        return sum(self.hidden)

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        sizes = (self.visible, *self.hidden)
        return sum(lower * upper for lower, upper in pairwise(sizes)) + sum(sizes)

    @property
    def words(self) -> str:
        """Its sizes, such as 12 x 10 x 2."""
        return " x ".join(map(str, (self.visible, *self.hidden)))


def shaped(visible: int, total: int, ratio: float) -> Net:
    """Two hidden layers with ``total`` units, the second having ``ratio`` times those of the first; 0 makes an RBM.

    >>> shaped(24, 22, 0.2).hidden
    (18, 4)
    """
    if ratio == 0:
        return Net(visible, (total,))
    first = round(total / (1 + ratio))
    return Net(visible, (first, total - first))


class Length(NamedTuple):
    """Updates of a run, nets of an ensemble, and the rate that 1 falls to."""

    updates: int
    members: int
    last_rate: float = 0.001
    points: int = 10


class Case(NamedTuple):
    """One ensemble: a net, a rule by its label, and how long."""

    label: str
    net: Net
    rule: AbstractRule
    length: Length


class Digits(NamedTuple):
    """The small-network end of figure 4: data by name, hidden units, epochs, runs of which the best counts, AIS."""

    data: tuple[str, ...]
    totals: tuple[int, ...]
    epochs: int
    runs: int
    chains: int
    temperatures: int


class Plan(NamedTuple):
    """What a scale means.

    - ``figure_2``: visible units, numbers of hidden ones, and how long. ``figure_3``: visible units, hidden ones,
      ratios of the layers, and how long. ``controls``: visible and hidden units, and how long.
    - ``digits``: figure 4, or None for none.
    """

    figure_2: tuple[tuple[int, tuple[int, ...], Length], ...]
    figure_3: tuple[int, int, tuple[float, ...], Length]
    controls: tuple[int, int, Length]
    digits: Digits | None


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "quick": Plan(
            figure_2=((12, (8, 12, 18), Length(10_000, 20)),),
            figure_3=(12, 12, (0.0, 0.2, 1.0), Length(10_000, 20)),
            controls=(12, 12, Length(10_000, 20)),
            digits=None,
        ),
        "full": Plan(
            figure_2=(
                (12, (8, 10, 12, 15, 18), Length(100_000, 50)),
                (24, (14, 18, 22), Length(200_000, 50, points=4)),
            ),
            figure_3=(24, 22, (0.0, 0.05, 0.1, 0.16, 0.22, 0.47, 1.0), Length(100_000, 50, 0.01, points=4)),
            controls=(12, 12, Length(20_000, 50)),
            digits=Digits(("digits", "mnist-5k"), (23, 46, 138), 100, 10, 100, 29_000),
        ),
    }
)


def divergence(net: Net, steps: int = 1) -> AbstractRule:
    """Contrastive divergence in ordinary coordinates; of a deep net with five sweeps of mean field."""
    if len(net.hidden) == 1:
        return CD(steps, centred=False)
    return CD(steps, centred=False, inference="mean-field", inference_sweeps=5)


def assisted(net: Net) -> AbstractRule:
    """The same, assisted by modes as in the paper, those of a deep net with many units on top from more starts."""
    many = len(net.hidden) > 1 and (net.hidden[1] >= 5 or net.hidden[1] >= 0.4 * net.hidden[0])
    return ModeAssisted(divergence(net), Descent(256, 20) if many else Descent())


def ours(net: Net) -> AbstractRule:
    """A fifth of the push, and of an RBM centred coordinates: fewer nets end with a bar of the wrong mass."""
    base = CD(1) if len(net.hidden) == 1 else divergence(net)
    return ModeAssisted(base, push_scale=0.05)


def figure_2(plan: Plan) -> list[Case]:
    """RBMs and DBMs of as many hidden units, with and without modes, and by our settings."""
    cases = []
    for visible, totals, length in plan.figure_2:
        for total in totals:
            for ratio, *labels in ((0.0, CD_RBM, MA_RBM, OUR_RBM), (RATIO, CD_DBM, MA_DBM, OUR_DBM)):
                net = shaped(visible, total, ratio)
                rules = divergence(net), assisted(net), ours(net)
                cases += [Case(label, net, rule, length) for label, rule in zip(labels, rules, strict=True)]
    return cases


def figure_3(plan: Plan) -> list[Case]:
    """DBMs of one number of hidden units and of several shapes; a ratio of 0 is an RBM."""
    visible, total, ratios, length = plan.figure_3
    cases = []
    for ratio in ratios:
        net = shaped(visible, total, ratio)
        cases += [
            Case(CD_DBM, net, divergence(net), length),
            Case(MA_DBM, net, assisted(net), length),
        ]
    return cases


def controls(plan: Plan) -> list[Case]:
    """What else the modes' place could be filled with: longer chains, worse modes, harder pushes."""
    visible, total, length = plan.controls
    net = shaped(visible, total, 0.0)
    base = divergence(net)
    rules: dict[str, AbstractRule] = {
        CD3: divergence(net, 3),
        CD10: divergence(net, 10),
        LONG: ModeAssisted(base, baseline_steps=720),
        FEW: ModeAssisted(base, Descent(8, 10)),
        MANY: ModeAssisted(base, Descent(256, 20)),
        POOR: ModeAssisted(base, Descent(1, 3)),
        SMALL: ModeAssisted(base, push_scale=0.05),
        LARGE: ModeAssisted(base, push_scale=4.0),
        PCD_FAST: PCD(chains=visible, centred=False),
    }
    return [Case(label, net, rule, length) for label, rule in rules.items()]


def persistent(net: Net, modes: bool) -> AbstractRule:
    """PCD-1 as figure 4 has it, with modes or without."""
    inference = {} if len(net.hidden) == 1 else {"inference": "mean-field", "inference_sweeps": 10}
    base = PCD(steps=1, chains=100, centred=False, **inference)
    return ModeAssisted(base, Descent(256, 20)) if modes else base


PUBLISHED = Table(
    name="published",
    caption="What the paper and those it compares with print in numbers; its curves are in figures only. The "
    "pre-trained DBM is the one that a mode-assisted DBM of 120 x 18 units is said to equal.",
    columns={"what": "what", "value": "value"},
    rows=(
        {"what": "best ratio of the layers, figure 3", "value": 0.15},
        {"what": "parameters of a DBM over those of an RBM at that ratio, 1/(1 + ratio)", "value": 0.87},
        {
            "what": "test log-likelihood of the pre-trained DBM of 500 x 1000 units on MNIST, nats",
            "value": -84.62,
        },
    ),
    source='Manukian and Di Ventra, "Mode-assisted joint training of deep Boltzmann machines" (2021); '
    "Salakhutdinov and Hinton (2009) for the last",
)
