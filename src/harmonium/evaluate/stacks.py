"""Scores of deep models in the reports of their training: what can be had without an error of log Z."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from harmonium.energy.dbm import DBM
from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.bounds import Bound, can_sum, drawing_operations, drawn_bound, exact_scores
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import exact_log_partition
from harmonium.evaluate.likelihood import mean_over_rows
from harmonium.evaluate.starts import affordable_plan
from harmonium.evaluate.variational import mean_field_bound
from harmonium.numerics.enumerate import BIT_BUDGET

_DRAWS = 10


def affordable_estimates(
    stack: AbstractStack,
    scored: Mapping[str, tuple[np.ndarray, np.ndarray | None]],
    operations: float,
) -> dict[str, Estimate]:
    """Mean log-likelihoods by split of rows (and their weights, or None), or a stochastic lower bound of them.

    Exact where the inner layers can be summed over within so many ``operations``, else a bound from ten draws of the
    recognition per row. Empty where the top level's partition function would cost more, or those draws would.
    """
    plan = affordable_plan(stack.top, BIT_BUDGET, operations)
    count = sum(len(rows) for rows, _ in scored.values())
    settings = Bound(draws=_DRAWS)
    summed = can_sum(stack, count, BIT_BUDGET, operations)
    if plan is None or not (summed or drawing_operations(stack, count, settings) <= operations):
        return {}
    partition = exact_log_partition(stack.top, plan=plan)
    found = {}
    for split, (rows, weight) in scored.items():
        scores = exact_scores(stack, rows) if summed else drawn_bound(stack, rows, settings)
        mean = mean_over_rows(scores.value, weight)
        share = np.full(len(rows), 1 / len(rows)) if weight is None else weight / np.sum(weight)
        stderr = float(np.sqrt(np.sum((share * scores.stderr) ** 2)))
        found[split] = replace(mean, stderr=stderr, low=None, high=None, kind=scores.kind) - partition
    return found


def affordable_bounds(
    dbm: DBM, scored: Mapping[str, tuple[np.ndarray, np.ndarray | None]], operations: float
) -> dict[str, Estimate]:
    """Mean bounds by split of rows (and their weights, or None); empty where log Z would cost more operations."""
    plan = affordable_plan(dbm, BIT_BUDGET, operations)
    if plan is None:
        return {}
    partition = exact_log_partition(dbm, plan=plan)
    found = {}
    for split, (rows, weight) in scored.items():
        scores = mean_field_bound(dbm, rows)
        found[split] = replace(mean_over_rows(scores.value, weight), kind=scores.kind) - partition
    return found
