"""Mean-field inference: hidden units that are independent, at the means that fit the model best."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference, Posterior, clamped
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Batch, Configuration


def _checked_sweeps(sweeps: int) -> int:
    return whole_number(sweeps, "mean field needs a whole number of sweeps, at least one", "pass e.g. 30")


class MeanField(AbstractInference):
    r"""A factorial posterior: the damped fixed point of :math:`m_i = \mathrm{E}[x_i \mid m_{-i}]`, the data clamped.

    One layer after the other moves to ``damping`` times its old means plus the rest of the new ones, ``sweeps`` times
    or until no mean moves by more than ``tolerance``. The energy at the means is the expectation of the energy under
    the factorial posterior, and its gradient in the model's parameters is that of the variational bound

    .. math:: \log p(v) \ge -E(v, m) + H(m) - \log Z

    with the means held fixed. Where units of a layer are not coupled to each other, every update of a layer raises the
    bound, whatever the damping. Where they are, the layer moves at once and damping keeps it from swinging. Info:
    ``mean_field_residual``, the largest movement of the last sweep.

    Raises `SettingError` for settings out of range. Source: the chapter's mean-field fixed point; it has no damping and
    starts from random means, ours start at the biases alone.
    """

    sweeps: int = eqx.field(default=30, converter=_checked_sweeps)
    damping: float = 0.5
    tolerance: float = 1e-6

    def __check_init__(self):
        if not is_number(self.damping) or not 0 <= self.damping < 1:
            raise SettingError(
                f"damping is a fraction of at least 0 and below 1, got {self.damping!r}; pass e.g. 0.5"
            )
        if not is_number(self.tolerance) or not self.tolerance >= 0:
            raise SettingError(f"tolerance must be at least 0, got {self.tolerance!r}; pass e.g. 1e-6")

    def check(self, model: AbstractEnergyModel) -> None:
        check_two_valued(model, "mean-field inference")

    def posterior(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Posterior:
        means, residual = self.solve(jax.lax.stop_gradient(model), batch)
        return Posterior(model.energy(means), means, {"mean_field_residual": residual})

    def solve(self, model: AbstractEnergyModel, batch: Batch) -> tuple[Configuration, Float[Array, ""]]:
        """The means of every layer, the data first, and the largest movement of the last sweep."""

        def go_on(carry: tuple[Configuration, Array, Array]) -> Array:
            return (carry[2] < self.sweeps) & (carry[1] > self.tolerance)

        def sweep(carry: tuple[Configuration, Array, Array]) -> tuple[Configuration, Array, Array]:
            before, _, count = carry
            means = self.sweep(model, before)
            moved = [jnp.max(jnp.abs(new - old)) for new, old in zip(means[1:], before[1:], strict=True)]
            return means, jnp.max(jnp.stack(moved)), count + 1

        start = clamped(model, batch)
        if len(start) == 1:
            return start, jnp.zeros((), start[0].dtype)
        far = jnp.full((), np.inf, start[1].dtype)
        means, residual, _ = jax.lax.while_loop(go_on, sweep, (start, far, jnp.int32(0)))
        return means, residual

    def sweep(self, model: AbstractEnergyModel, means: Configuration) -> Configuration:
        """One damped step of every hidden layer in turn."""
        layers = list(means)
        for index, units in enumerate(model.units[1:], start=1):
            aim = units.mean(model.field(index, tuple(layers)))
            layers[index] = self.damping * layers[index] + (1 - self.damping) * aim
        return tuple(layers)


def bound_at(model: AbstractEnergyModel, means: Configuration) -> Float[Array, " rows"]:
    r"""The bound :math:`-E(v, m) + H(m)` on :math:`\log p(v) + \log Z`, in nats per row, for two-valued units."""
    bound = -model.energy(means)
    for units, mean in zip(model.units[1:], means[1:], strict=True):
        low, high = units.support
        on = (mean - low) / (high - low)
        bound = bound + jnp.sum(entr(on) + entr(1 - on), axis=-1)
    return bound
