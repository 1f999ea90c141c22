"""What a race measures: at equal unit updates, from exact starts, against exact weights."""

from __future__ import annotations

import numpy as np
import pytest

import harmonium as hm
from harmonium.evaluate.valleys import hidden_valleys
from harmonium.samplers.names import build_sampler
from harmonium.studies.racing import Lengths, Racer, Track, race, run_chains
from harmonium.studies.sampling_race import planted_track
from tests.contracts.tables import FALSE_ALARM, agreement

GIBBS = Racer("block Gibbs", "gibbs")
TEMPERED = Racer("PT", "pt", {"rungs": 6, "base": "uniform"})


def small_track() -> Track:
    """A machine that block Gibbs sampling mixes, with two valleys of unequal weight."""
    draw = np.random.default_rng(3)
    weights = 1.5 * draw.normal(size=(6, 3))
    model = hm.RBM.from_arrays(weights, -weights.sum(axis=1) / 2, 0.3 - weights.sum(axis=0) / 2)
    rows = hm.sample(model, 200, steps=50)
    log_partition = float(hm.log_partition(model, method="exact").value)
    return Track("small", model, rows, hidden_valleys(model, 0.1), 0.1, log_partition)


@pytest.mark.parametrize("racer", [GIBBS, TEMPERED, Racer("learned", "pt", {"schedule": "learned"})])
def test_what_is_spent_is_counted(racer: Racer) -> None:
    track, lengths = small_track(), Lengths(20_000, 60_000, chains=8)
    sampler = build_sampler(racer.name, racer.settings)
    record = run_chains(sampler, track, np.zeros(8, int), lengths, 0, 0)
    replicas = sampler.rungs if isinstance(sampler, hm.ParallelTempering) else 1
    assert record.step_cost == 8 * replicas * 9
    assert record.codes.shape == (8, 80_000 // record.step_cost)
    assert record.learned == 20_000 // record.step_cost
    np.testing.assert_array_equal(record.spent, record.step_cost * np.arange(1, len(record.spent) + 1))


@pytest.mark.parametrize("racer", [GIBBS, TEMPERED])
def test_chains_keep_the_law_they_start_from(racer: Racer) -> None:
    track, chains = small_track(), 20_000
    weight = track.valleys.code_weights
    start = np.random.default_rng(0).choice(len(weight), chains, p=weight)
    cost = 9 * chains * (1 if racer is GIBBS else 6)
    lengths = Lengths(cost, 4 * cost, chains)
    record = run_chains(build_sampler(racer.name, racer.settings), track, start, lengths, 1, 0)
    counts = np.bincount(record.codes[:, -1], minlength=len(weight))
    assert agreement(counts, weight) > FALSE_ALARM
    wrong = np.roll(weight, 1)
    assert agreement(counts, wrong) < FALSE_ALARM


def test_a_sampler_that_mixes_finds_everything() -> None:
    track = small_track()
    assert len(track.valleys.weights) > 1
    row = race(GIBBS, track, Lengths(20_000, 2_000_000, chains=16), 0)
    assert row["missed"] == 0
    assert row["all_seen"] < 20_000
    assert row["split_rhat"] < 1.05
    assert row["share_error"] < 0.02
    assert row["jump_rate_low"] < row["jump_rate"] < row["jump_rate_high"]
    assert abs(row["log_partition_error"]) < 5 * row["log_partition_stderr"]
    # Draws of chains that move at once are nearly worth what they are: 9 units each.
    assert 0.02e6 / 9 < row["effective_rate"] < 1e6 / 9


def test_a_sampler_that_is_stuck_shows_in_every_column() -> None:
    track = planted_track(4, 48, 0)
    assert len(track.valleys.weights) == 4
    stuck = race(GIBBS, track, Lengths(100_000, 1_000_000, chains=8), 0)
    assert (stuck["jumps"], stuck["jump_rate"], stuck["missed"], stuck["all_seen"]) == (0, 0.0, 3, None)
    assert stuck["jump_rate_high"] == pytest.approx(3.689, rel=2e-3)
    assert stuck["split_rhat"] == np.inf
    heaviest = track.valleys.weights[0]
    assert stuck["share_error"] == pytest.approx(1 - heaviest, abs=1e-6)
    assert stuck["log_partition_error"] == pytest.approx(np.log(heaviest))
    assert stuck["effective_rate"] == pytest.approx(8, rel=0.1)  # one draw for each chain
    moving = race(TEMPERED, track, Lengths(100_000, 1_000_000, chains=8), 0)
    assert moving["jumps"] > 30
    assert moving["missed"] == 0
    assert moving["share_error"] < stuck["share_error"] / 2
