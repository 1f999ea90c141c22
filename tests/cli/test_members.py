"""Ensembles on the command line: --members and --member."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.cli.main import run
from harmonium.cli.progress import metric_of
from tests.cli.conftest import Command

LINE = "train --data bars-and-stripes:side=2 --hidden 3 --updates 100 --chains 16"


@pytest.fixture(scope="module")
def ensemble_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of three members; to be read, not written."""
    path = tmp_path_factory.mktemp("members") / "run"
    assert run(shlex.split(f"{LINE} --members 3 --seed 4 --out {shlex.quote(str(path))}")) == 0
    return path


def test_training_says_how_good_the_median_member_is_and_how_far_apart_all_are(harmonium: Command) -> None:
    said = harmonium(f"{LINE} --members 3 --out run --json")
    assert said.status == 0
    result = said.json
    scores = [member["value"] for member in result["members"]]
    assert result["log_likelihood"]["value"] == np.median(scores)
    assert result["band"] == {"low": min(scores), "high": max(scores)}
    assert scores[result["median_member"]] == np.median(scores)
    assert result["model"]["members"] == 3
    assert Path("run/samples.png").exists()
    assert "an ensemble of 3 rbms 4 x 3" in said.err
    assert "over 3 members" in said.err
    records = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    last = records[-1]
    assert (
        last["log_likelihood_valid_low"] <= last["log_likelihood_valid"] <= last["log_likelihood_valid_high"]
    )
    assert "members = 3" in Path("run/config.toml").read_text()


def test_a_member_is_the_run_of_its_seed(harmonium: Command, ensemble_run: Path) -> None:
    ensemble = hm.load_run(ensemble_run).model
    for number in (0, 2):
        path = f"alone{number}"
        assert harmonium(f"{LINE} --seed {hm.member_seed(4, number)} --out {path}").status == 0
        alone = hm.load_run(path).model.parameters()
        for key, value in ensemble.member(number).parameters().items():
            np.testing.assert_allclose(value, alone[key], atol=1e-5)


def test_one_member_is_a_run_like_any_other(harmonium: Command) -> None:
    assert harmonium(f"{LINE} --members 1 --out one").status == 0
    assert harmonium(f"{LINE} --out none").status == 0
    for name in ("model.safetensors", "metrics.jsonl"):
        assert Path("one", name).read_bytes() == Path("none", name).read_bytes()


def test_all_members_are_evaluated(harmonium: Command, ensemble_run: Path) -> None:
    result = harmonium(f"evaluate {ensemble_run} --json").json
    ensemble, rows = hm.load_run(ensemble_run).model, hm.load_data("bars-and-stripes:side=2").test
    wanted = [hm.log_likelihood(member, rows).value for member in ensemble]
    assert [member["value"] for member in result["members"]] == wanted
    assert [member["member"] for member in result["members"]] == [0, 1, 2]
    assert result["log_likelihood"]["value"] == np.median(wanted)
    median = result["members"][result["median_member"]]
    assert result["log_partition"] == median["log_partition"]
    said = harmonium(f"evaluate {ensemble_run}")
    assert said.status == 0
    assert f"of the median member, {result['median_member']}, of 3; 5-95 % of the members:" in said.out


def test_one_member_is_taken_out(harmonium: Command, ensemble_run: Path) -> None:
    ensemble = hm.load_run(ensemble_run).model
    result = harmonium(f"evaluate {ensemble_run} --member 1 --json").json
    rows = hm.load_data("bars-and-stripes:side=2").test
    assert result["log_likelihood"]["value"] == hm.log_likelihood(ensemble.member(1), rows).value
    assert result["member"] == 1
    assert "members" not in result
    drawn = harmonium(f"sample {ensemble_run} --n 5 --steps 10 --member 2 --json").json
    assert drawn["rows"] == hm.sample(ensemble.member(2), 5, steps=10).tolist()
    seen = harmonium(f"inspect {ensemble_run}/model.safetensors --member 1 --json").json
    assert (seen["holds"], seen["member"], seen["kind"]) == ("model", 1, "RBM")


