"""Block Gibbs sampling."""

from __future__ import annotations

from typing import SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.end_to_end import EndToEnd, laid_clamp
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.samplers.base import AbstractSampler, AbstractSamplerState, SamplerInfo
from harmonium.samplers.ladder import unit_updates
from harmonium.typing import Clamp, Configuration, Words

_FEW_DRAWS = 1 << 14
"""Draws of a step that lie ready before it begins; of more, each sweep draws its own, where they are used."""


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
        if isinstance(model, AbstractBipartite) and isinstance(sweeps, int) and _is_small(particles, sweeps):
            return _swept_at_once(noise, model, particles, sweeps, self.clamp)
        # The last sweep stands outside the loop, so that its products can be shared with what follows it.
        if not isinstance(sweeps, int) or sweeps > 1:
            particles = jax.lax.fori_loop(
                0, sweeps - 1, lambda i, now: model.sweep(noise.at(i), now, clamp=self.clamp), particles
            )
        return model.sweep(noise.at(sweeps - 1), particles, clamp=self.clamp)

    def unit_updates(self, model: AbstractEnergyModel, state: GibbsState) -> int:
        """Units that one step draws; held ones count as drawn."""
        return unit_updates(model, state.particles[0].shape[0], self.steps)


def _is_small(particles: Configuration, sweeps: int) -> bool:
    """Whether all draws are few enough to lie ready at once, for chains in one batch and more sweeps than one."""
    units = sum(layer.shape[-1] for layer in particles)
    chains = particles[0].shape[0]
    return sweeps > 1 and particles[0].ndim == 2 and units * chains * sweeps <= _FEW_DRAWS


def _swept_at_once(
    noise: Noise, model: AbstractBipartite, particles: Configuration, sweeps: int, clamp: Clamp | None
) -> Configuration:
    """The chains after so many sweeps of `AbstractBipartite.sweep`, the words of all of them drawn beforehand."""
    chains = particles[0].shape[0]
    laid_model = EndToEnd.of(model, chains)
    held = (None,) * len(particles) if clamp is None else laid_clamp(clamp, particles)
    words: list[Array | None] = [None] * len(particles)
    for side, layers in enumerate(model.sides):
        for index, elements in zip(layers, model.elements_of(side, chains), strict=True):
            if held[index] is not True:
                words[index] = noise.words_of_draws(elements, sweeps)[side]

    def sweep(number: int | Array, layers: Configuration) -> Configuration:
        now = list(layers)
        for index in (index for side in model.sides for index in side):
            of_layer = words[index]
            if of_layer is None:
                continue
            drawn = laid_model.draw(index, of_layer[number], tuple(now))
            drawn = jax.lax.optimization_barrier(drawn)
            fixed = held[index]
            now[index] = drawn if fixed is None or fixed is False else jnp.where(fixed, now[index], drawn)
        return tuple(now)

    return laid_model.stacked(jax.lax.fori_loop(0, sweeps, sweep, laid_model.laid(particles)))
