"""Units that are -1 or +1."""

from __future__ import annotations

from typing import ClassVar, SupportsIndex

import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from harmonium.numerics.logspace import logistic, softplus_change, softplus_sum
from harmonium.numerics.random import uniform
from harmonium.units.base import AbstractTwoValuedUnits, starting_bias


class Spin(AbstractTwoValuedUnits):
    r"""A layer of ``size`` Ising spins, -1 or +1.

    With field :math:`f`, :math:`p(x = 1) = \sigma(2f)`, the mean is :math:`\tanh f`, the cumulant is
    :math:`\log(2 \cosh f)` and the layer's own energy is :math:`-b^\top x`.

    >>> Spin(3).support
    (-1.0, 1.0)
    """

    bias: Float[Array, " n"]

    kind: ClassVar[str] = "spin"
    support: ClassVar[tuple[float, ...]] = (-1.0, 1.0)

    def __init__(self, size: SupportsIndex | None = None, *, bias: ArrayLike | None = None):
        self.bias = starting_bias(size, bias, "Spin")

    def log_partition(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return softplus_sum(2 * field) - jnp.sum(field, axis=-1)

    def log_partition_change(
        self, field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch"]:
        return softplus_change(2 * field, 2 * change) - jnp.sum(change, axis=-1)

    def mean(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jnp.tanh(field)

    def mode(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jnp.where(field > 0, 1, -1).astype(field.dtype)

    def sample(
        self, words: UInt32[Array, "*batch n"], field: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch n"]:
        up = uniform(words, field.dtype) < logistic(2 * field)
        return jnp.where(up, 1, -1).astype(field.dtype)

    def field_of_mean(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jnp.arctanh(mean)
