"""What a run of members reports: the median and the band over them, and which of them have come apart."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.energy.guided import unguided
from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.ensemble import band, exact_log_partitions, unnormalised_log_probabilities
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import likelihood_operations
from harmonium.evaluate.likelihood import mean_over_rows
from harmonium.evaluate.starts import affordable_plan
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET
from harmonium.train.monitor import EXACT_OPERATIONS, Health, Monitor, vital_signs
from harmonium.train.state import TrainState

_SHARED = ("index", "epoch", "log_likelihood_kind")
"""What every member's line of metrics says alike."""


class EnsembleMonitor:
    """`Monitor` of every member, in one compiled call for all of them."""

    def __init__(self, monitor: Monitor):
        self.monitor = monitor

    def health(self, state: TrainState) -> list[Health]:
        """The vital signs of every member."""
        signs = _health_program()(
            state.model,
            self.monitor.rule.chains(state.rule_state),
            self.monitor.probe,
            self.monitor.probe_weight,
            state.key,
            state.index,
        )
        finite, *numbers = jax.device_get(signs)
        return [
            Health(bool(sound), *(float(number) for number in own))
            for sound, *own in zip(finite, *numbers, strict=True)
        ]

    def faults(self, state: TrainState, healths: list[Health]) -> dict[int, str]:
        """Which members must be held to have diverged, and why; those that were stopped already are not asked."""
        found = {member: self.monitor.fault(healths[member]) for member in training_members(state)}
        return {member: fault for member, fault in found.items() if fault is not None}

    def report(
        self, state: TrainState, healths: list[Health], rates: np.ndarray, epoch: float, number: int | None
    ) -> tuple[dict[str, Any], dict[int, str]]:
        """One line of metrics for the members that are in training, and the faults that theirs show.

        ``number`` counts the reports of a run from 0, and is None for its last: see `likelihoods`.
        """
        likelihoods = self.likelihoods(state.model, number)
        lines = {
            member: self.monitor.line(
                state, healths[member], float(rates[member]), epoch, likelihoods[member]
            )
            for member in training_members(state)
        }
        found = {member: self.monitor.fault_of_likelihood(line) for member, line in lines.items()}
        faults = {member: fault for member, fault in found.items() if fault is not None}
        return {**summary_of(list(lines.values())), "members": len(lines)}, faults

    def likelihoods(self, stacked: AbstractEnergyModel, number: int | None) -> list[dict[str, Estimate]]:
        """`Monitor.likelihoods` of every member, exact or bounds alike; empty ones when one would cost too much.

        Where all members together cost more than one model may, only every so-many-th report of a run has them, so
        that on average none costs more, and its first and its last.
        """
        stacked = unguided(stacked)
        members = len(jax.tree.leaves(stacked)[0])
        if isinstance(stacked, AbstractStack):
            return [self.monitor.likelihoods(_member_of(stacked, place)) for place in range(members)]
        scored = sum(len(rows) for rows, _ in self.monitor.scored.values())
        one = _member_of(stacked, 0)
        operations = likelihood_operations(one, scored)
        bounded = isinstance(one, DBM) and operations > EXACT_OPERATIONS
        if bounded:
            plan = affordable_plan(one, BIT_BUDGET, EXACT_OPERATIONS)
            operations = math.inf if plan is None else plan.operations
        if operations > EXACT_OPERATIONS:
            return [{} for _ in range(members)]
        apart = math.ceil(members * operations / EXACT_OPERATIONS)
        if number is not None and number % apart:
            return [{} for _ in range(members)]
        if bounded:
            return [self.monitor.likelihoods(_member_of(stacked, place)) for place in range(members)]
        partitions = exact_log_partitions(stacked)
        scores = {
            split: (unnormalised_log_probabilities(stacked, rows), weight)
            for split, (rows, weight) in self.monitor.scored.items()
        }
        return [
            {
                split: mean_over_rows(values[member], weight) - float(partitions[member])
                for split, (values, weight) in scores.items()
            }
            for member in range(members)
        ]


def _member_of(stacked: AbstractEnergyModel, place: int) -> AbstractEnergyModel:
    return jax.tree.map(lambda leaf: leaf[place], stacked)


def training_members(state: TrainState) -> list[int]:
    """The members that the guard has not stopped."""
    return [int(member) for member in np.flatnonzero(np.asarray(state.rate_scale) > 0)]


def summary_of(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of metrics for all: every number is the median member's, with the ends of the band beside it.

    >>> summary_of([{"index": 100, "weight_rms": value} for value in (0.1, 0.3, 0.2)])
    {'index': 100, 'weight_rms': 0.2, 'weight_rms_low': 0.1, 'weight_rms_high': 0.3}
    """
    summary: dict[str, Any] = {}
    for key, value in lines[0].items():
        if key in _SHARED:
            summary[key] = value
            continue
        found = band([line[key] for line in lines])
        summary[key] = found.median
        if not key.endswith("_stderr"):
            summary |= {f"{key}_low": found.low, f"{key}_high": found.high}
    return summary


@cache
def _health_program():
    return compile_function(jax.vmap(vital_signs, in_axes=(0, 0, None, None, 0, None)))
