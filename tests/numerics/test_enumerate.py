"""Enumeration: every state once, whatever the chunks, and sums over all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.errors import BudgetError
from harmonium.numerics.enumerate import check_bits, chunk_bits, chunk_of_states, log_sum_over_states

FLOAT32 = jnp.dtype(jnp.float32)


@pytest.mark.parametrize("bits", [1, 5, 12, 14])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_chunks_cover_every_state_once(bits: int, low: float) -> None:
    chunks = 1 << (bits - chunk_bits(bits))
    states = np.concatenate(
        [np.asarray(chunk_of_states(jnp.int32(number), bits, low, 1.0, FLOAT32)) for number in range(chunks)]
    )
    assert states.shape == (1 << bits, bits)
    assert set(np.unique(states)) == {low, 1.0}
    codes = (states == 1.0) @ (1 << np.arange(bits))
    np.testing.assert_array_equal(np.sort(codes), np.arange(1 << bits))


@pytest.mark.parametrize("bits", [1, 14])
def test_sums_over_all_states(bits: int) -> None:
    """A sum of exponentials of linear functions has a closed form: a product of one factor per variable."""
    slopes = np.random.default_rng(bits).normal(0, 1, bits)
    with jax.enable_x64(True):

        def log_weight(number: jax.Array) -> jax.Array:
            return chunk_of_states(number, bits, 0.0, 1.0, jnp.dtype(jnp.float64)) @ slopes

        total = float(log_sum_over_states(log_weight, bits))
    assert total == pytest.approx(np.log1p(np.exp(slopes)).sum(), rel=1e-13)


def test_the_budget_names_the_bits_and_the_way_out() -> None:
    check_bits(20, 20, "this sum", "do something else")
    with pytest.raises(
        BudgetError, match=r"this sum would enumerate 2\*\*21 states.*20 bits; do something else"
    ):
        check_bits(21, 20, "this sum", "do something else")


def test_a_larger_budget_is_named_where_there_is_one_and_it_can_be_waited_for() -> None:
    for bits, setting, end in (
        (40, "bits={}", "; wait, or pass bits=40 if you can wait"),
        (41, "bits={}", "; wait"),
        (40, None, "; wait"),
    ):
        with pytest.raises(BudgetError) as refusal:
            check_bits(bits, 20, "this sum", "wait", setting)
        assert str(refusal.value).endswith(f"20 bits{end}")
