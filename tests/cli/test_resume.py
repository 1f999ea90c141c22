from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harmonium.cli.progress import Watch
from tests.cli.conftest import Command

START = [sys.executable, "-c", "import sys; from harmonium.cli.main import run; sys.exit(run())"]
LONG = "--data bars-and-stripes:side=3 --hidden 6 --updates 24000 --chains 64 --seed 3"


def contents(folder: Path) -> dict[str, str]:
    """A digest of every file of a run but its clock values and the checkpoint before the last."""
    last = sorted((folder / "checkpoints").iterdir())[-1]
    files = [last, *(path for path in folder.iterdir() if path.is_file() and path.name != "timing.jsonl")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def signal_at_tick(monkeypatch: pytest.MonkeyPatch, number: signal.Signals, tick: int) -> None:
    """Have this process send itself a signal at the end of a compiled call of the next run."""
    usual = Watch.tick

    def with_signal(self: Watch, done: int, horizon: int) -> None:
        usual(self, done, horizon)
        if self.calls == tick:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Watch, "tick", with_signal)


def test_an_interrupted_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, harmonium: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["train", *LONG.split(), "--out", "broken"]
    process = subprocess.Popen(
        [*START, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stderr is not None
    while "updates/s" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    told = ["interrupted; the run is saved in broken, go on with", "  harmonium resume broken"]
    assert err.splitlines()[-2:] == told
    assert "not finished" in harmonium("inspect broken").out
    with monkeypatch.context() as patch:
        signal_at_tick(patch, signal.SIGTERM, 2)
        said = harmonium("resume broken")
    assert (said.status, said.out) == (130, "")
    assert said.err.splitlines()[-2:] == told
    assert harmonium("resume broken").status == 0
    assert harmonium(f"train {LONG} --out whole").status == 0
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interrupt_before_training_writes_nothing(
    tmp_path: Path, harmonium: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the signal was not heard")

    monkeypatch.setattr("harmonium.cli.training.set_up", interrupted)
    # As in a background command of a shell script.
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        said = harmonium("train --data digits")
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)
    assert (said.status, said.out, said.err) == (130, "", "interrupted before anything was written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_is_left_as_it_is(small_run: Path, harmonium: Command) -> None:
    before = contents(small_run)
    said = harmonium(f"resume {small_run}")
    assert said.status == 0
    assert "finished and left as it is" in said.err
    assert said.out.startswith("test log-likelihood: ")
    assert contents(small_run) == before


def test_a_finished_run_goes_further_when_asked(harmonium: Command) -> None:
    line = (
        "train --data bars-and-stripes:side=2 --hidden 3 --chains 16 --updates 100 --batch-size 3 --out run"
    )
    assert harmonium(line).status == 0
    assert harmonium("resume run --updates 50 --json").json["updates"] == 150
    said = harmonium("resume run --epochs 10")
    assert said.status == 0
    assert "update 170 of 170" in said.err
    assert "170 of 170 updates" in harmonium("inspect run").out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nowhere", "does not exist"),
        ("folder", "is not a run folder"),
        ("file.txt", "is a file, not a run folder"),
        ("{run} --updates 0", "--updates must be a whole number of at least 1"),
        ("{run} --updates 3 --epochs 3", "keep one"),
    ],
)
def test_bad_input(harmonium: Command, small_run: Path, line: str, message: str) -> None:
    Path("folder").mkdir()
    Path("file.txt").touch()
    said = harmonium(f"resume {line.format(run=small_run)}")
    assert (said.status, said.out) == (2, "")
    assert message in said.err


def test_a_run_stopped_before_it_began_is_told_so(harmonium: Command) -> None:
    Path("run").mkdir()
    Path("run/.harmonium-lock").touch()
    said = harmonium("resume run")
    assert said.status == 2
    assert "stopped before it began; start it again with --force" in said.err
