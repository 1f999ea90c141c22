from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import harmonium as hm
from tests.cli.conftest import Command


@pytest.fixture
def drawn(small_run: Path) -> np.ndarray:
    return hm.sample(hm.load_run(small_run).model, 5, steps=20, seed=3)


def test_rows_go_to_standard_output(harmonium: Command, small_run: Path, drawn: np.ndarray) -> None:
    said = harmonium(f"sample {small_run} --n 5 --steps 20 --seed 3")
    assert (said.status, said.err) == (0, "")
    np.testing.assert_array_equal(np.loadtxt(said.out.splitlines(), delimiter=",", dtype=int), drawn)


@pytest.mark.parametrize("source", ["", "/model.safetensors"])
def test_rows_go_into_the_file_that_its_ending_names(
    harmonium: Command, small_run: Path, drawn: np.ndarray, source: str
) -> None:
    for name in ("rows.npy", "rows.npz", "rows.csv", "rows.png"):
        said = harmonium(f"sample {small_run}{source} --n 5 --steps 20 --seed 3 --out {name}")
        assert (said.status, said.out) == (0, f"5 rows of 4 values: {name}\n")
    np.testing.assert_array_equal(np.load("rows.npy"), drawn)
    with np.load("rows.npz") as archive:
        np.testing.assert_array_equal(archive["samples"], drawn)
    np.testing.assert_array_equal(hm.load_data("rows.csv").train, drawn)
    np.testing.assert_array_equal(hm.load_data("rows.npz").train, drawn)
    with Image.open("rows.png") as picture:
        assert picture.mode == "L"


def test_json(harmonium: Command, small_run: Path, drawn: np.ndarray) -> None:
    said = harmonium(f"sample {small_run} --n 5 --steps 20 --seed 3 --json")
    assert said.json["rows"] == drawn.tolist()
    said = harmonium(f"sample {small_run} --n 5 --out rows.npy --json")
    assert said.json["out"] == "rows.npy"


def test_given_cells_are_held(harmonium: Command, small_run: Path) -> None:
    Path("clamp.csv").write_text("a,b,c,d\n1,,,0\n,0,0,\n")
    said = harmonium(f"sample {small_run} --clamp clamp.csv --steps 50")
    rows = np.loadtxt(said.out.splitlines(), delimiter=",")
    assert rows.shape == (2, 4)
    assert rows[0, [0, 3]].tolist() == [1, 0]
    assert rows[1, [1, 2]].tolist() == [0, 0]
    np.save("clamp.npy", np.array([1, np.nan, np.nan, np.nan]))
    said = harmonium(f"sample {small_run} --clamp clamp.npy --n 30 --steps 5")
    rows = np.loadtxt(said.out.splitlines(), delimiter=",")
    assert rows.shape == (30, 4)
    assert rows[:, 0].all()
    assert not rows[:, 1].all()


def test_an_output_is_replaced_only_with_force(harmonium: Command, small_run: Path) -> None:
    Path("rows.npy").write_text("mine")
    said = harmonium(f"sample {small_run} --out rows.npy")
    assert said.status == 2
    assert "--force" in said.err
    assert Path("rows.npy").read_text() == "mine"
    assert harmonium(f"sample {small_run} --out rows.npy --force").status == 0
    assert np.load("rows.npy").shape == (64, 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{run} --out rows.txt", ".npz, .npy, .png, .csv"),
        ("{run} --out rows", ".npz, .npy, .png, .csv"),
        ("{run} --out folder.npy", "is a folder"),
        ("{run} --out none/rows.npy", "make it first"),
        ("{run} --n 0", "n must be a whole number of at least 1"),
        ("{run} --steps 0", "steps must be"),
        ("{run} --seed -1", "seed must be"),
        ("{run} --clamp none.csv", "there is no file"),
        ("{run} --clamp wide.csv", "got shape (1, 5)"),
        ("{run} --clamp two.csv --n 3", "got shape (2, 4)"),
        ("{run} --clamp value.csv", "clamp holds 0.5"),
        ("{run} --clamp words.csv", "'x' is not a number"),
        ("{run} --clamp ragged.csv", "has 3 cells but line 1 has 4"),
        ("none", "there is no none"),
    ],
)
def test_bad_input(harmonium: Command, small_run: Path, tmp_path: Path, line: str, message: str) -> None:
    Path("folder.npy").mkdir()
    Path("wide.csv").write_text("1,,,,0\n")
    Path("two.csv").write_text("1,,,\n,,,1\n")
    Path("value.csv").write_text("0.5,,,\n")
    Path("words.csv").write_text("1,,,x\n")
    Path("ragged.csv").write_text("1,,,\n1,,\n")
    before = sorted(tmp_path.rglob("*"))
    said = harmonium(f"sample {line.format(run=small_run)}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1
    assert message in said.err
    assert sorted(tmp_path.rglob("*")) == before


def test_chains_move_by_the_sampler_that_is_named(harmonium: Command, small_run: Path) -> None:
    tempered = hm.ParallelTempering(rungs=4, schedule=[0, 0.2, 0.5, 1], base="uniform")
    expected = hm.sample(hm.load_run(small_run).model, 5, steps=20, seed=3, sampler=tempered)
    line = f"sample {small_run} --n 5 --steps 20 --seed 3 --sampler pt"
    said = harmonium(f"{line} --set 'schedule=[0, 0.2, 0.5, 1]' --set base=uniform --json")
    assert said.json["rows"] == expected.tolist()
    assert said.json["sampler"] == "pt"
    said = harmonium(f"{line} --set rungs=1")
    assert said.status == 2
    assert "at least 2, got 1" in said.err
    said = harmonium(f"sample {small_run} --sampler cold")
    assert (said.status, "choose one of gibbs, pt, cast, transitions" in said.err) == (2, True)


def test_cast_and_tempered_transitions_by_name(harmonium: Command, small_run: Path) -> None:
    model = hm.load_run(small_run).model
    for sampler, line in (
        (
            hm.CAST(2, 5, gain=10, base="uniform"),
            "cast --set ratio=2 --set rungs=5 --set gain=10 --set base=uniform",
        ),
        (hm.TemperedTransitions(schedule=[0, 0.5, 1]), "transitions --set 'schedule=[0, 0.5, 1]'"),
    ):
        expected = hm.sample(model, 5, steps=20, seed=3, sampler=sampler)
        said = harmonium(f"sample {small_run} --n 5 --steps 20 --seed 3 --sampler {line} --json")
        assert said.json["rows"] == expected.tolist()
        assert said.json["sampler"] == line.split()[0]
    said = harmonium(f"sample {small_run} --sampler cast --set gain=none")
    assert said.status == 2
    assert "gain must be 'decaying' or a number above 0, got 'none'" in said.err
