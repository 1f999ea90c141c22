"""Inference by sampling: Gibbs chains of the hidden units with the data clamped."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.inference.base import AbstractInference, Posterior, clamp_of, clamped
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.typing import Batch, Configuration


def _checked_sweeps(sweeps: int) -> int:
    return whole_number(
        sweeps, "clamped Gibbs inference needs a whole number of sweeps, at least one", "pass e.g. 10"
    )


class ClampedGibbs(AbstractInference):
    r"""One chain per row, ``sweeps`` sweeps with the data clamped.

    A chain starts anew at every update, from hidden units at rest. Its energy estimates
    :math:`\mathrm{E}_{p(h \mid v)}[\nabla E(v, h)]` without bias once the sweeps have forgotten their start; where
    hidden units are independent given the data one sweep already has. Means are those of each unit given all others.

    Raises `SettingError` for fewer than one sweep. Source: the chapter's learning of general machines, positive phase
    by Gibbs sampling with the data clamped.
    """

    sweeps: int = eqx.field(default=10, converter=_checked_sweeps)

    def check(self, model: AbstractEnergyModel) -> None:
        """Every model that can be swept can be swept with its data clamped."""

    def posterior(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Posterior:
        frozen = jax.lax.stop_gradient(model)
        drawn = clamped_chains(noise, frozen, batch, self.sweeps)
        if len(drawn) == 1:
            return Posterior(model.energy(drawn), drawn, {})
        means = [
            units.mean(frozen.field(index, drawn)) for index, units in enumerate(frozen.units[1:], start=1)
        ]
        held = clamp_of(frozen, batch)[-1]
        if held is not None:
            means[-1] = jnp.where(held, drawn[-1], means[-1])
        return Posterior(model.energy(drawn), (batch.x, *means), {})


def clamped_chains(noise: Noise, model: AbstractEnergyModel, batch: Batch, sweeps: int) -> Configuration:
    """One chain per row, its hidden units at rest and then moved by ``sweeps`` sweeps with the data clamped.

    One sweep draws hidden units that are independent given the data exactly, wherever it starts; see `are_coupled`.
    """
    start = clamped(model, batch)
    if len(start) == 1:
        return start
    clamp = clamp_of(model, batch)
    return jax.lax.fori_loop(
        0, sweeps, lambda draw, now: model.sweep(noise.at(draw), now, clamp=clamp), start
    )


def are_coupled(model: AbstractEnergyModel) -> bool:
    """Whether hidden units depend on one another once the data are given, with the labels of a machine that has some,
    so that one sweep is not a draw of them."""
    if isinstance(model, AbstractBipartite):
        return model.sides != (model.observed, (1,))
    return model.split(held=True).bits > 0
