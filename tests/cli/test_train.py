from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import harmonium as hm
from harmonium.train.folder import RunFolder
from tests.cli.conftest import Command

BARS = "--data bars-and-stripes:side=2 --hidden 3 --chains 16"


@pytest.fixture
def rows() -> np.ndarray:
    return (np.random.default_rng(0).random((40, 4)) < 0.4).astype(np.uint8)


def test_a_run_ends_with_its_score_its_folder_and_its_picture(harmonium: Command, tmp_path: Path) -> None:
    said = harmonium(f"train {BARS} --updates 100 --out deep/down")
    assert said.status == 0
    score, folder, samples = said.out.splitlines()
    run = hm.load_run("deep/down")
    estimate = hm.log_likelihood(run.model, hm.load_data("bars-and-stripes:side=2").test)
    assert score == (
        f"test log-likelihood: {estimate.value:.4f} nats per row, +- {estimate.row_stderr:.4f} over 6 rows (exact)"
    )
    assert (folder, samples) == ("run folder: deep/down", "samples: deep/down/samples.png")
    with Image.open(tmp_path / "deep/down/samples.png") as picture:
        assert picture.size == (466, 466)
    first, *reports = said.err.splitlines()
    assert first.startswith(
        "training an rbm 4 x 3 on bars-and-stripes:side=2 (6 rows) by pcd-1 with 16 chains, 100"
    )
    assert reports[-1].startswith("update 100 of 100, ")
    assert "valid log-likelihood" in reports[-1]


@pytest.mark.parametrize(
    ("flags", "sizes", "rule"),
    [
        ("--hidden 0 --sampler exact", "4", "exact gradient"),
        ("--hidden 2 --sampler pcd --inference gibbs --chains 16", "4 x 2", "pcd-1 with 16 chains"),
        ("--hidden 2 --sampler cd --inference mean-field --visible spin", "4 x 2", "cd-1"),
        (
            "--hidden 2 --sampler pt --set base=uniform --set rungs=3 --inference gibbs",
            "4 x 2",
            "pt-1 with 100 chains",
        ),
        (
            "--hidden 2 --sampler cast --set base=uniform --set rungs=3 --set ratio=2 --set gain=10",
            "4 x 2",
            "cast-1 with 100 chains",
        ),
        (
            "--hidden 2 --sampler transitions --set base=uniform --set rungs=3",
            "4 x 2",
            "transitions-1 with 100 chains",
        ),
    ],
)
def test_a_general_machine_is_trained_scored_drawn_and_gone_on_with(
    harmonium: Command, flags: str, sizes: str, rule: str
) -> None:
    said = harmonium(f"train --data bars-and-stripes:side=2 --model bm {flags} --updates 100 --out run")
    assert said.status == 0, said.err
    assert said.err.startswith(
        f"training a bm {sizes} on bars-and-stripes:side=2 (6 rows) by {rule}, 100 updates"
    )
    scored = harmonium("evaluate run --json").json
    estimate = hm.log_likelihood(hm.load_run("run").model, hm.load_data("bars-and-stripes:side=2").test)
    assert scored["log_likelihood"]["value"] == estimate.value
    assert scored["log_likelihood"]["kind"] == "exact"
    units = sum(int(size) for size in sizes.split(" x "))
    assert scored["model"]["kind"] == "BoltzmannMachine"
    assert scored["model"]["parameters"] == units * (units + 1) // 2
    assert len(harmonium("sample run --n 3 --steps 5").out.splitlines()) == 3
    assert "BoltzmannMachine of 4" in harmonium("inspect run").out
    assert harmonium("resume run --updates 100 --json").json["updates"] == 200


def test_json_is_one_object_and_nothing_else(harmonium: Command) -> None:
    said = harmonium(f"train {BARS} --updates 100 --out run --json")
    assert said.status == 0
    result = said.json
    assert result["run"] == "run"
    assert result["updates"] == 100
    assert result["reliable"] is True
    assert result["n"] == 6
    assert result["log_likelihood"]["kind"] == "exact"
    assert result["data"]["split"] == "test"
    assert result["model"]["layers"][1] == {"units": "bernoulli", "size": 3}
    assert Path(result["samples"]).exists()
    assert "update 100 of 100" in said.err


def test_the_command_is_the_call(harmonium: Command) -> None:
    harmonium(f"train {BARS} --updates 100 --steps 2 --batch-size 4 --momentum 0.5 --seed 7 --out run")
    run = hm.fit(
        hm.RBM(4, 3, seed=7), "bars-and-stripes:side=2", hm.PCD(steps=2, chains=16),
        updates=100, batch_size=4, momentum=0.5, seed=7,
    )  # fmt: skip
    loaded = hm.load_run("run")
    for name, values in run.model.parameters().items():
        np.testing.assert_array_equal(values, loaded.model.parameters()[name])
    assert loaded.history == run.history


