import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harmonium.errors import FileError, RunBusyError, SettingError
from harmonium.train.atomic import PART_SUFFIX
from harmonium.train.folder import CHECKPOINTS, HEADER, KNOWN_FILES, LOCK, START, RunFolder


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path / "run") as folder:
        folder.write_config({"data": {"name": "digits"}})
        yield folder


def fill(folder: RunFolder) -> None:
    """Every file that harmonium writes in a run folder, through the writers where those are here."""
    folder.write_config({"seed": 0})
    folder.write_environment()
    folder.append_metrics({"index": 1, "loss": 0.5})
    folder.append_timing({"index": 1, "seconds": 0.5})
    folder.write_data({"x": np.zeros((3, 2), np.uint8)})
    folder.model_path.write_bytes(b"model")
    (folder.path / START).write_bytes(b"model")
    folder.report_path.write_text("<html>")
    folder.samples_path.write_bytes(b"png")
    folder.checkpoints.save(1, {"n": np.zeros(3)})
    folder.checkpoints.save(2, {"n": np.zeros(3)})


# ------------------------------------------------------------------------------------------------------- creating


def test_a_fresh_folder_is_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: list[str] = []
    for name in ("rbm-digits", "RBM digits:grey=true", "data/../x.npz", "---"):
        with RunFolder.create(name=name) as folder:
            names.append(str(folder.path))
    assert names == [
        "runs/0001-rbm-digits",
        "runs/0002-rbm-digits-grey-true",
        "runs/0003-data-x-npz",
        "runs/0004-run",
    ]
    (tmp_path / "runs" / "0010-gone").mkdir()
    (tmp_path / "runs" / "99999x").touch()
    with RunFolder.create(name="rbm") as folder:
        assert folder.path.name == "0011-rbm"


def test_a_number_taken_by_another_process_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir
    attempts: list[str] = []

    def beaten(path: Path, *arguments: Any, **options: Any) -> None:
        attempts.append(path.name)
        if len(attempts) == 2:  # the first is that of runs/ itself
            make(path)
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", beaten)
    with RunFolder.create(name="rbm", parent=tmp_path / "runs") as folder:
        assert folder.path.name == "0002-rbm"
    assert attempts[:3] == ["runs", "0001-rbm", "0002-rbm"]


def test_a_named_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "a" / "b") as folder:
        assert folder.locked
        assert os.listdir(folder.path) == [LOCK]
    assert not folder.locked


def test_an_empty_folder_and_one_that_a_killed_run_left_empty_are_used(tmp_path: Path) -> None:
    for entries in ([], [LOCK], [LOCK, f".config.toml.0a1b2c3d{PART_SUFFIX}"]):
        for entry in entries:
            (tmp_path / entry).touch()
        with RunFolder.create(tmp_path) as folder:
            assert folder.locked
        assert os.listdir(tmp_path) == [LOCK]


