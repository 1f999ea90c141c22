"""The exact oracle: enumerate the smaller side, sum the other out in closed form."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite
from harmonium.errors import SettingError
from harmonium.evaluate.estimate import Estimate
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits, chunk_of_states, log_sum_over_states
from harmonium.numerics.precision import as_double, in_double_precision


class EnumerationPlan(NamedTuple):
    """Which side is enumerated and what that costs."""

    side: int
    bits: int
    operations: float


def plan_enumeration(model: AbstractBipartite) -> EnumerationPlan:
    """The cheaper side of a model with two-valued units, its bits, and the operation count of a full sum.

    One state costs a multiply-add per pair of units across the sides and some twenty operations per softplus.
    """
    if not isinstance(model, AbstractBipartite):
        raise SettingError(f"exact sums need a model with two sides, got a {type(model).__name__}")
    sizes = [sum(model.units[layer].size for layer in side) for side in model.sides]
    side = int(sizes[1] < sizes[0])
    for layer in model.sides[side]:
        if len(model.units[layer].support) != 2:
            raise SettingError(
                f"layer {layer} has {model.units[layer].kind} units, which cannot be enumerated in bits"
            )
    bits, other = sizes[side], sizes[1 - side]
    return EnumerationPlan(side, bits, 2.0**bits * other * (2 * bits + 20))


def exact_log_partition(model: AbstractBipartite, bit_budget: int = BIT_BUDGET) -> Estimate:
    r"""Exact :math:`\log Z = \log \sum_x e^{-F(x)}` over the states of the smaller side, in float64 nats.

    Raises `BudgetError` when that side has more two-valued units than ``bit_budget``.
    """
    plan = plan_enumeration(model)
    check_bits(
        plan.bits,
        bit_budget,
        f"the exact log partition function of this {type(model).__name__}",
        'use method="ais" (--method ais), which estimates it with a verdict',
    )
    value = _log_partition(as_double(model), plan.side)
    return Estimate(
        value=value,
        reason=f"enumerated 2**{plan.bits} states",
        method="exact",
        cost={"operations": plan.operations, "states": 2.0**plan.bits},
    )


def unnormalised_log_probability(model: AbstractBipartite, rows: np.ndarray) -> np.ndarray:
    """Minus the free energy of every row, in float64 nats."""
    return -marginal_energies(model, 0, (rows,))


def marginal_energies(model: AbstractBipartite, side: int, layers: tuple[np.ndarray, ...]) -> np.ndarray:
    """Energy of each row of one side with the other side summed out, in float64 nats."""
    double = as_double(model)
    parts = [
        _marginal_energy(double, side, tuple(layer[start : start + 4096] for layer in layers))
        for start in range(0, len(layers[0]), 4096)
    ]
    return np.concatenate(parts)


@in_double_precision
def _log_partition(model: AbstractBipartite, side: int) -> float:
    return float(_log_partition_program()(model, side))


@in_double_precision
def _marginal_energy(model: AbstractBipartite, side: int, layers: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.asarray(_marginal_program()(model, side, tuple(layer.astype(np.float64) for layer in layers)))


@cache
def _log_partition_program():
    return compile_function(_sum_states, static_argnames=("side",))


@cache
def _marginal_program():
    return compile_function(lambda model, side, layers: model.marginal_energy(side, layers), static_argnums=1)


def _sum_states(model: AbstractBipartite, side: int) -> Float[Array, ""]:
    layers = [model.units[index] for index in model.sides[side]]
    bits = sum(units.size for units in layers)
    edges = np.cumsum([0, *(units.size for units in layers)])

    def log_weights(number: Array) -> Float[Array, " states"]:
        states = chunk_of_states(number, bits, 0.0, 1.0, jnp.result_type(*jax.tree.leaves(model)))
        configuration = []
        for units, start, stop in zip(layers, edges[:-1], edges[1:], strict=True):
            low, high = units.support
            configuration.append(low + (high - low) * states[:, start:stop])
        return -model.marginal_energy(side, tuple(configuration))

    return log_sum_over_states(log_weights, bits)
