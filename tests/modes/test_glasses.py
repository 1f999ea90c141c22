"""How often solvers find the modes of sixteen random glasses of 24 by 20 units, which are known exactly."""

from __future__ import annotations

from functools import cache

import jax
import numpy as np

import harmonium as hm
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.descent import Descent
from harmonium.modes.memcomputing import Memcomputing
from tests.modes.glasses import glass

GLASSES = [glass(24, 20, seed) for seed in range(16)]


@cache
def lowest() -> np.ndarray:
    modes = [hm.modes.find(model, "exact") for model in GLASSES]
    assert {mode.certificate for mode in modes} == {"exact"}
    return np.array([mode.energy for mode in modes])


def gaps(solver: AbstractModeSolver, seeds: int = 2) -> np.ndarray:
    """By how much of the lowest energy a search misses it, glass by glass and seed by seed; never below zero."""
    words = np.array([[seed, 9] for seed in range(seeds)], np.uint32)
    search = jax.vmap(jax.vmap(solver.search, (0, None)), (None, 0))
    energies = np.asarray(jax.jit(search)(words, hm.Ensemble.of(GLASSES).stacked)[1])
    found = (energies - lowest()[:, None]) / -lowest()[:, None]
    assert found.min() > -1e-6
    return found


def test_descent_from_many_starts_finds_them() -> None:
    many, few = gaps(Descent(256), 4), gaps(Descent(2))
    assert np.mean(many < 1e-6) >= 0.95
    # And that is not easy: two starts do not.
    assert np.mean(few < 1e-6) < 0.5


def test_memcomputing_finds_most_and_needs_its_long_memory() -> None:
    whole, without = gaps(Memcomputing(4)), gaps(Memcomputing(4, alpha=0.0))
    assert np.mean(whole < 1e-6) >= 0.6
    assert np.mean(whole) <= 0.02
    assert np.mean(whole < 1e-6) > np.mean(without < 1e-6) + 0.2
    assert np.mean(whole) < np.mean(without) / 2
