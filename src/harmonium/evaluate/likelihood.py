"""The two questions asked of every model: its log-likelihood on rows, and its log partition function."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.binarization import draw_binary
from harmonium.data.frames import is_frame, is_sparse
from harmonium.data.labels import classes_of, has_labels, label_numbers
from harmonium.data.load import load_data
from harmonium.data.support import encode
from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.energy.dbm import DBM
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.labels import label_units
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.evaluate.ais import AIS, both_directions
from harmonium.evaluate.bounds import (
    Bound,
    can_sum,
    drawn_bound,
    exact_bound,
    exact_scores,
    recognition_draws,
)
from harmonium.evaluate.bracket import Bracket, bracketed_log_partition
from harmonium.evaluate.ensemble import median_estimate
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.exact import exact_log_partition, unnormalised_log_probability
from harmonium.evaluate.starts import MOST_OPERATIONS, affordable_plan
from harmonium.evaluate.variational import scores_of_dbm
from harmonium.evaluate.verdict import ROUNDING, SIGMAS
from harmonium.numerics.enumerate import BIT_BUDGET
from harmonium.numerics.named import is_name
from harmonium.numerics.whole import LARGEST_SEED, is_number, seed_number, whole_number

METHODS = ("auto", "exact", "ais", "bracket", "bound")

Method = str | AIS | Bracket | Bound
"""A method by name, or with settings."""

_MOST_BITS_OF_MASS = 10
"""Most coupled hidden units that are enumerated for each row, only to see what mass the rows have together."""

NOMINAL_RATE = 2e10
"""Operations that one second of a time budget stands for, on every machine: a budget is a count, never a clock."""


def log_likelihood(
    model: AbstractEnergyModel | Ensemble,
    data: Any,
    method: Method = "auto",
    seed: SupportsIndex = 0,
    rows: bool = False,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
    operation_budget: float | None = None,
) -> Estimate:
    r"""Mean log-likelihood of rows, :math:`\frac{1}{n}\sum_t \log p(v_t)` with :math:`\log p(v) = -F(v) - \log Z`.

    In nats per row, free energies in float64 from the parameters as they are. ``data`` is an array of rows, a sparse
    matrix, a data frame, or a name, a path or a `DataSet`, whose test split (else its training rows) is then taken.
    With ``rows=True`` the estimate holds one value per row. Of an `Ensemble` it is the estimate of the median member,
    which holds those of all in ``members``.

    ``method`` is "exact" (enumerate the smaller side), "bracket" or a `Bracket` with settings (a bridge on tempered
    chains, between annealing from below and from above), "ais" or an `AIS` with settings (annealed importance sampling
    both ways), or "auto": exact when that takes no more than ``bit_budget`` units on the smaller side and
    ``operation_budget`` operations (None: 2e11), else a bracket. Both start from the marginals of the training rows.
    A bracket is consistent; an AIS estimate is on average too *high*, since its log Z is too low. ``reliable`` and
    ``reason`` hold the verdict of the other directions, of the chains, and of the rows themselves: distinct rows whose
    probabilities add up to more than one beyond the error prove it wrong. ``seed`` is of the methods that draw. A
    given ``operation_budget`` also sets how long these are, where their settings do not.

    Of a `DBM` hidden layers are coupled, and a row costs a sum over the smaller of those of even and of odd number.
    Where that is too much, the score is the lower bound of the mean-field fixed point, as ``kind`` tells;
    ``method="bound"`` asks for it. Minus a log Z that is bracketed or annealed it is only a proxy.

    Of a machine with a label layer it is that of rows *with* their labels, :math:`\log p(v, y)`, where ``data`` is a
    `DataSet` that has the labels of those rows, and that of the rows alone, :math:`\log p(v) = \log \sum_y p(v, y)`,
    of an array and of rows without labels.

    Of a `DBN` it is that of the density read from the top: the inner layers are enumerated one after the other where
    each has no more than ``bit_budget`` units and all take no more than ``operation_budget`` operations, and else the
    score is a lower bound, as `Bound` says and ``kind`` tells; ``method="bound"`` asks for the variational one. Its log
    Z, exact or by AIS, is that of the top level. Lower bounds minus a lower bound of log Z are only a proxy.

    Raises `DataError` for rows that do not fit the visible units and `BudgetError` for ``method="exact"`` and a model
    with more than ``bit_budget`` units on its smaller side, and for an ``operation_budget`` too small for what draws;
    `SettingError` for one with ``method="exact"`` or with a given length. Source: the chapter's evaluation section,
    :math:`\log \tilde p - \log Z`.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> log_likelihood(free, [[0, 1, 0]]).value  # -3 log 2
    -2.079441541679...
    """
    budgets = {"bit_budget": bit_budget, "operation_budget": operation_budget}
    return both_estimates(model, data, method, seed, rows, **budgets)[0]


def both_estimates(
    model: AbstractEnergyModel | Ensemble,
    data: Any,
    method: Method = "auto",
    seed: SupportsIndex = 0,
    rows: bool = False,
    *,
    split: str | None = None,
    bit_budget: SupportsIndex = BIT_BUDGET,
    operation_budget: float | None = None,
) -> tuple[Estimate, Estimate]:
    """`log_likelihood` of one split and the `log_partition` that it rests on, for the price of one."""
    if isinstance(model, Ensemble):
        data = as_data(data)
        settings = {"split": split, "bit_budget": bit_budget, "operation_budget": operation_budget}
        seeds = _member_seeds(seed, model)
        return median_estimate(
            model,
            [
                both_estimates(one, data, method, its, rows, **settings)
                for one, its in zip(model, seeds, strict=True)
            ],
        )
    check_model(model)
    check_method(method)
    data = as_data(data)
    visible = observed_rows(model, data, split)
    partition = log_partition(
        model, method, data=data, seed=seed, bit_budget=bit_budget, operation_budget=operation_budget
    )
    if isinstance(model, AbstractStack):
        bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
        scores = _scores_of_stack(model, visible, method, seed, bits, _checked_operations(operation_budget))
    elif isinstance(model, DBM):
        bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
        operations = _checked_operations(operation_budget) or MOST_OPERATIONS
        scores = scores_of_dbm(model, visible, method, bits, operations)
    else:
        scores = Estimate(value=unnormalised_log_probability(model, visible))
    if partition.kind != Kind.EXACT and not np.any(scores.stderr):
        partition = doubt_of_mass(partition, scores.value, visible)
    if not np.all(np.isfinite(scores.value)):
        scores = replace(scores, reliable=False, reason="a free energy is not a finite number")
    return (scores if rows else _mean_of(scores)) - partition, partition


def log_partition(
    model: AbstractEnergyModel | Ensemble,
    method: Method = "auto",
    data: Any = None,
    seed: SupportsIndex = 0,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
    operation_budget: float | None = None,
) -> Estimate:
    r"""The log partition function :math:`\log Z`, in nats, in float64.

    ``method`` and the budgets are as in `log_likelihood`; ``data`` are the rows that the base and half of the
    chains come from: of a `DataSet` its training rows. Without them both come from the model itself, and then
    nothing can show a mode that the model has but its chains never find: such an estimate is reliable only where
    AIS walks back from exact draws. Of an `Ensemble` it is the estimate of the
    member with the median one. Of a `DBN` it is that of its top level, ``dbn.levels[-1]``: the only normaliser in its
    joint law. Raises `BudgetError` as there.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> log_partition(RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))).value  # 5 log 2
    3.465735902799...
    """
    if isinstance(model, Ensemble):
        budgets = {"bit_budget": bit_budget, "operation_budget": operation_budget}
        seeds = _member_seeds(seed, model)
        found = [
            log_partition(one, method, data, its, **budgets) for one, its in zip(model, seeds, strict=True)
        ]
        return median_estimate(model, [(one, one) for one in found])[0]
    check_model(model)
    check_method(method)
    seed = seed_number(seed)
    bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    normalised = normalised_part(model)
    chosen = _chosen_method(
        normalised, _of_partition(model, method), bits, _checked_operations(operation_budget)
    )
    if chosen is None:
        return exact_log_partition(normalised, bits)
    rows = None if data is None else visible_rows(model, data, "train")
    if rows is not None and isinstance(model, AbstractStack):
        rows = recognition_draws(model, rows, seed)
    if isinstance(chosen, AIS):
        return both_directions(normalised, rows, chosen, seed)
    found = bracketed_log_partition(normalised, rows, chosen, seed)
    if rows is None or normalised.split(held=True).bits > _MOST_BITS_OF_MASS:
        return found
    return doubt_of_mass(found, unnormalised_log_probability(normalised, rows), rows)


def normalised_part(model: AbstractEnergyModel) -> AbstractEnergyModel:
    """The machine whose partition function normalises the density of a model: itself, or the top level of a stack."""
    return model.top if isinstance(model, AbstractStack) else model


def _of_partition(model: AbstractEnergyModel, method: Method) -> str | AIS | Bracket:
    """How the partition function is found by a method that bounds the rest. Raises `SettingError` for other models."""
    if method != "bound" and not isinstance(method, Bound):
        return method
    if not isinstance(model, AbstractStack | DBM):
        raise SettingError(
            'method="bound" (--method bound) is of networks such as hm.DBN(64, [32, 16]) and hm.DBM(64, [32, 16]), got '
            f'{type(model).__name__}; use method="auto" (--method auto)'
        )
    return "auto"


def _scores_of_stack(
    stack: AbstractStack,
    rows: np.ndarray,
    method: Method,
    seed: SupportsIndex,
    bits: int,
    operations: float | None,
) -> Estimate:
    """Per row the log-probability up to the top's partition function: exact where asked or affordable, else a bound."""
    if method == "exact":
        return exact_scores(stack, rows, bits)
    affordable = can_sum(stack, len(rows), bits, MOST_OPERATIONS if operations is None else operations)
    settings = Bound() if method == "bound" else method
    if isinstance(settings, Bound):
        summed = settings.exact if settings.exact is not None else affordable
        if summed and settings.estimator == "variational":
            return exact_bound(stack, rows, bits)
    elif affordable:
        return exact_scores(stack, rows, bits)
    else:
        settings = Bound()
    return drawn_bound(stack, rows, settings, seed_number(seed))


