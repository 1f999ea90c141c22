"""The positive phase of a stack: level after level, each on what the one below passes up."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.guided import AbstractGuided, unguided
from harmonium.energy.stack import AbstractStack
from harmonium.inference.base import AbstractInference, Posterior
from harmonium.inference.clamped import ClampedGibbs, clamped_chains
from harmonium.inference.exact import Exact
from harmonium.inference.guided import drawn_proposals
from harmonium.numerics.random import Noise
from harmonium.typing import Batch, Configuration

_DRAWS_OF_A_LEVEL = 1 << 16
_GUIDE_STREAM = 111


def check_positive_phase(inference: AbstractInference, model: AbstractEnergyModel) -> None:
    """Raise an error that names the cure where an inference cannot serve the model, or a level of the stack."""
    for part in model.levels if isinstance(model, AbstractStack) else (unguided(model),):
        inference.check(part)


def positive_phase(
    inference: AbstractInference, noise: Noise, model: AbstractEnergyModel, batch: Batch
) -> Posterior:
    r"""The positive phase of a batch: that of the inference, and for a stack the sum of those of its levels.

    .. math:: \sum_i F_i(x_i), \quad x_1 = v, \quad x_{i+1} = \mathrm{E}[h_i \mid x_i]

    The RBMs of a stack are trained jointly, each on what is passed up to it: the *means* of the hidden units below, or
    with inference by sampling ("gibbs") their draws. What is passed up is held fixed: no gradient goes from a level to
    the one below. ``means`` are those of all layers, :math:`v_1, h_1, v_2, h_2, \dots`. Source: Desjardins, Luo,
    Courville and Bengio, "Deep Tempering" (2014), section 3; probabilities are what the authors' program passes up.

    Of a guided machine it is that of the machine and that of the guide, whose data are *draws* of the even layers given
    the rows (`harmonium.inference.guided.drawn_proposals`).
    """
    if isinstance(model, AbstractGuided):
        own = inference.posterior(noise, model.machine, batch)
        drawn = Batch(x=drawn_proposals(inference, noise, model, batch, own.means), weight=batch.weight)
        guide = positive_phase(Exact(), noise.stream(_GUIDE_STREAM), model.guide, drawn)
        return Posterior(own.energy + guide.energy, (*own.means, *guide.means), own.info)
    if not isinstance(model, AbstractStack):
        return inference.posterior(noise, model, batch)
    energy, means, info = jnp.zeros(batch.x.shape[0], batch.x.dtype), (), {}
    for level, rbm in enumerate(model.levels):
        own = noise.at(level * _DRAWS_OF_A_LEVEL)
        posterior = inference.posterior(own, rbm, batch)
        energy, means, info = energy + posterior.energy, (*means, *posterior.means), info | posterior.info
        passed = posterior.means[1]
        if isinstance(inference, ClampedGibbs):
            # The same noise: these are the draws whose energy was just taken.
            passed = clamped_chains(own, jax.lax.stop_gradient(rbm), batch, inference.sweeps)[1]
        batch = Batch(x=jax.lax.stop_gradient(passed), weight=batch.weight)
    return Posterior(energy, means, info)


def passed_up(noise: Noise, stack: AbstractStack, batch: Batch) -> Configuration:
    """One chain per row, at what the row is to each level: codes drawn on the way up, each the data of the next."""
    layers: Configuration = ()
    for level, rbm in enumerate(stack.levels):
        layers = (*layers, *clamped_chains(noise.at(level), rbm, batch, 1))
        batch = Batch(x=layers[-1], weight=batch.weight)
    return layers
