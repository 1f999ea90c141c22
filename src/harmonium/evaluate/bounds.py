"""Log-probabilities of a deep belief network: by enumeration of its inner layers, or from below by its recognition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.rbm import RBM
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits, chunk_bits, chunk_of_states
from harmonium.numerics.named import is_name
from harmonium.numerics.precision import as_double, as_single, in_double_precision
from harmonium.numerics.random import BEYOND_UPDATES, Noise, key_words, seed_key
from harmonium.numerics.whole import whole_number
from harmonium.typing import Words
from harmonium.units.base import AbstractUnits

ESTIMATORS = ("variational", "importance")

_BLOCK = 512
_MOST_DRAWN = 1 << 14
_MOST_DRAWS = 1 << 20
_BOUND_TAG = BEYOND_UPDATES | 0xB0D
_RECOGNITION_TAG = BEYOND_UPDATES | 0x2EC


@dataclass(frozen=True)
class Bound:
    r"""Settings of a lower bound on the log-likelihood of a `DBN`, passed as ``method``; "bound" is ``Bound()``.

    The recognition :math:`Q(h \mid v) = q_1(h_1 \mid v)\, q_2(h_2 \mid h_1) \cdots` goes up through the hidden units of
    the levels below the top. With weights :math:`w = p(v, h)/Q(h \mid v)` of its draws,

    - "variational" is :math:`\mathrm{E}_Q[\log w] \le \log p(v)`: the full sum over the inner layers where
      ``bit_budget`` and budget of operations allow it, else the mean over ``draws`` per row;
    - "importance" is :math:`\log \frac1K \sum_k w_k` over ``draws``, whose expectation lies between the variational
      bound and :math:`\log p(v)` and rises with their number (Jensen), for the mean of the weights is :math:`p(v)`.

    ``exact`` forces the full sum (True) or draws (False). Raises `SettingError` for an unknown estimator, for fewer
    than two draws, and for an importance-weighted full sum, which is the exact log-likelihood. Source: the chapter's
    deep belief network; Burda, Grosse and Salakhutdinov (2016) for the order of importance-weighted bounds.

    >>> Bound("importance", draws=1000).draws
    1000
    """

    estimator: str = "variational"
    draws: int = 100
    exact: bool | None = None

    def __post_init__(self) -> None:
        if not is_name(self.estimator, ESTIMATORS):
            raise SettingError(
                f"no bound is called {self.estimator!r}; choose one of {', '.join(ESTIMATORS)}"
            )
        fault = f"draws of a bound must be a whole number from 2 to {_MOST_DRAWS}"
        object.__setattr__(self, "draws", whole_number(self.draws, fault, least=2, most=_MOST_DRAWS))
        if not isinstance(self.exact, bool | None):
            raise SettingError(
                f"exact of a bound must be True, False or None, got {self.exact!r}; leave it out to let budgets decide"
            )
        if self.exact and self.estimator == "importance":
            raise SettingError(
                'a full sum of importance weights is the likelihood itself; use method="exact"'
            )


def inner_bits(stack: AbstractStack) -> int:
    """Units of the largest inner layer: what is enumerated layer by layer. 0 for a stack of one RBM."""
    return max((units.size for units in stack.layers[1:-1]), default=0)


def inner_operations(stack: AbstractStack, rows: int) -> float:
    """Operations of a full sum over the inner layers: pairs of states of layers, and of rows with states."""
    sizes = [units.size for units in stack.layers]
    if len(sizes) == 2:
        return 0.0
    total = 2.0 ** sizes[-2] * sizes[-1] * (2 * sizes[-2] + 20)
    for level in range(len(sizes) - 2):
        below, above = sizes[level : level + 2]
        lower = float(rows) if level == 0 else 2.0**below
        total += 2.0**above * (below + lower) * (2 * above + 20)
    return total


def drawing_operations(stack: AbstractStack, rows: int, settings: Bound) -> float:
    """Operations of a bound by draws."""
    sizes = [units.size for units in stack.layers]
    pairs = sum(2.0 * lower * upper for lower, upper in pairwise(sizes))
    return rows * settings.draws * (2 * pairs + 30 * sum(sizes))


def can_sum(stack: AbstractStack, rows: int, bits: int, operations: float) -> bool:
    """Whether the inner layers can be summed over within both budgets."""
    two_valued = all(len(units.support) == 2 for units in stack.layers[1:-1])
    return two_valued and inner_bits(stack) <= bits and inner_operations(stack, rows) <= operations


def exact_scores(stack: AbstractStack, rows: np.ndarray, bit_budget: int = BIT_BUDGET) -> Estimate:
    r"""Per row :math:`\log p(v) + \log Z_M` of a network with the top level's partition function, in float64 nats.

    From the top down, over all states of one inner layer after the other,

    .. math:: T_{M-1}(h) = -F_M(h), \quad
        T_{l-1}(x) = b_l^\top x + \log \sum_{h} \exp\big(x^\top W_l h - A(b_l + W_l h) + T_l(h)\big)

    with the cumulant :math:`A` of the layer below. Raises `BudgetError` for an inner layer of more than ``bit_budget``
    units.
    """
    return _summed(stack, rows, bit_budget, False)


def exact_bound(stack: AbstractStack, rows: np.ndarray, bit_budget: int = BIT_BUDGET) -> Estimate:
    r"""Per row the variational bound on :math:`\log p(v) + \log Z_M`, in float64 nats, by the full sum.

    .. math:: B_{l-1}(x) = b_l^\top x + x^\top W_l\, \mu(x) + H(q)
        + \sum_h q(h \mid x)\,\big(B_l(h) - A(b_l + W_l h)\big)

    with :math:`B_{M-1} = -F_M` and the factorial recognition ``q`` of means :math:`\mu`; at two levels this is the
    bound of "Deep Tempering" (2014), whose authors' code puts mean-field entropies for those of the third level. Raises
    `BudgetError` as `exact_scores`.
    """
    return _summed(stack, rows, bit_budget, True)


def drawn_bound(stack: AbstractStack, rows: np.ndarray, settings: Bound, seed: int = 0) -> Estimate:
    """Per row the bound that ``settings`` name on the log-probability plus the top's log partition function, from
    draws of the recognition, with its standard error."""
    draws = settings.draws
    words = key_words(jax.random.fold_in(seed_key(seed), _BOUND_TAG))
    block = max(1, _MOST_DRAWN // draws)
    parts = [
        _log_weights(stack, rows[start : start + block], words, number, draws)
        for number, start in enumerate(range(0, len(rows), block))
    ]
    log_weight = np.concatenate(parts)
    if settings.estimator == "variational":
        value = log_weight.mean(axis=1)
        stderr = log_weight.std(axis=1, ddof=1) / math.sqrt(draws)
        reason = f"{draws} draws of the recognition for each row"
    else:
        top = log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight - top)
        mean = weight.mean(axis=1)
        value = top[:, 0] + np.log(mean)
        stderr = weight.std(axis=1, ddof=1) / (mean * math.sqrt(draws))
        worth = np.mean(weight.sum(axis=1) ** 2 / np.sum(weight**2, axis=1))
        reason = f"{draws} draws of the recognition for each row, worth {worth:.1f} on average"
    return Estimate(
        value=value,
        stderr=stderr,
        kind=Kind.STOCHASTIC_LOWER,
        reason=reason,
        method=settings.estimator,
        cost={"operations": drawing_operations(stack, len(rows), settings), "draws": float(draws)},
    )


def recognition_draws(stack: AbstractStack, rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """One draw per row of the visible layer of the top level, by the recognition; the rows themselves for one level."""
    if stack.depth == 1:
        return rows
    words = key_words(jax.random.fold_in(seed_key(seed), _RECOGNITION_TAG))
    drawn = [
        np.asarray(_recognition_program()(as_single(stack), rows[start : start + _BLOCK], words, number))
        for number, start in enumerate(range(0, len(rows), _BLOCK))
    ]
    return np.concatenate(drawn).astype(np.float64)


def _summed(stack: AbstractStack, rows: np.ndarray, bit_budget: int, bound: bool) -> Estimate:
    what = "the variational bound by its full sum" if bound else "the exact log-likelihood"
    check_bits(
        inner_bits(stack),
        bit_budget,
        f"{what} of this {type(stack).__name__}",
        'use method="bound" (--method bound), which draws from its recognition',
        "bit_budget={} (--bit-budget)",
    )
    for index, units in enumerate(stack.layers[1:-1], start=1):
        if len(units.support) != 2:
            raise SettingError(f"layer {index} has {units.kind} units, which cannot be enumerated in bits")
    values = _walk(as_double(stack), np.asarray(rows, np.float64), bound)
    finite = bool(np.isfinite(values).all())
    sizes = " and ".join(f"2**{units.size}" for units in stack.layers[1:-1])
    return Estimate(
        value=values,
        kind=Kind.LOWER if bound and stack.depth > 1 else Kind.EXACT,
        reliable=finite,
        reason=(f"enumerated {sizes} states of inner layers" if sizes else "")
        + ("" if finite else "; a score is not a finite number"),
        method="variational" if bound and stack.depth > 1 else "exact",
        cost={"operations": inner_operations(stack, len(rows))},
    )


@in_double_precision
def _walk(stack: AbstractStack, rows: np.ndarray, bound: bool) -> np.ndarray:
    """Tables over the states of one inner layer after the other from the top down, and last the rows."""
    levels = stack.levels
    score = _rows_of(lambda block: _top_program()(levels[-1], block))
    for index in range(stack.depth - 2, -1, -1):
        rbm = levels[index]
        above = np.concatenate([score(block) for block in _states(rbm.units[1])])
        table = _weigh(rbm, above)
        score = _rows_of(lambda block, rbm=rbm, table=table: _step_program()(rbm, block, table, bound))
    return np.concatenate([score(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)])


def _rows_of(program: Any) -> Any:
    return lambda block: np.asarray(program(block))


def _states(units: AbstractUnits) -> Iterator[np.ndarray]:
    """All states of a layer in blocks, in the order of `chunk_of_states`."""
    low, high = units.support
    for start in range(0, 1 << units.size, _BLOCK):
        numbers = np.arange(start, min(start + _BLOCK, 1 << units.size))
        yield low + (high - low) * ((numbers[:, None] >> np.arange(units.size)) & 1).astype(np.float64)


def _weigh(rbm: RBM, above: np.ndarray) -> np.ndarray:
    """What a state of the upper layer is worth before it is joined to one of the lower: ``T(h) - A(b + W h)``."""
    cumulants = [np.asarray(_cumulant_program()(rbm, block)) for block in _states(rbm.units[1])]
    return above - np.concatenate(cumulants)


@cache
def _top_program():
    return compile_function(lambda rbm, rows: -rbm.marginal_energy(0, (rows,)))


@cache
def _cumulant_program():
    def cumulant(rbm: RBM, states: Float[Array, "states upper"]) -> Float[Array, " states"]:
        return rbm.units[0].log_partition(rbm.units[0].natural() + rbm.couplings[0].backward(states))

    return compile_function(cumulant)


@cache
def _step_program():
    return compile_function(_step, static_argnums=3)


def _step(
    rbm: RBM, rows: Float[Array, "rows lower"], table: Float[Array, " states"], bound: bool
) -> Float[Array, " rows"]:
    """One level further down: rows of the lower layer, summed over all states of the upper one."""
    upper = rbm.units[1]
    low, high = upper.support
    within = 1 << chunk_bits(upper.size)
    lifted = rbm.couplings[0].forward(rows)
    field = upper.natural() + lifted

    def chunk(number: Array) -> tuple[Array, Array]:
        states = chunk_of_states(number, upper.size, low, high, rows.dtype)
        return states, jax.lax.dynamic_slice_in_dim(table, number * within, within)

    def add_log(number: Array, total: Array) -> Array:
        states, worth = chunk(number)
        return jnp.logaddexp(total, jax.nn.logsumexp(lifted @ states.T + worth, axis=1))

    def add_mean(number: Array, total: Array) -> Array:
        states, worth = chunk(number)
        return total + jnp.exp(field @ states.T - upper.log_partition(field)[:, None]) @ worth

    own = -rbm.units[0].base_energy(rows)
    chunks = (1 << upper.size) // within
    if bound:
        mean = jax.lax.fori_loop(0, chunks, add_mean, jnp.zeros_like(own))
        joined = jnp.sum(lifted * upper.mean(field), axis=-1)
        return own + joined + upper.entropy(field) + mean
    return own + jax.lax.fori_loop(0, chunks, add_log, jnp.full_like(own, -jnp.inf))


@in_double_precision
def _log_weights(stack: AbstractStack, rows: np.ndarray, words: Words, number: int, draws: int) -> np.ndarray:
    double, block = as_double(stack), np.asarray(rows, np.float64)
    return np.asarray(_weights_program()(double, block, np.asarray(words), number, draws))


@cache
def _weights_program():
    return compile_function(_weights, static_argnums=4)


def _weights(
    stack: AbstractStack, rows: Float[Array, "rows n"], words: Words, number: Array, draws: int
) -> Float[Array, "rows draws"]:
    """``log p(v, h) + log Z - log Q(h | v)`` of every draw of every row."""
    noise = Noise.of(words).fold(number)
    layer = jnp.repeat(rows, draws, axis=0)
    total = jnp.zeros(len(layer), layer.dtype)
    for index, rbm in enumerate(stack.levels[:-1]):
        lower, upper = rbm.units
        field = upper.natural() + rbm.couplings[0].forward(layer)
        above = upper.sample(noise.stream(index).pair(field.shape)[0], field)
        down = lower.natural() + rbm.couplings[0].backward(above)
        total = total + jnp.sum(layer * down, axis=-1) - lower.log_partition(down)
        total = total - jnp.sum(above * field, axis=-1) + upper.log_partition(field)
        layer = above
    total = total - stack.top.marginal_energy(0, (layer,))
    return total.reshape(len(rows), draws)


@cache
def _recognition_program():
    def draw(stack: AbstractStack, rows: Array, words: Words, number: Array) -> Array:
        noise = Noise.of(words).fold(number)
        layer = jnp.asarray(rows, jnp.float32)
        for index, rbm in enumerate(stack.levels[:-1]):
            field = rbm.units[1].natural() + rbm.couplings[0].forward(layer)
            layer = rbm.units[1].sample(noise.stream(index).pair(field.shape)[0], field)
        return layer

    return compile_function(draw)
