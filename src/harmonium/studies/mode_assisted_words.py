"""What the study of mode-assisted training says: what is in print, whether it was found, and what was asked of us."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harmonium.evaluate.ensemble import band
from harmonium.studies.base import Statement
from harmonium.studies.mode_assisted_plan import (
    CD3,
    CD10,
    CD_DBM,
    CD_RBM,
    CLOSE,
    FEW,
    LARGE,
    LONG,
    MA_DBM,
    MA_RBM,
    MANY,
    OUR_DBM,
    OUR_RBM,
    PCD_FAST,
    POOR,
    SMALL,
    Net,
    Plan,
)
from harmonium.studies.mode_assisted_runs import DigitScore, Scores

LEAST_GAIN = 8.0
"""How many times as far from its data a net without modes is to be, in the median."""

ENOUGH = 0.95
"""Share of the nets that is to be within `CLOSE` of the data."""


def statements(
    plan: Plan,
    curves: Sequence[Scores],
    shapes: Sequence[Scores],
    others: Sequence[Scores],
    digits: Sequence[DigitScore],
    absent: Sequence[str],
) -> list[Statement]:
    """Sentences about everything; a claim of the paper that was not found is said so, and fails nothing."""
    said = [
        *_of_figure_2(curves),
        _of_equation_8(curves),
        *_of_figure_3(shapes),
        *_of_controls(curves, others),
    ]
    said += _of_digits(digits)
    if plan.digits is None:
        said.append(Statement("figure 4, nets of digits, is left out at this scale; --full has it"))
    return said + [Statement(words) for words in absent]


def median(scores: Scores) -> float:
    """The median divergence of an ensemble from its data, nats."""
    return band(scores.divergence).median


def spread(scores: Scores) -> float:
    """From the 5 % to the 95 % end of an ensemble, nats."""
    ends = band(scores.divergence)
    return ends.high - ends.low


def _of_figure_2(curves: Sequence[Scores]) -> list[Statement]:
    said = []
    for visible in sorted({scores.case.net.visible for scores in curves}):
        own = [scores for scores in curves if scores.case.net.visible == visible]
        labels = CD_RBM, MA_RBM, CD_DBM, MA_DBM, OUR_RBM, OUR_DBM
        by = {label: [s for s in own if s.case.label == label] for label in labels}
        totals = [scores.case.net.total for scores in by[MA_RBM]]
        where = f"{visible} visible units"
        for plain, helped in ((CD_RBM, MA_RBM), (CD_DBM, MA_DBM)):
            gains = [median(one) / median(other) for one, other in zip(by[plain], by[helped], strict=True)]
            said.append(
                Statement(
                    f"{where}: by CD-1 the median divergence of the {helped[:3]} is {_several(gains)} times that with "
                    f"modes, at {_several(totals)} hidden units",
                    min(gains) > 1,
                )
            )
        narrower = [spread(one) / spread(other) for one, other in zip(by[CD_DBM], by[MA_DBM], strict=True)]
        said.append(
            Statement(
                f"{where}: the band over DBMs is {_several(narrower)} times as narrow with modes",
                min(narrower) > 1,
            )
        )
        better = sum(median(one) < median(other) for one, other in zip(by[MA_DBM], by[CD_RBM], strict=True))
        said.append(
            Statement(
                f"{where}: in print, a DBM with modes is in most cases better than the RBM by CD-1; found at {better} "
                f"of {len(totals)} sizes",
                2 * better > len(totals),
            )
        )
        deeper = sum(median(one) < median(other) for one, other in zip(by[MA_DBM], by[MA_RBM], strict=True))
        said.append(
            Statement(
                f"{where}: the RBM with modes, which the paper leaves out, has median divergences of "
                f"{_several([median(s) for s in by[MA_RBM]])} nats, the DBM with modes of "
                f"{_several([median(s) for s in by[MA_DBM]])}; the DBM is the better one at {deeper} of {len(totals)} "
                "sizes" + (", so that depth is not what helps" if 2 * deeper <= len(totals) else "")
            )
        )
        lost = {label: median(by[label][-1]) - median(by[label][0]) for label in by}
        said.append(
            Statement(
                f"{where}: from {totals[0]} to {totals[-1]} hidden units the median loses {lost[CD_RBM]:.3f} nats "
                f"(RBM) and {lost[CD_DBM]:.3f} (DBM) by CD-1, {lost[MA_RBM]:.3f} and {lost[MA_DBM]:.3f} with modes",
                max(lost[MA_RBM], lost[MA_DBM]) < max(lost[CD_RBM], lost[CD_DBM]),
            )
        )
        for label in (MA_RBM, MA_DBM, OUR_RBM, OUR_DBM):
            shares = [float(np.mean(scores.divergence <= CLOSE)) for scores in by[label]]
            reached = [total for total, share in zip(totals, shares, strict=True) if share >= ENOUGH]
            said.append(
                Statement(
                    f"{where}: within {CLOSE:g} nats of the data are {_several([100 * share for share in shares])} % "
                    f"of the nets ({label}); {ENOUGH:.0%} of them at {_several(reached) if reached else 'none'} of "
                    f"{_several(totals)} hidden units"
                )
            )
    return said


def _of_equation_8(curves: Sequence[Scores]) -> Statement:
    nets = [scores.case.net for scores in curves if scores.case.label == MA_DBM]
    counted = [net.parameters / Net(net.visible, (net.total,)).parameters for net in nets]
    printed = [1 / (1 + net.hidden[1] / net.hidden[0]) for net in nets]
    return Statement(
        f"equation 8: a DBM has {_several(counted)} times the parameters of the RBM of as many hidden units, where "
        f"1/(1 + ratio), for visible layers far wider than all others, is {_several(printed)}"
    )


def _of_figure_3(shapes: Sequence[Scores]) -> list[Statement]:
    plain, helped = ([s for s in shapes if s.case.label == label] for label in (CD_DBM, MA_DBM))
    ratios = [
        s.case.net.hidden[1] / s.case.net.hidden[0] if len(s.case.net.hidden) > 1 else 0.0 for s in helped
    ]
    found = [median(scores) for scores in helped]
    best = ratios[int(np.argmin(found))]
    seen = "that is near" if 0.08 <= best <= 0.25 else "that is not seen"
    return [
        Statement(
            f"figure 3: DBMs with modes are nearer to the data than without at every ratio of the layers, "
            f"{_several(found)} nats against {_several([median(s) for s in plain])}, at {_several(ratios)}",
            all(median(one) < median(other) for one, other in zip(helped, plain, strict=True)),
        ),
        Statement(
            f"figure 3: in print, a ratio of 0.15 is best; {seen}: the best of ours is {best:.2g}, where 0 is an RBM. "
            f"At {ratios[-1]:.2g} the divergence is {found[-1] / max(found[0], 1e-9):.0f} times that of the RBM"
        ),
    ]


def _of_controls(curves: Sequence[Scores], others: Sequence[Scores]) -> list[Statement]:
    by = {scores.case.label: scores for scores in others}
    net = others[0].case.net
    length = others[0].case.length
    same = [s for s in curves if s.case.net == net and s.case.length == length]
    at = {label: median(scores) for label, scores in by.items()}
    ours = next((median(s) for s in same if s.case.label == MA_RBM), at[FEW])
    said = [
        Statement(
            f"equal cost: {length.updates} updates with modes leave {ours:.4f} nats; those of CD-3, of the same cost, "
            f"{at[CD3]:.4f}; of CD-10 {at[CD10]:.4f}; of CD-720 wherever a mode would be taken {at[LONG]:.4f}",
            ours < min(at[CD3], at[CD10], at[LONG]),
        ),
        Statement(
            f"solver: modes of 8 and of 256 starts leave {at[FEW]:.4f} and {at[MANY]:.4f} nats, those of one start "
            f"with three sweeps {at[POOR]:.3g}: what is no mode pushes for ever",
            at[POOR] > (0.5 if length.updates >= 20_000 else 0.25),
        ),
        Statement(
            f"push: a fifth of it leaves {at[SMALL]:.4f} nats, sixteen times of it {at[LARGE]:.4f}",
            at[LARGE] > ours,
        ),
        Statement(
            f"{PCD_FAST} without modes comes apart: {at[PCD_FAST]:.3g} nats from the data", at[PCD_FAST] > 1
        ),
    ]
    plain = next((s for s in same if s.case.label == CD_RBM), None)
    if plain is not None:
        said.append(
            Statement(
                f"CD-1 is {median(plain) / ours:.1f} times as far from the data as with modes, at least {LEAST_GAIN:g} "
                "are asked for",
                median(plain) >= LEAST_GAIN * ours,
            )
        )
    return said


def _of_digits(digits: Sequence[DigitScore]) -> list[Statement]:
    said = []
    for name in dict.fromkeys(score.data for score in digits):
        own = [score for score in digits if score.data == name]
        values = {(s.label, s.net.total): float(s.estimate.value) for s in own}
        totals = list(dict.fromkeys(score.net.total for score in own))
        for kind in ("RBM", "DBM"):
            gains = [
                values[f"{kind}, mode-assisted", total] - values[f"{kind}, PCD-1", total] for total in totals
            ]
            said.append(
                Statement(
                    f"figure 4 on {name}: with modes the best {kind} gains {_several(gains)} nats over PCD-1 at "
                    f"{_several(totals)} hidden units; in print, modes are worth two orders of magnitude in parameters"
                )
            )
    return said


def _several(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
