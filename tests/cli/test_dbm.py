"""A deep Boltzmann machine on the command line: trained, gone on with, scored, sampled, looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from tests.cli.conftest import Command

LINE = "train --data bars-and-stripes:side=2 --model dbm --hidden 3,2 --updates 200 --chains 16 --seed 3"


def test_a_machine_is_trained_and_judged_as_what_it_is(harmonium: Command) -> None:
    said = harmonium(f"{LINE} --out run --json")
    assert said.status == 0
    assert "a dbm 4 x 3 x 2" in said.err
    assert "with 16 chains, mean-field inference" in said.err
    told = said.json
    assert [layer["size"] for layer in told["model"]["layers"]] == [4, 3, 2]
    run = hm.load_run("run")
    assert isinstance(run.model, hm.DBM)
    patterns = hm.load_data("bars-and-stripes:side=2")
    value = hm.log_likelihood(run.model, patterns).value
    assert told["log_likelihood"]["value"] == pytest.approx(value, rel=1e-9)
    assert told["log_likelihood"]["kind"] == "exact"
    assert 'inference = "mean-field"' in Path("run/config.toml").read_text()

    bounded = harmonium("evaluate run --method bound --json").json["log_likelihood"]
    assert bounded["kind"] == "lower bound"
    assert bounded["value"] < value
    looked = harmonium("inspect run").out
    assert "DBM of 4 bernoulli - 3 bernoulli - 2 bernoulli units" in looked
    Path("rows.csv").write_text("1,,,\n,,0,0\n")
    rows = harmonium("sample run --steps 30 --clamp rows.csv").out.splitlines()
    drawn = np.array([row.split(",") for row in rows], int)
    assert drawn[0, 0] == 1
    assert drawn[1, 2:].tolist() == [0, 0]
    assert harmonium("resume run --updates 100").status == 0
    assert hm.load_run("run").history[-1]["index"] == 300


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("--hidden 3,0", "a dbm has hidden units"),
        ("--model dbn --set guide=2", "guide=[2] is of a dbm, whose even layers it proposes"),
        ("--sampler deep --set guide=0", "a guide has hidden units"),
        (
            "--set joint.updates=9",
            "[joint] is of networks that are trained level by level first, but this dbm",
        ),
        ("--set greedy=true --inference mean-field", "for all layers of a DBM together"),
        ("--set greedy=true --sampler deep", "deep trains all levels of a network at once"),
    ],
)
def test_what_cannot_be_trained_is_refused(harmonium: Command, extra: str, message: str) -> None:
    said = harmonium(f"{LINE} {extra} --out run")
    assert said.status == 2
    assert message in said.err
    assert not Path("run").exists()


def test_levels_come_first_and_then_all_together(harmonium: Command) -> None:
    line = f"{LINE} --updates 100 --sampler cd --set final_steps=2 --set greedy=true".replace(
        " --chains 16", ""
    )
    said = harmonium(f"{line} --set joint.updates=150 --set joint.steps=2 --set joint.chains=20 --out run")
    assert said.status == 0, said.err
    assert "2 levels of 100 updates, one after the other, then 150 of all together" in said.err
    assert "all levels jointly, update 150 of 150" in said.err
    run = hm.load_run("run")
    assert run.finished
    assert [record["index"] for record in run.history] == [100, 200, 350]
    assert run.config["joint"]["inference"] == "mean-field"
    assert run.config["sampler"]["inference"] == "exact"
    assert "is finished" in harmonium("resume run").err
    again = harmonium("train run/config.toml --out again")
    assert again.status == 0, again.err
    assert Path("again/model.safetensors").read_bytes() == Path("run/model.safetensors").read_bytes()


def test_members_are_trained_together(harmonium: Command) -> None:
    assert harmonium(f"{LINE} --members 2 --out run").status == 0
    ensemble = hm.load_run("run").model
    assert isinstance(ensemble, hm.Ensemble)
    assert isinstance(ensemble.member(1), hm.DBM)


def test_deep_tempering_gives_it_a_guide(harmonium: Command) -> None:
    """Trained, scored as the machine alone, sampled with its guide, and looked at."""
    assert harmonium(f"{LINE} --sampler deep --set hot=1 --out run").status == 0
    run = hm.load_run("run")
    assert isinstance(run.model, hm.GuidedDBM)
    assert [units.size for units in run.model.guide.units] == [6, 2]  # v and h_2; as wide as the top layer
    assert run.history[-1]["swap_acceptance"] > 0
    score = hm.log_likelihood(run.model.machine, hm.load_data("bars-and-stripes:side=2"))
    found = harmonium("evaluate run --json").json["log_likelihood"]
    assert (found["kind"], found["value"]) == ("exact", pytest.approx(score.value))
    assert "GuidedDBM of 4 bernoulli - 3 bernoulli - 2 bernoulli units" in harmonium("inspect run").out
    assert len(harmonium("sample run --n 3 --steps 5 --sampler deep").out.splitlines()) == 3
