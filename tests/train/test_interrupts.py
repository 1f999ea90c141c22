"""Ctrl-C at every moment at which it could do harm, and the signals themselves."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import harmonium as hm
from harmonium.train import faults
from harmonium.train.checkpoint import Checkpoints
from harmonium.train.interrupts import patient_interrupts
from harmonium.train.monitor import Monitor
from tests.train.killing import remains
from tests.train.runs import UPDATES, assert_same, interrupted, train


@pytest.fixture(autouse=True)
def _listening() -> Iterator[None]:
    """Ctrl-C means what it does in a terminal, also where the tests run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> hm.Run:
    """The unbroken run."""
    return train(tmp_path_factory.mktemp("whole") / "run")


def interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def go_on_to_the_end(path: Path, times: int) -> hm.Run:
    """Begin the run in ``path`` or go on with it until nothing interrupts it; ``times`` it must be interrupted."""
    for _ in range(times):
        with pytest.raises(KeyboardInterrupt):
            hm.resume(path) if (path / "config.toml").exists() else train(path, force=True)
    return hm.resume(path) if (path / "config.toml").exists() else train(path, force=True)


def assert_is(path: Path, run: hm.Run, whole: hm.Run) -> None:
    assert whole.path is not None
    assert_same(run, whole)
    assert remains(path) == remains(whole.path)


# --------------------------------------------------------------------------------------------- in the middle of work


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", sorted(faults.FAULT_POINTS))
def test_in_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: hm.Run, point: str, times: int):
    """The fault hook interrupts instead of killing; twice: also the next time, which is the save of the first."""
    writer = point.partition(".")[0]
    passages = Counter[str]()
    due = {1, 2} if writer in ("data", "environment", "config", "cut") else {3, 4}

    def fault_due(passed: str) -> bool:
        passages[passed] += 1
        return passed == point and passages[point] in sorted(due)[:times]

    for place in ("faults", "atomic", "journal"):
        monkeypatch.setattr(f"harmonium.train.{place}.die", interrupt)
        monkeypatch.setattr(f"harmonium.train.{place}.fault_due", fault_due)
    path = tmp_path / "run"
    if writer == "cut":
        interrupted(path, 200)
        with (path / "metrics.jsonl").open("a") as file:
            file.write('{"index": 300, "wei')
    # Two in a row hit one attempt where the save of the first passes the point again, and else two attempts; what is
    # in place after the rename is not written a second time.
    attempts = (
        1
        if writer in ("checkpoint", "model") or point in ("cut.after-rename", "config.after-rename")
        else times
    )
    run = go_on_to_the_end(path, attempts)
    assert passages[point] >= attempts
    assert_is(path, run, whole)


@pytest.mark.parametrize("call", [1, 2, 4])
def test_while_a_report_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: hm.Run, call: int
):
    calls = Counter[str]()
    record = Monitor.record

    def interrupted_record(monitor: Monitor, *arguments: Any) -> dict[str, Any]:
        calls["record"] += 1
        if calls["record"] == call:
            raise KeyboardInterrupt
        return record(monitor, *arguments)

    monkeypatch.setattr(Monitor, "record", interrupted_record)
    assert_is(tmp_path / "run", go_on_to_the_end(tmp_path / "run", 1), whole)


def test_while_a_chunk_is_compiled_or_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: hm.Run
):
    with monkeypatch.context() as patch:
        patch.setattr("harmonium.train.drive.run_chunk", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run")
    again = hm.load_run(tmp_path / "run")
    assert (again.finished, again.history) == (False, whole.history[:1])
    assert_is(tmp_path / "run", hm.resume(tmp_path / "run"), whole)


def test_while_the_end_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: hm.Run):
    """The save is made again, so that even this interrupt loses nothing."""
    save = Checkpoints.save
    calls = Counter[int]()

    def interrupted_save(checkpoints: Checkpoints, index: int, *arguments: Any, **named: Any) -> Path:
        calls[index] += 1
        if index == UPDATES and calls[index] == 1:
            raise KeyboardInterrupt
        return save(checkpoints, index, *arguments, **named)

    monkeypatch.setattr(Checkpoints, "save", interrupted_save)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", checkpoint_seconds=1e9)
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices() == [0, UPDATES]
    assert hm.load_run(tmp_path / "run").finished
    assert_same(hm.resume(tmp_path / "run"), whole)


# ------------------------------------------------------------------------------------------------------------- signals


def pressing(times: int, index: int) -> Any:
    """A reporter that sends SIGINT to the own process at the report of an index."""

    def report(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if record["index"] == index:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)

    return report


@pytest.mark.parametrize("times", [1, 2, 3])
def test_ctrl_c_is_raised_when_all_is_saved(tmp_path: Path, whole: hm.Run, times: int):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", reporter=pressing(times, 200), checkpoint_seconds=1e9)
    assert signal.getsignal(signal.SIGINT) is before
    assert Checkpoints(tmp_path / "run" / "checkpoints").indices() == [0, 200]
    assert_same(hm.resume(tmp_path / "run"), whole)


def test_ctrl_c_at_the_last_report_is_not_lost(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", reporter=pressing(1, UPDATES))
    assert hm.load_run(tmp_path / "run").finished


def test_a_waiting_signal_goes_to_the_handler_of_before():
    handled: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: handled.append(number))
    try:
        with patient_interrupts() as hand_over:
            hand_over()
            os.kill(os.getpid(), signal.SIGTERM)
            assert handled == []
            hand_over()
            hand_over()
            assert handled == [signal.SIGTERM]
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            assert len(handled) == 2  # the second one at once
        assert len(handled) == 3  # and the first one at the end
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_without_a_handler_keeps_its_meaning():
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with patient_interrupts():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_other_threads_train_too(whole: hm.Run):
    runs: list[hm.Run] = []
    thread = threading.Thread(target=lambda: runs.append(train(None)))
    thread.start()
    thread.join()
    assert_same(runs[0], whole)


def test_every_write_of_a_run_is_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No file is written past the fault hook: what a run passes are all the points there are."""
    passed: set[str] = set()
    for place in ("faults", "atomic", "journal"):
        monkeypatch.setattr(f"harmonium.train.{place}.fault_due", lambda point: bool(passed.add(point)))
    interrupted(tmp_path / "run", 200)
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write("torn")
    hm.resume(tmp_path / "run")
    assert passed == faults.FAULT_POINTS
