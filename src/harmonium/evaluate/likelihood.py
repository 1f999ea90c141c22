"""The two questions asked of every model: its log-likelihood on rows, and its log partition function."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.binarization import draw_binary
from harmonium.data.frames import is_frame, is_sparse
from harmonium.data.load import load_data
from harmonium.data.support import encode
from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.energy.ensemble import Ensemble
from harmonium.errors import SettingError
from harmonium.evaluate.ensemble import median_estimate
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import exact_log_partition, unnormalised_log_probability
from harmonium.numerics.enumerate import BIT_BUDGET
from harmonium.numerics.whole import seed_number, whole_number

METHODS = ("auto", "exact")


def log_likelihood(
    model: AbstractEnergyModel | Ensemble,
    data: Any,
    method: str = "auto",
    seed: SupportsIndex = 0,
    rows: bool = False,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
) -> Estimate:
    r"""Mean log-likelihood of rows, :math:`\frac{1}{n}\sum_t \log p(v_t)` with :math:`\log p(v) = -F(v) - \log Z`.

    In nats per row, computed in float64 from the parameters as they are. ``data`` is an array of rows, a sparse
    matrix, a data frame, or a name, a path or a `DataSet`, whose test split (else its training rows) is then taken.
    With ``rows=True`` the estimate holds one value per row. Of an `Ensemble` it is the estimate of the median member,
    which holds those of all in ``members``.

    ``method`` is "exact" (enumerate the smaller side) or "auto" (the same, when the model is small enough).

    Raises `DataError` for rows that do not fit the visible units and `BudgetError` for a model with more than
    ``bit_budget`` units on its smaller side. Source: the chapter's evaluation section, :math:`\log \tilde p - \log Z`.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> log_likelihood(free, [[0, 1, 0]]).value  # -3 log 2
    -2.079441541679...
    """
    return both_estimates(model, data, method, seed, rows, bit_budget=bit_budget)[0]


def both_estimates(
    model: AbstractEnergyModel | Ensemble,
    data: Any,
    method: str = "auto",
    seed: SupportsIndex = 0,
    rows: bool = False,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
) -> tuple[Estimate, Estimate]:
    """`log_likelihood` and the `log_partition` that it rests on, for the price of one."""
    if isinstance(model, Ensemble):
        settings = {"method": method, "seed": seed, "rows": rows, "bit_budget": bit_budget}
        return median_estimate(model, [both_estimates(member, data, **settings) for member in model])
    check_model(model)
    check_method(method)
    visible = visible_rows(model, data)
    partition = log_partition(model, method, seed=seed, bit_budget=bit_budget)
    scores = unnormalised_log_probability(model, visible)
    mean = Estimate(value=scores) if rows else mean_over_rows(scores)
    return mean - partition, partition


def log_partition(
    model: AbstractEnergyModel | Ensemble,
    method: str = "auto",
    data: Any = None,
    seed: SupportsIndex = 0,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
) -> Estimate:
    r"""The log partition function :math:`\log Z`, in nats, in float64.

    Of an `Ensemble` it is the estimate of the member with the median one. ``method`` is "exact" or "auto", as in
    `log_likelihood`; ``data`` are the rows that a sampling method would take
    its starting distribution from. Raises `BudgetError` as there.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> log_partition(RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))).value  # 5 log 2
    3.465735902799...
    """
    if isinstance(model, Ensemble):
        found = [log_partition(member, method, data, seed, bit_budget=bit_budget) for member in model]
        return median_estimate(model, [(one, one) for one in found])[0]
    check_model(model)
    check_method(method)
    seed_number(seed)
    bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    return exact_log_partition(model, bits)


def mean_over_rows(scores: np.ndarray, weight: np.ndarray | None = None) -> Estimate:
    r"""Mean of exact scores, weighted if there are weights, with its sampling error over rows.

    With weights the error is :math:`\sqrt{\sum w^2 (s - \bar s)^2}/\sum w`, times :math:`\sqrt{m/(m-1)}` for the
    :math:`m = (\sum w)^2 / \sum w^2` rows that they are worth.
    """
    share = (
        np.full(len(scores), 1 / len(scores)) if weight is None else weight / np.sum(weight, dtype=np.float64)
    )
    mean = float(np.mean(scores)) if weight is None else float(share @ scores)
    lost = 1 - float(share @ share)
    spread = math.sqrt(share**2 @ (scores - mean) ** 2 / lost) if lost > 1e-12 else math.nan
    return Estimate(value=mean, row_stderr=spread)


def visible_rows(model: AbstractEnergyModel, data: Any, split: str | None = None) -> np.ndarray:
    """Rows of ``data`` as the model's visible units take them.

    Of a `DataSet` these are the rows of ``split`` (without one: test, else train); grey rows that training drew afresh
    in every epoch are drawn once, by ``draw_binary(rows, 0)``, so that a result can be had again.
    """
    check_model(model)
    units = model.units[model.observed[0]]
    if isinstance(data, str | os.PathLike | Mapping) or is_sparse(data) or is_frame(data):
        data = load_data(data)
    if not isinstance(data, DataSet):
        return encode(data, units.support, "the rows", width=units.size).rows
    split = split or ("train" if data.test is None else "test")
    binarization = data.binarization
    rows = encode(
        data.split(split),
        units.support,
        f"the {split} rows",
        width=units.size,
        binarization=binarization,
        columns=data.columns,
    ).rows
    return draw_binary(rows, 0, units.support) if binarization == "stochastic" else rows


def check_method(method: str) -> None:
    """Raise `SettingError` unless ``method`` names a way to evaluate."""
    if method not in METHODS:
        raise SettingError(f"no method is called {method!r}; choose one of {', '.join(METHODS)}")
