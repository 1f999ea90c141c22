"""Jumps between modes: counted on labels of which all is known, and the exact interval of a rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson

from harmonium.errors import DataError, SettingError
from harmonium.samplers.jumps import mode_jumps, poisson_interval


def test_a_jump_is_a_change_of_the_last_mode() -> None:
    found = mode_jumps(
        [
            [0, 1, 0, 1, 1],
            [-1, -1, 2, -1, 2],  # begins between the modes; out and back is no jump
            [0, -1, -1, 1, -1],
            [3, 3, 3, 3, 3],
            [-1, -1, -1, -1, -1],
        ]
    )
    assert found.jumps.tolist() == [3, 0, 1, 0, 0]
    assert (found.total, found.missed, found.draws) == (4, 0, 5)
    assert found.visits.tolist() == [0, 1, 2, 0]
    assert found.last_visit == 2


def test_modes_that_were_never_seen() -> None:
    found = mode_jumps([[0, 2]], modes=5)
    assert found.visits.tolist() == [0, -1, 1, -1, -1]
    assert (found.missed, found.last_visit) == (3, math.inf)
    assert mode_jumps([[-1, -1]]).last_visit == 0


def test_the_rate_of_two_states() -> None:
    """A chain that changes its mind with probability p jumps p times a draw, to within its own error."""
    chance, chains, draws = 0.03, 200, 2000
    coin = np.random.default_rng(0).random((chains, draws)) < chance
    found = mode_jumps(np.cumsum(coin, axis=1) % 2)
    rate, (low, high) = found.rate(chains * (draws - 1))
    assert rate == pytest.approx(chance, abs=5 * math.sqrt(chance / (chains * draws)))
    assert low < rate < high


@pytest.mark.parametrize("mean", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_covers_as_often_as_it_says(mean: float, level: float) -> None:
    counts = np.arange(200)
    ends = [poisson_interval(count, level=level) for count in counts]
    inside = np.array([low <= mean <= high for low, high in ends])
    covered = poisson.pmf(counts, mean)[inside].sum()
    assert level <= covered < 1
    # Both ends leave out just the tail that they may.
    low, high = poisson_interval(7, level=level)
    assert poisson.sf(6, low) == pytest.approx((1 - level) / 2)
    assert poisson.cdf(7, high) == pytest.approx((1 - level) / 2)


def test_an_exposure_divides() -> None:
    assert poisson_interval(0).low == 0
    assert poisson_interval(0).high == pytest.approx(-math.log(0.025))
    assert poisson_interval(np.int64(4), 10.0) == pytest.approx(
        tuple(end / 10 for end in poisson_interval(4))
    )


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        ([0, 1], "shape"),
        ([[0.5, 1.0]], "whole numbers"),
        ([[0, -2]], "got -2"),
        ([[0], [0, 1]], "as many draws"),
        (np.zeros((0, 3), int), "shape"),
    ],
)
def test_labels_that_are_none_are_refused(labels: Any, hint: str) -> None:
    with pytest.raises(DataError, match=hint):
        mode_jumps(labels)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="pass modes=4"):
        mode_jumps([[0, 3]], modes=2)
    with pytest.raises(SettingError, match="at least 0"):
        poisson_interval(-1)
    with pytest.raises(SettingError, match="exposure"):
        poisson_interval(1, 0)
    with pytest.raises(SettingError, match="level"):
        poisson_interval(1, level=95)
