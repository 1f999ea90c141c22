"""Whole numbers of Python and of numpy, wherever a count, a size or a seed is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.whole import seed_number, whole_number

ROWS = np.eye(6, dtype=np.uint8)
# Of the right type, or the checker that tests put around every function refuses them before we do.
NO_COUNTS = [0, -1, True]
NO_SEEDS = [-1, 2**63, True]
NO_NUMBERS = [1.5, 2.0, "a", None, np.float64(3), np.array([1, 2]), True, np.True_]


def model(**settings: Any) -> hm.RBM:
    return hm.RBM(6, 2, **settings)


def fit(**settings: Any) -> hm.Run:
    chosen: dict[str, Any] = {"updates": 2, "batch_size": 3, "seed": 1, **settings}
    return hm.fit(model(), ROWS, hm.PCD(chains=4), **chosen)


COUNTS: dict[str, Callable[[Any], Any]] = {
    "RBM": lambda n: hm.RBM(n, 2),
    "Spin": lambda n: hm.Spin(n),
    "steps": lambda n: hm.CD(n),
    "chains": lambda n: hm.PCD(chains=n),
    "updates": lambda n: fit(updates=n),
    "epochs": lambda n: fit(updates=None, epochs=n),
    "batch_size": lambda n: fit(batch_size=n),
    "rows": lambda n: hm.sample(model(), n, steps=2),
    "sweeps": lambda n: hm.sample(model(), 2, steps=n),
}
SEEDS: dict[str, Callable[[Any], Any]] = {
    "RBM": lambda seed: model(seed=seed),
    "fit": lambda seed: fit(seed=seed),
    "sample": lambda seed: hm.sample(model(), 2, steps=2, seed=seed),
    "log_likelihood": lambda seed: hm.log_likelihood(model(), ROWS, seed=seed),
    "log_partition": lambda seed: hm.log_partition(model(), seed=seed),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    for count in (2, np.int64(2), np.uint8(2)):
        COUNTS[name](count)
    for count in NO_COUNTS:
        with pytest.raises(SettingError):
            COUNTS[name](count)


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(name: str) -> None:
    for seed in (0, np.int64(3), np.uint8(3), 2**63 - 1):
        SEEDS[name](seed)
    for seed in NO_SEEDS:
        with pytest.raises(SettingError, match="seed"):
            SEEDS[name](seed)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(SettingError, match=r"n must be one, got .*; pass 3"):
        whole_number(value, "n must be one", "pass 3")
    with pytest.raises(SettingError, match="seed must be a whole number from 0"):
        seed_number(value)


def test_a_numpy_number_gives_the_same_run() -> None:
    plain, counted = fit(), fit(updates=np.int64(2), batch_size=np.int16(3), seed=np.uint8(1))
    assert plain.history == counted.history
    assert plain.config == counted.config


def test_the_most_is_told() -> None:
    """Of a value that is too large, where "at least 2" alone would be no help."""
    with pytest.raises(SettingError, match="at least 2, got 1000000, which is more than 10000; pass"):
        hm.CAST(rungs=1_000_000)
    with pytest.raises(SettingError, match="got 1; pass"):
        hm.CAST(rungs=1)


def test_the_thing_and_its_value_are_told() -> None:
    with pytest.raises(SettingError, match=r"got 0; pass e\.g\. 100"):
        hm.PCD(chains=np.int64(0))
    wrong: Any
    for wrong in (-1, True):
        with pytest.raises(SettingError, match="bit_budget"):
            hm.log_partition(model(), bit_budget=wrong)
    for name, wrong in (("burn_in", -1), ("offset_rate", 2.0)):
        with pytest.raises(SettingError, match=name):
            hm.PCD(**{name: wrong})
    for wrong in (-1.0, float("nan")):
        with pytest.raises(SettingError, match="weight_scale"):
            hm.RBM(3, 2, weight_scale=wrong)
