"""Exact laws of replica exchange: rungs drawn at their own laws, and wrong twins whose mistakes are known exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from harmonium.energy.machine_path import path_between
from harmonium.numerics.precision import as_double, as_single
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.ladder import exchanged, pairs_in_turn, swap_pairs
from harmonium.samplers.tempering import ParallelTempering, TemperingState
from tests.contracts.tables import Table, normalised

Difference = Callable[[Any, Any, Any], Any]
"""Of a model, a base (or None) and a configuration: the energy by whose differences replicas change places."""


def joint(model: Any, base: Any, configuration: Any) -> Any:
    """The right one: model minus base, of whole configurations."""
    return model.energy(configuration) - (0 if base is None else base.energy(configuration))


def opposite(model: Any, base: Any, configuration: Any) -> Any:
    """With its sign wrong."""
    return -joint(model, base, configuration)


def marginal(model: Any, base: Any, configuration: Any) -> Any:
    """Free energies of the visible units: right at no temperature but 1, where beta F is F at beta."""
    energies = model.free_energy(configuration[0])
    return energies - (0 if base is None else base.marginal_energy(0, (configuration[0],)))


class WronglySwapped(AbstractSampler):
    """Parallel tempering whose swaps go by another difference, or (``stale``) by that of before the sweep."""

    sampler: ParallelTempering
    difference: Difference = joint
    stale: bool = False

    def init(self, words: Any, model: Any, particles: Any) -> TemperingState:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: TemperingState) -> Any:
        right, _ = self.sampler.step(noise, model, state)
        base = self.sampler.base_at(model, state)
        beta = jnp.broadcast_to(state.betas[:, None], state.holder.shape)
        swept = (
            model.sweep(noise.at(0), state.ladder, beta)
            if base is None
            else path_between(base, model, beta).sweep(noise.at(0), state.ladder)
        )
        energies = self.difference(model, base, state.ladder if self.stale else swept)
        log_ratio = (state.betas[:-1] - state.betas[1:])[:, None] * (energies[:-1] - energies[1:])
        coins, turns = noise.stream(99).pair(log_ratio.shape)
        swaps = swap_pairs(coins, log_ratio, pairs_in_turn(self.sampler.swaps, state.rounds, turns))
        moved = flat(exchanged(swept, swaps.source)), state.holder
        return eqx.tree_at(lambda tree: (tree.replicas, tree.holder), right, moved), {}

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


def rung_laws(sampler: ParallelTempering, model: Any, table: Table) -> list[np.ndarray]:
    """The exact law of every rung, from the written-out energies."""
    state = first_state(sampler, model)
    energies = rung_energies(sampler, model, table)
    return [
        normalised(-(1 - beta) * energies[0] - beta * energies[1])
        for beta in np.asarray(state.betas, np.float64)
    ]


def rung_energies(sampler: Any, model: Any, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Energy of every configuration under the base and under the model."""
    base = sampler.base_at(as_single(model), first_state(sampler, model))
    if base is None:
        return np.zeros(table.count), table.energy
    with jax.enable_x64(True):
        return np.asarray(as_double(base).energy(table.layers)), table.energy


def first_state(sampler: Any, model: Any) -> Any:
    particles = tuple(jnp.zeros((1, units.size), jnp.float32) for units in model.units)
    return sampler.init(jnp.zeros(2, jnp.uint32), as_single(model), particles)


def at_their_laws(
    sampler: ParallelTempering, model: Any, table: Table, state: TemperingState, seed: int
) -> TemperingState:
    """The state with every rung but the first at independent draws from its own law."""
    chains = state.holder.shape[1]
    rungs: list[Any] = [state.particles]
    for rung, law in enumerate(rung_laws(sampler, model, table)[1:], start=1):
        rungs.append(table.draw(chains, law, 1000 * seed + rung))
    ladder = tuple(jnp.stack(layers).astype(layers[0].dtype) for layers in zip(*rungs, strict=True))
    return eqx.tree_at(lambda tree: tree.replicas, state, flat(ladder))


def flat(ladder: Any) -> Any:
    """Rungs and chains as one axis of rows."""
    return tuple(layer.reshape(-1, layer.shape[-1]) for layer in ladder)


def law_of_wrong_swaps(
    sampler: ParallelTempering,
    model: Any,
    table: Table,
    difference: Difference = joint,
    *,
    stale: bool = False,
) -> np.ndarray:
    """Law of rung 0 after one step from the right laws, in which rungs 0 and 1 try to swap."""
    upper, lower = rung_laws(sampler, model, table)[:2]
    base_energy, energy = rung_energies(sampler, model, table)
    betas = np.asarray(first_state(sampler, model).betas, np.float64)
    with jax.enable_x64(True):
        base = sampler.base_at(as_single(model), first_state(sampler, model))
        values = np.asarray(difference(model, None if base is None else as_double(base), table.layers))
    ratio = (betas[0] - betas[1]) * (values[:, None] - values[None, :])
    swap = np.exp(np.minimum(ratio, 0))
    if sampler.swaps == "random":
        swap = swap / 2
    pairs = upper[:, None] * lower[None, :]
    kept, given = pairs * (1 - swap), pairs * swap
    if stale:
        kernels = [
            table.sweep_kernel((1 - beta) * base_energy + beta * energy) for beta in (betas[0], betas[1])
        ]
        kept, given = (kernels[0].T @ part @ kernels[1] for part in (kept, given))
    return kept.sum(axis=1) + given.sum(axis=0)


TEMPERED: dict[str, tuple[Any, ...]] = {
    "swaps of the wrong sign": ("strong rbm", ParallelTempering(schedule=[0, 0.3, 1]), opposite),
    "swaps by beta F": ("rbm of spins", ParallelTempering(3, base="uniform"), marginal),
    "stale swaps": ("three layers", ParallelTempering(3, swaps="random"), joint, True),
    "four layers": ("four layers", ParallelTempering(schedule=[0, 0.5, 1]), opposite),
    "swaps by beta F from the data": ("strong rbm", ParallelTempering(2), marginal),
    "a general machine": ("machine", ParallelTempering(schedule=[0, 0.5, 1], base="uniform"), opposite),
    "a general machine from the data": ("machine", ParallelTempering(schedule=[0, 0.5, 1]), opposite),
}
"""Machine, sampler, and what its twin does wrongly: the difference that it swaps by, and whether that is stale."""
