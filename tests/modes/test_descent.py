"""Descent never rises, ends where no unit can better the state, and lets ties fall to the lower value."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.couplings.graph import grid
from harmonium.modes.base import random_starts
from harmonium.modes.descent import descend
from harmonium.numerics.random import Noise
from tests.contracts.machines import wave_layers, wave_machine

WORDS = np.array([5, 6], np.uint32)


@pytest.mark.parametrize(
    "model",
    [
        wave_layers(("bernoulli", 5), ("spin", 4), ("bernoulli", 3), ("spin", 2)),
        wave_machine(9, pairs=grid(3, 3), visible="spin"),
        wave_machine(4, 3, visible="spin"),
    ],
    ids=["layers", "lattice", "complete"],
)
def test_descent_ends_where_no_unit_can_move(model) -> None:
    @jax.jit
    def run(model, words):
        start = random_starts(Noise.of(words), model, 64)
        once = descend(model, start, 1)
        end = descend(model, once, 20)
        best = [units.mode(model.field(index, end)) for index, units in enumerate(model.units)]
        return [model.energy(layers) for layers in (start, once, end)], end, best

    (start, once, last), end, best = run(model, WORDS)
    assert np.all(once <= start + 1e-5)
    assert np.all(last <= once + 1e-5)
    assert np.mean(once < start - 1e-3) > 0.9
    assert len(np.unique(np.round(last, 4))) > 1
    for layer, aim in zip(end, best, strict=True):
        np.testing.assert_array_equal(layer, aim)


def test_ties_fall_to_the_lower_value() -> None:
    for model in (hm.RBM(3, 2, weight_scale=0.0), hm.BoltzmannMachine(3, 2, weight_scale=0.0)):
        mode = hm.modes.find(model)
        assert not any(layer.any() for layer in mode.state)
        assert mode.agreed == mode.runs == 32


def test_members_descend_by_themselves() -> None:
    """A member that is done does not change while others go on."""
    models = [wave_layers(("bernoulli", 5), ("bernoulli", 4)), hm.DBM(5, [4], weight_scale=0.0)]
    models[1] = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), models[1])
    solver = hm.modes.Descent(8)
    states, _ = jax.jit(jax.vmap(solver.search, (None, 0)))(WORDS, hm.Ensemble.of(models).stacked)
    for index, model in enumerate(models):
        alone, _ = jax.jit(solver.search)(WORDS, model)
        for both, one in zip(states, alone, strict=True):
            np.testing.assert_array_equal(both[index], one)
