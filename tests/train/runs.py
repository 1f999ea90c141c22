"""Small runs in this process, and what it means for two of them to be the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm

ROWS = np.random.default_rng(0).integers(0, 2, (37, 6))
"""37 rows in batches of 8: the last batch of an epoch is short."""

UPDATES = 450
"""Four whole compiled calls of 100 updates, and a short one."""

Reporter = Callable[[dict[str, Any], dict[str, Any]], None]


def of_seeds(*seeds: int) -> hm.Ensemble:
    """Fresh machines of these seeds, as members."""
    return hm.Ensemble.of([hm.RBM(6, 4, seed=seed) for seed in seeds])


def train(path: Path | None, **changes: Any) -> hm.Run:
    """A run of `UPDATES` updates in chunks of 100, saved after each."""
    arguments: dict[str, Any] = {
        "model": hm.RBM(6, 4, seed=1),
        "data": ROWS,
        "rule": hm.PCD(chains=16),
        "updates": UPDATES,
        "batch_size": 8,
        "seed": 3,
        "checkpoint_seconds": 0,
        "out": path,
        **changes,
    }
    return hm.fit(arguments.pop("model"), arguments.pop("data"), arguments.pop("rule"), **arguments)


def interrupting_after(index: int) -> Reporter:
    """A reporter that interrupts the run at the report of an index."""

    def report(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if record["index"] == index:
            raise KeyboardInterrupt

    return report


def interrupted(path: Path, index: int, **changes: Any) -> None:
    """A run that was interrupted at the report of an index."""
    with pytest.raises(KeyboardInterrupt):
        train(path, reporter=interrupting_after(index), **changes)


def bits(tree: Any) -> list[bytes]:
    """Every bit of a tree of arrays and keys."""
    leaves = jax.tree.leaves(tree)
    return [
        np.asarray(
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        ).tobytes()
        for leaf in leaves
    ]


def assert_same(run: hm.Run, other: hm.Run) -> None:
    """The same model, complete state and history, bit for bit."""
    assert len(bits(run.state)) > 10
    assert bits(run.model) == bits(other.model)
    assert bits(run.state) == bits(other.state)
    assert run.history == other.history
    assert (run.reliable, run.reason) == (other.reliable, other.reason)
