"""What the study of deep tempering says of its runs: what came out as in print, what did not, and what is claimed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harmonium.studies.base import Statement
from harmonium.studies.deep_tempering_plan import (
    CAST1,
    CAST10,
    CAST100,
    DEEP2,
    DEEP3,
    LEARNED_PT,
    PAPER,
    PAPER_BOUNDS,
    PRE2,
    PRE3,
    PT,
    SML,
    Plan,
)
from harmonium.studies.modes_runs import Scored, Trace, best_of, late

_PAPER_UPDATES = 1_000_000
_FALLEN = 20.0
"""Nats below the best of its own curve at which a run is said to have fallen back."""

_MOST_APART = 5.0
"""Nats that the bound of a trained stack may be below its exact log-likelihood."""


def statements(plan: Plan, traces: Sequence[Trace], scored: Scored) -> list[Statement]:
    """Every sentence of the study, the claims among them."""
    return [
        *_of_length(plan),
        _of_data(plan),
        _of_gain(plan, traces),
        *_of_rates(traces),
        _of_ladders(traces),
        _of_bounds(traces),
        *_of_pretraining(traces),
        _of_order(traces),
        _of_entropy(traces, scored),
        *_of_ours(plan, traces),
    ]


def _of_length(plan: Plan) -> list[Statement]:
    updates, seeds = plan.figure.updates, plan.figure.seeds
    if updates >= _PAPER_UPDATES:
        return []
    return [
        Statement(
            f"these are runs of {updates} updates over {seeds} seeds where the paper has {_PAPER_UPDATES} and 5: at a "
            "rate of 0.0001 they are far from done and at 0.00001 they have hardly begun, so that other samplers and "
            f"pre-training are shown at {plan.rate:g}, and not as good as in print; --full makes its runs"
        )
    ]


def _of_data(plan: Plan) -> Statement:
    return Statement(
        f"rows are from a fixed sample of {plan.rows}, each member in an order of its own, where the paper draws every "
        "row anew; gradients are centred at the mean of the data and at 0.5, which the paper does not say, but without "
        "which its numbers are out of reach"
    )


def _of_gain(plan: Plan, traces: Sequence[Trace]) -> Statement:
    one, two = best_of(traces, SML), best_of(traces, DEEP2)
    below, above = _median(one), _median(two)
    return Statement(
        f"at its best rate ({two.rate:g}) the bottom RBM of t-DBN2 scores {above:.1f}, an RBM by SML at its own "
        f"({one.rate:g}) {below:.1f}: {above - below:.1f} nats apart, at least {plan.least_gain:g} asked for (paper: "
        "-120.4 and -329.6)",
        above - below >= plan.least_gain,
    )


def _of_rates(traces: Sequence[Trace]) -> list[Statement]:
    """Of figure 1, which runs at a constant rate fell back from the best of their curves."""
    said = []
    for label in (SML, DEEP2, DEEP3):
        parts = []
        for trace in (trace for trace in traces if trace.method.label == label):
            fallen = trace.bottom.max(axis=1) - late(trace, trace.bottom)
            count = int(np.sum(~(fallen <= _FALLEN)))
            printed = PAPER.get((label, trace.rate))
            paper = "" if printed is None else f" (paper: {printed})"
            parts.append(
                f"at {trace.rate:g} {_median(trace):.1f}, {count} of {len(fallen)} seeds fallen back by more than "
                f"{_FALLEN:g} nats{paper}"
            )
        said.append(Statement(f"{label}: " + "; ".join(parts)))
    return said


def _of_ladders(traces: Sequence[Trace]) -> Statement:
    parts = [
        f"{trace.method.label} {_median(trace):.1f} (paper: {PAPER[trace.method.label, None]})"
        for trace in traces
        if trace.method.label in (PT, LEARNED_PT, CAST1, CAST10, CAST100)
    ]
    left_out = (
        "" if any(trace.method.label == CAST100 for trace in traces) else f"; {CAST100} is of --full alone"
    )
    return Statement(
        "ladders of temperatures at "
        f"{best_of(traces, PT).rate:g}: {', '.join(parts)}{left_out}; for adaptive betas, which add rungs as they "
        "go, stand learned ones, which move until all pairs are refused alike"
    )


def _of_bounds(traces: Sequence[Trace]) -> Statement:
    parts = []
    for label, printed in PAPER_BOUNDS.items():
        trace = best_of(traces, label, bound=True)
        parts.append(f"{label} {_median_bound(trace):.1f} at {trace.rate:g} (paper: {printed})")
    return Statement("bounds of the stacks as deep belief networks: " + ", ".join(parts))


def _of_pretraining(traces: Sequence[Trace]) -> list[Statement]:
    """Figure 2b's lower curves."""
    said = []
    for label, other in ((DEEP2, PRE2), (DEEP3, PRE3)):
        before = best_of(traces, other)
        (joint,) = (trace for trace in traces if trace.method.label == label and trace.rate == before.rate)
        mine, theirs = (late(trace, _bound(trace)) for trace in (joint, before))
        worse = float(np.median(mine) - np.median(theirs))
        clear = bool(mine.min() > theirs.max()) and worse > 1
        verdict = "reproduced here" if clear else "not reproduced here"
        assert before.before is not None
        said.append(
            Statement(
                f'"pre-training is clearly worse", {label} at {before.rate:g}: {verdict}; bounds '
                f"{np.median(theirs):.1f} (from {theirs.min():.1f} to {theirs.max():.1f}) by {joint.updates[-1]} "
                f"updates after {int(np.median(before.before))} of pre-training, {np.median(mine):.1f} (from "
                f"{mine.min():.1f} to {mine.max():.1f}) without"
            )
        )
    return said


