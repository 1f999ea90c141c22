"""The largest, over all pairs of two lists, of a sum of absolute values, at three operations a term."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

_TERMS = 16
_BLOCK = 1 << 14


def best_pair(
    first_value: Float[Array, " first"],
    first_form: Float[Array, "first n"],
    second_value: Float[Array, " second"],
    second_form: Float[Array, "second n"],
    ties: tuple[Float[Array, "first k"], Float[Array, "second k"]] | None = None,
) -> tuple[Float[Array, ""], Int[Array, ""], Int[Array, ""]]:
    r"""The largest :math:`\alpha_a + \beta_b + s_a^\top t_b + \sum_j |x_{aj} + y_{bj}|`, and its ``a`` and ``b``.

    In the dtype of the arrays; of equal ones the first is taken. ``ties`` are the vectors :math:`s` and :math:`t`. What
    is kept at a time is one number for each of some thousand pairs, whatever the lengths of the lists.

    >>> import numpy as np
    >>> one, two = np.float32([[1.0], [-2.0]]), np.float32([[0.5], [-1.0], [0.0]])
    >>> [float(part) for part in best_pair(np.zeros(2, "f"), one, np.zeros(3, "f"), two)]
    [3.0, 1.0, 1.0]
    """
    first, second, missing = first_form.shape[0], second_form.shape[0], -first_form.shape[1] % _TERMS
    rows = max(1, min(first, _BLOCK // second))
    blocks = -(-first // rows)
    beyond = blocks * rows - first
    # Terms that fill up the last group are zero, rows that fill up the last block are worth nothing.
    ours = jnp.pad(jnp.asarray(first_form), ((0, beyond), (0, missing)))
    theirs = jnp.pad(jnp.asarray(second_form), ((0, 0), (0, missing))).T
    worth = jnp.pad(jnp.asarray(first_value), (0, beyond), constant_values=-jnp.inf)
    tied = None if ties is None else jnp.pad(jnp.asarray(ties[0]), ((0, beyond), (0, 0)))

    def best_of_block(number: Array) -> tuple[Array, Array]:
        block = jax.lax.dynamic_slice_in_dim(ours, number * rows, rows)

        def add(group: Array, total: Float[Array, "rows second"]) -> Float[Array, "rows second"]:
            left = jax.lax.dynamic_slice_in_dim(block, group * _TERMS, _TERMS, axis=1)
            right = jax.lax.dynamic_slice_in_dim(theirs, group * _TERMS, _TERMS)
            for term in range(_TERMS):
                total = total + jnp.abs(left[:, term, None] + right[term])
            return total

        total = jax.lax.dynamic_slice_in_dim(worth, number * rows, rows)[:, None] + second_value
        if ties is not None and tied is not None:
            total = total + jax.lax.dynamic_slice_in_dim(tied, number * rows, rows) @ ties[1].T
        total = jax.lax.fori_loop(0, len(theirs) // _TERMS, add, total).reshape(-1)
        place = jnp.argmax(total)
        return total[place], place

    values, places = jax.lax.map(best_of_block, jnp.arange(blocks))
    block = jnp.argmax(values)
    place = places[block]
    return values[block], block * rows + place // second, place % second
