"""Units that are 0 or 1."""

from __future__ import annotations

from typing import ClassVar, SupportsIndex

import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from harmonium.numerics.logspace import logistic, softplus_change, softplus_sum
from harmonium.numerics.random import uniform
from harmonium.units.base import AbstractTwoValuedUnits, starting_bias


class Bernoulli(AbstractTwoValuedUnits):
    r"""A layer of ``size`` binary units, 0 or 1.

    With field :math:`f`, :math:`p(x = 1) = \sigma(f)`, the cumulant is :math:`\log(1 + e^f)` and the layer's own
    energy is :math:`-b^\top x` (chapter, RBM conditionals).

    >>> Bernoulli(3).support
    (0.0, 1.0)
    """

    bias: Float[Array, " n"]

    kind: ClassVar[str] = "bernoulli"
    support: ClassVar[tuple[float, ...]] = (0.0, 1.0)

    def __init__(self, size: SupportsIndex | None = None, *, bias: ArrayLike | None = None):
        self.bias = starting_bias(size, bias, "Bernoulli")

    def log_partition(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return softplus_sum(field)

    def log_partition_change(
        self, field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch"]:
        return softplus_change(field, change)

    def mean(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return logistic(field)

    def mode(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return (field > 0).astype(field.dtype)

    def sample(
        self, words: UInt32[Array, "*batch n"], field: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch n"]:
        return (uniform(words, field.dtype) < logistic(field)).astype(field.dtype)

    def field_of_mean(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jnp.log(mean) - jnp.log1p(-mean)
