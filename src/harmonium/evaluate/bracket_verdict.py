"""Whether a bracket is to be believed: what ladders and both directions say of each other."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats

from harmonium.energy.base import AbstractEnergyModel
from harmonium.evaluate.annealing import Annealed
from harmonium.evaluate.bridge import Bridge, bridge
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.ladders import SNAPSHOTS, Climb
from harmonium.evaluate.verdict import (
    ALARM,
    BLIND,
    NOT_FINITE,
    ROUNDING,
    doubts_about_directions,
    doubts_about_origins,
    doubts_about_two,
    finite,
    have_not_met,
)
from harmonium.samplers.diagnostics import split_rhat

LARGEST_RHAT = 1.05
"""Chains at the model whose energies have a larger split R-hat have not mixed."""

LEAST_OVERLAP = 0.02
"""Work distributions of neighbours that have less in common vanish from each other's sight."""

LEAST_TRIPS = 10
"""Fewer replicas from the base to the model, over all ladders, are too few looks at what is not where chains began."""

LARGEST_REJECTION = 0.95
"""A pair of rungs that refuses more than this share of its swaps is a gap in the ladder."""


def doubts_about_bracket(
    middle: Estimate,
    forward: Estimate,
    reverse: Estimate,
    found: Bridge,
    run: Climb,
    model: AbstractEnergyModel,
    back: Annealed,
    ladders: tuple[int, int],
) -> list[str]:
    """Why the bridge ``middle`` is not to be trusted; often empty.

    ``ladders`` are how many began at rows (none: there were no rows) and how many there are; ``back`` is the walk back
    from the chains at the model.
    """
    if not finite(middle, forward, reverse):
        return [NOT_FINITE]
    doubts = doubts_about_directions(forward, reverse)
    doubts += doubts_about_two("forward and bridge", forward, middle)
    doubts += doubts_about_two("bridge and reverse", middle, reverse)
    doubts += doubts_about_ladders(found, run)
    if not ladders[0]:
        return [*doubts, BLIND]
    return doubts + _doubts_about_origins(run, model, back, ladders)


def doubts_about_ladders(found: Bridge, run: Climb) -> list[str]:
    """What the ladders show of their own mixing."""
    doubts = []
    rejection, pair = float(run.rejection.max()), int(run.rejection.argmax())
    if rejection > LARGEST_REJECTION:
        doubts.append(
            f"rungs {pair} and {pair + 1} of {len(run.betas)} refuse {rejection:.1%} of their swaps: give the ladder "
            "more rungs"
        )
    if found.overlap.min() < LEAST_OVERLAP:
        pair = int(found.overlap.argmin())
        doubts.append(
            f"the work distributions of rungs {pair} and {pair + 1} hardly overlap ({found.overlap.min():.1g}): give "
            "the ladder more rungs"
        )
    if run.trips.sum() < LEAST_TRIPS:
        doubts.append(
            f"{run.trips.sum()} replicas came from the base to the model, fewer than {LEAST_TRIPS}: the runs are too "
            "short, or the ladder has a gap"
        )
    rhat = split_rhat(run.energy.T, ranked=False)
    if rhat > LARGEST_RHAT:
        doubts.append(
            f"split R-hat of the energy is {rhat:.3f}, more than {LARGEST_RHAT:g}: the runs are too short"
        )
    if found.slope_chance < ALARM:
        doubts.append(
            f"work distributions of neighbours contradict Crooks's relation (chance {found.slope_chance:.1g}): the "
            "rungs are not at equilibrium"
        )
    return doubts


def _doubts_about_origins(
    run: Climb, model: AbstractEnergyModel, back: Annealed, ladders: tuple[int, int]
) -> list[str]:
    """Ladders that began at rows and at rest, of the same equilibrium, cannot be told apart."""
    first, count = ladders
    chains = len(run.trips) * first // count
    # All snapshots of a chain together: were they alike, the chain would not have moved, and that is to be seen.
    by_chain = np.arange(len(run.particles[0])).reshape(SNAPSHOTS, -1).T.ravel()
    particles = tuple(layer[by_chain] for layer in run.particles)
    doubts = doubts_about_origins(model, particles, back.log_weight[by_chain], SNAPSHOTS * chains)
    hotter, colder = run.by_ladder(count)
    halves = [bridge(hotter[half], colder[half]) for half in (slice(None, first), slice(first, None))]
    apart, error = halves[1].value - halves[0].value, math.hypot(halves[0].stderr, halves[1].stderr)
    # Few blocks in each half: their errors scatter, and Student's law knows by how much, whichever half has the larger.
    if abs(apart) > scipy.stats.t.isf(ALARM / 2, first - 1) * error + ROUNDING:
        doubts.append(
            f"bridges of the two origins part by {apart:.3g} nats, {abs(apart) / error:.1f} of their errors"
        )
    means = run.energy.mean(axis=0, dtype=np.float64)
    chance = float(scipy.stats.mannwhitneyu(means[:chains], means[chains:]).pvalue)
    if chance < ALARM and not any("have not met" in doubt for doubt in doubts):
        doubts.append(have_not_met(chance))
    return doubts
