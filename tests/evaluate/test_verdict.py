"""What makes an estimate by annealing unreliable: each cause is made to happen and must be named."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.layered import AbstractLayered
from harmonium.evaluate import ais, starts
from harmonium.evaluate.ais import AIS
from harmonium.evaluate.annealing import Annealed
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.likelihood import doubt_of_mass
from harmonium.evaluate.starts import Start
from harmonium.evaluate.verdict import doubts_about, part
from tests.contracts.machines import wave_rbm


@pytest.fixture
def nothing_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is too large: reversed walks start from Gibbs runs."""
    monkeypatch.setattr(starts, "affordable_plan", lambda *_, **__: None)


def two_valleys(depth: float) -> hm.RBM:
    """All off, or all on with an energy ``depth`` nats lower; nearly forty nats of barrier lie between.

    On the way from independent units the second valley opens only at the end, so that walks from rest do not find it.
    """
    size = 16
    bias = np.full(size, -5.0)
    weights = np.full((size, size), (10.0 * size + depth) / size**2)
    return hm.RBM.from_arrays(weights, bias, bias)


DEEP = np.ones((50, 16), np.uint8)
SHALLOW = np.zeros((50, 16), np.uint8)


@pytest.mark.usefixtures("nothing_is_enumerated")
@pytest.mark.parametrize("seed", range(3))
def test_a_missing_mode_is_flagged_by_chains_from_the_data(seed: int) -> None:
    """Walks from rest miss the deep valley by ten nats, with an error of a few hundredths; chains from rows see it."""
    model = two_valleys(12.0)
    exact = hm.log_partition(model, "exact").value
    settings = AIS(temperatures=100, base="model")
    alone = hm.log_partition(model, settings, seed=seed)
    assert exact - alone.value > 9
    assert alone.stderr < 0.1
    assert not alone.reliable
    assert "no chain started from a row" in alone.reason
    estimate = hm.log_partition(model, settings, DEEP, seed=seed)
    assert estimate.value == alone.value
    assert not estimate.reliable
    assert "reversed chains of the two origins part by" in estimate.reason
    assert "have not met" in estimate.reason
    # Rows of the valley that is found are no help to it.
    assert not hm.log_likelihood(model, DEEP[:1], settings, seed=seed).reliable


@pytest.mark.usefixtures("nothing_is_enumerated")
@pytest.mark.parametrize("depth", [-3.0, 0.0, 3.0, 12.0])
def test_no_confident_wrong_number_between_two_valleys(depth: float) -> None:
    """Rows of both valleys, every base, few temperatures and many: wrong by four errors is never called reliable."""
    model = two_valleys(depth)
    exact = hm.log_partition(model, "exact").value
    rows = np.concatenate([DEEP, SHALLOW])
    for base in ("data", "model", "uniform"):
        for temperatures in (10, 100):
            for seed in range(3):
                estimate = hm.log_partition(model, AIS(temperatures=temperatures, base=base), rows, seed=seed)
                wrong = abs(estimate.value - exact) > 4 * estimate.stderr + 1e-3
                assert not (wrong and estimate.reliable), (base, temperatures, estimate.reason)


def estimates(
    forward: float, reverse: float, stderr: float = 0.1, worth: float = 50.0
) -> tuple[Estimate, Estimate]:
    return (
        Estimate(forward, stderr=stderr, kind=Kind.STOCHASTIC_LOWER, cost={"effective_chains": worth}),
        Estimate(reverse, stderr=stderr, kind=Kind.STOCHASTIC_UPPER, cost={"effective_chains": 50.0}),
    )


def exact_start(model: AbstractLayered, chains: int = 40) -> tuple[Start, Annealed]:
    particles = tuple(np.zeros((chains, units.size), np.float32) for units in model.units)
    return Start(particles, "reversed from exact draws", 0), Annealed(
        np.zeros(chains), particles, np.zeros(3)
    )


def test_each_cause_is_named() -> None:
    model = wave_rbm()
    start, walk = exact_start(model)

    def doubts(pair: tuple[Estimate, Estimate]) -> list[str]:
        return doubts_about(*pair, model, start, walk)

    assert doubts(estimates(10.0, 10.2)) == []
    assert doubts(estimates(10.0, 10.0 + 2.9 * 0.1 * math.sqrt(2))) == []
    assert "forward and reverse part by 0.5 nats, more than 3" in doubts(estimates(10.0, 10.5))[0]
    assert "part by -0.5 nats" in doubts(estimates(10.5, 10.0))[0]
    assert "forward weights are worth 9.9 chains" in doubts(estimates(10.0, 10.0, worth=9.9))[0]
    assert doubts(estimates(10.0, 10.0, worth=10.0)) == []
    for wrong in (math.nan, math.inf):
        assert doubts(estimates(wrong, 10.0)) == ["a log-weight is not finite"]
        assert doubts(estimates(10.0, 10.0, stderr=wrong)) == ["a log-weight is not finite"]