def _mean_of(scores: Estimate) -> Estimate:
    """The mean over rows of one estimate per row, whose errors are independent."""
    mean = mean_over_rows(scores.value)
    stderr = float(np.sqrt(np.sum(np.square(scores.stderr)))) / len(scores) if np.ndim(scores.stderr) else 0.0
    return replace(scores, value=mean.value, row_stderr=mean.row_stderr, stderr=stderr, low=None, high=None)


def _chosen_method(
    model: AbstractEnergyModel, method: str | AIS | Bracket, bits: int, operations: float | None
) -> AIS | Bracket | None:
    """Settings of what draws, or None for the exact sum: decided by counts alone."""
    if method == "exact":
        if operations is not None:
            raise SettingError(
                "an exact sum is bounded by bit_budget alone; leave operation_budget out, or use "
                'method="auto" (--method auto), method="bracket" (--method bracket) or method="ais" (--method ais)'
            )
        return None
    most = MOST_OPERATIONS if operations is None else operations
    if method == "auto" and affordable_plan(model, bits, most) is not None:
        return None
    if isinstance(method, str):
        method = AIS() if method == "ais" else Bracket()
    return method.resolve(model, operations)


def work_ahead(
    model: AbstractEnergyModel | Ensemble, method: Method, bits: int, operations: float | None
) -> AIS | Bracket | None:
    """The settings of what `log_likelihood` will draw, of a single member of an ensemble; None for the exact sum."""
    one = model.member(0) if isinstance(model, Ensemble) else model
    bits = whole_number(bits, "bit_budget must be a whole number of at least 0", least=0)
    return _chosen_method(
        normalised_part(one), _of_partition(one, method), bits, _checked_operations(operations)
    )


