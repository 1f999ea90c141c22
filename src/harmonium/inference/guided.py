"""What the guide of a machine learns from: draws of the even layers given the data."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.guided import AbstractGuided
from harmonium.inference.base import AbstractInference
from harmonium.inference.clamped import ClampedGibbs, clamped_chains
from harmonium.numerics.random import Noise, uniform
from harmonium.typing import Batch, Configuration

_DRAW_STREAM = 110


def drawn_proposals(
    inference: AbstractInference, noise: Noise, model: AbstractGuided, batch: Batch, means: Configuration
) -> Float[Array, "rows n"]:
    r"""The even layers of the machine, one configuration for each row: what its guide is to learn.

    The data where they are given, and the other even layers drawn from the posterior: independent units at the
    ``means`` of the inference (for mean field that *is* its posterior), and with inference by sampling its own draws.
    Draws and not means, since what is exchanged are configurations. No gradient passes.
    """
    if isinstance(inference, ClampedGibbs):
        # The same noise: these are the draws whose energy the machine learns from.
        machine = jax.lax.stop_gradient(model.machine)
        return jax.lax.stop_gradient(model.proposal(clamped_chains(noise, machine, batch, inference.sweeps)))
    given = model.machine.observed
    layers = list(means)
    for index in range(0, model.height, 2):
        if index not in given:
            low, high = model.units[index].support[:: len(model.units[index].support) - 1]
            words, _ = noise.stream(_DRAW_STREAM).at(index).pair(means[index].shape)
            on = uniform(words) * (high - low) < means[index] - low
            layers[index] = jnp.where(on, high, low).astype(means[index].dtype)
    return jax.lax.stop_gradient(model.proposal(tuple(layers)))
