"""The sum over two half-codes against the same sum written out."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import all_states
from harmonium.numerics.halves import LARGEST_HALF, log_sum_exp_over_halves

PROGRAM = compile_function(log_sum_exp_over_halves)


def written_out(
    first_log_weight: np.ndarray,
    first_field: np.ndarray,
    second_log_weight: np.ndarray,
    second_field: np.ndarray,
) -> float:
    fields = first_field[:, None, :] + second_field[None, :, :]
    logs = first_log_weight[:, None] + second_log_weight + np.logaddexp(0, fields).sum(axis=2)
    return float(np.logaddexp.reduce(logs.ravel()))


def halves(scale: float, columns: int, bits: tuple[int, int] = (5, 4)) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(3)
    weights = scale * generator.normal(size=(sum(bits), columns))
    rest, bias = scale * generator.normal(size=columns), generator.normal(size=sum(bits))
    first, second = (all_states(count).astype(float) for count in bits)
    return (
        first @ bias[: bits[0]],
        first @ weights[: bits[0]] + rest,
        second @ bias[bits[0] :],
        second @ weights[bits[0] :],
    )


@pytest.mark.parametrize("scale", [0.0, 0.1, 2.0, 4.0])
def test_the_sum_is_that_of_all_pairs(scale: float) -> None:
    parts = halves(scale, 100)
    assert max(np.abs(part).max() for part in parts) < LARGEST_HALF
    with jax.enable_x64(True):
        assert float(PROGRAM(*parts)) == pytest.approx(written_out(*parts), rel=1e-14, abs=1e-12)


def test_products_at_both_ends_of_the_range_stay_normal_numbers() -> None:
    """Every factor at the edge of what is allowed, all of them one way, the other way, and against each other."""
    for signs in ((1, 1), (-1, -1), (1, -1)):
        first = np.array([[LARGEST_HALF] * 100, [-LARGEST_HALF] * 100]) * signs[0]
        second = np.array([[LARGEST_HALF] * 100, [-LARGEST_HALF] * 100]) * signs[1]
        parts = (np.array([0.0, -900.0]), first, np.array([0.0, 700.0]), second)
        with jax.enable_x64(True):
            assert float(PROGRAM(*parts)) == pytest.approx(written_out(*parts), rel=1e-14)


def test_columns_may_be_fewer_than_a_group_or_none_too_many() -> None:
    for columns in (1, 16, 17):
        parts = halves(1.0, columns)
        with jax.enable_x64(True):
            assert float(PROGRAM(*parts)) == pytest.approx(written_out(*parts), rel=1e-13)
