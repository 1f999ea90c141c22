"""Mean-field inference: hidden units that are independent, at the means that fit the model best."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, Float, Int

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.end_to_end import EndToEnd, laid_clamp
from harmonium.energy.labels import label_units
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference, Posterior, clamp_of, clamped
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Batch, Clamp, Configuration
from harmonium.units.categorical import Categorical


def _checked_sweeps(sweeps: int) -> int:
    return whole_number(sweeps, "mean field needs a whole number of sweeps, at least one", "pass e.g. 30")


COUPLED_DAMPING = 0.5
"""Damping where units of one layer are coupled to each other, unless another is given."""


class FixedPoint(NamedTuple):
    """The means of every layer, the data first; the largest movement of the last sweep, and how many sweeps it took."""

    means: Configuration
    residual: Float[Array, ""]
    sweeps: Int[Array, ""]


class MeanField(AbstractInference):
    r"""A factorial posterior: the damped fixed point of :math:`m_i = \mathrm{E}[x_i \mid m_{-i}]`, the data clamped.

    One layer after the other moves to ``damping`` times its old means plus the rest of the new ones, ``sweeps`` times
    or until no mean moves by more than ``tolerance``. The energy at the means is the expectation of the energy under
    the factorial posterior, and its gradient in the model's parameters is that of the variational bound

    .. math:: \log p(v) \ge -E(v, m) + H(m) - \log Z

    with the means held fixed. Where units of a layer are not coupled to each other, every update of a layer raises the
    bound, whatever the damping, and without any (``damping`` None) the layers of odd number move and then those of even
    number, each to where the bound is highest: coordinate ascent. Where they are, the layer moves at once and damping
    (None is 0.5) keeps it from swinging. Info: ``mean_field_residual``, the largest movement of the last sweep, and
    ``mean_field_sweeps``.

    Layers in a row start from the data upwards: each at the mean that the one below gives it, whose input counts twice
    where a layer above is still missing, :math:`m_1 = \sigma(2 v^\top W_1 + b_1)`. Other models start at the biases
    alone.

    Raises `SettingError` for settings out of range. Source: the chapter's mean-field fixed point, which has no damping
    and starts from random means; its printed algorithm writes the means into the persistent chains, ours keeps the two
    apart. The doubled start is that of Salakhutdinov and
    Larochelle (2010).
    """

    sweeps: int = eqx.field(default=30, converter=_checked_sweeps)
    damping: float | None = None
    tolerance: float = 1e-6

    def __check_init__(self):
        if self.damping is not None and (not is_number(self.damping) or not 0 <= self.damping < 1):
            raise SettingError(
                f"damping is a fraction of at least 0 and below 1, got {self.damping!r}; pass e.g. 0.5"
            )
        if not is_number(self.tolerance) or not self.tolerance >= 0:
            raise SettingError(f"tolerance must be at least 0, got {self.tolerance!r}; pass e.g. 1e-6")

    def check(self, model: AbstractEnergyModel) -> None:
        check_two_valued(model, "mean-field inference", but=label_units(model))

    def posterior(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Posterior:
        found = self.solve(jax.lax.stop_gradient(model), batch)
        info = {"mean_field_residual": found.residual, "mean_field_sweeps": found.sweeps}
        return Posterior(model.energy(found.means), found.means, info)

    def solve(self, model: AbstractEnergyModel, batch: Batch) -> FixedPoint:
        """The fixed point for a batch of rows, or as near to it as the sweeps come."""

        def go_on(carry: tuple[Configuration, Array, Array]) -> Array:
            return (carry[2] < self.sweeps) & (carry[1] > self.tolerance)

        def sweep(carry: tuple[Configuration, Array, Array]) -> tuple[Configuration, Array, Array]:
            before, _, count = carry
            means = self._swept(laid_model, before, clamp)
            moved = [jnp.max(jnp.abs(new - old)) for new, old in zip(means[1:], before[1:], strict=True)]
            return means, jnp.max(jnp.stack(moved)), count + 1

        start = started(model, batch)
        if len(start) == 1:
            return FixedPoint(start, jnp.zeros((), start[0].dtype), jnp.int32(0))
        laid_model = EndToEnd.of(model, batch.x.shape[0])
        clamp = laid_clamp(clamp_of(model, batch), start)
        far = jnp.full((), np.inf, start[1].dtype)
        means, residual, count = jax.lax.while_loop(go_on, sweep, (laid_model.laid(start), far, jnp.int32(0)))
        return FixedPoint(laid_model.stacked(means), residual, count)

    def sweep(
        self, model: AbstractEnergyModel, means: Configuration, clamp: Clamp | None = None
    ) -> Configuration:
        """One step of every hidden layer in turn, and of the labels that ``clamp`` does not hold."""
        laid_model = EndToEnd.of(model, means[0].shape[0])
        held = laid_clamp((True, *(None for _ in means[1:])) if clamp is None else clamp, means)
        return laid_model.stacked(self._swept(laid_model, laid_model.laid(means), held))

    def _swept(self, laid_model: EndToEnd, means: Configuration, clamp: Clamp) -> Configuration:
        """:meth:`sweep` where rows lie end to end."""
        layers, model = list(means), laid_model.bare
        order, damping = range(1, len(layers)), self.damping
        if isinstance(model, AbstractBipartite):
            order = [index for side in reversed(model.sides) for index in side if index]
        if damping is None:
            damping = 0.0 if isinstance(model, AbstractBipartite) else COUPLED_DAMPING
        for index in order:
            aim = laid_model.mean(index, tuple(layers))
            moved = damping * layers[index] + (1 - damping) * aim if damping else aim
            held = clamp[index]
            layers[index] = moved if held is None else jnp.where(held, layers[index], moved)
        return tuple(layers)


def started(model: AbstractEnergyModel, batch: Batch) -> Configuration:
    """The data, and the means that the fixed point is looked for from: of layers in a row, those of one pass up."""
    if not isinstance(model, AbstractLayered):
        return clamped(model, batch)
    rows, top = batch.x.shape[0], len(model.units) - 1
    layers = [batch.x, *(jnp.zeros((rows, units.size), batch.x.dtype) for units in model.units[1:])]
    held = clamp_of(model, batch)[-1]
    known = jnp.zeros((rows, 1), bool) if top == 0 or held is None else jnp.asarray(held)[:, :1]
    if held is not None:
        layers[-1] = jnp.where(known, clamped(model, batch)[-1], layers[-1])
    for index, units in enumerate(model.units[1:], start=1):
        field = model.field(index, tuple(layers))
        twice = 2 * field - units.natural()
        if index + 1 < top:
            field = twice
        elif index < top:
            field = twice if held is None else jnp.where(known, field, twice)
        mean = jnp.broadcast_to(units.mean(field), layers[index].shape)
        layers[index] = jnp.where(known, layers[index], mean) if index == top and held is not None else mean
    return tuple(layers)


def bound_at(model: AbstractEnergyModel, means: Configuration) -> Float[Array, " rows"]:
    r"""The bound :math:`-E(v, m) + H(m)` on :math:`\log p(v) + \log Z`, in nats per row.

    Of a machine with a label layer that is one on :math:`\log p(v, y) + \log Z` in rows whose label is known.
    """
    bound = -model.energy(means)
    for units, mean in zip(model.units[1:], means[1:], strict=True):
        if isinstance(units, Categorical):
            bound = bound + jnp.sum(entr(mean), axis=-1)
            continue
        low, high = units.support
        on = (mean - low) / (high - low)
        bound = bound + jnp.sum(entr(on) + entr(1 - on), axis=-1)
    return bound
