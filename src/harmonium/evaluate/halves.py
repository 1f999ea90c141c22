"""The fast path of the exact oracle: the enumerated side as two half-codes, where that is safe."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import all_states
from harmonium.numerics.halves import LARGEST_HALF, log_sum_exp_over_halves
from harmonium.units.base import AbstractLinearUnits

FEWEST_BITS = 6
"""Below so many enumerated units the plain sum is as fast."""


class Halves(NamedTuple):
    """Per half-code: the log-weights of its states, and their shares of the fields of the other side."""

    first_log_weight: Float[Array, " first"]
    first_field: Float[Array, "first n"]
    second_log_weight: Float[Array, " second"]
    second_field: Float[Array, "second n"]


def log_partition_by_halves(model: AbstractBipartite, side: int) -> float | None:
    r"""Exact :math:`\log Z` of a float64 model over the states of ``side``; None where this way is not open.

    It is open for linear units whose cumulant is a softplus, from `FEWEST_BITS` enumerated ones on, while neither half
    moves a field of the other side by more than `LARGEST_HALF` nats. Call it with 64-bit types enabled.
    """
    enumerated, summed = ([model.units[index] for index in model.sides[part]] for part in (side, 1 - side))
    if sum(units.size for units in enumerated) < FEWEST_BITS:
        return None
    linear = all(isinstance(units, AbstractLinearUnits) for units in (*enumerated, *summed))
    if not linear or any(units.softplus_form is None for units in summed):
        return None
    split = _split_program()(model, side)
    if not all(
        bool(jnp.all(jnp.abs(part) <= LARGEST_HALF)) for part in (split.first_field, split.second_field)
    ):
        return None
    return float(_sum_program()(*split))


@cache
def _split_program():
    return compile_function(split_in_halves, static_argnums=1)


@cache
def _sum_program():
    return compile_function(log_sum_exp_over_halves)


def split_in_halves(model: AbstractBipartite, side: int) -> Halves:
    r"""The enumerated side in two halves.

    A cumulant is :math:`A(f) = \log(1 + e^{s f}) + t f` with the two numbers of the units' ``softplus_form``. Fields
    and energies are linear in the state, so that either half's share is found with the other half at zero; what is
    there without any state, the field at rest, goes with the first half.
    """
    sizes = [model.units[index].size for index in model.sides[side]]
    bits = sum(sizes)
    ends = np.concatenate(
        [np.tile(model.units[index].support, (model.units[index].size, 1)) for index in model.sides[side]]
    )
    log_weights, fields = [], []
    for start, stop in ((0, bits // 2), (bits // 2, bits)):
        codes = np.zeros((1 << (stop - start), bits))
        chosen = all_states(stop - start)
        codes[:, start:stop] = ends[start:stop, 0] + (ends[start:stop, 1] - ends[start:stop, 0]) * chosen
        layers: list[Array] = [jnp.zeros((1, units.size)) for units in model.units]
        at_rest = tuple(layers)
        for index, part in zip(
            model.sides[side], np.split(codes, np.cumsum(sizes)[:-1], axis=1), strict=True
        ):
            layers[index] = jnp.asarray(part)
        log_weight = -sum(model.units[index].base_energy(layers[index]) for index in model.sides[side])
        scaled = []
        for index in model.sides[1 - side]:
            units = model.units[index]
            assert units.softplus_form is not None
            scale, tilt = units.softplus_form
            field = model.field(index, tuple(layers))
            if start:
                field = field - model.field(index, at_rest)
            scaled.append(scale * field)
            log_weight = log_weight + tilt * jnp.sum(field, axis=1)
        log_weights.append(log_weight)
        fields.append(jnp.concatenate(scaled, axis=1))
    return Halves(log_weights[0], fields[0], log_weights[1], fields[1])
