"""Runs that are interrupted, extended, or gone on with: what they end as."""

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import DataError, FileError, RunBusyError, SettingError
from harmonium.train.checkpoint import Checkpoints
from harmonium.train.folder import LOCK
from tests.train.killing import remains
from tests.train.runs import ROWS, UPDATES, assert_same, bits, interrupted, interrupting_after, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> hm.Run:
    """The unbroken run."""
    return train(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> hm.Run:
    """The unbroken run, extended by 330 updates, unbroken."""
    path = tmp_path_factory.mktemp("longer") / "run"
    train(path)
    return hm.resume(path, updates=330)


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a folder with its bytes and when it was written."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name != LOCK]
    return {str(file.relative_to(path)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def place(run: hm.Run) -> Path:
    assert run.path is not None
    return run.path


# ------------------------------------------------------------------------------------------------------ interruptions


@pytest.mark.parametrize("index", [0, 100, 300, UPDATES])
def test_an_interrupted_run_is_saved_and_ends_as_the_unbroken_one(tmp_path: Path, whole: hm.Run, index: int):
    interrupted(tmp_path / "run", index, checkpoint_seconds=1e9)
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices()[-1] == index
    again = hm.load_run(tmp_path / "run")
    assert again.history == whole.history[: index // 100 + 1 + (index == UPDATES)]
    assert again.finished == (index == UPDATES)
    assert ("not finished" in repr(again)) == (index < UPDATES)
    run = hm.resume(tmp_path / "run")
    assert_same(run, whole)
    assert remains(tmp_path / "run").keys() == remains(place(whole)).keys()
    again = hm.load_run(tmp_path / "run")
    assert again.finished
    assert bits(again.model) == bits(whole.model)


def test_interrupted_at_every_report_in_turn(tmp_path: Path, whole: hm.Run):
    interrupted(tmp_path / "run", 0)
    for index in (100, 200, 300, 400, UPDATES):
        with pytest.raises(KeyboardInterrupt):
            hm.resume(tmp_path / "run", reporter=interrupting_after(index))
    assert_same(hm.resume(tmp_path / "run"), whole)
    assert remains(tmp_path / "run") == remains(place(whole))


def test_an_error_of_the_reporter_loses_nothing(tmp_path: Path, whole: hm.Run):
    def fail(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if record["index"] == 200:
            raise BrokenPipeError("nobody listens")

    with pytest.raises(BrokenPipeError):
        train(tmp_path / "run", reporter=fail, checkpoint_seconds=1e9)
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices() == [0, 200]
    assert_same(hm.resume(tmp_path / "run"), whole)


def test_when_checkpoints_are_written_changes_nothing(tmp_path: Path, whole: hm.Run):
    run = train(tmp_path / "run", checkpoint_seconds=1e9)
    assert_same(run, whole)
    assert_same(train(None), whole)
    found, expected = remains(tmp_path / "run"), remains(place(whole))
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices() == [0, UPDATES]
    assert [file for file in expected if found[file] != expected[file]] == ["config.toml"]


# -------------------------------------------------------------------------------------------------- finished, extended


def test_a_finished_run_is_left_as_it_is(tmp_path: Path, whole: hm.Run):
    train(tmp_path / "run")
    before = contents(tmp_path / "run")
    assert len(before) == 8
    assert_same(hm.resume(tmp_path / "run"), whole)
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize("damage", ["missing", "torn", "old"])
def test_the_model_of_a_finished_run_is_written_again(tmp_path: Path, whole: hm.Run, damage: str):
    train(tmp_path / "run")
    file = tmp_path / "run" / "model.safetensors"
    good = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "torn":
        file.write_bytes(good[:-20])
    else:
        hm.save(hm.RBM(6, 4, seed=9), file, overwrite=True)
    if damage == "old":
        assert hm.load_run(tmp_path / "run").history == whole.history
    else:
        with pytest.raises(FileError, match=r"hm\.resume|damaged"):
            hm.load_run(tmp_path / "run")
    hm.resume(tmp_path / "run")
    assert file.read_bytes() == good


def test_an_extended_run_is_on_a_new_horizon_and_its_rate_starts_again(longer: hm.Run):
    state = longer.state
    assert state is not None
    assert (int(state.start), int(state.index), int(state.horizon)) == (UPDATES, UPDATES + 330, UPDATES + 330)
    rates = {record["index"]: record["learning_rate"] for record in longer.history}
    assert list(rates) == [0, 100, 200, 300, 400, 450, 500, 600, 700, 780]
    assert rates[450] == 0
    assert rates[500] == pytest.approx(0.3 * (1 - 50 / 330))
    assert rates[780] == 0
    again = hm.load_run(place(longer))
    assert again.finished
    assert again.history == longer.history


def test_epochs_count_passes_over_the_rows(tmp_path: Path):
    train(tmp_path / "run", updates=None, epochs=4)
    run = hm.resume(tmp_path / "run", epochs=3)
    assert [run.history[0]["epoch"], run.history[-1]["epoch"], run.history[-1]["index"]] == [0, 7, 7 * 5]


def test_an_extension_that_is_interrupted_in_its_middle_goes_on(tmp_path: Path, longer: hm.Run):
    train(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        hm.resume(tmp_path / "run", updates=330, reporter=interrupting_after(600))
    assert not hm.load_run(tmp_path / "run").finished
    assert_same(hm.resume(tmp_path / "run"), longer)
    assert remains(tmp_path / "run") == remains(place(longer))


def test_an_extension_that_is_interrupted_before_its_first_update_goes_on(
    tmp_path: Path, longer: hm.Run, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    train(tmp_path / "run", checkpoint_seconds=1e9)
    with monkeypatch.context() as patch:
        patch.setattr(
            "harmonium.train.drive.Drive.run", interrupt
        )  # not even what is saved at the end is saved
        with pytest.raises(KeyboardInterrupt):
            hm.resume(tmp_path / "run", updates=330)
    assert not hm.load_run(tmp_path / "run").finished
    assert_same(hm.resume(tmp_path / "run"), longer)


def test_a_number_drops_what_was_left_of_an_interrupted_stretch(tmp_path: Path):
    interrupted(tmp_path / "run", 200)
    run = hm.resume(tmp_path / "run", updates=120)
    assert [record["index"] for record in run.history] == [0, 100, 200, 300, 320]
    assert run.state is not None
    assert int(run.state.start) == 200


@pytest.mark.parametrize(
    "number", [{"updates": 0}, {"epochs": -1}, {"updates": True}, {"updates": 1, "epochs": 1}]
)
def test_a_number_that_is_none_is_refused(whole: hm.Run, number: dict[str, Any]):
    with pytest.raises(SettingError, match=r"updates|epochs"):
        hm.resume(place(whole), **number)


# ------------------------------------------------------------------------------------------------------------ damages


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, whole: hm.Run):
    interrupted(tmp_path / "run", 300)
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.indices() == [200, 300]
    data = bytearray(checkpoints.path(300).read_bytes())
    data[-5] ^= 1
    checkpoints.path(300).write_bytes(data)
    with pytest.warns(hm.HarmoniumWarning, match="skipped a checkpoint.*checksum"):
        run = hm.resume(tmp_path / "run")
    assert_same(run, whole)
    assert remains(tmp_path / "run") == remains(place(whole))


def test_a_run_without_a_sound_checkpoint_says_so(tmp_path: Path):
    interrupted(tmp_path / "run", 300)
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    for index in checkpoints.indices():
        checkpoints.path(index).write_bytes(b"")
    with (
        pytest.warns(hm.HarmoniumWarning, match="skipped"),
        pytest.raises(FileError, match=r"no checkpoint in .* can be read \(2 are damaged\)"),
    ):
        hm.resume(tmp_path / "run")


def test_a_torn_line_and_lines_of_a_lost_future_are_dropped(tmp_path: Path, whole: hm.Run):
    interrupted(tmp_path / "run", 200)
    for log in ("metrics.jsonl", "timing.jsonl"):
        with (tmp_path / "run" / log).open("ab") as file:
            file.write(b'{"index": 300, "weight_rms": 7.0}\n{"index": 400, "wei')
    assert hm.load_run(tmp_path / "run").history == whole.history[:3]
    assert_same(hm.resume(tmp_path / "run"), whole)
    assert remains(tmp_path / "run") == remains(place(whole))
    assert len((tmp_path / "run" / "timing.jsonl").read_text().splitlines()) == len(whole.history)


def test_a_run_that_was_stopped_before_it_began_says_so(tmp_path: Path):
    train(tmp_path / "run", updates=100)
    for name in ("config.toml", "metrics.jsonl"):
        (tmp_path / "run" / name).unlink()
    for call in (hm.resume, hm.load_run):
        with pytest.raises(FileError, match="stopped before it began; start it again with force=True"):
            call(tmp_path / "run")
    assert train(tmp_path / "run", updates=100, force=True).finished


def test_a_run_that_lost_its_settings_or_its_checkpoints_is_not_told_to_begin_again(tmp_path: Path):
    train(tmp_path / "run", updates=100)
    settings = tmp_path / "run" / "config.toml"
    text = settings.read_text()
    settings.unlink()
    for call in (hm.resume, hm.load_run):
        with pytest.raises(FileError, match=r"has lost its config\.toml; restore it"):
            call(tmp_path / "run")
    settings.write_text(text)
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(FileError, match="there is no checkpoint in"):
        hm.resume(tmp_path / "run")


def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_but_not_further(tmp_path: Path, whole: hm.Run):
    train(tmp_path / "run")
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    newest = checkpoints.path(checkpoints.indices()[-1])
    newest.write_bytes(newest.read_bytes()[:-1])
    model = (tmp_path / "run" / "model.safetensors").read_bytes()
    with (
        pytest.warns(hm.HarmoniumWarning, match="skipped"),
        pytest.raises(
            FileError, match=rf"after {UPDATES} updates is damaged .*; resume without a number first"
        ),
    ):
        hm.resume(tmp_path / "run", updates=5)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == model
    with pytest.warns(hm.HarmoniumWarning, match="skipped"):
        assert_same(hm.resume(tmp_path / "run"), whole)


def test_data_that_moved_are_named_in_the_settings(tmp_path: Path):
    np.save(tmp_path / "rows.npy", np.eye(6, dtype=np.uint8))
    hm.fit(hm.RBM(6, 2, seed=0), tmp_path / "rows.npy", updates=1, batch_size=2, out=tmp_path / "run")
    (tmp_path / "rows.npy").rename(tmp_path / "moved.npy")
    with pytest.raises(FileError, match=r"write their new place as path under \[data\] in .*config\.toml"):
        hm.resume(tmp_path / "run", updates=1)
    settings = tmp_path / "run" / "config.toml"
    settings.write_text(settings.read_text().replace("rows.npy", "moved.npy"))
    assert hm.resume(tmp_path / "run", updates=1).history[-1]["index"] == 2


def test_another_environment_is_told_where_it_matters(tmp_path: Path, whole: hm.Run):
    interrupted(tmp_path / "run", 300)
    file = tmp_path / "run" / "environment.json"
    environment = json.loads(file.read_text())
    environment["packages"]["jax"] = "0.0.1"
    file.write_text(json.dumps(environment))
    with pytest.warns(hm.HarmoniumWarning, match=r"packages\.jax was '0\.0\.1', is .*bits may differ"):
        assert_same(hm.resume(tmp_path / "run"), whole)
    hm.resume(tmp_path / "run")  # nothing is computed, so nothing is told


# --------------------------------------------------------------------------------------------------------- two writers


def test_a_second_writer_is_refused_and_leaves_the_run_alone(tmp_path: Path, whole: hm.Run):
    refused: list[BaseException] = []

    def attempt(call: Any) -> None:
        try:
            call()
        except RunBusyError as error:
            refused.append(error)

    def intrude(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if record["index"] == 200:
            calls = (
                lambda: hm.resume(tmp_path / "run"),
                lambda: hm.resume(tmp_path / "run", updates=10),
                lambda: train(tmp_path / "run", force=True),
            )
            for call in calls:
                attempt(call)
                thread = threading.Thread(target=attempt, args=(call,))
                thread.start()
                thread.join()
            assert hm.load_run(tmp_path / "run").history == whole.history[:2]  # reading is always allowed

    assert_same(train(tmp_path / "run", reporter=intrude), whole)
    assert len(refused) == 6
    assert {str(error).partition(" is writing")[0] for error in refused} == {"another process"}
    assert remains(tmp_path / "run") == remains(place(whole))


# ---------------------------------------------------------------------------------------------------------------- data


def test_data_that_changed_are_refused(tmp_path: Path, whole: hm.Run):
    np.save(tmp_path / "rows.npy", ROWS)
    interrupted(tmp_path / "run", 200, data=tmp_path / "rows.npy")
    other = ROWS.copy()
    other[5, 2] ^= 1
    with pytest.raises(DataError, match="fingerprint"):
        hm.resume(tmp_path / "run", data=other)
    np.save(tmp_path / "rows.npy", other)
    with pytest.raises(DataError, match="fingerprint"):
        hm.resume(tmp_path / "run")
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices()[-1] == 200
    np.save(tmp_path / "rows.npy", ROWS)
    assert_same(hm.resume(tmp_path / "run"), whole)


def test_arrays_of_every_kind_are_kept_with_the_run(tmp_path: Path):
    grey = np.random.default_rng(1).random((37, 6))
    weight = np.arange(37.0)
    data = hm.load_data(
        {"train": grey, "valid": grey[:9]}, "stochastic", weight=weight, shape=(2, 3), name="grey"
    )
    expected = train(None, data=data)
    interrupted(tmp_path / "run", 200, data=data)
    run = hm.resume(tmp_path / "run")
    assert_same(run, expected)
    assert "log_likelihood_valid" in run.history[-1]
    assert run.config["data"]["fingerprint"] == data.fingerprint
    interrupted(tmp_path / "other", 200, data=data)
    os.unlink(tmp_path / "other" / "data.safetensors")
    with pytest.raises(FileError, match="does not exist"):
        hm.resume(tmp_path / "other")
    assert_same(hm.resume(tmp_path / "other", data=data), expected)


def test_a_model_with_given_parameters_goes_on(tmp_path: Path):
    generator = np.random.default_rng(2)
    model = hm.RBM.from_arrays(
        generator.normal(size=(6, 4)), generator.normal(size=6), generator.normal(size=4)
    )
    expected = train(None, model=model)
    assert bits(expected.model) != bits(train(None).model)
    interrupted(tmp_path / "run", 0, model=model)
    assert_same(hm.resume(tmp_path / "run"), expected)


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"data": 3 * ROWS}, DataError, "train"),
        ({"data": ROWS[:, :5]}, DataError, "5"),
        ({"learning_rate": -1.0}, SettingError, "learning_rate"),
        ({"updates": 0}, SettingError, "updates"),
        ({"epochs": 2}, SettingError, "both epochs"),
        ({"optimizer": "sdg"}, SettingError, "sgd"),
        ({"momentum": 1.0}, SettingError, "momentum"),
        ({"model": hm.RBM(6, 4, weights=np.full((6, 4), np.inf))}, SettingError, "not finite"),
        ({"model": hm.RBM(6, 4, weights=np.full((6, 4), 1e300))}, SettingError, "not finite in float32"),
    ],
)
def test_what_is_refused_leaves_no_folder(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], match: str
):
    with pytest.raises(error, match=match):
        train(tmp_path / "run", **changes)
    assert list(tmp_path.iterdir()) == []
