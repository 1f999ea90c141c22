"""Block Gibbs sampling."""

from __future__ import annotations

from typing import SupportsIndex

import equinox as eqx
import jax
from jaxtyping import Array, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.samplers.base import AbstractSampler, AbstractSamplerState, SamplerInfo
from harmonium.samplers.ladder import unit_updates
from harmonium.typing import Clamp, Configuration, Words


def _checked_steps(steps: SupportsIndex) -> int:
    return whole_number(steps, "Gibbs sampling needs a whole number of steps, at least one sweep", "pass 1")


class GibbsState(AbstractSamplerState):
    """The chains of a Gibbs sampler."""

    particles: Configuration


class Gibbs(AbstractSampler):
    """``steps`` block Gibbs sweeps per step, the observed side first.

    ``clamp`` holds what it names in every chain (see `harmonium.typing.Clamp`); the kernel then leaves the conditional
    distribution of the rest invariant. Raises `SettingError` for fewer than one sweep. Source: the chapter, block
    Gibbs chain of the RBM.
    """

    steps: int = eqx.field(default=1, converter=_checked_steps)
    clamp: Clamp | None = None

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> GibbsState:
        return GibbsState(particles)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: GibbsState
    ) -> tuple[GibbsState, SamplerInfo]:
        return GibbsState(self.swept(noise, model, state.particles, self.steps)), {}

    def swept(
        self,
        noise: Noise,
        model: AbstractEnergyModel,
        particles: Configuration,
        sweeps: int | Int[Array, ""],
    ) -> Configuration:
        """The chains after so many sweeps, at least one, a number that may be known on the device only."""
        # The last sweep stands outside the loop, so that its products can be shared with what follows it.
        if not isinstance(sweeps, int) or sweeps > 1:
            particles = jax.lax.fori_loop(
                0, sweeps - 1, lambda i, now: model.sweep(noise.at(i), now, clamp=self.clamp), particles
            )
        return model.sweep(noise.at(sweeps - 1), particles, clamp=self.clamp)

    def unit_updates(self, model: AbstractEnergyModel, state: GibbsState) -> int:
        """Units that one step draws; held ones count as drawn."""
        return unit_updates(model, state.particles[0].shape[0], self.steps)
