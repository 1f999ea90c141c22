"""The contract table of evaluators that draw, beside `cases.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import harmonium as hm
from harmonium.evaluate.ais import forward_log_partition, reverse_log_partition
from harmonium.evaluate.bracket import bracketed_log_partition
from harmonium.evaluate.estimate import Estimate, Kind
from tests.contracts.tables import Table


@dataclass(frozen=True)
class DrawnCase:
    """An evaluator that draws: asked with few temperatures, so that its error is large enough to be seen.

    ``estimate`` takes the model, the rows and a seed. Over seeds its numbers must lie about the truth as widely as
    their errors say, and on average on the side that ``kind`` names.
    """

    estimate: Callable[[Any, np.ndarray, int], Estimate]
    truth: Callable[[Any, Table, np.ndarray], np.ndarray]
    kind: Kind


def log_probability(table: Table, rows: np.ndarray) -> np.ndarray:
    """Of every row under the table's model, by sums over its configurations."""
    scores = [np.logaddexp.reduce(-table.energy[(table.layers[0] == row).all(axis=1)]) for row in rows]
    return np.array(scores) - table.log_partition()


def _log_partition_of(model: Any, table: Table, rows: np.ndarray) -> np.ndarray:
    return np.array([table.log_partition()])


_FEW = hm.AIS(chains=50, temperatures=4)
_SHORT = hm.Bracket(rungs=3, sweeps=16, burn_in=16)

DRAWN: dict[str, DrawnCase] = {
    "log_partition": DrawnCase(
        lambda model, rows, seed: hm.log_partition(model, _FEW, rows, seed),
        _log_partition_of,
        Kind.STOCHASTIC_LOWER,
    ),
    "forward_log_partition": DrawnCase(
        lambda model, rows, seed: forward_log_partition(model, rows, _FEW, seed),
        _log_partition_of,
        Kind.STOCHASTIC_LOWER,
    ),
    "reverse_log_partition": DrawnCase(
        lambda model, rows, seed: reverse_log_partition(model, rows, _FEW, seed),
        _log_partition_of,
        Kind.STOCHASTIC_UPPER,
    ),
    "bracketed_log_partition": DrawnCase(
        lambda model, rows, seed: bracketed_log_partition(model, rows, _SHORT, seed),
        _log_partition_of,
        Kind.CONSISTENT,
    ),
    "log_likelihood": DrawnCase(
        lambda model, rows, seed: hm.log_likelihood(model, rows, _FEW, seed),
        lambda model, table, rows: log_probability(table, rows),
        Kind.STOCHASTIC_UPPER,
    ),
}
"""Evaluators that draw, by name; `raise_likelihood`, which is of another quantity, is proved beside itself."""
