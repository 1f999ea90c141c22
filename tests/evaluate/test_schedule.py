"""Schedules: their ends, their order, and steps of equal spread from the pilot."""

from __future__ import annotations

import numpy as np
import pytest

import harmonium as hm
from harmonium.evaluate.ais import AIS, prepare
from harmonium.evaluate.annealing import anneal
from harmonium.evaluate.base_rate import independent_draws
from harmonium.evaluate.schedule import linear_schedule
from tests.contracts.machines import wave_matrix


def steep_machine() -> hm.RBM:
    """Nearly all that changes along its path changes late."""
    return hm.RBM.from_arrays(3 * wave_matrix(12, 8), np.zeros(12), np.zeros(8))


@pytest.mark.parametrize("temperatures", [1, 7, 100])
@pytest.mark.parametrize("schedule", ["linear", "pilot"])
def test_a_schedule_rises_from_0_to_1(temperatures: int, schedule: str) -> None:
    betas = prepare(steep_machine(), None, AIS(temperatures=temperatures, schedule=schedule), 0).betas
    assert len(betas) == temperatures + 1
    assert (betas[0], betas[-1]) == (0, 1)
    assert (np.diff(betas) > 0).all()


def test_the_pilot_makes_steps_of_equal_spread() -> None:
    model = steep_machine()
    unevenness = {}
    for schedule in ("linear", "pilot"):
        prepared = prepare(model, None, AIS(temperatures=300, schedule=schedule, base="uniform"), 0)
        start = independent_draws(prepared.base, 2000, prepared.words(9))
        spread = anneal(prepared.path, prepared.side, prepared.betas, start, prepared.words(10)).spread
        assert spread.shape == (300,)
        unevenness[schedule] = spread.std() / spread.mean()
    assert unevenness["pilot"] < unevenness["linear"] / 2


def test_a_pilot_shares_nothing_with_the_walks() -> None:
    """The schedule of other chains: with the same seed and the linear schedule, the draws of the base are the same."""
    model = steep_machine()
    one, other = (
        prepare(model, None, AIS(temperatures=50, schedule=name), 1) for name in ("linear", "pilot")
    )
    np.testing.assert_array_equal(one.betas, linear_schedule(50))
    np.testing.assert_array_equal(one.base.units[0].bias, other.base.units[0].bias)
    words = [np.asarray(one.words(purpose)) for purpose in range(12)]
    assert len({tuple(pair) for pair in words}) == 12
