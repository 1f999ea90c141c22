"""RAISE: how probable rows are under a finished annealing chain, which is not how probable they are under the model."""

from __future__ import annotations

from functools import cache
from typing import Any, SupportsIndex

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from harmonium.energy.base import check_model
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.guided import check_undirected
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import SettingError
from harmonium.evaluate.ais import AIS, Prepared, prepare
from harmonium.evaluate.annealing import anneal, sweep_operations
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.exact import unnormalised_log_probability
from harmonium.evaluate.likelihood import as_data, mean_over_rows, visible_rows
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import seed_number
from harmonium.typing import Configuration, Words

_CHAINS_PER_ROW = 10
_MOST_CHAINS = 4096
_FIRST_PURPOSE = 100


def raise_likelihood(
    model: AbstractBipartite,
    data: Any,
    settings: AIS | None = None,
    seed: SupportsIndex = 0,
    rows: bool = False,
) -> Estimate:
    r"""Reversed annealed importance sampling of rows, in nats per row; a proxy.

    .. math:: \log \hat p(v) = -F(v) - \log Z_0 + \log \frac1n \sum_i \exp \sum_k
        F_{\beta_k}(x_{k-1}) - F_{\beta_{k-1}}(x_{k-1}), \quad x_{K-1} \sim p(\cdot \mid v)

    It is, on average, a lower bound of the log-probability of a row under *the law of the chain that annealing ends
    with* after ``settings.temperatures`` steps, and that law is not the model's: where the chain has not yet reached
    the model, it may score rows higher than the model does (a tenth of a nat and more in five steps, on machines small
    enough to enumerate both laws). So it is usually below the log-likelihood, and never called a bound of it.

    ``settings`` are those of `AIS`, ten chains per row where none are given; each row has chains of its own, started
    at it. ``data`` and ``rows`` are as in `log_likelihood`. Raises `SettingError` for a machine that has a layer beside
    the visible one on its side, `DataError` for rows that do not fit. Source: Burda, Grosse and Salakhutdinov (2015),
    "Accurate and conservative estimates of MRF log-likelihood using reverse annealing", section 4, where it is shown
    for the model that the chain defines.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> print(raise_likelihood(free, [[0, 1, 0]], AIS(chains=10, temperatures=5, base="model")))  # -3 log 2
    -2.0794 nats (proxy)
    """
    check_model(model)
    check_undirected(model, "RAISE")
    settings = settings or AIS(chains=_CHAINS_PER_ROW)
    data = as_data(data)
    scored = visible_rows(model, data)
    if not isinstance(model, AbstractLayered) or model.sides[0] != (0,):
        raise SettingError(
            f"RAISE needs a machine whose visible layer is a side of its own, such as hm.RBM(64, 16), got a "
            f"{type(model).__name__}; use hm.log_likelihood"
        )
    prepared = prepare(model, visible_rows(model, data, "train"), settings, seed_number(seed))
    block = max(1, _MOST_CHAINS // settings.chains)
    ratios = [
        _log_ratios(prepared, scored[start : start + block], settings.chains, _FIRST_PURPOSE + 2 * number)
        for number, start in enumerate(range(0, len(scored), block))
    ]
    log_ratio, stderr = (np.concatenate(parts) for parts in zip(*ratios, strict=True))
    values = unnormalised_log_probability(model, scored) - prepared.base.log_partition() + log_ratio
    steps = len(prepared.betas) - 1
    reason = f"the law of the chain after {steps} temperatures, not that of the model"
    cost = {
        "operations": steps * sweep_operations(model, settings.chains * len(scored)),
        "chains": float(settings.chains * len(scored)),
    }
    common = {"kind": Kind.PROXY, "reason": reason, "method": "raise", "cost": cost}
    if rows:
        return Estimate(value=values, stderr=stderr, **common)
    mean = mean_over_rows(values)
    error = float(np.sqrt(np.sum(stderr**2))) / len(scored)
    return Estimate(value=mean.value, stderr=error, row_stderr=mean.row_stderr, **common)


def _log_ratios(
    prepared: Prepared, rows: np.ndarray, chains: int, purpose: int
) -> tuple[np.ndarray, np.ndarray]:
    """Per row the log of the mean weight of its chains, and its error on the log scale."""
    model = prepared.path.model
    each = np.repeat(rows.astype(np.float32), chains, axis=0)
    start = _start_program()(model, each, prepared.words(purpose), prepared.side)
    walk = anneal(prepared.path, prepared.side, prepared.betas[::-1], start, prepared.words(purpose + 1))
    log_weight = walk.log_weight.reshape(len(rows), chains)
    top = log_weight.max(axis=1)
    weight = np.exp(log_weight - top[:, None])
    mean = weight.mean(axis=1)
    return top + np.log(mean), weight.std(axis=1, ddof=1) / (mean * np.sqrt(chains))


@cache
def _start_program():
    def start(model: AbstractLayered, rows: Array, words: Words, side: int) -> Configuration:
        """What the last transition of the chain, read backwards from the row, leaves on the walked side."""
        empty = tuple(jnp.zeros((len(rows), units.size), rows.dtype) for units in model.units[1:])
        configuration = (rows, *empty)
        first, second = model.words_of_sides(Noise.of(words), (len(rows),))
        configuration = model.draw_side(1, first, configuration)
        return configuration if side == 1 else model.draw_side(0, second, configuration)

    return compile_function(start, static_argnums=3)
