import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harmonium.energy.rbm import RBM
from harmonium.errors import FileError, SettingError
from harmonium.train import model_file
from harmonium.train.model_file import load, save
from harmonium.train.storage import DamagedFileError, read_tensors, write_tensors
from harmonium.units.spin import Spin


class StandIn:
    """A model whose parameters are as nested as any will be."""

    def __init__(self, **arguments: Any):
        self.arguments = arguments

    @classmethod
    def from_arrays(cls, weights: Any, biases: Any = None, extra: Any = None) -> "StandIn":
        return cls(weights=weights, biases=biases, extra=extra)

    def parameters(self) -> dict[str, Any]:
        return self.arguments


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(model_file.MODELS, "StandIn", f"{StandIn.__module__}:StandIn")


def assert_equal_parameters(left: Any, right: Any) -> None:
    one, other = left.parameters(), right.parameters()
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            assert other[name].dtype == value.dtype
            np.testing.assert_array_equal(other[name], value)
        else:
            assert other[name] == value


@pytest.mark.parametrize("visible", [5, Spin(5)])
def test_an_rbm_comes_back(tmp_path: Path, visible: Any) -> None:
    model = RBM(visible, 3, seed=4)
    save(model, tmp_path / "rbm.safetensors")
    read = load(tmp_path / "rbm.safetensors")
    assert type(read) is RBM
    assert_equal_parameters(model, read)


def test_float64_stays_float64(tmp_path: Path) -> None:
    model = RBM.from_arrays(np.full((2, 3), 0.1), np.full(2, 1 / 3), np.full(3, 1e-300))
    read = load(save(model, tmp_path / "x"))
    assert read.parameters()["weights"].dtype == np.float64
    assert_equal_parameters(model, read)


@pytest.mark.usefixtures("stand_in")
def test_nested_parameters_come_back(tmp_path: Path) -> None:
    arguments = {
        "weights": [np.ones((2, 3)), np.zeros((3, 1), np.float32)],
        "biases": {
            "tensor": "a name",
            "mapping": np.arange(3),
            "deeper": {"none": None, "scalar": np.int64(4)},
        },
        "extra": [True, 0.25, "spin", None, 2**70],
    }
    read = load(save(StandIn(**arguments), tmp_path / "x"))
    assert type(read) is StandIn
    back = read.arguments
    assert [array.dtype for array in back["weights"]] == [np.float64, np.float32]
    np.testing.assert_array_equal(back["weights"][0], arguments["weights"][0])
    assert back["extra"] == arguments["extra"]
    assert back["biases"]["tensor"] == "a name"
    np.testing.assert_array_equal(back["biases"]["mapping"], np.arange(3))
    assert back["biases"]["deeper"]["none"] is None
    assert back["biases"]["deeper"]["scalar"] == 4


def test_an_existing_model_is_kept_unless_asked(tmp_path: Path) -> None:
    save(RBM(2, 2), tmp_path / "x")
    with pytest.raises(FileError, match="exists already"):
        save(RBM(2, 3), tmp_path / "x")
    save(RBM(2, 3), tmp_path / "x", overwrite=True)
    assert load(tmp_path / "x").units[1].size == 3


@pytest.mark.usefixtures("stand_in")
def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"cannot save a dict, only RBM.*run\.model"):
        save({}, tmp_path / "x")
    with pytest.raises(SettingError, match="the parameter 'extra' is of type object"):
        save(StandIn(weights=np.ones(1), extra=object()), tmp_path / "x")


def test_folders_and_other_files_are_pointed_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"is a folder.*hm\.load_run\('.*'\)\.model"):
        load(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        load(tmp_path / "gone")
    write_tensors(tmp_path / "data", {}, {"kind": "data"})
    with pytest.raises(FileError, match="holds a data, not a model"):
        load(tmp_path / "data")


def test_models_from_the_future_are_named(tmp_path: Path) -> None:
    arrays, document = read_tensors(save(RBM(2, 2), tmp_path / "x"))
    write_tensors(tmp_path / "y", arrays, {**document, "class": "os:system"})
    with pytest.raises(
        FileError, match=r"holds a os:system, which harmonium .* does not know; install a newer"
    ):
        load(tmp_path / "y")
    parameters = {**document["parameters"], "colour": "red"}
    write_tensors(tmp_path / "z", arrays, {**document, "parameters": parameters})
    with pytest.raises(FileError, match=r"cannot build \(.*'colour'\); install a newer"):
        load(tmp_path / "z")


def test_a_damaged_model_is_not_built(tmp_path: Path) -> None:
    path = save(RBM(2, 2), tmp_path / "x")
    altered = bytearray(path.read_bytes())
    altered[-1] ^= 1
    path.write_bytes(altered)
    with pytest.raises(DamagedFileError, match="checksum"):
        load(path)


def test_the_file_says_what_it_holds(tmp_path: Path) -> None:
    arrays, document = read_tensors(save(RBM(2, Spin(3)), tmp_path / "x"))
    assert {name: array.shape for name, array in arrays.items()} == {
        "weights": (2, 3),
        "visible_bias": (2,),
        "hidden_bias": (3,),
    }
    assert document["class"] == "RBM"
    assert document["parameters"]["hidden"] == "spin"
    json.dumps(document)
