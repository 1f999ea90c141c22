"""Whether two directions of annealing are to be believed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from harmonium.energy.base import AbstractEnergyModel
from harmonium.evaluate.annealing import Annealed, log_mean_weight
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import energies_of
from harmonium.evaluate.starts import Start

LEAST_EFFECTIVE_CHAINS = 10.0
"""Weights worth fewer chains than this say nothing about their own error."""

SIGMAS = 3.0
"""Two numbers further apart than this many of their combined errors disagree."""

ROUNDING = 1e-4
"""Nats by which two numbers may part through single precision alone."""

NOT_FINITE = "a log-weight is not finite"

ALARM = 1e-3
"""Chance with which the test of two halves of the chains at equilibrium gives a false alarm."""


BLIND = "no chain started from a row, so that a mode which chains from rest never find would go unseen: pass data="
"""What is to be said of chains that neither rows nor exact draws began."""


def doubts_about(
    forward: Estimate, reverse: Estimate, model: AbstractEnergyModel, start: Start, walk: Annealed
) -> list[str]:
    """Why the forward estimate is not to be trusted, as far as the reverse one and its chains can tell; often empty."""
    if not finite(forward, reverse):
        return [NOT_FINITE]
    doubts = doubts_about_directions(forward, reverse)
    if start.blind:
        doubts.append(BLIND)
    if start.first:
        doubts += doubts_about_origins(model, start.particles, walk.log_weight, start.first)
    return doubts


def finite(*estimates: Estimate) -> bool:
    """Whether all these numbers and their errors are finite."""
    return all(math.isfinite(number) for one in estimates for number in (one.value, one.stderr))


def doubts_about_directions(forward: Estimate, reverse: Estimate) -> list[str]:
    """What walks either way say of each other, and of how many chains carry their weight."""
    doubts = []
    for name, estimate in (("forward", forward), ("reverse", reverse)):
        effective = estimate.cost["effective_chains"]
        if effective < LEAST_EFFECTIVE_CHAINS:
            doubts.append(
                f"the {name} weights are worth {effective:.1f} chains, fewer than {LEAST_EFFECTIVE_CHAINS:.0f}"
            )
    return doubts + doubts_about_two("forward and reverse", forward, reverse)


def doubts_about_two(names: str, one: Estimate, other: Estimate) -> list[str]:
    """That two estimates of one number part by more than their errors allow, if they do."""
    if not part(one.value, one.stderr, other.value, other.stderr):
        return []
    apart = other.value - one.value
    return [f"{names} part by {apart:.3g} nats, more than {SIGMAS:g} combined errors"]


def part(one: float, its_stderr: float, other: float, its: float) -> bool:
    """Whether two numbers are further apart than their errors and rounding allow."""
    return abs(one - other) > SIGMAS * math.hypot(its_stderr, its) + ROUNDING


def doubts_about_origins(
    model: AbstractEnergyModel, particles: tuple[np.ndarray, ...], log_weight: np.ndarray, first: int
) -> list[str]:
    """Chains of two origins, the first ``first`` and the others, that are at equilibrium cannot be told apart.

    ``log_weight`` are those of walks back from where they are.
    """
    doubts = []
    halves = (slice(None, first), slice(first, None))
    (one, its_stderr), (other, its) = (log_mean_weight(log_weight[half]) for half in halves)
    if part(one, its_stderr, other, its):
        doubts.append(f"reversed chains of the two origins part by {abs(one - other):.3g} nats")
    energies = energies_of(model, particles)
    test: Any = scipy.stats.ks_2samp(energies[halves[0]], energies[halves[1]])
    chance = float(test.pvalue)
    units = np.concatenate(particles, axis=1)
    chance = min(chance, chance_of_means(*(units[half] for half in halves)))
    if chance < ALARM:
        doubts.append(have_not_met(chance))
    return doubts


def have_not_met(chance: float) -> str:
    """That chains of two origins are told apart, with the chance of a false alarm."""
    return (
        f"chains of the two origins have not met (chance {chance:.1g}): a mode may be missing, or the runs are too "
        "short"
    )


def chance_of_means(one: np.ndarray, other: np.ndarray) -> float:
    """Chance, by Bonferroni, of so large a difference of some unit's means between two sets of chains."""
    difference = np.abs(one.mean(axis=0, dtype=np.float64) - other.mean(axis=0, dtype=np.float64))
    both = np.concatenate([one, other]).std(axis=0, dtype=np.float64)
    moving = both > 0
    if not moving.any():
        return 1.0
    spread = both[moving] * math.sqrt(1 / len(one) + 1 / len(other))
    return float(min(1.0, 2 * moving.sum() * scipy.stats.norm.sf(np.max(difference[moving] / spread))))
