"""Diagnostics of ensembles of chains: against ArviZ, and against chains of which everything is known."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

import harmonium as hm
from harmonium.errors import DataError, SettingError
from harmonium.samplers.diagnostics import (
    agreement,
    autocorrelation_time,
    diagnose,
    effective_sample_size,
    split_rhat,
)
from tests.conftest import need


class ByArviz:
    """The same numbers by ArviZ, of arrays (chains, draws)."""

    def __init__(self) -> None:
        need("arviz_stats", "test")
        self._stats: Any = importlib.import_module("arviz_stats.base").array_stats

    def split_rhat(self, chains: np.ndarray, ranked: bool) -> float:
        return float(self._stats.rhat(chains, method="rank" if ranked else "split"))

    def effective_sample_size(self, chains: np.ndarray, ranked: bool) -> float:
        return float(self._stats.ess(chains, method="bulk" if ranked else "mean"))


def autoregressive(chains: int, draws: int, factor: float, seed: int) -> np.ndarray:
    """Chains x_t = a x_{t-1} + noise, started at their law: the autocorrelation time is (1 + a) / (1 - a)."""
    noise = np.random.default_rng(seed).normal(size=(chains, draws))
    noise[:, 0] /= math.sqrt(1 - factor**2)
    return np.asarray(lfilter([1.0], [1.0, -factor], noise, axis=1))


def two_states(chains: int, draws: int, forth: float, back: float, seed: int) -> np.ndarray:
    """Chains between 0 and 1, started at their law: the second eigenvalue is 1 - forth - back."""
    coin = np.random.default_rng(seed).random((draws, chains))
    rows = [(coin[0] < forth / (forth + back)).astype(float)]
    for toss in coin[1:]:
        rows.append(np.where(toss < np.where(rows[-1] > 0, back, forth), 1 - rows[-1], rows[-1]))
    return np.stack(rows, axis=1)


CASES = {
    "independent": autoregressive(4, 500, 0.0, 1),
    "slow": autoregressive(4, 501, 0.95, 2),
    "alternating": autoregressive(3, 400, -0.8, 3),
    "short": autoregressive(2, 4, 0.5, 4),
    "of odd length": autoregressive(7, 9, 0.5, 5),
    "of few values": two_states(5, 300, 0.05, 0.2, 6),
    "heavy-tailed": np.random.default_rng(7).standard_cauchy((4, 200)),
    "apart": autoregressive(4, 200, 0.5, 8) + np.arange(4)[:, None],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ranked", [True, False])
def test_numbers_are_those_of_arviz(name: str, ranked: bool) -> None:
    theirs, chains = ByArviz(), CASES[name]
    np.testing.assert_allclose(split_rhat(chains, ranked), theirs.split_rhat(chains, ranked), rtol=1e-9)
    size = theirs.effective_sample_size(chains, ranked)
    np.testing.assert_allclose(effective_sample_size(chains, ranked), size, rtol=1e-9)
    if not ranked:
        counted = len(chains) * (
            chains.shape[1] // 2 * 2
        )  # the middle draw of an odd number is in neither half
        np.testing.assert_allclose(autocorrelation_time(chains), counted / size, rtol=1e-9)


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9])
def test_the_autocorrelation_time_of_an_autoregressive_chain(factor: float) -> None:
    exact = (1 + factor) / (1 - factor)
    # 8 x 50 000 draws know it to about three in a hundred.
    assert autocorrelation_time(autoregressive(8, 50_000, factor, 0)) == pytest.approx(exact, rel=0.1)


def test_the_autocorrelation_time_of_two_states() -> None:
    second = 1 - 0.05 - 0.1
    chains = two_states(50, 5000, 0.05, 0.1, 0)
    assert autocorrelation_time(chains) == pytest.approx((1 + second) / (1 - second), rel=0.1)
    assert diagnose(chains).reliable


def test_the_effective_size_says_how_far_means_stray() -> None:
    chains = autoregressive(400, 1000, 0.8, 9)
    spread = chains.mean(axis=1).var(ddof=1)
    size = chains.var() / spread
    # A variance from 400 means is known to 7 %: six of these.
    assert effective_sample_size(chains, ranked=False) / len(chains) == pytest.approx(size, rel=0.45)


def test_chains_that_do_not_mix_are_found() -> None:
    chains = autoregressive(4, 1000, 0.5, 10)
    good = diagnose(chains)
    assert (good.reliable, good.reason, good.chains, good.draws) == (True, "", 4, 1000)
    apart = diagnose(chains + np.array([0, 0, 0, 3])[:, None])
    assert not apart.reliable
    assert "split R-hat is" in apart.reason
    drifting = diagnose(chains + np.linspace(0, 3, 1000))
    assert drifting.split_rhat > 1.05  # halves of one chain disagree
    wider = chains * np.array([1, 1, 1, 5])[:, None]
    assert split_rhat(wider, ranked=False) < 1.05 < split_rhat(wider)  # equal means, other widths
    assert not diagnose(autoregressive(2, 40, 0.99, 11)).reliable


def test_chains_that_stand_still() -> None:
    frozen = np.repeat([[0.1], [0.2], [0.3]], 50, axis=1)
    assert split_rhat(frozen) == split_rhat(frozen, ranked=False) == math.inf
    assert not diagnose(frozen).reliable
    same = diagnose(np.full((3, 50), 0.1))
    assert math.isnan(same.split_rhat)
    assert math.isnan(same.effective_sample_size)
    assert same.reliable  # an energy that is the same everywhere is no fault of the chains


def test_several_quantities_count_by_the_worst() -> None:
    chains = np.stack([CASES["independent"], CASES["independent"] + np.arange(4)[:, None]], axis=-1)
    apart = [split_rhat(chains[..., index]) for index in range(2)]
    np.testing.assert_allclose(split_rhat(chains), apart)
    found = hm.diagnose(chains)
    assert found.split_rhat == apart[1]
    assert found.effective_sample_size == effective_sample_size(chains)[1]
    assert "do not trust" in str(found)


def test_slow_chains_of_one_law_agree() -> None:
    """The rate of false alarms is the stated one, although draws hang together over most of a run."""
    alarms = []
    for seed in range(400):
        chains = autoregressive(20, 30, 0.98, 1000 + seed)
        alarms.append(agreement(chains[:10], chains[10:], permutations=99, seed=seed).p_value <= 0.05)
    # A binomial of 400 at 0.05 is beyond 42 with a probability of 1e-5.
    assert 2 <= sum(alarms) <= 42


def test_a_test_of_single_draws_would_alarm() -> None:
    """What the permutation of whole chains is for: draw by draw, slow chains of one law nearly always differ."""
    from scipy.stats import ks_2samp

    alarms = 0
    for seed in range(50):
        chains = autoregressive(20, 30, 0.98, 2000 + seed)
        found: Any = ks_2samp(chains[:10].ravel(), chains[10:].ravel())
        alarms += found.pvalue < 0.05
    assert alarms > 30


def test_groups_of_another_law_disagree() -> None:
    chains = autoregressive(40, 100, 0.5, 12)
    for other in (chains[20:] + 2.0, chains[20:] * 4.0):
        found = agreement(chains[:20], other)
        assert found.p_value == found.least_p_value == 1e-4
        assert found.distance > 0.01
    missing = two_states(40, 100, 1e-9, 1e-9, 13) * 5.0
    missing[20:] = 0.0
    there = int((missing[:20] > 0).any(axis=1).sum())
    exact = 2 * math.comb(20, there) / math.comb(40, there)  # all chains that have the mode are in one group
    found = agreement(missing[:20], missing[20:], permutations=100_000)
    assert found.p_value == pytest.approx(exact, abs=5 * math.sqrt(exact / 100_000))
    assert exact < 0.01


def test_few_chains_are_dealt_in_every_way() -> None:
    chains = np.arange(6.0)[:, None] + np.zeros((6, 3))
    found = agreement(chains[:3], chains[3:])
    assert found.p_value == found.least_p_value == 2 / math.comb(6, 3)
    # The mean over x of (F1 - F2)^2 by hand, over a median width of 1.5.
    assert found.distance == pytest.approx((1 / 9 + 4 / 9 + 1 + 4 / 9 + 1 / 9) / 1.5)
    assert agreement(chains, chains).p_value == 1.0


@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (3, 40)])
def test_the_distance_of_few_draws_is_exact(shape: tuple[int, int]) -> None:
    """Distribution functions change at draws and nowhere else."""
    first, second = np.random.default_rng(2).normal(size=(2, *shape))
    draws = np.sort(np.concatenate([first, second]), axis=None)
    parted = [np.mean(first <= draw) - np.mean(second <= draw) for draw in draws[:-1]]
    width = np.median(np.abs(draws - np.median(draws)))
    expected = np.sum(np.square(parted) * np.diff(draws)) / width
    assert agreement(first, second, permutations=9).distance == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("chains", "hint"),
    [
        (np.zeros(5), r"\(5,\)"),
        (np.zeros((2, 3)), "at least 4 draws"),
        (np.zeros((0, 5)), r"\(0, 5\)"),
        ([[1.0, 2.0], [1.0]], "as many draws"),
        (np.array([[1.0, 2.0, np.nan, 1.0]]), "draw 2 of chain 0"),
        ([["a", "b", "c", "d"]], "numbers"),
    ],
)
@pytest.mark.parametrize(
    "measure", [diagnose, split_rhat, effective_sample_size, autocorrelation_time], ids=lambda f: f.__name__
)
def test_what_is_no_ensemble_is_refused(measure: Any, chains: Any, hint: str) -> None:
    with pytest.raises(DataError, match=hint):
        measure(chains)


def test_groups_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(DataError, match="as many draws each"):
        agreement(np.zeros((3, 4)), np.zeros((3, 5)))
    with pytest.raises(SettingError, match="permutations"):
        agreement(np.zeros((3, 4)), np.zeros((3, 4)), permutations=0)