def test_a_folder_that_holds_something_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileError, match=r"is not empty \(it holds 'thesis\.tex'\); choose another.*--force"):
        RunFolder.create(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_place_can_be_asked_about_before_any_work(tmp_path: Path) -> None:
    RunFolder.check_free(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    with RunFolder.create(tmp_path / "run") as folder:
        fill(folder)
        with pytest.raises(RunBusyError):
            RunFolder.check_free(folder.path, force=True)
    with pytest.raises(FileError, match="not empty"):
        RunFolder.check_free(folder.path)
    RunFolder.check_free(folder.path, force=True)
    assert folder.model_path.exists()
    with pytest.raises(FileError, match="is a file"):
        RunFolder.check_free(folder.model_path, force=True)


def test_force_removes_what_harmonium_wrote_and_nothing_else(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path) as folder:
        fill(folder)
    foreign = ("notes.txt", ".hidden", "model.safetensors.bak", "checkpoints/best.safetensors", "plots/a.png")
    for name in foreign:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    leftover = tmp_path / f".model.safetensors.0a1b2c3d{PART_SUFFIX}"
    leftover.touch()
    assert set(KNOWN_FILES) < set(os.listdir(tmp_path))
    with pytest.raises(FileError, match="not empty"):
        RunFolder.create(tmp_path)
    assert leftover.exists()

    with RunFolder.create(tmp_path, force=True):
        pass
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*foreign, LOCK}
    assert all((tmp_path / name).read_text() == "mine" for name in foreign)


def test_force_removes_an_emptied_checkpoint_folder(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path) as folder:
        fill(folder)
    with RunFolder.create(tmp_path, force=True):
        assert os.listdir(tmp_path) == [LOCK]


def test_force_keeps_foreign_files_in_a_folder_that_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with RunFolder.create(tmp_path, force=True) as folder:
        fill(folder)
    with RunFolder.create(tmp_path, force=True):
        pass
    assert sorted(os.listdir(tmp_path)) == [LOCK, "thesis.tex"]


@pytest.mark.parametrize("name", [*KNOWN_FILES, CHECKPOINTS])
def test_force_spares_a_file_of_another_program_under_our_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("[tool]\nmine = true\n")
    with pytest.raises(FileError, match=f"holds '{name}', which is not of a harmonium run.*choose another"):
        RunFolder.create(tmp_path, force=True)
    assert os.listdir(tmp_path) == [name]
    assert "mine" in (tmp_path / name).read_text()


def test_an_interrupted_removal_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunFolder.create(tmp_path) as folder:
        fill(folder)
    (tmp_path / LOCK).unlink()  # as in a copy made with cp run/* elsewhere
    unlink = Path.unlink

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        if path.name == "timing.jsonl":
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            RunFolder.create(tmp_path, force=True)
    assert not (tmp_path / "metrics.jsonl").exists()
    with RunFolder.create(tmp_path, force=True):  # the first try has let go of the lock
        assert os.listdir(tmp_path) == [LOCK]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    for force in (False, True):
        with pytest.raises(FileError, match="is a file, not a folder"):
            RunFolder.create(tmp_path / "x", force=force)
    with pytest.raises(FileError, match=r"cannot make the folder .*; choose another place"):
        RunFolder.create(tmp_path / "x" / "y")


# -------------------------------------------------------------------------------------------------------- opening


def test_a_run_is_opened_for_reading_while_another_writes(run: RunFolder) -> None:
    reader = RunFolder.open(run.path)
    assert reader.read_config() == {"data": {"name": "digits"}}
    assert reader.read_metrics() == []
    run.append_metrics({"index": 1})
    assert reader.read_metrics() == [{"index": 1}]
    with pytest.raises(RunBusyError, match=r"another process is writing in .*run; wait"):
        reader.lock()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    cases = {
        "gone": "does not exist; name a run folder",
        "file": "is a file, not a run",
        "empty": "is not a run folder",
    }
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.toml").write_text("mine = true")
    cases["foreign"] = "is not a run folder; name one that harmonium train made"
    for name, message in cases.items():
        with pytest.raises(FileError, match=message):
            RunFolder.open(tmp_path / name)
    with RunFolder.create(tmp_path / "early"):
        pass
    with pytest.raises(FileError, match="was stopped before it began; start it again with force=True"):
        RunFolder.open(tmp_path / "early")


def test_nothing_is_written_without_the_lock(run: RunFolder) -> None:
    reader = RunFolder.open(run.path)
    writes: list[Callable[[], None]] = [
        lambda: reader.write_config({}),
        reader.write_environment,
        lambda: reader.append_metrics({"index": 1}),
        lambda: reader.append_timing({"index": 1}),
        lambda: reader.cut_back(0),
        lambda: reader.write_data({}),
    ]
    for write in writes:
        with pytest.raises(RunBusyError, match=r"open for reading only; call lock\(\)"):
            write()
    assert sorted(os.listdir(run.path)) == [LOCK, "config.toml"]


# ------------------------------------------------------------------------------------------------------- the lock


def test_the_lock_is_taken_once_and_given_back(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path)
    assert folder.lock() is folder
    with folder:
        assert folder.locked
    assert not folder.locked
    folder.release()
    with RunFolder(tmp_path):
        pass


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), NotImplementedError("no flock here")]
)
def test_a_folder_that_cannot_be_locked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    folder = RunFolder(tmp_path)
    monkeypatch.setattr(folder._lock, "acquire", refuse)
    with pytest.raises(FileError, match=r"cannot lock .*(denied|flock).*; check its permissions"):
        folder.lock()


