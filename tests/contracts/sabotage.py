"""Wrong twins of right members, each with the law of its mistake known exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.layered import AbstractLayered
from harmonium.samplers.base import AbstractSampler, AbstractSamplerState
from harmonium.samplers.gibbs import Gibbs
from tests.contracts.tables import Table

Twist = Callable[[Any], Any]


def weaker(gain: float) -> Twist:
    """The same machine with its couplings multiplied by ``gain``."""

    def twist(model: AbstractEnergyModel) -> AbstractEnergyModel:
        couplings = jax.tree.map(lambda leaf: gain * leaf, model.couplings)
        return eqx.tree_at(lambda tree: tree.couplings, model, couplings)

    return twist


def blind(unit: int) -> Twist:
    """The same machine, whose upper layers do not see one visible unit."""

    def twist(model: AbstractLayered) -> AbstractLayered:
        seen = np.arange(model.units[0].size) != unit
        return eqx.tree_at(lambda tree: tree.couplings[0].kernel, model, replace_fn=lambda leaf: leaf * seen)

    return twist


class Twisted(AbstractSampler):
    """A sampler that works on a twisted model: a right kernel for a wrong target."""

    sampler: AbstractSampler
    twist: Twist

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> Any:
        return self.sampler.step(noise, self.twist(model), state)

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


class HalfStepApart(AbstractSampler):
    """Pairs the first side of before a sweep with the second side of after it: p(h_t | v_t) beside v_{t-1}."""

    sampler: AbstractSampler

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> tuple[AbstractSamplerState, Any]:
        after, info = self.sampler.step(noise, model, state)
        first = model.sides[0]
        mixed = tuple(
            (state if index in first else after).particles[index] for index in range(len(after.particles))
        )
        return eqx.tree_at(lambda tree: tree.particles, after, mixed), info

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


class AtOnce(AbstractSampler):
    """Draws all units of a machine without hidden units at once, as if none were coupled to another."""

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return Gibbs().init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> tuple[AbstractSamplerState, Any]:
        (x,) = state.particles
        words, _ = noise.pair(x.shape)
        drawn = model.units[0].sample(words, model.field(0, (x,)))
        return eqx.tree_at(lambda tree: tree.particles, state, (drawn,)), {}

    def unit_updates(self, model: Any, state: Any) -> int:
        return Gibbs().unit_updates(model, state)


def law_at_once(table: Table) -> np.ndarray:
    """Law of one such step from the target: the product of every unit's conditional given the old others."""
    (x,), (support,) = table.layers, table.supports
    kernel = np.ones((table.count, table.count))
    for unit in range(x.shape[1]):
        energies = []
        for value in support:
            turned = x.copy()
            turned[:, unit] = value
            energies.append(table.energy[table.codes((turned,))])
        on = 1 / (1 + np.exp(energies[1] - energies[0]))
        kernel *= np.where(x[None, :, unit] == support[1], on[:, None], 1 - on[:, None])
    return table.law() @ kernel


def law_half_a_step_apart(table: Table) -> np.ndarray:
    """Law of (first side, second side one sweep later) from the target."""
    first, second = (table.groups(side) for side in table.sides)
    joint = table.law()[:, None] * table.sweep_kernel()
    pairs = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(pairs, (first[:, None], second[None, :]), joint)
    return pairs[first, second]
