"""Numbers that move with the likelihood but are not it; each says so."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite, as_bipartite
from harmonium.energy.guided import check_undirected
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.likelihood import mean_over_rows, visible_rows
from harmonium.inference.base import clamped
from harmonium.inference.mean_field import MeanField, bound_at
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.typing import Batch

_BLOCK = 256
_MOST_BITS = 6


def pseudo_likelihood(model: AbstractEnergyModel, data: Any) -> Estimate:
    r"""Mean log pseudo-likelihood :math:`\sum_i \log p(v_i \mid v_{-i})` of rows, in nats per row; a proxy.

    Every unit is scored, none sampled, so the number is deterministic: with two-valued units
    :math:`p(v_i \mid v_{-i}) = \sigma(F(v \text{ with } i \text{ flipped}) - F(v))`. It needs no partition function
    and is not a likelihood: it can rise while the likelihood falls. Where the free energy would enumerate more than
    2**6 states of coupled hidden units, its mean-field bound stands for it, and the reason says so. Raises `DataError`
    for rows that do not fit.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> print(pseudo_likelihood(free, [[0, 1, 0]]))  # -3 log 2, here the likelihood itself
    -2.0794 nats (proxy)
    """
    check_undirected(model, "a pseudo-likelihood")
    scores = _by_block(_pseudo_program, model, visible_rows(model, data))
    reason = "product of one-variable conditionals, not the joint"
    if _is_bounded(model):
        reason += ", hidden units by mean field"
    return _proxy(scores, "pseudo-likelihood", reason)


def reconstruction_error(model: AbstractEnergyModel, data: Any) -> Estimate:
    r"""Mean squared error per row, :math:`\lVert v - \mathrm{E}[v \mid \mathrm{E}[h \mid v]] \rVert^2`; a proxy.

    It measures how near one mean-field pass comes back to the data, not how probable the data are; a model that mixes
    badly reconstructs well. Hidden layers of even number, which neither see the rows nor are seen by them, stay at
    rest. Raises `DataError` for rows that do not fit and `SettingError` for a model that has not two sides.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> reconstruction_error(free, [[0, 1, 0]]).value
    0.75
    """
    check_undirected(model, "a reconstruction error")
    rows = visible_rows(model, data)
    scores = _by_block(_reconstruction_program, as_bipartite(model, "a reconstruction error"), rows)
    return _proxy(scores, "reconstruction error", "squared error of one pass, not a likelihood")


def _proxy(scores: np.ndarray, method: str, reason: str) -> Estimate:
    mean = mean_over_rows(scores)
    return Estimate(mean.value, row_stderr=mean.row_stderr, kind=Kind.PROXY, reason=reason, method=method)


@in_double_precision
def _by_block(program, model: AbstractEnergyModel, rows: np.ndarray) -> np.ndarray:
    double = as_double(model)
    blocks = [rows[start : start + _BLOCK].astype(np.float64) for start in range(0, len(rows), _BLOCK)]
    return np.concatenate([np.asarray(program()(double, block)) for block in blocks])


@cache
def _pseudo_program():
    return compile_function(_pseudo_scores)


@cache
def _reconstruction_program():
    return compile_function(_reconstruction_scores)


def _pseudo_scores(model: AbstractEnergyModel, rows: Float[Array, "rows n"]) -> Float[Array, " rows"]:
    low, high = model.units[0].ends
    here = _free_energy(model, rows)

    def add_unit(unit: Array, total: Array) -> Array:
        flipped = rows.at[:, unit].set(low + high - rows[:, unit])
        return total - jnp.logaddexp(0.0, here - _free_energy(model, flipped))

    return jax.lax.fori_loop(0, rows.shape[1], add_unit, jnp.zeros(rows.shape[0], rows.dtype))


def _is_bounded(model: AbstractEnergyModel) -> bool:
    """Whether free energies would cost too much to be had for every unit of every row."""
    return model.split(held=True).bits > _MOST_BITS


def _free_energy(model: AbstractEnergyModel, rows: Float[Array, "rows n"]) -> Float[Array, " rows"]:
    if not _is_bounded(model):
        return model.free_energy(rows)
    means = MeanField().solve(model, Batch(x=rows)).means
    return -bound_at(model, means)


def _reconstruction_scores(model: AbstractBipartite, rows: Float[Array, "rows n"]) -> Float[Array, " rows"]:
    layers = list(clamped(model, Batch(x=rows)))
    for index in (*model.sides[1], 0):
        layers[index] = model.units[index].mean(model.field(index, tuple(layers)))
    return jnp.sum((rows - layers[0]) ** 2, axis=-1)
