"""Block Gibbs sampling."""

from __future__ import annotations

import jax

from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.samplers.base import AbstractSampler, AbstractSamplerState, SamplerInfo
from harmonium.typing import Clamp, Configuration, Words


class GibbsState(AbstractSamplerState):
    """The chains of a Gibbs sampler."""

    particles: Configuration


class Gibbs(AbstractSampler):
    """``steps`` block Gibbs sweeps per step, the observed side first.

    ``clamp`` holds what it names in every chain (see `harmonium.typing.Clamp`); the kernel then leaves the conditional
    distribution of the rest invariant. Raises `SettingError` for fewer than one sweep. Source: the chapter, block
    Gibbs chain of the RBM.
    """

    steps: int = 1
    clamp: Clamp | None = None

    def __check_init__(self):
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise SettingError(
                f"Gibbs sampling needs at least one sweep per step, got steps={self.steps!r}; pass 1"
            )

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> GibbsState:
        return GibbsState(particles)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: GibbsState
    ) -> tuple[GibbsState, SamplerInfo]:
        # The last sweep stands outside the loop, so that its products can be shared with what follows it.
        particles = state.particles
        if self.steps > 1:
            particles = jax.lax.fori_loop(
                0, self.steps - 1, lambda i, now: model.sweep(noise.at(i), now, clamp=self.clamp), particles
            )
        return GibbsState(model.sweep(noise.at(self.steps - 1), particles, clamp=self.clamp)), {}