def test_folders_are_numbered(harmonium: Command) -> None:
    for number in (1, 2):
        said = harmonium(f"train {BARS} --updates 1 --json")
        assert said.json["run"] == f"runs/000{number}-rbm-bars-and-stripes-side-2"


def test_the_settings_of_a_run_are_settings_again(harmonium: Command, tmp_path: Path) -> None:
    assert harmonium(f"train {BARS} --epochs 20 --set weight_scale=0.1 --out one").status == 0
    assert harmonium("train one/config.toml --out two").status == 0
    configs = [tomllib.loads((tmp_path / name / "config.toml").read_text()) for name in ("one", "two")]
    assert configs[0] == configs[1]
    assert configs[0]["sampler"]["burn_in"] == 20
    assert configs[0]["train"]["learning_rate"] == 0.3
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_the_settings_of_a_run_hold_for_its_data_only(
    harmonium: Command, rows: np.ndarray, tmp_path: Path
) -> None:
    np.save("rows.npy", rows)
    assert harmonium("train --data rows.npy --hidden 3 --chains 16 --updates 1 --out one").status == 0
    np.save("rows.npy", 1 - rows)
    said = harmonium("train one/config.toml --out two")
    assert said.status == 2
    assert "fingerprint" in said.err
    assert not (tmp_path / "two").exists()


def test_a_run_made_of_arrays_lends_its_rows(harmonium: Command, rows: np.ndarray) -> None:
    hm.fit(hm.RBM(4, 3, seed=0), rows, hm.PCD(chains=16), updates=1, out="arrays")
    assert harmonium("train arrays/config.toml --out again").status == 0
    assert RunFolder.open("again").read_data()[0]["train"].shape == (40, 4)


def test_an_earlier_run_is_replaced_only_with_force(harmonium: Command, tmp_path: Path) -> None:
    assert harmonium(f"train {BARS} --updates 1 --out run").status == 0
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    said = harmonium(f"train {BARS} --updates 2 --out run")
    assert said.status == 2
    assert "--force" in said.err
    assert "force=True" not in said.err
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    assert harmonium(f"train {BARS} --updates 2 --out run --force").status == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() != before


def test_a_second_writer_is_refused(harmonium: Command) -> None:
    assert harmonium(f"train {BARS} --updates 1 --out run").status == 0
    with RunFolder.open("run").lock():
        for line in (f"train {BARS} --out run --force", "resume run", "resume run --updates 5"):
            said = harmonium(line)
            assert said.status == 2
            assert "another process is writing" in said.err


def test_grey_data_are_scored_on_one_draw(harmonium: Command) -> None:
    grey = np.random.default_rng(0).random((40, 4))
    np.save("grey.npy", grey)
    said = harmonium(
        "train --data grey.npy --hidden 3 --chains 16 --updates 1 --out run --binarize stochastic --json"
    )
    assert said.status == 0
    drawn = hm.log_likelihood(hm.load_run("run").model, hm.load_data("grey.npy", binarize="stochastic")).value
    assert said.json["log_likelihood"]["value"] == drawn
    assert said.json["data"]["binarization"] == "stochastic, drawn once with seed 0"
    assert "drawn to bits once" in said.err
    assert "no held-out rows" in said.err
    evaluated = harmonium("evaluate run --json")
    assert evaluated.json["log_likelihood"]["value"] == drawn


def test_a_model_too_large_gets_a_proxy(harmonium: Command) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (20, 27)).astype(np.uint8)
    np.savez("rows.npz", train=rows, test=rows[:5])
    said = harmonium("train --data rows.npz --hidden 27 --updates 1 --chains 4 --out run")
    assert said.status == 0
    assert said.out.startswith("test proxy, pseudo-likelihood: ")
    assert "too large for an exact likelihood" in said.err
    result = harmonium(
        "train --data rows.npz --hidden 27 --updates 1 --chains 4 --out run --force --json"
    ).json
    assert result["log_likelihood"] is None
    assert result["proxy"]["pseudo_likelihood"]["kind"] == "proxy"


def test_a_run_that_comes_apart_is_not_to_be_trusted(harmonium: Command) -> None:
    said = harmonium(f"train {BARS} --updates 100 --learning-rate 1e6 --out run --json")
    assert said.status == 3
    assert said.json["reliable"] is False
    assert "diverged" in said.json["reason"]
    assert said.err.count("diverged between") == 1
    assert "not to be trusted" in said.err


