"""Sums that stay finite: log-mean-exp, effective sample size, and sums of softplus with an exact cheap derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

SOFTPLUS_GROUP = 98
"""Most factors ``1 + exp(-|x|) <= 2`` whose product stays far from the float32 overflow at 2**128."""

_SMALL_CHANGE = 0.125
"""Below it, the next term of the series in `softplus_change` is lost in the rounding of the change."""


def logistic(field: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""The logistic function :math:`\sigma(x) = 1/(1 + e^{-x})`, written with one tanh.

    Samplers and derivatives share this one expression, so that a compiler can see that they are the same number.
    """
    half = jnp.asarray(0.5, jnp.result_type(field))
    return half * jnp.tanh(half * field) + half


@jax.custom_jvp
def softplus_sum(field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    r"""Sum over the last axis of :math:`\log(1 + e^x)`, in nats.

    Computed as :math:`\sum \max(x, 0) + \sum_g \log \prod_{i \in g} (1 + e^{-|x_i|})` over groups of at most 98
    factors, so that one logarithm serves a whole group and no product can overflow. Its derivative is the logistic
    function.
    """
    positive = jnp.sum(jnp.maximum(field, 0), axis=-1)
    factors = jnp.exp(-jnp.abs(field))
    if jnp.result_type(field) == jnp.float64:
        return positive + jnp.sum(jnp.log1p(factors), axis=-1)
    width = field.shape[-1]
    logs = jnp.zeros(field.shape[:-1], field.dtype)
    for start in range(0, width, SOFTPLUS_GROUP):
        group = factors[..., start : start + SOFTPLUS_GROUP]
        # log1p of (product - 1) would lose nothing only for one factor; for groups the product itself is exact enough.
        logs = logs + (
            jnp.log1p(group[..., 0]) if group.shape[-1] == 1 else jnp.log(jnp.prod(1 + group, axis=-1))
        )
    return positive + logs


@softplus_sum.defjvp
def _softplus_sum_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (field,), (tangent,) = primals, tangents
    return softplus_sum(field), jnp.sum(logistic(field) * tangent, axis=-1)


def softplus_change(
    field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
) -> Float[Array, "*batch"]:
    r"""Sum over the last axis of :math:`\log(1 + e^{x + d}) - \log(1 + e^x)`, in nats.

    Exact to rounding *of the changes* :math:`d`, however large the fields are and however many changes are added up.
    With :math:`t = \tanh(x/2)` before and :math:`t' = \tanh((x+d)/2)` after, small changes are the integral of the
    logistic function by Euler and Maclaurin,
    :math:`d\,(\frac12 + (t + t')(\frac14 + \frac{d}{48}(t' - t)))`; the others are the change of :math:`\max(x, 0)`
    and the logarithm of a ratio between 1/2 and 2, since :math:`1 + e^{-|x|} = 2/(1 + |t|)`.
    """
    ramp = jnp.maximum(change + jnp.minimum(field, 0), -jnp.maximum(field, 0))
    after = field + change
    if jnp.result_type(field) == jnp.float64:
        tails = jnp.log1p(jnp.exp(-jnp.abs(after))) - jnp.log1p(jnp.exp(-jnp.abs(field)))
        return jnp.sum(ramp + tails, axis=-1)
    old, new = jnp.tanh(0.5 * field), jnp.tanh(0.5 * after)
    small = change * (0.5 + (old + new) * (0.25 + change * (new - old) / 48))
    large = ramp + jnp.log((1 + jnp.abs(old)) / (1 + jnp.abs(new)))
    terms = jnp.where(jnp.abs(change) < _SMALL_CHANGE, small, large)
    # A product with ones: a sum over the last axis is compiled to one addition after the other, which takes longer than
    # all the rest. So does a product of factors, though it would save logarithms (`softplus_sum`).
    return jnp.matmul(terms, jnp.ones(terms.shape[-1], terms.dtype), precision=jax.lax.Precision.HIGHEST)


def two_sum(
    left: Float[Array, "*batch"], right: Float[Array, "*batch"]
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """The rounded sum and what rounding lost of it, exactly (Knuth).

    A loop that keeps both adds up single-precision terms with the error of double precision.
    """
    total = left + right
    shadow = total - left
    return total, (left - (total - shadow)) + (right - shadow)


def log_mean_exp(log_values: Float[Array, " n"]) -> Float[Array, ""]:
    """Logarithm of the mean of ``exp(log_values)``."""
    return jax.nn.logsumexp(log_values) - jnp.log(log_values.shape[0])


def effective_sample_size(log_weights: Float[Array, " n"]) -> Float[Array, ""]:
    r"""Kish's effective sample size :math:`(\sum w)^2 / \sum w^2` of importance weights given by their logarithms."""
    return jnp.exp(2 * jax.nn.logsumexp(log_weights) - jax.nn.logsumexp(2 * log_weights))
