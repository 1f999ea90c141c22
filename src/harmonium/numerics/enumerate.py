"""Finite state spaces, walked in chunks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.errors import BudgetError

BIT_BUDGET = 26
"""Most two-valued variables that are enumerated unless the caller allows more."""

_CHUNK_BITS = 12
_LONGEST_WAIT = 40
"""Most two-valued variables that anybody could wait for."""


def check_bits(bits: int, budget: int, what: str, alternative: str, setting: str | None = None) -> None:
    """Refuse an enumeration of ``2**bits`` states above the budget, naming the way out.

    ``setting`` is how the caller raises the budget, with ``{}`` for the bits: "bit_budget={}"; None where it cannot.
    It is named only where the sum would end within days. Raises `BudgetError`.
    """
    if bits > budget:
        wait = setting.format(bits) if setting and bits <= _LONGEST_WAIT else ""
        raise BudgetError(
            f"{what} would enumerate 2**{bits} states, but the budget is {budget} bits; {alternative}"
            + (f", or pass {wait} if you can wait" if wait else "")
        )


def all_states(bits: int) -> Int[np.ndarray, "states bits"]:
    """All states of a few bits at once, one row each; variable ``i`` is bit ``i`` of the row's number.

    >>> all_states(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1


def chunk_bits(bits: int) -> int:
    """How many of ``bits`` variables one chunk runs through."""
    return min(bits, _CHUNK_BITS)


def chunk_of_states(
    number: Int[Array, ""], bits: int, low: float, high: float, dtype: jnp.dtype
) -> Float[Array, "states bits"]:
    """States of chunk ``number``, one row each; variable ``i`` is ``high`` where bit ``i`` of the state is set."""
    within = chunk_bits(bits)
    places = jnp.arange(1 << within, dtype=jnp.uint32)
    low_bits = (places[:, None] >> jnp.arange(within, dtype=jnp.uint32)) & 1
    high_bits = (number.astype(jnp.uint32) >> jnp.arange(bits - within, dtype=jnp.uint32)) & 1
    on = jnp.concatenate([low_bits, jnp.broadcast_to(high_bits, (1 << within, bits - within))], axis=1)
    return low + (high - low) * on.astype(dtype)


def log_sum_over_states(log_weight_of_chunk, bits: int) -> Float[Array, ""]:
    """Log-sum-exp over all states of ``log_weight_of_chunk(number) -> (states,)``, streamed chunk by chunk."""
    chunks = 1 << (bits - chunk_bits(bits))

    def body(number: Array, total: Array) -> Array:
        return jnp.logaddexp(total, jax.nn.logsumexp(log_weight_of_chunk(number)))

    first = jax.nn.logsumexp(log_weight_of_chunk(jnp.int32(0)))
    return jax.lax.fori_loop(1, chunks, body, first)
