"""Annealing and brackets over either side of a deep machine: the same log Z, whichever layers are walked."""

import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.evaluate.ais import forward_log_partition
from harmonium.evaluate.annealing import walked_side
from tests.contracts.machines import wave_layers, wave_machine

WIDE_BELOW = wave_layers(*(("bernoulli", size) for size in (4, 2, 2)))
WIDE_BETWEEN = wave_layers(*(("bernoulli", size) for size in (2, 5, 1, 1)))

SIGMAS = 4.8
"""Of a normal error, passed with a chance below 1e-5 by all seven estimates together."""


def test_the_smaller_side_is_walked_unless_another_is_named() -> None:
    assert [walked_side(WIDE_BELOW, side) for side in (None, "even", "odd")] == [1, 0, 1]
    assert [walked_side(WIDE_BETWEEN, side) for side in (None, "even", "odd")] == [0, 0, 1]


@pytest.mark.parametrize("dbm", [WIDE_BELOW, WIDE_BETWEEN])
def test_either_side_gives_the_exact_log_partition(dbm: hm.DBM) -> None:
    exact = hm.log_partition(dbm).value
    values = {}
    for side in (None, "even", "odd"):
        found = forward_log_partition(dbm, None, hm.AIS(chains=400, temperatures=20, base="model", side=side))
        assert 0 < found.stderr < 0.02
        assert abs(found.value - exact) < SIGMAS * found.stderr
        values[side] = found.value
    # The side that is not named is the smaller one, and the other one is another walk.
    assert values[None] == values["odd" if dbm is WIDE_BELOW else "even"]
    assert values["even"] != values["odd"]


def test_a_bracket_of_the_larger_side_holds_the_exact_value() -> None:
    settings = hm.Bracket(ladders=8, chains=4, rungs=4, sweeps=60, base="model", side="even")
    found = hm.log_partition(WIDE_BELOW, settings)
    assert 0 < found.stderr < 0.05
    assert abs(found.value - hm.log_partition(WIDE_BELOW).value) < SIGMAS * found.stderr + 0.01


def test_a_side_is_of_machines_in_layers() -> None:
    with pytest.raises(SettingError, match="side='odd' is of machines in layers"):
        hm.log_partition(wave_machine(3, 2), hm.AIS(temperatures=10, side="odd"))
    for build in (hm.AIS, hm.Bracket):
        with pytest.raises(SettingError, match="is called 'upper'; choose one of even, odd, or None"):
            build(side="upper")
