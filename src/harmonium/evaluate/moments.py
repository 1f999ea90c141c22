"""What a small model believes, without a sample: moments, the gradient of its likelihood, and the weights of modes."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_model, check_two_valued
from harmonium.energy.enumeration import log_partition_of, walk_of
from harmonium.energy.guided import check_undirected
from harmonium.evaluate.exact import (
    exact_log_partition,
    plan_enumeration,
    unnormalised_log_probability,
)
from harmonium.evaluate.likelihood import observed_rows, visible_rows
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.numerics.whole import whole_number

_BLOCK = 4096
_SETTING = "bit_budget={}"


class Moments(NamedTuple):
    """First and second moments under a model; see `moments`."""

    means: tuple[np.ndarray, ...]
    second: np.ndarray
    log_partition: float

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of all units, layer after layer."""
        mean = np.concatenate(self.means)
        return self.second - np.outer(mean, mean)


class ModeWeights(NamedTuple):
    """Visible states and their probabilities; see `mode_weights`."""

    states: np.ndarray
    probabilities: np.ndarray


def moments(model: AbstractEnergyModel, *, bit_budget: SupportsIndex = BIT_BUDGET) -> Moments:
    r"""Exact first and second moments of all units under a model, by enumeration in float64.

    Some units are enumerated and the others, independent given them, enter with mean and variance:
    :math:`\mathrm{E}[x x^\top] = \sum_a p(a)\,(m(a) m(a)^\top + \mathrm{diag}\,\sigma^2(a))`.

    **Returns** ``means``, one array per layer; ``second``, the matrix :math:`\mathrm{E}[x_i x_j]` over all units, the
    layers one after the other; and ``log_partition``, in nats. Its ``covariance`` is that of all units.

    **Raises** `BudgetError` when more than ``bit_budget`` units would be enumerated and `SettingError` for units that
    are not two-valued.

    >>> from harmonium.energy.boltzmann import BoltzmannMachine
    >>> pair = BoltzmannMachine.from_arrays(np.zeros((2, 2)), np.zeros(2))
    >>> moments(pair).second.tolist()
    [[0.5, 0.25], [0.25, 0.5]]
    """
    check_model(model)
    check_undirected(model, "a moment")
    check_two_valued(model, "exact moments")
    _check(model, bit_budget, "the exact moments", "average over hm.sample(model, 10000)")
    mean, second, log_partition = _moments(as_double(model))
    edges = np.cumsum([units.size for units in model.units])[:-1]
    return Moments(tuple(np.split(mean, edges)), second, log_partition)


def exact_gradient(
    model: AbstractEnergyModel, data: Any, *, bit_budget: SupportsIndex = BIT_BUDGET
) -> dict[str, Any]:
    r"""Gradient of the mean log-likelihood of rows in the model's parameters, by enumeration in float64.

    .. math:: \mathrm{E}_{data}[\partial_\theta(-E)] - \mathrm{E}_{model}[\partial_\theta(-E)]

    with hidden units at their law given the rows. ``data`` are rows as `harmonium.log_likelihood` takes them, of a
    machine with a label layer with their labels where it scores them with these.

    **Returns** arrays under the names that ``model.parameters()`` gives them. Of a symmetric coupling both places of a
    pair hold the derivative in the one parameter that they share, :math:`\mathrm{E}_{data}[x_i x_j] -
    \mathrm{E}_{model}[x_i x_j]`, in nats per unit of coupling.

    **Raises** `BudgetError` and `DataError` as `harmonium.log_likelihood` does.

    >>> from harmonium.energy.boltzmann import BoltzmannMachine
    >>> pair = BoltzmannMachine.from_arrays(np.zeros((2, 2)), np.zeros(2))
    >>> exact_gradient(pair, [[1, 1], [1, 0]])["coupling"].tolist()
    [[0.0, 0.25], [0.25, 0.0]]
    """
    check_model(model)
    check_undirected(model, "an exact gradient")
    rows = observed_rows(model, data)
    _check(model, bit_budget, "the exact gradient", "train with hm.PCD(), which estimates it from chains")
    slopes = _gradient(as_double(model), rows.astype(np.float64))
    return real_parameters(slopes)


def real_parameters(model: AbstractEnergyModel) -> dict[str, Any]:
    """The parameters of a model that are arrays of real numbers, by their names: what a gradient is taken in."""
    return {name: value for name, value in model.parameters().items() if _is_real(value)}


