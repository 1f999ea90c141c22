"""The exact oracle: enumerate the smaller side, sum the other out in closed form."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.enumeration import log_partition_of
from harmonium.energy.labels import label_units
from harmonium.errors import SettingError
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.halves import can_halve, log_partition_by_halves
from harmonium.inference.clamped import are_coupled
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits, chunk_of_states, log_sum_over_states
from harmonium.numerics.precision import as_double, in_double_precision

_ROWS = 4096


class EnumerationPlan(NamedTuple):
    """What is enumerated (a side of a model that has two, else None: some units of all layers) and what that costs.

    ``operations`` are those of the sum, which is that of `harmonium.evaluate.halves` where ``by_halves``, and
    ``walk_operations`` those of computing the weight of every single state.
    """

    side: int | None
    bits: int
    operations: float
    walk_operations: float
    by_halves: bool


def plan_enumeration(model: AbstractEnergyModel) -> EnumerationPlan:
    """The cheaper side of a model with two-valued units, its bits, and the operation count of a full sum.

    A label layer counts as the bits that number its classes, rounded up.

    One state costs a multiply-add per pair of units across the sides and some twenty operations per softplus; by
    halves, where these are open, a few operations per unit that is summed out. Of a model without sides the units that
    are not independent given the rest are enumerated; see `harmonium.energy.base.AbstractEnergyModel.split`.
    """
    by_halves = can_halve(model)
    if not isinstance(model, AbstractBipartite):
        split = model.split(held=False)
        operations = _halves_operations(split.bits, len(split.summed)) if by_halves else split.operations
        return EnumerationPlan(None, split.bits, operations, split.operations, by_halves)
    labels = label_units(model)
    sizes = [sum(model.units[layer].size for layer in side) for side in model.sides]
    many = [[layer for layer in side if len(model.units[layer].support) != 2] for side in model.sides]
    states = [float(size) for size in sizes]
    if labels is not None:
        place = int(len(model.units) - 1 in model.sides[1])
        states[place] += math.log2(labels.states) - labels.size
    if all(many):
        layer = many[int(states[1] < states[0])][0]
        raise SettingError(
            f"layer {layer} has {model.units[layer].kind} units, which cannot be enumerated in bits"
        )
    side = min((side for side in (0, 1) if not many[side]), key=lambda side: states[side])
    bits, other = math.ceil(states[side]), sizes[1 - side]
    walk = 2.0 ** states[side] * other * (2 * bits + 20)
    return EnumerationPlan(
        side, bits, _halves_operations(bits, other) if by_halves else walk, walk, by_halves
    )


def _halves_operations(bits: int, summed: int) -> float:
    return 2.0**bits * (3 * summed + 40)


def likelihood_operations(
    model: AbstractEnergyModel, rows: int, plan: EnumerationPlan | None = None
) -> float:
    """Operations of an exact likelihood of so many rows; each sums over hidden units that are coupled.

    Of a machine with a label layer rows are counted as if they came without labels: a sum for each class.
    """
    plan, labels = plan or plan_enumeration(model), label_units(model)
    if not are_coupled(model):
        return plan.operations
    sums, held = rows * (1 if labels is None else labels.states), model.split(held=True)
    return plan.operations + (sums * held.operations if held.bits else 0.0)


def exact_log_partition(
    model: AbstractEnergyModel, bit_budget: int = BIT_BUDGET, plan: EnumerationPlan | None = None
) -> Estimate:
    r"""Exact :math:`\log Z = \log \sum_x e^{-F(x)}` over the states of what `plan_enumeration` says, in float64 nats.

    ``plan`` spares making it again. Raises `BudgetError` when that is more two-valued units than ``bit_budget``.
    """
    plan = plan or plan_enumeration(model)
    check_bits(
        plan.bits,
        bit_budget,
        f"the exact log partition function of this {type(model).__name__}",
        'use method="bracket" (--method bracket), which estimates it from either side with a verdict',
        "bit_budget={} (--bit-budget)",
    )
    value = _log_partition(as_double(model), plan)
    return Estimate(
        value=value,
        reliable=math.isfinite(value),
        reason=f"enumerated 2**{plan.bits} states"
        + ("" if math.isfinite(value) else "; the sum is not a finite number"),
        method="exact",
        cost={"operations": plan.operations, "states": 2.0**plan.bits},
    )


def unnormalised_log_probability(model: AbstractEnergyModel, rows: np.ndarray) -> np.ndarray:
    """Minus the free energy of every row, in float64 nats."""
    double = as_double(model)
    parts = [_minus_free_energy(double, rows[start : start + _ROWS]) for start in range(0, len(rows), _ROWS)]
    return np.concatenate(parts)


def marginal_energies(model: AbstractBipartite, side: int, layers: tuple[np.ndarray, ...]) -> np.ndarray:
    """Energy of each row of one side with the other side summed out, in float64 nats."""
    double = as_double(model)
    parts = [
        _marginal_energy(double, side, tuple(layer[start : start + _ROWS] for layer in layers))
        for start in range(0, len(layers[0]), _ROWS)
    ]
    return np.concatenate(parts)


def energies_of(model: AbstractEnergyModel, particles: tuple[np.ndarray, ...]) -> np.ndarray:
    """An energy of every chain in float64 nats: of the first side, the other summed out, or of all units."""
    if isinstance(model, AbstractBipartite):
        return marginal_energies(model, 0, tuple(particles[layer] for layer in model.sides[0]))
    return _energy(as_double(model), particles)


@in_double_precision
def _log_partition(model: AbstractEnergyModel, plan: EnumerationPlan) -> float:
    if plan.by_halves:
        return log_partition_by_halves(model)
    return float(log_partition_program()(model, plan.side))


@in_double_precision
def _minus_free_energy(model: AbstractEnergyModel, rows: np.ndarray) -> np.ndarray:
    return np.asarray(_free_energy_program()(model, rows))


@in_double_precision
def _marginal_energy(model: AbstractBipartite, side: int, layers: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.asarray(_marginal_program()(model, side, layers))


@in_double_precision
def _energy(model: AbstractEnergyModel, particles: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.asarray(_energy_program()(model, particles))


@cache
def log_partition_program():
    """`sum_states`, compiled: the plain sum, whichever way the plan takes."""
    return compile_function(sum_states, static_argnames=("side",))


@cache
def _free_energy_program():
    return compile_function(lambda model, rows: -model.free_energy(rows))


@cache
def _energy_program():
    return compile_function(lambda model, particles: model.energy(particles))


@cache
def _marginal_program():
    return compile_function(lambda model, side, layers: model.marginal_energy(side, layers), static_argnums=1)


def sum_states(model: AbstractEnergyModel, side: int | None) -> Float[Array, ""]:
    """Log-sum-exp over the states of a side, or, of a model without sides, over all, in the model's own precision."""
    if side is None or not isinstance(model, AbstractBipartite):
        return log_partition_of(model)
    labels, dtype = label_units(model), jnp.result_type(*jax.tree.leaves(model))
    labelled = labels is not None and len(model.units) - 1 in model.sides[side]
    layers = [model.units[index] for index in model.sides[side]][: -1 if labelled else None]
    bits = sum(units.size for units in layers)
    edges = np.cumsum([0, *(units.size for units in layers)])

    def log_weights(number: Array, label: Array | None = None) -> Float[Array, " states"]:
        states = chunk_of_states(number, bits, 0.0, 1.0, dtype)
        configuration = []
        for units, start, stop in zip(layers, edges[:-1], edges[1:], strict=True):
            low, high = units.support
            configuration.append(low + (high - low) * states[:, start:stop])
        if label is not None:
            configuration.append(jnp.broadcast_to(label, (len(states), len(label))))
        return -model.marginal_energy(side, tuple(configuration))

    if not labelled or labels is None:
        return log_sum_over_states(log_weights, bits)
    one_hot = jnp.eye(labels.states, dtype=dtype)
    of_class = jax.lax.map(
        lambda label: log_sum_over_states(lambda number: log_weights(number, label), bits), one_hot
    )
    return jax.nn.logsumexp(of_class)
