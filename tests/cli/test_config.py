from __future__ import annotations

from pathlib import Path

import pytest

from harmonium.cli.config import SETTING_OF_FLAG, merge
from harmonium.errors import FileError, SettingError
from harmonium.train.config import known_settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(
        """
        [data]
        name = "digits"
        binarize = "stochastic"
        scale = 16.0
        fingerprint = "0123456789abcdef"
        [model]
        hidden = 7
        [train]
        epochs = 3
        seed = 1
        momentum = 0.5
        """
    )
    return path


def test_every_flag_gives_a_setting_that_exists() -> None:
    known = {f"{section}.{name}" for section, names in known_settings().items() for name in names}
    assert set(SETTING_OF_FLAG.values()) <= known
    assert len(set(SETTING_OF_FLAG.values())) == len(SETTING_OF_FLAG) > 15


def test_flags_win_over_set_and_set_over_the_file(file: Path) -> None:
    config = merge(file, ["seed=2", "train.momentum=0.25"], {"--seed": 3, "--hidden": None})
    assert (config.train.seed, config.train.momentum, config.model.hidden) == (3, 0.25, [7])


@pytest.mark.parametrize(
    ("assignment", "section", "name", "value"),
    [
        ("train.learning_rate=0.5", "train", "learning_rate", 0.5),
        ("learning_rate = 1e-3", "train", "learning_rate", 1e-3),
        ("initialize=false", "train", "initialize", False),
        ("hidden=[4]", "model", "hidden", [4]),
        ("hidden=4", "model", "hidden", [4]),
        ("data.name=bars-and-stripes:side=3", "data", "name", "bars-and-stripes:side=3"),
        ('data.name="quoted name"', "data", "name", "quoted name"),
        ("optimizer=adam", "train", "optimizer", "adam"),
        ("shape=[8,8]", "data", "shape", [8, 8]),
    ],
)
def test_values_of_set(assignment: str, section: str, name: str, value: object) -> None:
    assert getattr(getattr(merge(None, [assignment], {}), section), name) == value


def test_an_empty_value_takes_a_setting_back(file: Path) -> None:
    config = merge(file, ["momentum=", "epochs="], {})
    assert (config.train.momentum, config.train.epochs) == (0.0, None)


def test_a_length_replaces_a_length_of_a_lower_layer(file: Path) -> None:
    config = merge(file, [], {"--updates": 9})
    assert (config.train.epochs, config.train.updates) == (None, 9)
    config = merge(file, ["updates=9"], {"--epochs": 2})
    assert (config.train.epochs, config.train.updates) == (2, None)
    with pytest.raises(SettingError, match="keep one"):
        merge(file, [], {"--updates": 9, "--epochs": 2})


def test_other_data_replace_all_that_was_said_of_the_first(file: Path) -> None:
    data = merge(file, [], {"--data": "other.npy"}).data
    assert (data.name, data.scale, data.fingerprint, data.binarize) == ("other.npy", None, None, "stochastic")
    data = merge(file, ["data.path=other.npy", "scale=255"], {}).data
    assert (data.name, data.path, data.scale, data.fingerprint) == (None, "other.npy", 255, None)
    assert merge(file, [], {"--binarize": "threshold"}).data.fingerprint is None
    assert merge(file, [], {"--seed": 5}).data.fingerprint == "0123456789abcdef"


@pytest.mark.parametrize(
    ("assignments", "flags", "message"),
    [
        (["train.epoch=3"], {}, "'train.epoch'; did you mean 'train.epochs'"),
        (["epoch=3"], {}, "did you mean 'epochs'"),
        (["trian.seed=3"], {}, "did you mean 'train.seed'"),
        (["quux=3"], {}, "there is no setting 'quux'; they are data.name"),
        (["name=x"], {}, "write data.name or sampler.name"),
        (["seed"], {}, "is no assignment"),
        (["=3"], {}, "is no assignment"),
        (["train.batch_size=x"], {}, "train.batch_size='x' cannot be used"),
        ([], {"--batch-size": 0}, "--batch-size 0 cannot be used"),
        (
            [],
            {"--learning-rate": float("nan")},
            "--learning-rate nan cannot be used: it must be a finite number",
        ),
        ([], {"--learning-rate": float("inf")}, "--learning-rate inf cannot be used"),
        ([], {"--hidden": "0"}, "--hidden 0 cannot be used"),
        ([], {"--hidden": ""}, "--hidden '' is no number of units; write e.g. 128"),
        ([], {"--members": 0}, "--members 0 cannot be used: it must be at least 1"),
        (["momentum=1"], {}, "train.momentum=1 cannot be used: it must be below 1"),
        (["batch_size=1.5"], {}, "train.batch_size=1.5 cannot be used: it must be a whole number"),
        (["guide=2,2"], {}, "model.guide='2,2' cannot be used: it must be a list, such as [32, 16]"),
        ([], {"--hidden": "4,x"}, "--hidden '4,x' is no number of units"),
        ([], {"--updates": 2**31}, "--updates 2147483648 cannot be used"),
        (
            [],
            {"--on-divergence": "panic"},
            "--on-divergence 'panic' cannot be used: it must be 'stop' or 'halve'",
        ),
    ],
)
def test_what_is_no_setting_is_refused(
    assignments: list[str], flags: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingError, match=r"^[^\n]*$") as caught:
        merge(None, assignments, flags)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepoch = 3", "did you mean 'train.epochs'"),
        ("[trian]\nepochs = 3", "did you mean 'train'"),
        ("epochs = 3", "it belongs in the section [train]"),
        ("train = 3", "must be a section, [train]"),
        ("[train\n", "is no TOML"),
        ("[model]\nhidden = [3.5]", "model.hidden.0=3.5 cannot be used"),
    ],
)
def test_a_file_with_a_fault_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SettingError) as caught:
        merge(path, [], {})
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no settings file"):
        merge(tmp_path / "none.toml", [], {})
    with pytest.raises(FileError, match="is a folder"):
        merge(tmp_path, [], {})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match="is no TOML"):
        merge(tmp_path / "binary.toml", [], {})
