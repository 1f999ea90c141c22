"""Labels as a model counts them: the classes of a data set in order, and the number of each row's class."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from harmonium.data.base import DataSet
from harmonium.errors import DataError

MISSING = -1
"""The number of a row whose label is not known."""

_FAR = 2.0**53
"""Beyond it a number of double precision no longer tells its neighbours apart."""


def classes_of(data: DataSet, states: int) -> list[int | str]:
    """The names of the classes of a data set, in the order in which a label layer of so many states counts them.

    Whole numbers from 0 below ``states`` stand for themselves, whichever of them occur; any other labels, and names,
    are counted in rising order, and there must then be ``states`` of them. A label of -1 is one that is not known.

    Raises `DataError` for training rows without labels, for labels that are neither whole numbers nor names, and for
    another number of classes.

    >>> rows = np.zeros((3, 2), np.uint8)
    >>> classes_of(DataSet("pets", rows, labels={"train": np.array(["dog", "cat", "dog"])}), 2)
    ['cat', 'dog']
    """
    values = _given(data, "train")
    if values.dtype.kind == "U":
        names: list[int | str] = [str(name) for name in np.unique(values[values != str(MISSING)])]
    else:
        known = np.unique(values[values != MISSING])
        if len(known) == 0 or (known[0] >= 0 and known[-1] < states):
            return list(range(states))
        names = [int(value) for value in known]
    if not names:
        raise DataError(
            f"no label of the training rows of {data.name} is known (all are {MISSING}); give some"
        )
    if len(names) == 1:
        raise DataError(
            f"all labels of the training rows of {data.name} are {names[0]}; a label layer tells at least two classes "
            "apart: bring rows of another, or train a model without labels"
        )
    if len(names) != states:
        shown = ", ".join(map(str, names[:4])) + (", ..." if len(names) > 4 else "")
        raise DataError(
            f"the training rows of {data.name} have labels of {len(names)} classes ({shown}), but the model has "
            f"{states}; make it with labels={len(names)} (--labels {len(names)})"
        )
    return names


def label_numbers(data: DataSet, split: str, classes: Sequence[int | str]) -> np.ndarray:
    """The number of the class of every row of a split, from 0, or -1 where it is not known: int32, shape (rows,).

    Raises `DataError` for a split without labels and for a label that is none of ``classes``.

    >>> rows = np.zeros((3, 2), np.uint8)
    >>> label_numbers(DataSet("pets", rows, labels={"train": np.array(["dog", "cat", "dog"])}), "train", ["cat", "dog"])
    array([1, 0, 1], dtype=int32)
    """
    values = _given(data, split)
    known = np.asarray(classes)
    if known.dtype.kind != values.dtype.kind and "U" in (known.dtype.kind, values.dtype.kind):
        values, known = values.astype(str), known.astype(str)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known[order], values), len(known) - 1)
    numbers = order[places].astype(np.int32)
    found = known[numbers] == values
    missing = values == (MISSING if values.dtype.kind != "U" else str(MISSING))
    wrong = ~(found | missing)
    if wrong.any():
        row = int(np.argmax(wrong))
        shown = ", ".join(map(str, known[:6])) + (", ..." if len(known) > 6 else "")
        raise DataError(
            f"row {row} of {split} of {data.name} has the label {values[row]}, which is none of the {len(known)} "
            f"classes {shown}; leave such rows out, or train a model with as many labels"
        )
    return np.where(found, numbers, MISSING).astype(np.int32)


def has_labels(data: Any, split: str) -> bool:
    """Whether these are data whose rows of ``split`` have labels."""
    return isinstance(data, DataSet) and split in (data.labels or {})


def label_fingerprint(data: DataSet) -> str:
    """Sixteen hexadecimal digits of the SHA-256 of the labels of every split that has some."""
    digest = hashlib.sha256()
    for split in sorted(data.labels or {}):
        digest.update(f"{split} ".encode())
        digest.update("\n".join(map(str, _given(data, split).tolist())).encode())
    return digest.hexdigest()[:16]


def _given(data: DataSet, split: str) -> np.ndarray:
    """Labels of a split as whole numbers or as text."""
    if not has_labels(data, split):
        raise DataError(
            f"the {split} rows of {data.name} have no labels, which a model with a label layer learns from; give them "
            f"as {split}_labels beside {split} (an .npz file or a dict), or train a model without labels"
        )
    assert data.labels is not None
    values = np.ravel(np.asarray(data.labels[split]))
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        values = values.astype(str)
    if values.dtype.kind in "fu" and np.all((values == np.round(values)) & (np.abs(values) < _FAR)):
        values = values.astype(np.int64)
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype.kind not in "iU":
        raise DataError(
            f"the {split} labels of {data.name} are of type {values.dtype}; give whole numbers or names"
            + (", none of the numbers beyond 2^53" if values.dtype.kind in "fu" else "")
        )
    return values
