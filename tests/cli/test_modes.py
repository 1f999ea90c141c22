from __future__ import annotations

from pathlib import Path

import numpy as np

import harmonium as hm
from tests.cli.conftest import Command


def test_the_mode_of_a_run(harmonium: Command, small_run: Path) -> None:
    mode = hm.modes.find(hm.load_run(small_run).model, "exact")
    said = harmonium(f"modes {small_run} --solver exact --out mode.npz")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == f"energy: {mode.energy:.6f} nats (exact: no state lies lower)"
    bits = "".join(str(bit) for bit in mode.state[0])
    assert lines[2] == f"visible: {mode.state[0].sum()} of 4 units on, {bits}"
    assert lines[-3:] == [
        *(" ".join(bits[place : place + 2]).replace("0", ".") for place in (0, 2)),
        "state: mode.npz",
    ]
    with np.load("mode.npz") as archive:
        assert float(archive["energy"]) == mode.energy
        assert str(archive["certificate"]) == "exact"
        np.testing.assert_array_equal(archive["layer_1"], mode.state[1])


def test_json_of_a_model_file_and_the_visible_layer(harmonium: Command, small_run: Path) -> None:
    said = harmonium(f"modes {small_run}/model.safetensors --set starts=4 --seed 5 --out row.csv --json")
    assert said.status == 0
    assert said.json["certificate"] == "best found"
    assert said.json["solver"] == "descent (starts=4, sweeps=10)"
    assert said.json["lower_bound"] is None
    assert np.loadtxt("row.csv", delimiter=",").tolist() == said.json["state"][0]


def test_a_stopped_proof_is_not_trusted(harmonium: Command) -> None:
    hm.save(hm.RBM(30, 30, seed=1, weight_scale=1.0), "glass.safetensors")
    said = harmonium("modes glass.safetensors --solver exact --set bit_budget=8 --set nodes=4")
    assert said.status == 3
    assert "best found; no state lies below" in said.out
    assert (
        said.err
        == "not to be trusted: the search was stopped before its proof; allow more with --set nodes=N\n"
    )


def test_bad_input(harmonium: Command, small_run: Path) -> None:
    for words, message in (
        ("--solver tabu", "no mode solver is called 'tabu'; choose one of descent"),
        ("--set chains=4", "chains=4 is no setting of descent; it has starts, sweeps"),
        ("--set starts=0", "descent needs a whole number of starts, at least one, got 0"),
        ("--out mode.txt", "--out mode.txt does not say what to write"),
    ):
        said = harmonium(f"modes {small_run} {words}")
        assert (said.status, said.out) == (2, "")
        assert said.err.startswith(f"error: {message}"), said.err
