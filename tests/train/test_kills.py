"""Twenty kills in the gate; ``benchmarks/kills.py`` does hundreds, at random."""

import signal
from pathlib import Path

import pytest

from harmonium.train.faults import FAULT_POINTS
from tests.train.killing import Blow, remains, run_under, unbroken

AT_ONCE = Blow(signals=((0.0, signal.SIGKILL),))
BEFORE_THE_FIRST_CHUNK = Blow(signals=((0.0, signal.SIGKILL),), reports=1)

BLOWS = {
    # While it begins, which it then does anew, and once it has begun.
    "weighted": [
        Blow("data.mid-temp"),
        Blow("data.after-rename"),
        Blow("environment.after-temp"),
        Blow("model.after-rename"),
        Blow("checkpoint.after-rename"),
        Blow("config.mid-temp"),
        Blow("config.after-rename"),
        Blow("metrics.mid-line:2"),
        Blow("cut.after-temp"),
        Blow("checkpoint.after-temp:2"),
    ],
    # Around the end, the beginning and the middle of a new stretch: at every write between 550 and 650 updates.
    "extended": [
        Blow("timing.mid-line:6"),
        Blow("model.after-rename:2"),
        Blow("checkpoint.after-rename:1"),
        Blow("model.after-temp:1"),
        Blow("checkpoint.after-temp:1"),
        Blow("metrics.after-line:1"),
    ],
    "halved": [
        BEFORE_THE_FIRST_CHUNK,
        AT_ONCE,
        Blow("metrics.after-line:3"),
        Blow("checkpoint.mid-temp:2"),
    ],
}


def test_there_are_twenty_kills_at_points_of_every_kind():
    kills = [blow for blows in BLOWS.values() for blow in blows]
    points = {blow.fault.partition(":")[0] for blow in kills if blow.fault}
    assert len(kills) == 20
    assert points <= FAULT_POINTS
    assert {point.partition(".")[0] for point in points} == {
        point.partition(".")[0] for point in FAULT_POINTS
    }


@pytest.mark.parametrize("name", BLOWS)
def test_a_run_that_is_killed_again_and_again_ends_bit_for_bit_as_the_unbroken_one(name: str, tmp_path: Path):
    expected = unbroken(name, tmp_path / "unbroken")
    landed = run_under(name, tmp_path / "killed", BLOWS[name])
    assert landed == BLOWS[name]
    found = remains(tmp_path / "killed")
    assert sorted(found) == sorted(expected)
    assert [file for file in expected if found[file] != expected[file]] == []
