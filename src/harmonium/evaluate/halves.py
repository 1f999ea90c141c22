"""The fast path of the exact oracle: the enumerated units as two half-codes, where that is safe."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.cumulant import Split, ends_of
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import all_states
from harmonium.numerics.halves import LARGEST_HALF, log_sum_exp_over_halves
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.units.base import AbstractTwoValuedUnits

FEWEST_BITS = 6
"""Below so many enumerated units the plain sum is as fast."""

_LARGEST_TABLE = 1 << 24


class Halves(NamedTuple):
    """Per half-code the log-weights of its states and their shares of the fields, and what the two have in common.

    Fields are those of the units that are summed out, times the distance between their two values.
    """

    first_log_weight: Float[np.ndarray, " first"]
    first_field: Float[np.ndarray, "first n"]
    second_log_weight: Float[np.ndarray, " second"]
    second_field: Float[np.ndarray, "second n"]
    ties: tuple[Float[np.ndarray, "first k"], Float[np.ndarray, "second k"]] | None


@in_double_precision
def can_halve(model: AbstractEnergyModel) -> bool:
    """Whether `log_partition_by_halves` is open for a model.

    It is for two-valued units of linear energies, from `FEWEST_BITS` enumerated ones on, with some that are summed out,
    while neither half moves a field by more than `LARGEST_HALF` nats and the tables of the halves fit into memory.
    """
    if not all(isinstance(units, AbstractTwoValuedUnits) for units in model.units):
        return False
    split = model.split(held=False)
    longest = -(-split.bits // 2)
    if split.bits < FEWEST_BITS or not split.summed or len(split.summed) << longest > _LARGEST_TABLE:
        return False
    coupling, bias = (np.asarray(part) for part in _pairwise_program()(as_double(model)))
    ends, (first, second), summed = ends_of(model.units), _parted(split), np.array(split.summed)
    width = ends[1, summed] - ends[0, summed]
    for units, rest in ((first, bias[summed]), (second, 0.0)):
        weights = width * coupling[np.ix_(units, summed)]
        by_value = ends[:, units, None] * weights
        low, high = (width * rest + part.sum(axis=0) for part in (by_value.min(axis=0), by_value.max(axis=0)))
        # Written so that a field that is no number is not let through.
        if not max(np.max(np.abs(low)), np.max(np.abs(high))) <= LARGEST_HALF:
            return False
    return True


def log_partition_by_halves(model: AbstractEnergyModel) -> float:
    r"""Exact :math:`\log Z` of a float64 model for which `can_halve` is true; call it with 64-bit types enabled."""
    return float(_program()(*split_in_halves(model)))


@cache
def _pairwise_program():
    return compile_function(lambda model: model.pairwise())


@cache
def _program():
    return compile_function(log_sum_exp_over_halves)


def split_in_halves(model: AbstractEnergyModel) -> Halves:
    r"""The enumerated units of a float64 model in two halves; call it with 64-bit types enabled.

    A unit of two values :math:`l < u` in a field is summed out by :math:`e^{fl} + e^{fu} = e^{fl} (1 + e^{(u - l) f})`.
    What a field is without any enumerated unit goes with the first half.
    """
    split = model.split(held=False)
    coupling, bias = (np.asarray(part) for part in _pairwise_program()(model))
    ends, halves, summed = ends_of(model.units), _parted(split), np.array(split.summed)
    low, width = ends[0, summed], ends[1, summed] - ends[0, summed]
    tables, all_values = [], []
    for units, rest in zip(halves, (bias[summed], 0.0), strict=True):
        values = ends[0, units] + (ends[1, units] - ends[0, units]) * all_states(len(units))
        field = values @ coupling[np.ix_(units, summed)] + rest
        own = values @ bias[units] + np.sum(values @ coupling[np.ix_(units, units)] * values, axis=1) / 2
        tables += [own + field @ low, width * field]
        all_values.append(values)
    between = coupling[np.ix_(*halves)]
    ties = (all_values[0] @ between, all_values[1]) if between.any() else None
    return Halves(tables[0], tables[1], tables[2], tables[3], ties)


def _parted(split: Split) -> tuple[np.ndarray, np.ndarray]:
    units = np.array(split.enumerated)
    return units[: split.bits // 2], units[split.bits // 2 :]