def test_a_model_worse_than_coin_flips_is_not_to_be_trusted(
    harmonium: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimates = (hm.Estimate(-100.0), hm.Estimate(0.0))
    monkeypatch.setattr("harmonium.cli.outcome.both_estimates", lambda *_, **__: estimates)
    said = harmonium(f"train {BARS} --updates 1")
    assert said.status == 3
    assert "far worse than 4 coin flips, -2.77 nats per row" in said.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no data are named"),
        ("--data digit", "did you mean 'digits'"),
        ("--data none.npy", "there is no file none.npy"),
        ("--data folder", "is a folder"),
        ("--data objects.npy", "Python objects"),
        ("--data text.npy", "does not begin as such a file does"),
        ("--data empty.csv", "is empty"),
        ("--data words.csv", "'x' is not a number"),
        ("--data gaps.npy", "NaN"),
        ("--data grey.npy", "pass --binarize threshold"),
        ("--data bars-and-stripes:sid=3", "did you mean 'side'"),
        ("--data rows.npy --binarize wildly", "--binarize 'wildly' cannot be used"),
        ("--data rows.npy --model rbn", "no model is called 'rbn'"),
        ("--data rows.npy --hidden 0", "pass e.g. 16, or --model bm"),
        ("--data rows.npy --hidden 3,4", "one hidden layer"),
        ("--data rows.npy --model bm --hidden 3,4", "a bm has one hidden layer"),
        ("--data rows.npy --model bm --hidden 200000", "choose fewer hidden units"),
        ("--data rows.npy --model bm --hidden 40", "use --inference mean-field or --inference gibbs"),
        (
            "--data rows.npy --model bm --hidden 40 --sampler exact",
            "43 states, but the budget is 20 bits; train with --sampler pcd, which estimates it\n",
        ),
        ("--data rows.npy --inference wildly", "no inference is called 'wildly'"),
        (
            "--data rows.npy --sampler exact --steps 3",
            "--steps 3 is a setting of pcd, cd, pt, cast, transitions and deep, which exact does",
        ),
        (
            "--data rows.npy --sampler exact --inference gibbs",
            "--inference gibbs is a setting of pcd, cd, pt, cast, transitions and deep",
        ),
        ("--data rows.npy --hidden 2000000000", "choose fewer hidden units"),
        ("--data rows.npy --visible gauss", "no kind of unit is called 'gauss'"),
        ("--data rows.npy --sampler pdc", "no sampler is called 'pdc'"),
        (
            "--data rows.npy --sampler cd --chains 4",
            "--chains 4 is a setting of pcd, pt, cast, transitions and deep, which cd does not have",
        ),
        ("--data rows.npy --sampler cd --chains 4", "leave it out, or use --sampler pcd\n"),
        ("--data rows.npy --sampler cd --set burn_in=4", "--set sampler.burn_in=4 is a setting of pcd"),
        (
            "--data rows.npy --model bm --hidden 0 --set precision=bfloat16",
            "has none of; use --set sampler.precision=float32",
        ),
        ("--data rows.npy --epochs 0", "--epochs 0 cannot be used"),
        ("--data rows.npy --epochs 2 --updates 3", "keep one"),
        ("--data rows.npy --epochs 2147483647 --batch-size 1", "more than 32 bits count"),
        ("--data rows.npy --learning-rate nan", "--learning-rate nan cannot be used"),
        ("--data rows.npy --optimizer adm", "did you mean 'adam'"),
        ("--data rows.npy --optimizer adam --momentum 0.5", "belongs to sgd"),
        ("--data rows.npy --seed -1", "--seed -1 cannot be used"),
        ("--data rows.npy --set epoch=3", "did you mean 'epochs'"),
        ("none.toml --data rows.npy", "there is no settings file none.toml"),
        ("folder --data rows.npy", "is a folder"),
        ("--data rows.npy --out rows.npy", "is a file, not a folder"),
        ("--data rows.npy --out full", "not empty"),
        ("--data rows.npy --out full --force", "which is not of a harmonium run"),
        ("--data rows.npy --out rows.npy/run", "rows.npy/run"),
    ],
)
def test_bad_input_leaves_nothing_behind(
    harmonium: Command, rows: np.ndarray, tmp_path: Path, line: str, message: str
) -> None:
    Path("folder").mkdir()
    Path("full").mkdir()
    Path("full/samples.png").write_text("mine")
    np.save("rows.npy", rows)
    np.save("grey.npy", np.linspace(0, 1, 24).reshape(6, 4))
    np.save("gaps.npy", np.full((3, 4), np.nan))
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    Path("text.npy").write_text("hello\n")
    Path("empty.csv").write_text("")
    Path("words.csv").write_text("1,0\n1,x\n")
    before = sorted(tmp_path.rglob("*"))
    said = harmonium(f"train {line}")
    assert said.status == 2
    assert said.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", said.err)
    assert message in said.err
    assert sorted(tmp_path.rglob("*")) == before
