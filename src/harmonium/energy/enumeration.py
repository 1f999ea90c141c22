"""Exact sums over the states of a model whose units are two-valued and coupled in pairs; they can be differentiated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from harmonium.energy.base import AbstractEnergyModel, as_layer
from harmonium.energy.cumulant import Split, Walk, coupled_cumulant, ends_of
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits
from harmonium.typing import Configuration

FEWER = "train and score a model with fewer units there"


def walk_of(model: AbstractEnergyModel, numbers_per_state: int | None = None) -> Walk:
    """The walk over all configurations of a model, for the one field that is its bias."""
    coupling, bias = model.pairwise()
    return Walk(coupling, bias[None], model.split(held=False), ends_of(model.units), numbers_per_state)


def log_partition_of(model: AbstractEnergyModel) -> Float[Array, ""]:
    r""":math:`\log Z` by enumeration, in nats and in the model's own precision.

    Its gradient is minus the model's mean of the energy's gradient: the negative phase without a sample.
    """
    return walk_of(model).log_sum()[0]


def free_energy_of(
    model: AbstractEnergyModel,
    visible: Num[Array | np.ndarray, "*batch visible"],
    bit_budget: int = BIT_BUDGET,
) -> Float[Array, "*batch"]:
    r"""Free energy of visible rows in nats, the hidden units summed out by the cheapest exact sum.

    .. math:: F(v) = -b^\top v - \tfrac12 v^\top R v - A_S(c + W^\top v)

    with the cumulant :math:`A_S` of the hidden units and the couplings ``R``, ``W`` and ``S`` among the visible units,
    between visible and hidden, and among the hidden ones. Where hidden units are not coupled to one another, nothing is
    enumerated. Raises `BudgetError` where more hidden units than ``bit_budget`` would be.
    """
    rows = as_layer(model, 0, visible)
    coupling, bias = model.pairwise()
    size = model.units[0].size
    energy = -(rows @ bias[:size]) - jnp.sum(rows @ coupling[:size, :size] * rows, axis=-1) / 2
    if len(model.units) == 1:
        return energy
    check_bits(
        model.split(held=True).bits, bit_budget, f"the free energy of this {type(model).__name__}", FEWER
    )
    return energy - _hidden_cumulant(model, coupling, bias[size:] + rows @ coupling[:size, size:])


def hidden_means_of(
    model: AbstractEnergyModel, visible: Num[Array | np.ndarray, "*batch visible"]
) -> Configuration:
    """Expectation of every hidden unit given visible rows, layer by layer: the derivative of their cumulant."""
    rows = as_layer(model, 0, visible)
    coupling, bias = model.pairwise()
    size = model.units[0].size
    field = bias[size:] + rows @ coupling[:size, size:]
    means = jax.grad(lambda field: jnp.sum(_hidden_cumulant(model, coupling, field)))(field)
    edges = np.cumsum([units.size for units in model.units[1:]])[:-1]
    return tuple(jnp.split(means, edges, axis=-1))


def _hidden_cumulant(
    model: AbstractEnergyModel, coupling: Float[Array, "n n"], field: Float[Array, "*batch hidden"]
) -> Float[Array, "*batch"]:
    size = model.units[0].size
    split = Split(*(tuple(unit - size for unit in part) for part in model.split(held=True)))
    return coupled_cumulant(coupling[size:, size:], field, split, ends_of(model.units[1:]))
