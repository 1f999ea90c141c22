"""Jumps between the clusters of the planted machine, counted, and what block Gibbs sampling makes at most."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import harmonium as hm
from harmonium.data.modes import planted, planted_machine
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.samplers.base import AbstractAdaptiveSampler, AbstractSampler
from harmonium.samplers.gibbs import Gibbs

CHAINS = 40
"""Chains start in the clusters at their weights."""

WITHIN = 16
"""Flips from its centre within which a row of 64 is in a cluster: its own rows are 3 flips away, others 32."""


def count_jumps(sampler: AbstractSampler, steps: int, learning: int = 0) -> tuple[int, float]:
    """Jumps of all chains, and the sweeps of one replica that were made; the first steps only learn or settle."""
    machine, data = planted_machine(), planted(rows=CHAINS)
    assert data.labels is not None
    model = as_single(hm.RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias))
    hidden = jnp.asarray(np.eye(8)[np.maximum(data.labels["train"], 0)], jnp.float32)
    noise = Noise.from_key(jax.random.key(8))
    centres = jnp.asarray(machine.centres, jnp.float32)
    nowhere = jnp.full(CHAINS, -1)

    def cluster(state: Any, last: jax.Array) -> jax.Array:
        """The cluster that a chain is in, or was in last: far from all centres it is in none, whichever is nearest."""
        apart = jnp.abs(state.particles[0][:, None] - centres).sum(axis=2)
        return jnp.where(jnp.min(apart, axis=1) <= WITHIN, jnp.argmin(apart, axis=1), last)

    def learn(index: jax.Array, state: Any) -> Any:
        state, info = sampler.step(noise.fold(index), model, state)
        return sampler.adapt(state, info) if isinstance(sampler, AbstractAdaptiveSampler) else state

    def one(index: jax.Array, now: Any) -> Any:
        state, last, count = now
        state, _ = sampler.step(noise.fold(index), model, state)
        here = cluster(state, last)
        return state, here, count + jnp.sum((here != last) & (last >= 0))

    @jax.jit
    def run(state: Any) -> jax.Array:
        state = jax.lax.fori_loop(0, learning, learn, state)
        start = (state, cluster(state, nowhere), jnp.int32(0))
        return jax.lax.fori_loop(learning, steps, one, start)[2]

    state = sampler.init(noise.words, model, (jnp.asarray(data.train, jnp.float32), hidden))
    sweep = sum(units.size for units in model.units)
    return int(run(state)), (steps - learning) * sampler.unit_updates(model, state) / sweep


@cache
def gibbs_at_most(sweeps: int) -> float:
    """The upper end of the 95 % Poisson interval of jumps per sweep of block Gibbs sampling."""
    jumps, made = count_jumps(Gibbs(), sweeps // CHAINS + 100, learning=100)
    return float(scipy.stats.chi2.isf(0.025, 2 * jumps + 2)) / 2 / made
