"""Inference by sampling: Gibbs chains of the hidden units with the data clamped."""

from __future__ import annotations

import equinox as eqx
import jax

from harmonium.energy.base import AbstractEnergyModel
from harmonium.inference.base import AbstractInference, Posterior, clamped
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
        start = clamped(frozen, batch)
        if len(start) == 1:
            return Posterior(model.energy(start), start, {})
        clamp = (True, *(None for _ in start[1:]))

        def sweep(draw: jax.Array, now: Configuration) -> Configuration:
            return frozen.sweep(noise.at(draw), now, clamp=clamp)

        drawn = jax.lax.fori_loop(0, self.sweeps, sweep, start)
        means = [
            units.mean(frozen.field(index, drawn)) for index, units in enumerate(frozen.units[1:], start=1)
        ]
        return Posterior(model.energy(drawn), (batch.x, *means), {})