def _member_seeds(seed: SupportsIndex, ensemble: Ensemble) -> list[int]:
    """A seed for each member, so that their errors are independent."""
    return [(seed_number(seed) + member) % (LARGEST_SEED + 1) for member in range(len(ensemble))]


def _checked_operations(operations: Any) -> float | None:
    if operations is None:
        return None
    if not is_number(operations) or not 0 < operations < math.inf:
        raise SettingError(
            f"operation_budget must be a number of operations above 0, got {operations!r}; pass e.g. 2e11"
        )
    return float(operations)


def doubt_of_mass(partition: Estimate, scores: np.ndarray, rows: np.ndarray) -> Estimate:
    r"""The estimate of :math:`\log Z`, no longer reliable where it gives distinct rows a mass above one.

    Rows of discrete units cannot have more than :math:`\sum_v p(v) \le 1` in all, so that :math:`\log Z` is at least
    the log-sum-exp of their unnormalised log-probabilities ``scores``, by more than three standard errors of doubt.
    """
    _, first = np.unique(rows, axis=0, return_index=True)
    with np.errstate(invalid="ignore"):  # scores of a model that is not finite, whose verdict says so
        least = float(np.logaddexp.reduce(scores[first]))
    excess = least - partition.value
    if not excess > SIGMAS * partition.stderr + ROUNDING:
        return partition
    doubt = f"the rows alone would have a probability of exp({excess:.3g}), which is more than 1"
    return replace(
        partition,
        high=max(partition.high, least),
        reliable=False,
        reason="; ".join(part for part in (doubt, partition.reason) if part),
    )


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
    data = as_data(data)
    if not isinstance(data, DataSet):
        return encode(data, units.ends, "the rows", width=units.size).rows
    split = split or ("train" if data.test is None else "test")
    binarization = data.binarization
    rows = encode(
        data.split(split),
        units.ends,
        f"the {split} rows",
        width=units.size,
        binarization=binarization,
        columns=data.columns,
    ).rows
    return draw_binary(rows, 0, units.ends) if binarization == "stochastic" else rows