def test_two_origins_that_have_not_met_are_told_apart() -> None:
    """By the law of their energies, by the means of their units, or by their weights."""
    model = wave_rbm()
    generator = np.random.default_rng(0)
    alike = tuple((generator.random((80, units.size)) < 0.5).astype(np.float32) for units in model.units)
    walk = Annealed(0.1 * generator.standard_normal(80), alike, np.zeros(3))
    start = Start(alike, "half and half", 40)
    pair = estimates(10.0, 10.0)
    assert doubts_about(*pair, model, start, walk) == []
    apart = tuple(layer.copy() for layer in alike)
    apart[0][:40] = 1
    found = doubts_about(*pair, model, start._replace(particles=apart), walk)
    assert len(found) == 1
    assert "have not met" in found[0]
    heavier = walk.log_weight + np.repeat([0.0, 1.0], 40)
    found = doubts_about(*pair, model, start, walk._replace(log_weight=heavier))
    assert len(found) == 1
    assert "reversed chains of the two origins part by" in found[0]


def test_few_effective_chains_are_flagged() -> None:
    """One temperature through strong weights: a handful of chains carry everything."""
    generator = np.random.default_rng(0)
    model = hm.RBM.from_arrays(3 * generator.standard_normal((14, 9)), np.zeros(14), np.zeros(9))
    estimate = hm.log_partition(model, AIS(temperatures=1, base="uniform"))
    assert estimate.cost["effective_chains"] < 10
    assert not estimate.reliable
    assert "forward weights are worth" in estimate.reason
    assert hm.log_partition(model, AIS(temperatures=1000, chains=200)).reliable


def test_a_sign_error_of_the_reverse_would_be_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    model = wave_rbm(gain=2.0)
    settings = AIS(temperatures=20)
    assert hm.log_partition(model, settings).reliable
    right = ais._reverse

    def mistaken(prepared: ais.Prepared, start: Start, walk: Annealed) -> Estimate:
        return right(prepared, start, walk._replace(log_weight=-walk.log_weight))

    monkeypatch.setattr(ais, "_reverse", mistaken)
    estimate = hm.log_partition(model, settings)
    assert not estimate.reliable
    assert "forward and reverse part by" in estimate.reason


def test_rows_of_a_mass_above_one_are_a_proof() -> None:
    rows = np.array([[0, 1], [1, 1], [0, 1]])
    scores = np.array([1.0, 2.0, 1.0])
    least = float(np.logaddexp(1.0, 2.0))
    partition = Estimate(least - 0.4, stderr=0.1, kind=Kind.STOCHASTIC_LOWER, reason="as it was")
    doubted = doubt_of_mass(partition, scores, rows)
    assert not doubted.reliable
    assert doubted.high == pytest.approx(least)
    assert "the rows alone would have a probability of exp(0.4)" in doubted.reason
    assert "as it was" in doubted.reason
    assert doubt_of_mass(replace(partition, stderr=0.2), scores, rows).reliable
    # A row that occurs twice has its mass once: counted twice, this one would be flagged.
    assert doubt_of_mass(replace(partition, value=least), scores, rows).reliable
    assert np.logaddexp.reduce(scores) - least > 3 * partition.stderr - 0.1


@pytest.mark.usefixtures("nothing_is_enumerated")
def test_a_likelihood_says_when_its_rows_prove_it_wrong() -> None:
    """Training rows of the shallow valley alone: every chain agrees, but one test row of the deep one has too much."""
    model = two_valleys(12.0)
    settings = AIS(temperatures=20, base="model")
    assert hm.log_partition(model, settings, SHALLOW).reliable
    estimate = hm.log_likelihood(model, {"train": SHALLOW, "test": DEEP[:1]}, settings)
    assert not estimate.reliable
    assert estimate.reason.startswith("the rows alone would have a probability of exp(")
    assert estimate.low == pytest.approx(0, abs=1e-9)


def test_parting_needs_more_than_three_errors_and_rounding() -> None:
    assert not part(1.0, 0.0, 1.00009, 0.0)
    assert part(1.0, 0.0, 1.0002, 0.0)
    assert not part(1.0, 0.3, 2.49, 0.4)
    assert part(1.0, 0.3, 2.51, 0.4)