def _of_order(traces: Sequence[Trace]) -> Statement:
    """The bound is below the likelihood everywhere, and near it where training went well."""
    apart = [trace.network - trace.bound for trace in traces if _is_stack(trace)]  # pyright: ignore[reportOptionalOperand]
    ours = max(
        float((trace.network - trace.bound)[:, -1].max())  # pyright: ignore[reportOptionalOperand, reportOptionalSubscript]
        for trace in traces
        if _is_stack(trace) and trace.method.improved
    )
    least = min(float(part.min()) for part in apart)
    widest = max(float(part[:, -1].max()) for part in apart)
    return Statement(
        f"the bound of a stack is below its exact log-likelihood at every point (by {least:.2g} nats or more), by at "
        f"most {ours:.2f} nats at the end of our runs ({_MOST_APART:g} asked for) and {widest:.2f} of any",
        bool(least >= -1e-6 and ours < _MOST_APART),
    )


def _of_entropy(traces: Sequence[Trace], scored: Scored) -> Statement:
    best = max(
        (float(np.nanmax(curve)), trace.method.label)
        for trace in traces
        for curve in (trace.bottom, trace.network)
        if curve is not None
    )
    return Statement(
        f"no score is above minus the entropy, {-scored.entropy:.3f}, but by its error: the highest is {best[0]:.2f} "
        f"({best[1]})",
        best[0] <= -scored.entropy + 0.3,
    )


def _of_ours(plan: Plan, traces: Sequence[Trace]) -> list[Statement]:
    said = []
    for trace in traces:
        if not trace.method.improved:
            continue
        ends = trace.bottom[:, -1]
        found = (
            f"{trace.method.label}, rate falling from {trace.rate:g}, {trace.updates[-1]} updates: median "
            f"{np.median(ends):.2f}, worst of {len(ends)} seeds {ends.min():.2f}"
        )
        bar = plan.bars.get(trace.method.label)
        if bar is None:
            said.append(Statement(found))
            continue
        of_worst, least = bar
        value = float(ends.min() if of_worst else np.median(ends))
        what = "worst" if of_worst else "median"
        said.append(Statement(f"{found}; {what} better than {least:g} asked for", value > least))
    return said


def _is_stack(trace: Trace) -> bool:
    return trace.bound is not None


def _bound(trace: Trace) -> np.ndarray:
    assert trace.bound is not None
    return trace.bound


def _median(trace: Trace) -> float:
    return float(np.median(late(trace, trace.bottom)))


def _median_bound(trace: Trace) -> float:
    return float(np.median(late(trace, _bound(trace))))
