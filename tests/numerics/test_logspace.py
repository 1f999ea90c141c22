"""Sums that stay finite, against the same sums in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.numerics.logspace import (
    SOFTPLUS_GROUP,
    effective_sample_size,
    log_mean_exp,
    logistic,
    softplus_sum,
)

EPSILON = float(np.finfo(np.float32).eps)


def exact_softplus(field: np.ndarray) -> np.ndarray:
    field = field.astype(np.float64)
    return np.maximum(field, 0) + np.log1p(np.exp(-np.abs(field)))


@pytest.mark.parametrize("width", [1, SOFTPLUS_GROUP, 3 * SOFTPLUS_GROUP + 5])
def test_softplus_sum_is_the_sum_of_log1p(width: int) -> None:
    """Ordinary, strong, zero and huge fields, in float32; huge ones are where a naive sum of logarithms breaks."""
    signs = np.where(np.arange(width) % 3 == 0, 1, -1)
    normal = np.random.default_rng(width).normal(0, 1, (2, width))
    rows = [normal[0], 30 * normal[1], 0 * signs]
    rows += [np.full(width, size) for size in (200.0, -200.0, 1000.0, -1000.0)] + [
        200.0 * signs,
        1000.0 * signs,
    ]
    field = np.asarray(rows, np.float32)
    summed, slopes = jax.jit(lambda x: (softplus_sum(x), jax.grad(lambda y: jnp.sum(softplus_sum(y)))(x)))(
        field
    )
    exact = exact_softplus(field)
    # Rounding of a product of n factors and of a sum of n terms: at most n units in the last place each.
    bound = 2 * width * EPSILON * (1 + np.abs(exact).sum(-1))
    assert np.all(np.abs(np.asarray(summed) - exact.sum(-1)) <= bound)
    on = 1 / (1 + np.exp(-np.clip(field.astype(np.float64), -700, 700)))
    np.testing.assert_allclose(np.asarray(slopes), on, atol=4 * EPSILON)
    np.testing.assert_array_equal(np.asarray(slopes)[-1], signs > 0)


def test_one_product_over_a_wide_layer_would_overflow() -> None:
    """At field zero every factor is 2, the largest there is: why the product is taken in groups."""
    with np.errstate(over="ignore"):
        assert not np.isfinite(np.prod(np.full(129, 2, np.float32)))
    assert np.isfinite(np.prod(np.full(SOFTPLUS_GROUP, 2, np.float32)))


def test_the_logistic_function() -> None:
    field = np.array([-1000, -30, -1, 0, 0.5, 30, 1000], np.float32)
    exact = 1 / (1 + np.exp(-np.clip(field.astype(np.float64), -700, 700)))
    np.testing.assert_allclose(np.asarray(logistic(jnp.asarray(field))), exact, atol=2 * EPSILON)


def test_softplus_sum_in_double_precision() -> None:
    with jax.enable_x64(True):
        field = np.random.default_rng(0).normal(0, 5, (4, 300))
        summed = softplus_sum(jnp.asarray(field))
        assert summed.dtype == jnp.float64
        np.testing.assert_allclose(np.asarray(summed), exact_softplus(field).sum(-1), rtol=1e-14)
        slope = np.asarray(jax.grad(softplus_sum)(jnp.asarray(field[0])))
        np.testing.assert_allclose(slope, 1 / (1 + np.exp(-field[0])), atol=1e-15)
        # The second derivative, which the pull-back of a trained surrogate needs.
        curvature = np.asarray(jax.jit(jax.jacfwd(jax.grad(softplus_sum)))(jnp.asarray(field[0, :3])))
        on = 1 / (1 + np.exp(-field[0, :3]))
        np.testing.assert_allclose(curvature, np.diag(on * (1 - on)), atol=1e-15)


def test_log_mean_exp_and_effective_sample_size() -> None:
    values = jnp.array([-1000.0, -1000.0 + np.log(3)], jnp.float32)
    assert float(log_mean_exp(values)) == pytest.approx(-1000 + np.log(2), rel=1e-6)
    assert float(effective_sample_size(values)) == pytest.approx((1 + 3) ** 2 / (1 + 9), rel=1e-3)
    assert float(effective_sample_size(jnp.full(7, 500.0))) == pytest.approx(7, rel=1e-3)
