"""What the study of deep tempering trains, for how long, and what is in print of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from harmonium.samplers.cast import CAST
from harmonium.samplers.deep_tempering import DeepTempering
from harmonium.samplers.tempering import ParallelTempering
from harmonium.studies.base import Table
from harmonium.studies.modes_runs import Length, Method

RATES = (1e-3, 1e-4, 1e-5)
"""The constant rates of figure 1."""

SML, DEEP2, DEEP3 = "RBM, SML", "t-DBN2", "t-DBN3"
PRE2, PRE3 = "t-DBN2, pre-trained", "t-DBN3, pre-trained"
PT, LEARNED_PT = "PT 5 x 10", "PT 5 x 20, learned betas"
CAST1, CAST10, CAST100 = "CAST 1:1", "CAST 1:10", "CAST 1:100"
IMPROVED, HOT, FAST = "t-DBN2, our start", "t-DBN2, 4 hot replicas", "t-DBN2, 4 hot replicas, fast"

PAPER: Mapping[tuple[str, float | None], float | str] = MappingProxyType(
    {
        (SML, 1e-3): "diverges",
        (SML, 1e-4): "diverges",
        (SML, 1e-5): -329.6,
        (DEEP2, 1e-3): "diverges",
        (DEEP2, 1e-4): -120.4,
        (DEEP3, 1e-3): "diverges less",
        (PT, None): -175.0,
        (LEARNED_PT, None): -150.0,
        (CAST1, None): "good, then diverges",
        (CAST10, None): -139.3,
        (CAST100, None): -110.5,
    }
)
"""The log-likelihoods in print, at a rate or at one that is not given; PT had 50 chains, adaptive PT 20."""

PAPER_BOUNDS: Mapping[str, float] = MappingProxyType({DEEP2: -94.6, DEEP3: -91.0})
"""Its bounds of the stacks as deep belief networks, at the best rate."""

PUBLISHED = Table(
    name="published",
    caption="Nats, on 5000 images, after 10^6 updates and over 5 seeds; best learning rates where none is given.",
    columns={"model": "model", "rate": "learning rate", "value": "log-likelihood", "bound": "DBN bound"},
    rows=(
        *({"model": model, "rate": rate, "value": value} for (model, rate), value in PAPER.items()),
        *({"model": model, "bound": value} for model, value in PAPER_BOUNDS.items()),
    ),
    source='Desjardins, Luo, Courville and Bengio, "Deep Tempering" (2014)',
)


class Plan(NamedTuple):
    """What a scale means.

    - ``figure``: of the curves at three rates. ``others``: of the other samplers and of pre-training, at the constant
      ``rate``. ``ours``: of our own runs.
    - ``rows``: of the fixed sample that is trained on. ``test``: rows that are scored.
    - ``least_gain``: nats by which t-DBN2 at its best rate is to be above SML at its own. ``bars``: what is asked of
      our runs: of the median over seeds (False) or of the worst of them (True).
    """

    figure: Length
    others: Length
    ours: Length
    rate: float
    rows: int
    test: int
    least_gain: float
    bars: Mapping[str, tuple[bool, float]]
    widest_cast: bool = False


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "quick": Plan(
            figure=Length(80_000, 20, 3),
            others=Length(80_000, 20, 2),
            ours=Length(80_000, 20, 3),
            rate=1e-3,
            rows=100_000,
            test=5000,
            least_gain=20.0,
            bars={HOT: (False, -91.0), FAST: (False, -91.0)},
        ),
        "full": Plan(
            figure=Length(1_000_000, 50, 5),
            others=Length(1_000_000, 50, 2),
            ours=Length(200_000, 40, 5),
            rate=1e-4,
            rows=200_000,
            test=5000,
            least_gain=100.0,
            bars={IMPROVED: (False, -103.0), HOT: (True, -84.0), FAST: (False, -81.0)},
            widest_cast=True,
        ),
    }
)


def methods_of(plan: Plan) -> list[tuple[Method, Length]]:
    """Everything that is trained, and for how long; each is one compiled program."""
    deep, one = DeepTempering(), (plan.rate,)
    others = [
        Method(PT, 1, ParallelTempering(10, base="uniform"), one),
        Method(LEARNED_PT, 1, ParallelTempering(20, base="uniform", schedule="learned"), one),
        Method(CAST1, 1, CAST(1, 100, gain=10, base="uniform"), one),
        Method(CAST10, 1, CAST(10, 100, gain=10, base="uniform"), one),
    ]
    if plan.widest_cast:
        others.append(Method(CAST100, 1, CAST(100, 100, gain=10, base="uniform"), one))
    others += [Method(PRE2, 2, deep, one, pretrained=True), Method(PRE3, 3, deep, one, pretrained=True)]
    return [
        (Method(SML, 1, None, RATES), plan.figure),
        (Method(DEEP2, 2, deep, RATES), plan.figure),
        (Method(DEEP3, 3, deep, RATES), plan.figure),
        *((method, plan.others) for method in others),
        (Method(IMPROVED, 2, deep, (1e-3,), improved=True), plan.ours),
        (Method(HOT, 2, DeepTempering(hot=4), (3e-2,), improved=True), plan.ours),
        (Method(FAST, 2, DeepTempering(hot=4), (1e-1,), improved=True), plan.ours),
    ]
