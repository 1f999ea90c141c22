"""A data set: its splits, what they are called, and the fingerprint that results carry."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from harmonium.data.noise import host_noise
from harmonium.data.scan import Scan, joint_scan, row_blocks
from harmonium.errors import DataError, SettingError

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Rows to learn from, rows to choose by, rows to judge by.

    Rows are ``uint8`` for 0/1 data, ``int8`` for -1/+1 data, and otherwise numbers as they came; under
    ``binarization == "stochastic"`` they are ``float32`` probabilities in [0, 1] of which bits are drawn afresh.

    - ``name``: what to call it in a result.
    - ``train``, ``valid``, ``test``: arrays of shape (rows, width); ``valid`` and ``test`` may be None.
    - ``shape``: the picture shape of one row, such as (8, 8), or None.
    - ``weight``: how much each row of ``train`` counts, at least 0, shape (rows,), or None for all alike.
    - ``labels``: one integer or name per row, by split, or None.
    - ``binarization``: "none" (as given), "threshold 0.5" (with the full scale where that is not 1), or "stochastic".
    - ``source``: what `harmonium.data.from_source` needs to get it again.
    - ``columns``: names of the columns where the source had them.
    - ``entropy``: nats of the distribution the rows come from where it is known exactly, else None; no model has a
      mean log-likelihood above its negative.
    - ``draw``: for a generator, the function behind `stream`.
    - ``density``: where the distribution is known row by row, the function behind `log_probability`.

    **Raises** DataError where the parts do not fit each other.

    **Example**

    >>> data = DataSet("two rows", np.array([[0, 1], [1, 1]], np.uint8))
    >>> data.width, data.split("train").shape
    (2, (2, 2))
    """

    name: str
    train: np.ndarray
    valid: np.ndarray | None = None
    test: np.ndarray | None = None
    shape: tuple[int, ...] | None = None
    weight: np.ndarray | None = None
    labels: Mapping[str, np.ndarray] | None = None
    binarization: str = "none"
    source: Mapping[str, Any] = field(default_factory=lambda: {"array": True})
    columns: tuple[str, ...] | None = None
    entropy: float | None = None
    draw: Callable[[np.random.Philox, int], np.ndarray] | None = None
    density: Callable[[np.ndarray], np.ndarray] | None = None

    def __post_init__(self) -> None:
        for split, rows in self.splits().items():
            if rows.ndim != 2 or rows.size == 0:
                raise DataError(
                    f"{split} of {self.name} has shape {rows.shape}; at least one row and column are needed"
                )
            if rows.shape[1] != self.width:
                raise DataError(
                    f"{split} of {self.name} has {rows.shape[1]} columns but train has {self.width}; "
                    "every split must have the same columns"
                )
            # A read-only view: the fingerprint is cached, and the caller's own array stays as writable as it was.
            view = rows.view()
            view.flags.writeable = False
            object.__setattr__(self, split, view)
        if self.shape is not None and int(np.prod(self.shape)) != self.width:
            raise DataError(
                f"shape {self.shape} has {int(np.prod(self.shape))} entries but rows have {self.width}"
            )
        if self.columns is not None and len(self.columns) != self.width:
            raise DataError(f"{len(self.columns)} column names were given for {self.width} columns")
        if self.weight is not None:
            object.__setattr__(self, "weight", _checked_weight(self.weight, len(self.train)))
        for split, labels in (self.labels or {}).items():
            if len(labels) != len(self.split(split)):
                raise DataError(
                    f"{len(labels)} labels were given for {len(self.split(split))} rows of {split}; give one whole "
                    "number or name for each row"
                )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split} {len(rows)}" for split, rows in self.splits().items())
        return f"DataSet({self.name!r}, {sizes}, width {self.width}, {self.train.dtype}, {self.binarization})"

    @property
    def width(self) -> int:
        """How many values a row has."""
        return int(self.train.shape[1])

    def splits(self) -> dict[str, np.ndarray]:
        """The splits that exist, in the order train, valid, test."""
        found = ((split, getattr(self, split)) for split in SPLITS)
        return {split: rows for split, rows in found if rows is not None}

    def split(self, name: str) -> np.ndarray:
        """The rows of one split.

        **Raises** SettingError for a word that is no split, DataError for a split that this data set lacks.
        """
        if name not in SPLITS:
            raise SettingError(f"there is no split {name!r}; choose one of {', '.join(SPLITS)}")
        rows = self.splits().get(name)
        if rows is None:
            raise DataError(
                f"{self.name} has no {name} split, only {', '.join(self.splits())}; choose one of these, "
                f"or give arrays called train, valid and test (an .npz file or a dict)"
            )
        return rows

    def stream(self, key: Any, n: int) -> np.ndarray:
        """``n`` fresh rows of a generator; the same key gives the same rows on every machine.

        ``key`` is a whole number from 0 or a jax key.

        **Raises** DataError where this data set is no generator, SettingError for a key or count that cannot be used.
        """
        if self.draw is None:
            raise DataError(
                f"{self.name} is a fixed table, not a generator: it has no fresh rows; use .train"
            )
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise SettingError(f"the number of rows must be a whole number from 0, got {n!r}")
        return self.draw(host_noise(key, "stream"), int(n))

    def log_probability(self, rows: np.ndarray) -> np.ndarray:
        """Log-probability of rows under the distribution that a generator draws from, in nats, shape (rows,).

        The mean of what a model's log-likelihoods fall short of it has a far smaller error than their mean alone.

        **Raises** DataError where it is not known.
        """
        if self.density is None:
            raise DataError(
                f"{self.name} does not know the probability of a row; artificial-modes and planted do"
            )
        return self.density(np.asarray(rows))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits of the SHA-256 of every split, the row weights and the binarisation.

        Two results are comparable only where these agree. Names, labels and picture shapes do not count, and neither
        does the way the array was stored: 0/1 rows give the same digits from bool, integer or float files.
        """
        digest = hashlib.sha256()
        parts = {**self.splits(), **({} if self.weight is None else {"weight": self.weight[:, None]})}
        for part, rows in parts.items():
            little_endian = rows.dtype.newbyteorder("<")
            digest.update(f"{part} {rows.shape} {little_endian.str} ".encode())
            for block in row_blocks(rows):
                digest.update(np.ascontiguousarray(rows[block], dtype=little_endian).data)
        digest.update(self.binarization.encode())
        return digest.hexdigest()[:16]

    def summary(self) -> dict[str, Any]:
        """What there is to know about the rows, as plain values that fit into JSON.

        ``values`` is "0/1", "-1/+1", "grey" (in [0, 1]) or "real"; ``problems`` is empty where the data can be
        trained on as they are by units that take those values.
        """
        found = self._scan
        kind = value_kind(found)
        low, high = np.asarray(self.train.min(axis=0)), np.asarray(self.train.max(axis=0))
        problems = []
        if found.nans or found.infinities:
            where = found.first_bad
            problems.append(
                f"{found.nans} NaN and {found.infinities} infinite entries, the first at row, column {where}"
            )
        best = None if self.entropy is None else -self.entropy
        return {
            "name": self.name,
            "rows": {split: len(rows) for split, rows in self.splits().items()},
            "width": self.width,
            "shape": None if self.shape is None else list(self.shape),
            "values": kind,
            "dtype": str(self.train.dtype),
            "low": found.low,
            "high": found.high,
            "mean": float(self.train.mean(dtype=np.float64)),
            "constant_columns": int((low == high).sum()),
            "binarization": self.binarization,
            "labels": None
            if self.labels is None
            else len(np.unique(self.labels["train"]))
            if "train" in self.labels
            else 0,
            "weighted": self.weight is not None,
            "best_mean_log_likelihood": best,
            "problems": problems,
            "fingerprint": self.fingerprint,
        }

    def describe(self) -> str:
        """A few lines for people: sizes, values, binarisation, the likelihood bound where it is exact, and problems."""
        facts = self.summary()
        rows = ", ".join(f"{count} {split}" for split, count in facts["rows"].items())
        picture = "" if self.shape is None else f" (pictures of {' x '.join(map(str, self.shape))})"
        lines = [f"{self.name}: {rows} rows of {self.width} values{picture}"]
        span = (
            f"values {facts['values']}"
            if facts["values"] in ("0/1", "-1/+1")
            else (f"values {facts['values']}, from {facts['low']:g} to {facts['high']:g}")
        )
        lines.append(
            f"{span}, mean {facts['mean']:.4g}, stored as {facts['dtype']}; "
            + _advice(facts["values"], self.binarization)
        )
        lines.append(f"binarisation: {self.binarization}; constant columns: {facts['constant_columns']}")
        if facts["labels"]:
            lines.append(f"labels: {facts['labels']} kinds")
        if self.weight is not None:
            total = float(self.weight.sum())
            lines.append(
                f"row weights: total {total:g}, effective rows {total**2 / float((self.weight**2).sum()):.4g}"
            )
        if self.entropy is not None:
            lines.append(
                f"entropy {self.entropy:.3f} nats, exactly: "
                f"max mean log-likelihood {-self.entropy:.3f} (no model has more)"
            )
        lines += [f"not fit to train on: {problem}" for problem in facts["problems"]]
        lines.append(f"fingerprint {self.fingerprint}")
        return "\n".join(lines)

    @cached_property
    def _scan(self) -> Scan:
        return joint_scan(list(self.splits().values()))


def value_kind(found: Scan) -> str:
    """What kind of values a scan found: "0/1", "-1/+1", "grey" or "real"."""
    if found.zero_one:
        return "0/1"
    if found.spin:
        return "-1/+1"
    return "grey" if found.low >= 0.0 and found.high <= 1.0 else "real"


def _advice(values: str, binarization: str) -> str:
    if values in ("0/1", "-1/+1"):
        return "fits Bernoulli and spin units"
    if binarization == "stochastic":
        return "bits are drawn with these probabilities for Bernoulli and spin units"
    return 'two-valued units need binarize="threshold" or binarize="stochastic"'


def _checked_weight(weight: Any, rows: int) -> np.ndarray:
    try:
        values = np.array(weight, dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError("row weights must be numbers, one per row of train") from None
    if values.shape != (rows,):
        raise DataError(
            f"row weights have shape {values.shape} but train has {rows} rows; give one weight per row"
        )
    if not np.isfinite(values).all() or values.min() < 0.0:
        row = int(np.argmax(~np.isfinite(values) | (values < 0.0)))
        raise DataError(f"row weight {values[row]} of row {row} is not a finite number of at least 0")
    if values.sum() == 0.0:
        raise DataError("every row weight is 0; at least one row must count")
    values.flags.writeable = False
    return values