def test_inspection_counts_the_members(harmonium: Command, ensemble_run: Path) -> None:
    assert "ensemble of 3, each an RBM of 4 bernoulli" in harmonium(f"inspect {ensemble_run}").out
    said = harmonium(f"inspect {ensemble_run}/model.safetensors --json")
    assert said.json["members"] == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sample {run}", "is an ensemble of 3 members; choose one, such as --member 0"),
        ("evaluate {run} --member 3", "--member 3 is not there"),
        ("inspect {run} --member -1", "--member -1 is not there"),
        ("sample {one} --member 0", "holds a single model"),
        ("evaluate {run} --member 3", "members 0 to 2; choose one of them"),
        (f"{LINE} --members 0 --out x", "--members 0"),
        (f"{LINE} --members 1000000000 --out x", "--members 1000000000 would hold"),
    ],
)
def test_bad_input(harmonium: Command, ensemble_run: Path, small_run: Path, line: str, message: str) -> None:
    said = harmonium(line.format(run=ensemble_run, one=small_run))
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert message in said.err


def test_a_stopped_member_is_told_by_the_status(harmonium: Command) -> None:
    """A rate that no member survives."""
    said = harmonium(f"{LINE} --members 2 --learning-rate 1e6 --out run --json")
    assert said.status == 3
    assert said.json["reliable"] is False
    assert [member["reliable"] for member in said.json["members"]] == [False, False]
    assert "not to be trusted: 2 of 2 members were stopped, member 0 and 1 more: diverged" in said.err


@pytest.mark.parametrize("members", [1, 2])
def test_a_stopped_run_is_doubted_wherever_it_is_used(harmonium: Command, members: int) -> None:
    line = f"{LINE} --members {members} --learning-rate 1e6 --out run"
    assert harmonium(line).status == 3
    for source in ("run", "run/model.safetensors --data bars-and-stripes:side=2"):
        for choice in ("", " --member 1") if members == 2 else ("",):
            said = harmonium(f"evaluate {source}{choice} --json")
            assert said.status == 3
            for name in ("log_likelihood", "log_partition"):
                assert said.json[name]["reliable"] is False
                assert "diverged between updates 0 and 100" in said.json[name]["reason"]
    choice = " --member 1" if members == 2 else ""
    assert "not to be trusted: its training diverged" in harmonium(f"evaluate run{choice}").out
    drawn = harmonium(f"sample run{choice} --n 2 --steps 5")
    assert (drawn.status, len(drawn.out.splitlines())) == (0, 2)
    assert "not to be trusted: its training diverged between" in drawn.err


def test_members_that_are_sound_are_not_doubted_for_others(harmonium: Command, ensemble_run: Path) -> None:
    """Of a file with one stopped member: the whole says so, the sound member is believed, the stopped one is not."""
    ensemble = hm.load_run(ensemble_run).model
    hm.save(hm.Ensemble(ensemble.stacked, ["", "diverged early", ""]), "all.safetensors")
    line = "evaluate all.safetensors --data bars-and-stripes:side=2 --json"
    whole = harmonium(line)
    assert (whole.status, whole.json["log_likelihood"]["reliable"]) == (3, False)
    assert "1 of 3 members were stopped, member 1: diverged early" in whole.json["log_likelihood"]["reason"]
    assert [one["reliable"] for one in whole.json["members"]] == [True, False, True]
    assert [harmonium(f"{line} --member {member}").status for member in range(3)] == [0, 3, 0]


def test_going_further_where_all_members_are_stopped_trains_nothing(harmonium: Command) -> None:
    assert harmonium(f"{LINE} --members 2 --learning-rate 1e6 --out run").status == 3
    said = harmonium("resume run --updates 100 --json")
    assert (said.status, said.json["updates"]) == (3, 0)
    assert "all 2 members of the run in run are stopped and stay so, so that nothing is trained" in said.err


def test_progress_of_members_fits_a_terminal() -> None:
    record = {"index": 100, "horizon": 400, "members": 50}
    for key, value in (("free_energy_gap", -0.25), ("log_likelihood_valid", -18.0)):
        record |= {key: value, f"{key}_low": value - 0.5, f"{key}_high": value + 0.5}
    assert (
        metric_of(record) == "valid log-likelihood -18.000 nats (exact), -18.500 to -17.500 over 50 members"
    )
    assert metric_of(record, brief=True) == "valid -18.00 [-18.50, -17.50]"
    del record["log_likelihood_valid"]
    assert metric_of(record) == "free-energy gap -0.250 nats, -0.750 to 0.250 over 50 members"
