"""The command line as tests use it: in this process, in a folder of its own, with what it printed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harmonium.cli.main import run


@dataclass(frozen=True)
class Said:
    """What one command came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it must be."""
        assert len(self.out.splitlines()) == 1, self.out
        return json.loads(self.out)


Command = Callable[[str], Said]


@pytest.fixture
def harmonium(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs ``harmonium LINE`` in ``tmp_path``; no traceback may ever be seen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("HARMONIUM_DEBUG", raising=False)

    def command(line: str) -> Said:
        capfd.readouterr()
        status = run(shlex.split(line))
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return Said(status, captured.out, captured.err)

    return command


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on 2 x 2 bars and stripes; to be read, not written."""
    path = tmp_path_factory.mktemp("cli") / "small"
    line = f"train --data bars-and-stripes:side=2 --hidden 3 --updates 100 --chains 16 --out {shlex.quote(str(path))}"
    assert run(shlex.split(line)) == 0
    return path