def observed_rows(model: AbstractEnergyModel, data: Any, split: str | None = None) -> np.ndarray:
    """`visible_rows`, of a machine with a label layer with the labels behind them (one-hot), where all are known.

    Rows that are only an array, or of a split without labels or with some that are missing (-1), stay alone.
    """
    data = as_data(data)
    rows = visible_rows(model, data, split)
    labels = label_units(model)
    if labels is None or not isinstance(data, DataSet):
        return rows
    split = split or ("train" if data.test is None else "test")
    if not has_labels(data, split):
        return rows
    known = classes_of(data, labels.states) if has_labels(data, "train") else range(labels.states)
    numbers = label_numbers(data, split, list(known))
    if np.any(numbers < 0):
        return rows
    return np.concatenate([rows, np.eye(labels.states, dtype=rows.dtype)[numbers]], axis=1)


def check_method(method: Any) -> None:
    """Raise `SettingError` unless ``method`` names a way to evaluate, or holds the settings of one."""
    if not isinstance(method, AIS | Bracket | Bound) and not is_name(method, METHODS):
        raise SettingError(f"no method is called {method!r}; choose one of {', '.join(METHODS)}")


def as_data(data: Any) -> Any:
    """A name, a path, a mapping, a sparse matrix or a data frame as a `DataSet`; anything else as it is."""
    if isinstance(data, str | os.PathLike | Mapping) or is_sparse(data) or is_frame(data):
        return load_data(data)
    return data
