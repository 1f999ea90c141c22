"""Sweeps of small machines, all of whose words are drawn at once: the draws are those of sweep after sweep."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.numerics.random import Noise
from harmonium.samplers import gibbs
from harmonium.samplers.base import resting_particles
from harmonium.samplers.gibbs import Gibbs
from harmonium.units.categorical import Categorical

MACHINES = {
    "rbm": lambda: hm.RBM(hm.Spin(5), 3, seed=1, weight_scale=0.5),
    "dbm": lambda: hm.DBM(6, [4, hm.Spin(5), Categorical(3)], seed=1, weight_scale=0.5),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("held", [False, True])
def test_all_at_once_or_one_after_the_other(name: str, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MACHINES[name]()
    noise = Noise.of(jnp.array([3, 4], jnp.uint32))
    start = resting_particles(noise.stream(9), machine, 7)
    clamp = None
    if held:
        mask = np.arange(7)[:, None] < 3
        clamp = (mask & np.ones(start[0].shape, bool), True, *(None for _ in start[2:]))
    sampler = Gibbs(4, clamp)
    assert gibbs._is_small(start, 4)
    found = sampler.swept(noise, machine, start, 4)
    monkeypatch.setattr(gibbs, "_FEW_DRAWS", 0)
    expected = sampler.swept(noise, machine, start, 4)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not all(np.array_equal(left, right) for left, right in zip(found, start, strict=True))
