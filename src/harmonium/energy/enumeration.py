"""Exact sums over the states of a model whose units are two-valued and coupled in pairs; they can be differentiated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from harmonium.energy.base import AbstractEnergyModel, as_layer
from harmonium.energy.cumulant import Split, Walk, coupled_cumulant, ends_of
from harmonium.energy.labels import check_labels, label_units, split_observed, with_labels
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits
from harmonium.typing import Configuration

FEWER = "train and score a model with fewer units there"


def walk_of(model: AbstractEnergyModel, numbers_per_state: int | None = None) -> Walk:
    """The walk over all configurations of a model, for the one field that is its bias."""
    coupling, bias = model.pairwise()
    return Walk(coupling, bias[None], model.split(held=False), ends_of(model.units), numbers_per_state)


def log_partition_of(model: AbstractEnergyModel) -> Float[Array, ""]:
    r""":math:`\log Z` by enumeration, in nats and in the model's own precision.

    Its gradient is minus the model's mean of the energy's gradient: the negative phase without a sample. Of a machine
    with a label layer it is the log-sum-exp of those of the machines that its classes leave, each with its label bias.
    """
    labels = label_units(model)
    if labels is None:
        return walk_of(model).log_sum()[0]
    coupling, bias = model.pairwise()
    rest = len(bias) - labels.size
    fields = bias[:rest] + coupling[rest:, :rest]
    walk = Walk(coupling[:rest, :rest], fields, model.split(held=False), ends_of(model.units[:-1]))
    return jax.nn.logsumexp(bias[rest:] + walk.log_sum())


def free_energy_of(
    model: AbstractEnergyModel,
    visible: Num[Array | np.ndarray, "*batch visible"],
    bit_budget: int = BIT_BUDGET,
) -> Float[Array, "*batch"]:
    r"""Free energy of visible rows in nats, the hidden units summed out by the cheapest exact sum.

    .. math:: F(v) = -b^\top v - \tfrac12 v^\top R v - A_S(c + W^\top v)

    with the cumulant :math:`A_S` of the hidden units and the couplings ``R``, ``W`` and ``S`` among the visible units,
    between visible and hidden, and among the hidden ones. Where hidden units are not coupled to one another, nothing is
    enumerated. Of a machine with a label layer, class ``k`` adds its bias and shifts the hidden fields by its column
    of weights, :math:`F(v, k) = F(v) |_{c + W_k} - b_k`: of that class where the rows have labels behind them, else
    :math:`F(v) = -\log \sum_k e^{-F(v, k)}`. Raises `BudgetError` where more hidden units than ``bit_budget`` would be
    enumerated.
    """
    given = jnp.asarray(visible).astype(jnp.result_type(model.units[0].bias))
    rows, label = split_observed(model, given)
    coupling, bias = model.pairwise()
    size = model.units[0].size
    energy = -(rows @ bias[:size]) - jnp.sum(rows @ coupling[:size, :size] * rows, axis=-1) / 2
    if len(model.units) == 1:
        return energy
    check_bits(
        model.split(held=True).bits, bit_budget, f"the free energy of this {type(model).__name__}", FEWER
    )
    stop = len(bias) - _label_size(model)
    field = bias[size:stop] + rows @ coupling[:size, size:stop]
    return energy - _log_sum(model, coupling, bias, field, label)


def hidden_means_of(
    model: AbstractEnergyModel, visible: Num[Array | np.ndarray, "*batch visible"]
) -> Configuration:
    """Expectation of every unit that is not given with the rows, layer by layer: the derivative of their cumulant.

    Those are the hidden units and, of a machine with a label layer, the labels where rows have none behind them.
    """
    given = jnp.asarray(visible).astype(jnp.result_type(model.units[0].bias))
    rows, label = split_observed(model, given)
    coupling, bias = model.pairwise()
    size, stop = model.units[0].size, len(bias) - _label_size(model)
    field = bias[size:stop] + rows @ coupling[:size, size:stop]
    hidden, of_label = jax.grad(
        lambda field, shift: jnp.sum(_log_sum(model, coupling, bias, field, label, shift)), argnums=(0, 1)
    )(field, jnp.zeros((*field.shape[:-1], len(bias) - stop), field.dtype))
    edges = np.cumsum([units.size for units in model.units[1:]])[: len(model.units) - 2]
    if stop == len(bias):
        return tuple(jnp.split(hidden, edges, axis=-1))
    return (*jnp.split(hidden, edges[:-1], axis=-1), of_label if label is None else label)


def label_scores_of(
    model: AbstractEnergyModel, rows: Num[Array | np.ndarray, "*batch visible"]
) -> Float[Array, "*batch states"]:
    r"""Per row and class :math:`-F(v, k)`, the logarithm of :math:`p(v, k)` up to :math:`\log Z`, in nats."""
    labels = check_labels(model, "a score of every class")
    rows = as_layer(model, 0, rows)
    blocks = jnp.broadcast_to(
        jnp.eye(labels.size, dtype=rows.dtype), (*rows.shape[:-1], labels.size, labels.size)
    )
    each = jnp.broadcast_to(rows[..., None, :], (*blocks.shape[:-1], rows.shape[-1]))
    return -free_energy_of(model, with_labels(each, blocks))


def _label_size(model: AbstractEnergyModel) -> int:
    labels = label_units(model)
    return 0 if labels is None else labels.size


def _log_sum(
    model: AbstractEnergyModel,
    coupling: Float[Array, "n n"],
    bias: Float[Array, " n"],
    field: Float[Array, "*batch hidden"],
    label: Float[Array, "*batch states"] | None,
    shift: Float[Array, "*batch states"] | float = 0.0,
) -> Float[Array, "*batch"]:
    """Log-sum over the hidden states in a field, and over the classes, biased by ``shift``, where no label is given."""
    size, states = model.units[0].size, _label_size(model)
    if not states:
        return _hidden_cumulant(model, coupling, field)
    stop = len(bias) - states
    to_hidden, own = coupling[stop:, size:stop], bias[stop:] + shift
    if label is not None:
        return jnp.sum(label * own, axis=-1) + _hidden_cumulant(model, coupling, field + label @ to_hidden)
    each = _hidden_cumulant(model, coupling, field[..., None, :] + to_hidden)
    return jax.nn.logsumexp(own + each, axis=-1)


def _hidden_cumulant(
    model: AbstractEnergyModel, coupling: Float[Array, "n n"], field: Float[Array, "*batch hidden"]
) -> Float[Array, "*batch"]:
    size, hidden = model.units[0].size, model.units[1 : len(model.units) - (label_units(model) is not None)]
    split = Split(*(tuple(unit - size for unit in part) for part in model.split(held=True)))
    stop = size + field.shape[-1]
    return coupled_cumulant(coupling[size:stop, size:stop], field, split, ends_of(hidden))
