"""The sum over all pairs of two half-codes of a product of ``1 + exp``, at two operations a factor."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int64

LARGEST_HALF = 40.0
"""Largest size of a half's share of a field: sixteen centred factors then lie within ``exp(-640)`` and ``exp(640)``."""

_FACTORS = 16
_LARGEST_LOG = 640.0
_BLOCK = 1 << 15
_EXPONENT_SHIFT = 52
_EXPONENT_BIAS = 1023
_MANTISSA = (1 << _EXPONENT_SHIFT) - 1


def log_sum_exp_over_halves(
    first_log_weight: Float[Array, " first"],
    first_field: Float[Array, "first n"],
    second_log_weight: Float[Array, " second"],
    second_field: Float[Array, "second n"],
    ties: tuple[Float[Array, "first k"], Float[Array, "second k"]] | None = None,
) -> Float[Array, ""]:
    r"""Logarithm of :math:`\sum_{a, b} e^{\alpha_a + \beta_b + s_a^\top t_b} \prod_j (1 + e^{x_{aj} + y_{bj}})`.

    In float64. ``ties`` are the vectors :math:`s` and :math:`t`, for halves that have energies in common.

    Exponentials are taken of the halves alone: with :math:`e^{x + y} = e^x e^y` a state costs two operations a factor
    and one logarithm in all. Every factor is first divided by the middle of its range over all states (in the
    logarithm), so that a product of many stays near one; how many may be multiplied before the binary exponent is taken
    off the product, and kept apart, follows from those ranges, and is at least sixteen.

    No entry of a field may be larger in size than `LARGEST_HALF`, and the numbers of states must be powers of two, as
    half-codes have them: the caller must see to both.
    """
    first, second = first_field.shape[0], second_field.shape[0]
    low = jax.nn.softplus(jnp.min(first_field, axis=0) + jnp.min(second_field, axis=0))
    high = jax.nn.softplus(jnp.max(first_field, axis=0) + jnp.max(second_field, axis=0))
    middle = (low + high) / 2
    missing = -first_field.shape[1] % _FACTORS
    # Columns that fill up the last group stand for factors of one: 1 + 0 * 0.
    constant = jnp.pad(jnp.exp(-middle), (0, missing), constant_values=1)
    left = jnp.pad(jnp.exp(first_field - middle), ((0, 0), (0, missing)))
    right = jnp.pad(jnp.exp(second_field), ((0, 0), (0, missing))).T
    groups = len(constant) // _FACTORS
    reach = jnp.max(jnp.sum(jnp.pad((high - low) / 2, (0, missing)).reshape(groups, _FACTORS), axis=1))
    stride = jnp.clip(_LARGEST_LOG / jnp.maximum(reach, 1), 1, groups).astype(jnp.int32)
    rows = max(1, min(first, _BLOCK // second))

    def log_sum_of_block(number: Array) -> Float[Array, ""]:
        block = jax.lax.dynamic_slice_in_dim(left, number * rows, rows)
        weight = jax.lax.dynamic_slice_in_dim(first_log_weight, number * rows, rows)

        def multiply(group: Array, product: Float[Array, "rows second"]) -> Float[Array, "rows second"]:
            start = group * _FACTORS
            ours = jax.lax.dynamic_slice_in_dim(block, start, _FACTORS, axis=1)
            theirs = jax.lax.dynamic_slice_in_dim(right, start, _FACTORS)
            alone = jax.lax.dynamic_slice_in_dim(constant, start, _FACTORS)
            for factor in range(_FACTORS):
                product = product * (ours[:, factor, None] * theirs[factor] + alone[factor])
            return product

        def advance(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            product, exponent = carry
            start = number * stride
            product = jax.lax.fori_loop(start, jnp.minimum(start + stride, groups), multiply, product)
            product, taken = _without_exponent(product)
            return product, exponent + taken

        start = jnp.ones((rows, second), jnp.float64), jnp.zeros((rows, second), jnp.int64)
        product, exponent = jax.lax.fori_loop(0, -(-groups // stride), advance, start)
        logs = jnp.log(product) + math.log(2) * exponent + weight[:, None] + second_log_weight
        if ties is not None:
            logs = logs + jax.lax.dynamic_slice_in_dim(ties[0], number * rows, rows) @ ties[1].T
        return jax.nn.logsumexp(logs)

    total = jax.nn.logsumexp(jax.lax.map(log_sum_of_block, jnp.arange(first // rows)))
    return total + jnp.sum(middle)


def _without_exponent(
    product: Float[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Int64[Array, "*shape"]]:
    """A positive normal number as mantissa in [1, 2) and binary exponent."""
    bits = jax.lax.bitcast_convert_type(product, jnp.int64)
    mantissa = (bits & _MANTISSA) | (_EXPONENT_BIAS << _EXPONENT_SHIFT)
    return jax.lax.bitcast_convert_type(mantissa, jnp.float64), (bits >> _EXPONENT_SHIFT) - _EXPONENT_BIAS