# ------------------------------------------------------------------------------------------------------- contents


def test_settings_come_back_without_those_that_are_none(run: RunFolder) -> None:
    settings = {
        "seed": 3,
        "rate": 0.1,
        "decay": float("inf"),
        "epochs": None,
        "sizes": (64, 16),
        "path": Path("a/b"),
        "sampler": {"name": "pcd", "steps": np.int64(2), "ladder": None},
    }
    run.write_config(settings)
    expected = {
        "seed": 3,
        "rate": 0.1,
        "decay": float("inf"),
        "sizes": [64, 16],
        "path": "a/b",
        "sampler": {"name": "pcd", "steps": 2},
    }
    assert run.read_config() == expected
    assert run.config_path.read_text().startswith(HEADER + "\n")
    assert tomllib.loads(run.config_path.read_text()) == expected


def test_settings_that_toml_cannot_hold_are_refused(run: RunFolder) -> None:
    with pytest.raises(SettingError, match="no word for None"):
        run.write_config({"sizes": [1, None]})
    with pytest.raises(SettingError, match=r"the settings\['f'\] is of type builtin"):
        run.write_config({"f": print})
    assert run.read_config() == {"data": {"name": "digits"}}


def test_damaged_settings_are_named(run: RunFolder) -> None:
    run.config_path.write_text(HEADER + "\nseed = = 3\n")
    with pytest.raises(FileError, match=r"config\.toml is no TOML \(.*line 2.*\); correct it"):
        run.read_config()
    run.config_path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match=r"cannot read .*config\.toml"):
        run.read_config()
    run.config_path.unlink()
    with pytest.raises(FileError, match=r"config\.toml does not exist"):
        run.read_config()


def test_the_environment_is_kept_and_compared(run: RunFolder) -> None:
    run.write_environment()
    assert run.environment_changes() == []
    described = run.read_environment()
    described["packages"]["jax"] = "0.0.1"
    run.environment_path.write_text(json.dumps(described))
    (change,) = run.environment_changes()
    assert change.startswith("packages.jax was '0.0.1', is ")
    run.environment_path.write_text("{")
    with pytest.raises(FileError, match=r"environment\.json is no JSON"):
        run.read_environment()
    (change,) = run.environment_changes()
    assert "is no JSON" in change
    run.environment_path.unlink()
    assert len(run.environment_changes()) == 1


def test_both_logs_are_cut_back(run: RunFolder) -> None:
    for index in (100, 200, 300):
        run.append_metrics({"index": index, "loss": 1 / index})
        run.append_timing({"index": index, "seconds": 1.0})
    with run.metrics_path.open("ab") as file:
        file.write(b'{"index": 4')
    run.cut_back(200)
    assert [record["index"] for record in run.read_metrics()] == [100, 200]
    assert [record["index"] for record in run.read_timing()] == [100, 200]
    assert run.metrics_path.read_bytes() == b'{"index": 100, "loss": 0.01}\n{"index": 200, "loss": 0.005}\n'


def test_data_that_came_as_arrays_are_kept(run: RunFolder) -> None:
    arrays = {"train": np.eye(3, dtype=np.uint8), "weight": np.array([1.0, 0.5, 0.0])}
    run.write_data(arrays, {"name": "array", "shape": [3]})
    read, metadata = run.read_data()
    assert metadata == {"name": "array", "shape": [3]}
    assert read.keys() == arrays.keys()
    assert read["train"].dtype == np.uint8
    np.testing.assert_array_equal(read["weight"], arrays["weight"])


def test_a_run_without_kept_data_says_so(run: RunFolder) -> None:
    with pytest.raises(FileError, match=r"data\.safetensors does not exist"):
        run.read_data()
