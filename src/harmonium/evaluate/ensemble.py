"""Many members in one number: the median one, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Num

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import exact_log_partition, plan_enumeration, sum_states
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_double, in_double_precision

BAND = 0.05
"""The largest share of the members that may lie beyond either end of a band."""

_ROWS = 4096

_BITS_OF_ONE_CALL = 13
"""Most bits that are enumerated for all members in one compiled call; beyond, one sum is longer than a call takes."""


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


def median_estimate(
    ensemble: Ensemble, estimates: Sequence[tuple[Estimate, Estimate]]
) -> tuple[Estimate, Estimate]:
    """The estimates of the median member, by the first of each pair, with those of all members in ``members``.

    The median is that of the members which no divergence guard has stopped, where there are any; a stopped one's
    estimates are not reliable.
    """
    pairs = [
        tuple(doubted(estimate, fault and f"its training {fault}") for estimate in pair)
        for pair, fault in zip(estimates, ensemble.faults or [""] * len(ensemble), strict=True)
    ]
    counted = ensemble.sound or range(len(ensemble))
    middle = counted[median_member([float(np.mean(pairs[member][0].value)) for member in counted])]
    first, second = (
        replace(pairs[middle][place], member=middle, members=tuple(pair[place] for pair in pairs))
        for place in (0, 1)
    )
    return first, second


def doubted(estimate: Estimate, doubt: str) -> Estimate:
    """The estimate, not reliable for the reason ``doubt`` beside any it has already; as it is where there is no doubt.

    >>> doubted(Estimate(-20.0), "its training diverged").reason
    'its training diverged'
    """
    if not doubt:
        return estimate
    reason = doubt if estimate.reliable or not estimate.reason else f"{doubt}; {estimate.reason}"
    return replace(estimate, reliable=False, reason=reason)


def exact_log_partitions(stacked: AbstractEnergyModel) -> np.ndarray:
    """The exact log partition function of every member, in float64 nats.

    ``stacked`` has a leading member axis on every array. What it costs is for the caller to ask.
    """
    plan = plan_enumeration(_member(stacked, 0))
    if plan.bits > _BITS_OF_ONE_CALL:
        members = range(len(jax.tree.leaves(stacked)[0]))
        return np.array([exact_log_partition(_member(stacked, member)).value for member in members])
    return _log_partitions(as_double(stacked), plan.side)


def unnormalised_log_probabilities(stacked: AbstractEnergyModel, rows: np.ndarray) -> np.ndarray:
    """Minus the free energy of every row under every member, shape ``(members, rows)``, in float64 nats."""
    double = as_double(stacked)
    blocks = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
    return np.concatenate([_minus_free_energies(double, block) for block in blocks], axis=1)


def _member(stacked: AbstractEnergyModel, member: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf[member]), stacked)


@in_double_precision
def _log_partitions(stacked: AbstractEnergyModel, side: Any) -> np.ndarray:
    return np.asarray(_partitions_program()(stacked, side))


@in_double_precision
def _minus_free_energies(stacked: AbstractEnergyModel, rows: np.ndarray) -> np.ndarray:
    return np.asarray(_free_energies_program()(stacked, rows))


# One member after the other inside a program: the states or rows of one are work enough to fill a core, and those of
# all at once would fill the memory.
@cache
def _partitions_program():
    def program(stacked: Any, side: Any) -> Float[Array, " members"]:
        return jax.lax.map(lambda member: sum_states(member, side), stacked)

    return compile_function(program, static_argnums=1)


@cache
def _free_energies_program():
    def program(stacked: Any, rows: Num[Array, "rows n"]) -> Float[Array, "members rows"]:
        return jax.lax.map(lambda member: -member.free_energy(rows), stacked)

    return compile_function(program)
