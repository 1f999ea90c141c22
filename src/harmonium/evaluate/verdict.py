"""Whether two directions of annealing are to be believed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from harmonium.energy.layered import AbstractLayered
from harmonium.evaluate.annealing import Annealed, log_mean_weight
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import marginal_energies
from harmonium.evaluate.starts import Start

LEAST_EFFECTIVE_CHAINS = 10.0
"""Weights worth fewer chains than this say nothing about their own error."""

SIGMAS = 3.0
"""Two numbers further apart than this many of their combined errors disagree."""

ROUNDING = 1e-4
"""Nats by which two numbers may part through single precision alone."""

_ALARM = 1e-3
"""Chance with which the test of two halves of the chains at equilibrium gives a false alarm."""


def doubts_about(
    forward: Estimate, reverse: Estimate, model: AbstractLayered, start: Start, walk: Annealed
) -> list[str]:
    """Why the forward estimate is not to be trusted, as far as the reverse one and its chains can tell; often empty."""
    values = (forward.value, reverse.value, forward.stderr, reverse.stderr)
    if not all(math.isfinite(value) for value in values):
        return ["a log-weight is not finite"]
    doubts = []
    for name, estimate in (("forward", forward), ("reverse", reverse)):
        effective = estimate.cost["effective_chains"]
        if effective < LEAST_EFFECTIVE_CHAINS:
            doubts.append(
                f"the {name} weights are worth {effective:.1f} chains, fewer than {LEAST_EFFECTIVE_CHAINS:.0f}"
            )
    if part(forward.value, forward.stderr, reverse.value, reverse.stderr):
        doubts.append(
            f"forward and reverse part by {reverse.value - forward.value:.3g} nats, more than {SIGMAS:g} combined "
            "errors"
        )
    if start.blind:
        doubts.append(
            "no chain started from a row, so that a mode which chains from rest never find would go unseen: pass data="
        )
    if start.first:
        doubts += _doubts_about_halves(model, start, walk)
    return doubts


def part(one: float, its_stderr: float, other: float, its: float) -> bool:
    """Whether two numbers are further apart than their errors and rounding allow."""
    return abs(one - other) > SIGMAS * math.hypot(its_stderr, its) + ROUNDING


def _doubts_about_halves(model: AbstractLayered, start: Start, walk: Annealed) -> list[str]:
    """Chains from two origins that have reached the same equilibrium cannot be told apart."""
    doubts = []
    halves = (slice(None, start.first), slice(start.first, None))
    (one, its_stderr), (other, its) = (log_mean_weight(walk.log_weight[half]) for half in halves)
    if part(one, its_stderr, other, its):
        doubts.append(f"reversed chains of the two origins part by {abs(one - other):.3g} nats")
    energies = marginal_energies(model, 0, tuple(start.particles[layer] for layer in model.sides[0]))
    test: Any = scipy.stats.ks_2samp(energies[halves[0]], energies[halves[1]])
    chance = float(test.pvalue)
    units = np.concatenate(start.particles, axis=1)
    chance = min(chance, _chance_of_means(*(units[half] for half in halves)))
    if chance < _ALARM:
        doubts.append(
            f"chains of the two origins have not met (chance {chance:.1g}): a mode may be missing, or the runs are too "
            "short"
        )
    return doubts


def _chance_of_means(one: np.ndarray, other: np.ndarray) -> float:
    """Chance, by Bonferroni, of so large a difference of some unit's means between two sets of chains."""
    difference = np.abs(one.mean(axis=0, dtype=np.float64) - other.mean(axis=0, dtype=np.float64))
    both = np.concatenate([one, other]).std(axis=0, dtype=np.float64)
    moving = both > 0
    if not moving.any():
        return 1.0
    spread = both[moving] * math.sqrt(1 / len(one) + 1 / len(other))
    return float(min(1.0, 2 * moving.sum() * scipy.stats.norm.sf(np.max(difference[moving] / spread))))
