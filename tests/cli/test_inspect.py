from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.data.names import data_names, data_parameters
from tests.cli.conftest import Command


def test_a_run(harmonium: Command, small_run: Path) -> None:
    said = harmonium(f"inspect {small_run}")
    assert (said.status, said.err) == (0, "")
    assert "finished, 100 of 100 updates" in said.out
    assert "valid log-likelihood" in said.out
    assert "[train] updates = 100" in said.out
    result = harmonium(f"inspect {small_run} --json").json
    assert (result["holds"], result["finished"], result["updates"], result["horizon"]) == (
        "run",
        True,
        100,
        100,
    )
    assert result["settings"]["model"]["hidden"] == [3]
    assert result["metrics"]["index"] == 100
    assert result["environment_changes"] == []
    assert result["checkpoints"][-1] == 100


def test_a_run_that_came_apart(harmonium: Command) -> None:
    line = "train --data bars-and-stripes:side=2 --hidden 3 --chains 16 --updates 100 --learning-rate 1e6 --out run"
    assert harmonium(line).status == 3
    said = harmonium("inspect run")
    assert said.status == 0
    assert "stopped by the divergence guard after 0 of 100 updates" in said.out
    assert "--on-divergence halve" in said.out
    assert "on_divergence='" not in said.out
    assert harmonium("inspect run --json").json["reliable"] is False


def test_what_has_changed_since_a_run_began(harmonium: Command) -> None:
    assert (
        harmonium("train --data bars-and-stripes:side=2 --hidden 3 --chains 16 --updates 1 --out run").status
        == 0
    )
    path = Path("run/environment.json")
    path.write_text(path.read_text().replace('"harmonium": "', '"harmonium": "old-'))
    assert "changed since it began: harmonium was 'old-" in harmonium("inspect run").out


def test_a_general_machine(harmonium: Command) -> None:
    coupling = np.array([[0, 2, 0], [2, 0, -1], [0, -1, 0.0]])
    machine = hm.BoltzmannMachine.from_arrays(coupling, [1.0, 0.0, -3.0], 2, pairs=[[0, 1], [1, 2]])
    hm.save(machine, "machine.safetensors")
    said = harmonium("inspect machine.safetensors")
    assert said.status == 0
    assert "2 pairs: weights -1 to 2, root mean square 1.58; biases -3 to 1\n" in said.out + "\n"
    (part,) = harmonium("inspect machine.safetensors --json").json["parts"]
    assert (part["pairs"], part["finite"], part["weight_low"], part["weight_high"]) == (2, True, -1.0, 2.0)
    bare = hm.BoltzmannMachine.from_arrays(np.zeros((2, 2)), [1.0, 2.0], pairs=np.zeros((0, 2), int))
    hm.save(bare, "bare.safetensors")
    said = harmonium("inspect bare.safetensors")
    assert "0 pairs: no weights; biases 1 to 2" in said.out


def test_a_model(harmonium: Command, small_run: Path) -> None:
    said = harmonium(f"inspect {small_run}/model.safetensors")
    assert said.status == 0
    assert "RBM of 4 bernoulli - 3 bernoulli units, 19 parameters, float32" in said.out
    assert "after 100 of 100 updates" in said.out
    weights = np.zeros((4, 3))
    weights[:, 2] = 5.0
    hm.save(hm.RBM.from_arrays(weights, np.zeros(4), np.array([9.0, 0.0, -10.0])), "odd.safetensors")
    said = harmonium("inspect odd.safetensors")
    assert "1 units have the same value whatever the layer below is: 0" in said.out
    assert "1 units are hardly moved by the layer below: 1" in said.out
    result = harmonium("inspect odd.safetensors --json").json
    assert (result["holds"], result["dtype"]) == ("model", "float64")
    assert result["parts"][0]["constant"] == [0]


@pytest.mark.parametrize("name", data_names())
def test_a_data_name_lists_its_parameters(harmonium: Command, name: str) -> None:
    said = harmonium(f"inspect {name}")
    assert said.status == 0
    assert all(f"{parameter.name}=" in said.out for parameter in data_parameters(name))
    result = harmonium(f"inspect {name} --json").json
    assert [part["name"] for part in result["parameters"]] == [part.name for part in data_parameters(name)]
    assert result["fingerprint"] == hm.load_data(name).fingerprint


def test_a_data_file(harmonium: Command) -> None:
    Path("rows.csv").write_text("first,second\n0,1\n1,1\n")
    said = harmonium("inspect rows.csv")
    assert said.status == 0
    assert "fits Bernoulli" in said.out
    assert "columns first, second" in said.out
    np.save("gaps.npy", np.array([[0.0, np.nan]]))
    said = harmonium("inspect gaps.npy")
    assert said.status == 0
    assert "not fit to train on" in said.out
    assert len(harmonium("inspect gaps.npy --json").json["problems"]) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "there is no data name or file 'nothing'"),
        ("digit", "did you mean 'digits'"),
        ("nothing.npy", "there is no file"),
        ("nothing.safetensors", "does not exist"),
        ("folder", "is not a run folder"),
        ("text.npy", "does not begin as such a file does"),
        ("notes.txt", "an ending that is not known"),
        ("digits:gray=true", "did you mean 'grey'"),
    ],
)
def test_bad_input(harmonium: Command, path: str, message: str) -> None:
    Path("folder").mkdir()
    Path("text.npy").write_text("hello\n")
    Path("notes.txt").write_text("hello\n")
    said = harmonium(f"inspect {path}")
    assert (said.status, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert message in said.err


def test_a_checkpoint_is_no_model(harmonium: Command, small_run: Path) -> None:
    (newest,) = sorted((small_run / "checkpoints").iterdir())[-1:]
    said = harmonium(f"inspect {newest}")
    assert said.status == 2
    assert "not a model" in said.err


@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl", "environment.json", "samples.png"])
def test_a_file_of_a_run_names_the_run(harmonium: Command, small_run: Path, name: str) -> None:
    said = harmonium(f"inspect {small_run / name}")
    assert (said.status, said.out) == (2, "")
    assert f"is a part of the run in {small_run}; inspect that folder" in said.err


def test_data_are_described_in_flags(harmonium: Command) -> None:
    assert "need --binarize threshold or --binarize stochastic" in harmonium("inspect digits:grey=true").out
