"""Which class a row is of: labels inferred by a machine with a label layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from harmonium.data.base import DataSet
from harmonium.data.labels import classes_of, has_labels, label_numbers
from harmonium.energy.base import check_model
from harmonium.energy.dbm import DBM
from harmonium.energy.enumeration import label_scores_of
from harmonium.energy.labels import check_labels
from harmonium.errors import DataError, SettingError
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.likelihood import as_data, visible_rows
from harmonium.evaluate.starts import MOST_OPERATIONS
from harmonium.evaluate.variational import can_score, mean_field_bound
from harmonium.inference.mean_field import MeanField
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, check_bits
from harmonium.numerics.named import is_name
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Batch

CLASSIFIERS = ("auto", "free-energy", "bound", "mean-field")

_SWEEPS = 1000
_TOLERANCE = 1e-9
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Classification:
    """The classes that a machine infers for some rows.

    - ``label``: the class of every row: its name where names are known, else its number from 0; shape (rows,).
    - ``probability``: :math:`p(y = k \\mid v)`, shape (rows, classes), or what stands for it as ``kind`` tells.
    - ``method``: "free-energy", "bound" or "mean-field"; ``kind``: exact, or a proxy.
    - ``residual``: the largest movement of the last mean-field sweep; 0 where there was none.
    - ``classes``: the names of the classes, or None.
    - ``error``: the fraction of rows whose label is another than the given one, None where none were given;
      ``error_stderr``: its sampling error over the ``n`` rows whose label is known.

    >>> even = np.full((3, 2), 0.5)
    >>> print(Classification(np.array([0, 1, 1]), even, "bound", Kind.PROXY, error=0.25, error_stderr=0.2, n=4))
    3 rows classified by bound (proxy), 25.00 +- 20.00 % wrong of 4
    """

    label: np.ndarray
    probability: Float[np.ndarray, "rows classes"]
    method: str
    kind: Kind
    residual: float = 0.0
    classes: tuple[int | str, ...] | None = None
    error: float | None = None
    error_stderr: float | None = None
    n: int = 0

    def __len__(self) -> int:
        return len(self.label)

    def __str__(self) -> str:
        rows = f"{len(self)} rows classified by {self.method} ({self.kind})"
        if self.error is None or self.error_stderr is None:
            return rows
        return f"{rows}, {100 * self.error:.2f} +- {100 * self.error_stderr:.2f} % wrong of {self.n}"

    def to_dict(self) -> dict[str, Any]:
        """What there is to know of the whole, as plain values that fit into JSON."""
        return {
            "error": self.error,
            "error_stderr": self.error_stderr,
            "n": self.n,
            "method": self.method,
            "kind": str(self.kind),
            "residual": self.residual,
        }


def classify(
    model: DBM,
    data: Any,
    method: str = "auto",
    *,
    split: str | None = None,
    classes: Sequence[int | str] | None = None,
    bit_budget: int = BIT_BUDGET,
    operation_budget: float = MOST_OPERATIONS,
) -> Classification:
    r"""The class of every row, inferred by a machine with a label layer; in float64.

    ``data`` is an array of rows, or a name, a path or a `DataSet`, of which ``split`` is taken (None: test, else
    train); where it has labels, ``error`` says how many rows are given another one. ``classes`` are the names of the
    classes in the model's order, as ``run.config["model"]["classes"]`` holds them; left out, those of the data's own
    labels, else numbers from 0. ``method`` is

    - "free-energy": :math:`p(y = k \mid v) = e^{-F(v, k)} / \sum_j e^{-F(v, j)}`, exact. With one hidden layer it
      costs a pass for each class; hidden layers that are coupled are enumerated, for every row and class.
    - "bound": the same with the mean-field bounds :math:`-L(v, k)` in the place of free energies, each class clamped in
      its turn.
    - "mean-field": clamped inference. The row is held, and the label is inferred with the hidden layers by one
      mean-field fixed point; ``probability`` are the means of the label units.
    - "auto": "free-energy" where that takes no more than ``bit_budget`` bits and ``operation_budget`` operations, else
      "bound".

    Raises `SettingError` for a machine without labels and an unknown method, `BudgetError` for "free-energy" with too
    many hidden units, `DataError` for rows that do not fit and for labels of other classes. Source: the chapter's label
    layer; the exact form of one hidden layer is that of the classification RBM, Larochelle and Bengio (2008).

    >>> free = DBM.from_arrays(
    ...     [np.zeros((2, 1)), np.zeros((1, 2))],
    ...     [np.zeros(2), np.zeros(1), np.log([0.25, 0.75])],
    ...     kinds=["bernoulli", "bernoulli", "categorical:2"],
    ... )
    >>> found = classify(free, [[0, 1]])
    >>> found.label.tolist(), found.probability.round(6).tolist(), found.method
    ([1], [[0.25, 0.75]], 'free-energy')
    """
    check_model(model)
    units = check_labels(model, "classification")
    if not isinstance(model, DBM):
        raise SettingError(
            f"classification needs a DBM with labels, got {type(model).__name__}; pass the model itself"
        )
    if not is_name(method, CLASSIFIERS):
        raise SettingError(f"no way to classify is called {method!r}; choose one of {', '.join(CLASSIFIERS)}")
    bits = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    if not is_number(operation_budget) or not operation_budget > 0:
        raise SettingError(
            f"operation_budget must be a number of operations above 0, got {operation_budget!r}; pass e.g. 2e11"
        )
    data = as_data(data)
    rows = visible_rows(model, data, split)
    names, truth = known_labels(data, split, classes, units.states)
    if method == "auto":
        method = "free-energy" if can_score(model, len(rows), bits, operation_budget) else "bound"
    is_exact = method != "mean-field" and (method == "free-energy" or not model.split(held=True).bits)
    scores, residual = _scores(model, rows, method, bits)
    kind = Kind.EXACT if is_exact else Kind.PROXY
    return classified(scores, names, truth, method=method, kind=kind, residual=residual)


def classified(
    scores: Float[np.ndarray, "rows classes"],
    names: Sequence[int | str] | None,
    truth: np.ndarray | None,
    *,
    method: str,
    kind: Kind,
    residual: float = 0.0,
) -> Classification:
    """The classes that scores speak for, log-probabilities up to a number of each row; see `known_labels`."""
    scores = scores - np.max(scores, axis=1, keepdims=True)
    weight = np.exp(scores)
    number = np.argmax(scores, axis=1)
    error = stderr = None
    known = np.zeros(0, bool) if truth is None else truth >= 0
    if truth is not None and known.any():
        error = float(np.mean(number[known] != truth[known]))
        stderr = float(np.sqrt(error * (1 - error) / known.sum()))
    return Classification(
        label=number if names is None else np.asarray(names)[number],
        probability=weight / weight.sum(axis=1, keepdims=True),
        method=method,
        kind=kind,
        residual=residual,
        classes=None if names is None else tuple(names),
        error=error,
        error_stderr=stderr,
        n=int(known.sum()),
    )


def known_labels(
    data: Any, split: str | None, classes: Sequence[int | str] | None, states: int
) -> tuple[Sequence[int | str] | None, np.ndarray | None]:
    """The names of the classes, and the numbers of the classes that rows are given as, where these are known."""
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray)):
        raise DataError(
            f"classes is a list of the names of all classes, got {classes!r}; pass e.g. ['cat', 'dog']"
        )
    if classes is not None and len(classes) != states:
        raise DataError(f"{len(classes)} classes are named, but the model has {states}; name as many")
    if not isinstance(data, DataSet):
        return classes, None
    split = split or ("train" if data.test is None else "test")
    if classes is None and has_labels(data, "train"):
        classes = classes_of(data, states)
    if not has_labels(data, split):
        return classes, None
    return classes, label_numbers(data, split, list(range(states)) if classes is None else classes)


def _scores(model: DBM, rows: np.ndarray, method: str, bits: int) -> tuple[np.ndarray, float]:
    """Per row and class a log-probability up to a number of the row, and the residual of mean field."""
    states = model.units[-1].size
    if method == "bound":
        found = [
            mean_field_bound(model, np.concatenate([rows, np.tile(label, (len(rows), 1))], axis=1))
            for label in np.eye(states, dtype=rows.dtype)
        ]
        residual = max(bound.cost["residual"] for bound in found)
        return np.stack([np.asarray(bound.value) for bound in found], axis=1), residual
    if method == "free-energy":
        check_bits(
            model.split(held=True).bits,
            bits,
            f"the exact classification by this {type(model).__name__}",
            'use method="bound" (--classify bound) or method="mean-field" (--classify mean-field)',
        )
    double = as_double(model)
    blocks = [rows[start : start + _ROWS].astype(np.float64) for start in range(0, len(rows), _ROWS)]
    if method == "free-energy":
        return np.concatenate([_exact(double, block) for block in blocks]), 0.0
    inferred = [_inferred(double, block) for block in blocks]
    return np.concatenate([scores for scores, _ in inferred]), max(residual for _, residual in inferred)


@in_double_precision
def _exact(model: DBM, rows: np.ndarray) -> np.ndarray:
    return np.asarray(_exact_program()(model, rows))


@in_double_precision
def _inferred(model: DBM, rows: np.ndarray) -> tuple[np.ndarray, float]:
    scores, residual = _mean_field_program()(model, rows)
    return np.asarray(scores), float(residual)


@cache
def _exact_program():
    return compile_function(label_scores_of)


@cache
def _mean_field_program():
    def program(model, rows):
        found = MeanField(_SWEEPS, tolerance=_TOLERANCE).solve(model, Batch(x=rows))
        # The fields, whose softmax the means are: their logarithm is of no use where a mean is 0.
        return model.field(len(model.units) - 1, found.means), found.residual

    return compile_function(lambda model, rows: program(model, jnp.asarray(rows)))
