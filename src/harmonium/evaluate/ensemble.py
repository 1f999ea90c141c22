"""Many members in one number: the median one, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite
from harmonium.evaluate.exact import log_partition_of, plan_enumeration
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_double, in_double_precision

BAND = 0.05
"""The largest share of the members that may lie beyond either end of a band."""

_ROWS = 4096


class Band(NamedTuple):
    """The median of some members, and the ends between which nine tenths of them lie."""

    median: float
    low: float
    high: float


def band(values: Sequence[float] | np.ndarray) -> Band:
    r"""Median and 5-95 % band of the members' values; each of the three is a member's own.

    Of an even number the median is the lower of the two in the middle. From the ``n`` values in order, ``low`` leaves
    out the first and ``high`` the last :math:`\lceil n / 20 \rceil - 1`, so that less than 5 % lie beyond either.
    NaN is left out; without any value all three are NaN.

    >>> band([3.0, 1.0, 2.0, 4.0])
    Band(median=2.0, low=1.0, high=4.0)
    """
    ordered = sorted(float(value) for value in values if not math.isnan(value))
    if not ordered:
        return Band(math.nan, math.nan, math.nan)
    beyond = math.ceil(BAND * len(ordered) - 1e-9) - 1
    return Band(ordered[(len(ordered) - 1) // 2], ordered[beyond], ordered[-1 - beyond])


def median_member(values: Sequence[float] | np.ndarray) -> int:
    """Which member has the `band`'s median; NaN counts as least."""
    order = np.argsort(np.asarray(values, np.float64), kind="stable")
    finite = [int(number) for number in order if not math.isnan(values[number])]
    return finite[(len(finite) - 1) // 2] if finite else 0


def exact_log_partitions(stacked: AbstractBipartite) -> np.ndarray:
    """The exact log partition function of every member, in float64 nats, from one compiled call.

    ``stacked`` has a leading member axis on every array. What it costs is for the caller to ask.
    """
    side = plan_enumeration(jax.tree.map(lambda leaf: leaf[0], stacked)).side
    return _log_partitions(as_double(stacked), side)


def unnormalised_log_probabilities(stacked: AbstractBipartite, rows: np.ndarray) -> np.ndarray:
    """Minus the free energy of every row under every member, shape ``(members, rows)``, in float64 nats."""
    double = as_double(stacked)
    blocks = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
    return np.concatenate([_minus_marginal_energies(double, block) for block in blocks], axis=1)


@in_double_precision
def _log_partitions(stacked: AbstractBipartite, side: int) -> np.ndarray:
    return np.asarray(_partitions_program()(stacked, side))


@in_double_precision
def _minus_marginal_energies(stacked: AbstractBipartite, rows: np.ndarray) -> np.ndarray:
    return np.asarray(_marginals_program()(stacked, rows.astype(np.float64)))


# One member after the other inside the program: the states or rows of one are work enough to fill a core, and those of
# all at once would fill the memory.
@cache
def _partitions_program():
    def program(stacked: AbstractBipartite, side: int) -> Float[Array, " members"]:
        return jax.lax.map(lambda member: log_partition_of(member, side), stacked)

    return compile_function(program, static_argnums=1)


@cache
def _marginals_program():
    def program(stacked: AbstractBipartite, rows: Float[Array, "rows n"]) -> Float[Array, "members rows"]:
        return jax.lax.map(lambda member: -member.marginal_energy(0, (rows,)), stacked)

    return compile_function(program)
