"""The cumulant of coupled two-valued units: a log-sum over their states, partly enumerated, partly in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.errors import SettingError
from harmonium.numerics.logspace import logistic, softplus_sum
from harmonium.units.base import AbstractTwoValuedUnits, AbstractUnits

_NEAR_BITS = 9
_CHUNK_NUMBERS = 1 << 18


class Split(NamedTuple):
    """Units by number: those whose states are enumerated, and those then independent and summed out in closed form."""

    enumerated: tuple[int, ...]
    summed: tuple[int, ...]

    @property
    def bits(self) -> int:
        """How many two-valued units are enumerated."""
        return len(self.enumerated)

    @property
    def operations(self) -> float:
        """Operations of one walk over all states: a few per state, and some twenty per unit that is summed out."""
        return 2.0**self.bits * (self.bits + 20 * len(self.summed) + 20)


def ends_of(units: Sequence[AbstractUnits]) -> Float[np.ndarray, "2 n"]:
    """The lower and the upper value of every unit, layer after layer. Raises `SettingError` for other units."""
    for layer in units:
        if not isinstance(layer, AbstractTwoValuedUnits):
            raise SettingError(
                f"{layer.kind} units are not two-valued, so that no sum takes their states as bits"
            )
    return np.concatenate(
        [np.repeat(np.array(layer.support)[:, None], layer.size, axis=1) for layer in units], axis=1
    )


class Walk:
    r"""All states of some units under :math:`e^{f^\top x + \frac12 x^\top C x}`, chunk by chunk, for many fields ``f``.

    The enumerated units are the *near* ones, of which a chunk holds all states, and the *far* ones, of which a chunk
    holds some: their common part is one matrix product, so that a state costs a few operations and no product of its
    own. ``coupling`` is symmetric with a zero diagonal and couples no two of the summed units; ``ends`` are the two
    values of every unit. A chunk is as long as memory for ``numbers_per_state`` (one per summed unit when None) allows.
    """

    def __init__(
        self,
        coupling: Float[Array, "n n"],
        fields: Float[Array, "rows n"],
        split: Split,
        ends: Float[np.ndarray, "2 n"],
        numbers_per_state: int | None = None,
    ):
        width = numbers_per_state or max(1, len(split.summed))
        fit = _CHUNK_NUMBERS // max(1, len(fields) * width)
        room = int(math.log2(fit)) if fit > 1 else 0
        near_bits = min(-(-split.bits // 2), _NEAR_BITS, room)
        self.far_bits = min(split.bits - near_bits, room - near_bits)
        self.chunks = 1 << (split.bits - near_bits - self.far_bits)
        order = np.array(split.enumerated, np.intp)
        self._near, self._far = order[:near_bits], order[near_bits:]
        self._summed = np.array(split.summed, np.intp)
        self._coupling, self._fields, self._ends = coupling, fields, ends
        self._near_states = self._values(self._near, jnp.arange(1 << near_bits, dtype=jnp.uint32))

    def log_weights(self, number: Int[Array, ""]) -> Float[Array, "rows near far"]:
        """Logarithm of the weight of every state of chunk ``number``, the summed units summed out."""
        far = self._far_states(number)
        near = self._near_states
        within = (
            self._own(self._near, near)[:, None]
            + self._own(self._far, far)
            + near @ self._coupling[np.ix_(self._near, self._far)] @ far.T
        )
        by_near = self._fields[:, self._near] @ near.T
        by_far = self._fields[:, self._far] @ far.T
        found = within + by_near[:, :, None] + by_far[:, None, :]
        if not len(self._summed):
            return found
        field = self._summed_field(far)
        low, high = self._ends_of(self._summed)
        # sum over both values of e^(f x) is e^(f low) (1 + e^(f (high - low)))
        return found + softplus_sum((high - low) * field) + jnp.sum(low * field, axis=-1)

    def means(
        self, number: Int[Array, ""]
    ) -> tuple[Float[Array, "rows near far n"], Float[Array, "rows near far n"]]:
        """For every state of a chunk, mean and variance of every unit: of an enumerated one its value and zero."""
        far = self._far_states(number)
        shape = (len(self._fields), len(self._near_states), len(far))
        mean = jnp.zeros((*shape, self._coupling.shape[0]), self._coupling.dtype)
        variance = mean
        mean = mean.at[..., self._near].set(self._near_states[:, None, :])
        mean = mean.at[..., self._far].set(far)
        if len(self._summed):
            low, high = self._ends_of(self._summed)
            on = logistic((high - low) * self._summed_field(far))
            mean = mean.at[..., self._summed].set(low + (high - low) * on)
            variance = variance.at[..., self._summed].set((high - low) ** 2 * on * (1 - on))
        return mean, variance

    def log_sum(self) -> Float[Array, " rows"]:
        """Log-sum over all states; its derivative walks the chunks again and keeps none."""

        def chunk(number: Array) -> Float[Array, " rows"]:
            return jax.nn.logsumexp(self.log_weights(number), axis=(1, 2))

        first = chunk(jnp.int32(0))
        if self.chunks == 1:
            return first
        body = jax.checkpoint(lambda total, number: (jnp.logaddexp(total, chunk(number)), None))
        return jax.lax.scan(body, first, jnp.arange(1, self.chunks))[0]

    def _far_states(self, number: Int[Array, ""]) -> Float[Array, "far units"]:
        here = number.astype(jnp.uint32) << jnp.uint32(self.far_bits)
        return self._values(self._far, here + jnp.arange(1 << self.far_bits, dtype=jnp.uint32))

    def _values(self, units: np.ndarray, numbers: Array) -> Float[Array, "states units"]:
        """States by number: a unit has its upper value where its bit is set."""
        low, high = self._ends_of(units)
        on = (numbers[:, None] >> jnp.arange(len(units), dtype=jnp.uint32)) & 1
        return low + (high - low) * on.astype(self._coupling.dtype)

    def _ends_of(self, units: np.ndarray) -> tuple[Array, Array]:
        low, high = jnp.asarray(self._ends[:, units], self._coupling.dtype)
        return low, high

    def _own(self, units: np.ndarray, states: Float[Array, "states units"]) -> Float[Array, " states"]:
        return jnp.sum(states @ self._coupling[np.ix_(units, units)] * states, axis=-1) / 2

    def _summed_field(self, far: Float[Array, "far units"]) -> Float[Array, "rows near far summed"]:
        by_near = self._near_states @ self._coupling[np.ix_(self._near, self._summed)]
        by_far = far @ self._coupling[np.ix_(self._far, self._summed)]
        return self._fields[:, None, None, self._summed] + by_near[:, None, :] + by_far


def coupled_cumulant(
    coupling: Float[Array, "n n"],
    field: Float[Array, "*batch n"],
    split: Split,
    ends: Float[np.ndarray, "2 n"],
) -> Float[Array, "*batch"]:
    r"""The cumulant :math:`\log \sum_x e^{f^\top x + \frac12 x^\top C x}` of coupled units in a field, in nats.

    Its derivative in the field is the mean of every unit, as for units that are not coupled.
    """
    rows = field.reshape(-1, field.shape[-1])
    return Walk(coupling, rows, split, ends).log_sum().reshape(field.shape[:-1])
