"""What a sampler must be able to do, and where its chains start."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.random import Noise
from harmonium.typing import Configuration, Words

SamplerInfo = dict[str, jax.Array]


class AbstractSamplerState(eqx.Module):
    """What a sampler needs for its next step, and nothing else: a value."""

    particles: eqx.AbstractVar[Configuration]


class AbstractSampler(eqx.Module):
    """A Markov kernel over many chains at once.

    A sampler holds settings only. With the model fixed, :meth:`step` is a fixed kernel that leaves the model's
    distribution invariant; ``state.particles`` are the chains at that target, rows first. To add one, implement the
    two methods in a file of its own and add one row to ``tests/contracts/cases.py``: it inherits the no-drift proof.
    """

    traceable: ClassVar[bool] = True

    @abstractmethod
    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> Any:
        """A state whose chains are ``particles``."""

    @abstractmethod
    def step(self, noise: Noise, model: AbstractEnergyModel, state: Any) -> tuple[Any, SamplerInfo]:
        """Advance every chain; the info is for diagnostics and is not needed again.

        ``noise`` is this step's own: any draw of its streams 0 to 99 may be used (rules use the upper ones).
        """


def resting_particles(noise: Noise, model: AbstractEnergyModel, chains: int) -> Configuration:
    """Independent chains drawn from the biases alone, then one sweep: where persistent chains start."""
    particles = []
    for index, units in enumerate(model.units):
        words, _ = noise.at(index + 1).pair((chains, units.size))
        field = jnp.broadcast_to(units.natural(), (chains, units.size))
        particles.append(units.sample(words, jnp.asarray(field)))
    return model.sweep(noise, tuple(particles))
