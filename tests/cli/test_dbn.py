"""A deep belief network on the command line: trained level by level, gone on with, scored, sampled, looked at."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.cli.progress import Watch
from tests.cli.conftest import Command

LINE = "train --data bars-and-stripes:side=2 --model dbn --hidden 3,4 --updates 200 --chains 16 --seed 3"


def test_a_network_is_trained_and_judged_as_what_it_is(harmonium: Command) -> None:
    said = harmonium(f"{LINE} --out run --json")
    assert said.status == 0
    assert "a dbn 4 x 3 x 4" in said.err
    assert "2 levels of 200 updates, one after the other" in said.err
    assert "levels 0 to 1 together, update 400 of 400" in said.err
    told = said.json
    assert told["updates"] == 400
    assert [layer["size"] for layer in told["model"]["layers"]] == [4, 3, 4]
    run = hm.load_run("run")
    assert isinstance(run.model, hm.DBN)
    patterns = hm.load_data("bars-and-stripes:side=2")
    value = hm.log_likelihood(run.model, patterns).value
    assert told["log_likelihood"]["value"] == pytest.approx(value, rel=1e-9)
    assert told["log_likelihood"]["kind"] == "exact"

    scored = harmonium("evaluate run --json").json
    assert scored["log_likelihood"]["value"] == pytest.approx(value, rel=1e-9)
    assert scored["log_partition"]["value"] == pytest.approx(hm.log_partition(run.model.levels[1]).value)
    bounded = harmonium("evaluate run --method bound --json").json["log_likelihood"]
    assert bounded["kind"] == "lower bound"
    assert bounded["value"] < value
    refused = harmonium("evaluate run --method bound --chains 5")
    assert refused.status == 2
    assert "--method bound has no use for; use --method ais" in refused.err

    looked = harmonium("inspect run").out
    assert "DBN of 4 bernoulli - 3 bernoulli - 4 bernoulli units" in looked
    assert "layer 2: weights" in looked
    Path("rows.csv").write_text("1,,,\n,,0,0\n")
    rows = harmonium("sample run --steps 30 --clamp rows.csv").out.splitlines()
    drawn = np.array([row.split(",") for row in rows], int)
    assert drawn[0, 0] == 1
    assert drawn[1, 2:].tolist() == [0, 0]
    same = harmonium("resume run")
    assert same.status == 0
    assert "is finished and left as it is" in same.err
    further = harmonium("resume run --updates 100")
    assert further.status == 2
    assert "goes no further; train the network on in a new run" in further.err


def test_an_interrupted_network_ends_as_if_nothing_had_happened(
    harmonium: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert harmonium(f"{LINE} --out whole").status == 0
    usual = Watch.tick

    def with_signal(self: Watch, done: int, horizon: int) -> None:
        usual(self, done, horizon)
        if self.calls == 3:  # in the second level
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "tick", with_signal)
        said = harmonium(f"{LINE} --out broken")
    assert said.status == 130
    assert "harmonium resume broken" in said.err
    assert "not finished" in harmonium("inspect broken").out
    assert hm.load_run("broken").history == hm.load_run("whole").history[:1]
    assert harmonium("resume broken").status == 0
    for name in ("model.safetensors", "metrics.jsonl", "config.toml", "level-1/metrics.jsonl"):
        assert (Path("broken") / name).read_bytes() == (Path("whole") / name).read_bytes()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("--hidden 3,0", "a dbn has hidden units"),
        ("--members 2", "--members 2 are of models that are trained as a whole"),
        ("--set train.levels=3", "levels=3 are asked for, but the network has 2"),
        ("--model rbm --hidden 3 --set train.greedy=true", "train.greedy is of models of several levels"),
        ("--model rbm --hidden 3 --set levels=1", "levels=1 is of networks that are trained level by level"),
        (
            "--set greedy=false --set transposed=true",
            "transposed=True is of networks that are trained level by level",
        ),
        ("--sampler deep --set levels=1", "deep trains this dbn as a whole; leave it out"),
        (
            "--sampler deep --set greedy=true",
            "deep trains all levels of a network at once, and not one after the other",
        ),
        ("--hidden 3,,2", "--hidden '3,,2' is no number of units; write e.g. 128, or 128,64 for two layers"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_made(
    harmonium: Command, extra: str, message: str
) -> None:
    said = harmonium(f"{LINE} {extra} --out run")
    assert said.status == 2
    assert message in said.err
    assert not Path("run").exists()


def test_a_run_whose_settings_would_be_refused_today_can_still_be_read(harmonium: Command) -> None:
    """A setting that does nothing is refused in a new run only: what is on disk stays readable."""
    assert harmonium(f"{LINE} --model rbm --hidden 3 --sampler pcd --updates 5 --out run").status == 0
    path = Path("run/config.toml")
    path.write_text(path.read_text().replace("[train]\n", "[train]\nlevels = 1\n"))
    assert harmonium("inspect run").status == 0
    assert harmonium("resume run").status == 0
    assert harmonium("evaluate run").status == 0