def mode_weights(
    model: AbstractEnergyModel,
    states: Any = None,
    *,
    count: SupportsIndex = 10,
    bit_budget: SupportsIndex = BIT_BUDGET,
) -> ModeWeights:
    r"""Probabilities :math:`p(v) = e^{-F(v)}/Z` of visible states, exactly, in float64.

    Without ``states``, all visible states are enumerated and the ``count`` most probable ones returned, the most
    probable first; a tie falls to the state whose first differing unit has the lower value. With ``states`` (rows as
    `harmonium.log_likelihood` takes them), these in the order given.

    **Raises** `BudgetError` when more than ``bit_budget`` units would be enumerated, `DataError` for rows that do not
    fit and `SettingError` for a count below one.

    >>> from harmonium.energy.boltzmann import BoltzmannMachine
    >>> pair = BoltzmannMachine.from_arrays([[0.0, 9.0], [9.0, 0.0]], [-1.0, -1.0])
    >>> mode_weights(pair, count=1).states.tolist()
    [[1.0, 1.0]]
    """
    check_model(model)
    check_undirected(model, "a weight of modes")
    count = whole_number(count, "count must be a whole number of at least 1")
    bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    check_bits(
        plan_enumeration(model).bits,
        bits,
        f"the probabilities of modes of this {type(model).__name__}",
        "count how often hm.sample(model, 10000) draws them",
        _SETTING,
    )
    log_partition = exact_log_partition(model, bits).value
    if states is not None:
        rows = visible_rows(model, states).astype(np.float64)
        return ModeWeights(rows, np.exp(unnormalised_log_probability(model, rows) - log_partition))
    size = model.units[0].size
    check_two_valued(model, "a search through all visible states")
    what = f"the modes of this {type(model).__name__}"
    check_bits(size, bits, what, "pass the states that you ask for", _SETTING)
    low, high = model.units[0].support
    best = np.zeros((0, size)), np.zeros(0)
    for start in range(0, 1 << size, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, 1 << size))
        # The first unit is the highest bit, so that states come in the order of their units.
        rows = low + (high - low) * ((numbers[:, None] >> np.arange(size)[::-1]) & 1).astype(np.float64)
        scores = np.concatenate([best[1], unnormalised_log_probability(model, rows)])
        kept = np.argsort(-scores, kind="stable")[:count]
        best = np.concatenate([best[0], rows])[kept], scores[kept]
    return ModeWeights(best[0], np.exp(best[1] - log_partition))


def _is_real(value: Any) -> bool:
    """Whether an argument of ``from_arrays`` holds parameters: an array of floats, or one per layer."""
    if isinstance(value, list):
        return all(_is_real(part) for part in value)
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _check(model: AbstractEnergyModel, bit_budget: SupportsIndex, what: str, cure: str) -> None:
    budget = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    check_bits(model.split(held=False).bits, budget, f"{what} of this {type(model).__name__}", cure, _SETTING)


@in_double_precision
def _moments(model: AbstractEnergyModel) -> tuple[np.ndarray, np.ndarray, float]:
    mean, second, log_partition = _moments_program()(model)
    return np.asarray(mean), np.asarray(second), float(log_partition)


@cache
def _moments_program():
    return compile_function(_sums)


def _sums(model: AbstractEnergyModel) -> tuple[Float[Array, " n"], Float[Array, "n n"], Float[Array, ""]]:
    size = sum(units.size for units in model.units)
    walk = walk_of(model, numbers_per_state=2 * size)
    log_partition = walk.log_sum()[0]

    def add(number: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
        share = jnp.exp(walk.log_weights(number)[0] - log_partition).reshape(-1)
        mean, variance = (part[0].reshape(len(share), -1) for part in walk.means(number))
        second = mean.T @ (share[:, None] * mean) + jnp.diag(share @ variance)
        return total[0] + share @ mean, total[1] + second

    start = jnp.zeros(size), jnp.zeros((size, size))
    mean, second = jax.lax.fori_loop(0, walk.chunks, add, start)
    return mean, second, log_partition


@in_double_precision
def _gradient(model: AbstractEnergyModel, rows: np.ndarray) -> AbstractEnergyModel:
    total = jax.tree.map(lambda leaf: -np.asarray(leaf), _partition_slopes_program()(model))
    for start in range(0, len(rows), _BLOCK):
        part = _energy_slopes_program()(model, rows[start : start + _BLOCK])
        total = jax.tree.map(lambda one, other: one - np.asarray(other) / len(rows), total, part)
    return total


@cache
def _partition_slopes_program():
    return compile_function(jax.grad(log_partition_of))


@cache
def _energy_slopes_program():
    return compile_function(jax.grad(lambda model, rows: jnp.sum(model.free_energy(rows))))
