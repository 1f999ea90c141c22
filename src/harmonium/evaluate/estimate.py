"""A number, how sure it is, and in which direction it may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from harmonium.errors import SettingError


class Kind(StrEnum):
    """What an estimate claims about the true value.

    ``EXACT``: equal to it, but for rounding. ``UNBIASED``: equal to it on average. ``LOWER`` and ``UPPER``: surely not
    above, or below, it. ``STOCHASTIC_LOWER`` and ``STOCHASTIC_UPPER``: not above, or below, it on average. ``PROXY``:
    another quantity, that only moves with it. ``CONSISTENT``: as near to it as the work put in, and for no finite work
    a bound of it or equal to it on average.
    """

    EXACT = "exact"
    UNBIASED = "unbiased"
    CONSISTENT = "consistent"
    LOWER = "lower bound"
    UPPER = "upper bound"
    STOCHASTIC_LOWER = "stochastic lower bound"
    STOCHASTIC_UPPER = "stochastic upper bound"
    PROXY = "proxy"

    def negated(self) -> Kind:
        """The kind of minus the estimate."""
        return _NEGATED.get(self, self)

    def plus(self, other: Kind) -> Kind:
        """The kind of a sum of two estimates: bounds in opposite directions, or a proxy, leave only a proxy.

        So does a bound with what is consistent, whose error may have either sign.
        """
        if Kind.PROXY in (self, other):
            return Kind.PROXY
        directions = {_DIRECTION[self], _DIRECTION[other]} - {0}
        if Kind.CONSISTENT in (self, other):
            return Kind.PROXY if directions else Kind.CONSISTENT
        if len(directions) == 2:
            return Kind.PROXY
        sure = {self, other} <= {Kind.EXACT, Kind.LOWER, Kind.UPPER}
        if not directions:
            return Kind.EXACT if sure else Kind.UNBIASED
        if directions == {-1}:
            return Kind.LOWER if sure else Kind.STOCHASTIC_LOWER
        return Kind.UPPER if sure else Kind.STOCHASTIC_UPPER


_NEGATED = {
    Kind.LOWER: Kind.UPPER,
    Kind.UPPER: Kind.LOWER,
    Kind.STOCHASTIC_LOWER: Kind.STOCHASTIC_UPPER,
    Kind.STOCHASTIC_UPPER: Kind.STOCHASTIC_LOWER,
}
_DIRECTION = {
    Kind.EXACT: 0,
    Kind.UNBIASED: 0,
    Kind.CONSISTENT: 0,
    Kind.LOWER: -1,
    Kind.STOCHASTIC_LOWER: -1,
    Kind.UPPER: 1,
    Kind.STOCHASTIC_UPPER: 1,
}


@dataclass(frozen=True)
class Estimate:
    """A number in nats with its uncertainty and a verdict.

    - ``value``: the estimate; ``stderr``: the estimator's own standard error for these very rows, 0 when exact.
    - ``low``, ``high``: 95 % interval of the *estimator*; of zero width when exact.
    - ``row_stderr``: sampling error over rows, how far a fresh test set of that size would move the mean (NaN for one
      row, and for numbers that are no mean over rows).
    - ``kind``: see `Kind`. ``reliable`` with its ``reason``: whether to trust the number, and why or why not.
    - ``method``: how it was computed. ``cost``: what that took, in counted operations.
    - ``members``: of an ensemble, the estimates of all members; the numbers are then those of the median one, whose
      place among them is ``member``. Sums and differences are of the numbers alone and leave these two out.

    With one value per row the numbers are arrays; the estimate then has a length and gives one row's estimate by
    index or iteration.

    Sums and differences carry errors (as independent) and kinds along: a log-probability minus a stochastic lower
    bound of the log partition function is a stochastic *upper* bound.

    >>> (Estimate(-20.0) - Estimate(5.0, stderr=0.1, kind=Kind.STOCHASTIC_LOWER)).kind.value
    'stochastic upper bound'
    >>> print(Estimate(-20.0, row_stderr=0.25))
    -20.0000 nats (exact, +- 0.2500 over rows)
    """

    value: Any
    stderr: Any = 0.0
    low: Any = None
    high: Any = None
    row_stderr: float = math.nan
    kind: Kind = Kind.EXACT
    reliable: bool = True
    reason: str = ""
    method: str = "exact"
    cost: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    members: tuple[Estimate, ...] = ()
    member: int | None = None

    def __post_init__(self) -> None:
        # The interval of an estimator whose error is normal, unless a better one was given.
        margin = 1.96 * np.asarray(self.stderr)
        for name, sign in (("low", -1), ("high", 1)):
            if getattr(self, name) is None:
                bound = np.asarray(self.value) + sign * margin
                object.__setattr__(self, name, bound if bound.ndim else float(bound))

    def __neg__(self) -> Estimate:
        return Estimate(
            value=-self.value,
            stderr=self.stderr,
            low=-self.high,
            high=-self.low,
            row_stderr=self.row_stderr,
            kind=self.kind.negated(),
            reliable=self.reliable,
            reason=self.reason,
            method=self.method,
            cost=self.cost,
        )

    def __add__(self, other: Estimate | float) -> Estimate:
        if not isinstance(other, Estimate):
            other = Estimate(value=other, row_stderr=math.nan)
        stderr = np.hypot(self.stderr, other.stderr)
        low = self.value + other.value - np.hypot(self.value - self.low, other.value - other.low)
        high = self.value + other.value + np.hypot(self.high - self.value, other.high - other.value)
        # A number that is no mean over rows has no such error and adds none.
        over_rows = [part for part in (self.row_stderr, other.row_stderr) if not math.isnan(part)]
        reasons = [part for part in (self.reason, other.reason) if part]
        return Estimate(
            value=self.value + other.value,
            stderr=stderr if np.ndim(stderr) else float(stderr),
            low=low if np.ndim(low) else float(low),
            high=high if np.ndim(high) else float(high),
            row_stderr=math.hypot(*over_rows) if over_rows else math.nan,
            kind=self.kind.plus(other.kind),
            reliable=self.reliable and other.reliable,
            reason="; ".join(dict.fromkeys(reasons)),
            method=other.method if self.method == "exact" else self.method,
            cost={key: self.cost.get(key, 0) + other.cost.get(key, 0) for key in {**self.cost, **other.cost}},
        )

    def __sub__(self, other: Estimate | float) -> Estimate:
        return self + (-other)

    def __len__(self) -> int:
        if np.ndim(self.value) == 0:
            raise SettingError("this estimate is one number, not one per row; ask for rows=True")
        return len(self.value)

    def __getitem__(self, row: int) -> Estimate:
        if np.ndim(self.value) == 0:
            raise SettingError("this estimate is one number, not one per row; ask for rows=True")
        stderr, low, high = (
            np.broadcast_to(part, np.shape(self.value)) for part in (self.stderr, self.low, self.high)
        )
        return Estimate(
            value=float(self.value[row]),
            stderr=float(stderr[row]),
            low=float(low[row]),
            high=float(high[row]),
            kind=self.kind,
            reliable=self.reliable,
            reason=self.reason,
            method=self.method,
            cost=self.cost,
        )

    def __iter__(self) -> Iterator[Estimate]:
        return (self[row] for row in range(len(self)))

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return f"{len(self.value)} values, mean {np.mean(self.value):.4f} nats ({self.kind})"
        error = f" [{self.low:.4f}, {self.high:.4f}]" if self.low != self.high else ""
        rows = "" if math.isnan(self.row_stderr) else f", +- {self.row_stderr:.4f} over rows"
        verdict = "" if self.reliable else f"; do not trust it: {self.reason}"
        return f"{self.value:.4f} nats{error} ({self.kind}{rows}{verdict})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that are not finite become None."""

        def number(part: Any) -> Any:
            if np.ndim(part):
                return [number(entry) for entry in np.asarray(part)]
            return float(part) if math.isfinite(part) else None

        return {
            "value": number(self.value),
            "stderr": number(self.stderr),
            "low": number(self.low),
            "high": number(self.high),
            "row_stderr": number(self.row_stderr),
            "kind": str(self.kind),
            "reliable": self.reliable,
            "reason": self.reason,
            "method": self.method,
            "cost": {key: number(part) for key, part in self.cost.items()},
        }
