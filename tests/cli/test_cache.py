from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harmonium.cli import cache

PROGRAM = """
import sys
from harmonium.cli.cache import keep_compiled_programs
keep_compiled_programs()
import jax
print(jax.config.jax_enable_compilation_cache, jax.config.jax_compilation_cache_dir)
"""


def kept(**variables: str) -> list[str]:
    """What jax is told about its cache in a process with these variables."""
    environment = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_programs_are_kept_in_the_user_s_cache_folder(tmp_path: Path) -> None:
    used, folder = kept(XDG_CACHE_HOME=str(tmp_path))
    assert used == "True"
    assert Path(folder).parent == tmp_path / "harmonium" / "xla"
    assert Path(folder).is_dir()


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kept(XDG_CACHE_HOME=str(tmp_path / "file")) == ["True", "None"]


def test_another_folder_or_none(tmp_path: Path) -> None:
    assert kept(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")) == ["True", str(tmp_path / "mine")]
    assert kept(HARMONIUM_CACHE="off", XDG_CACHE_HOME=str(tmp_path))[0] == "False"
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_programs_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST_BYTES", 100)
    for age in range(6):
        path = tmp_path / f"program-{age}"
        path.write_bytes(bytes(20))
        os.utime(path, (1000 - age, 1000 - age))
    cache._trim(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program-0", "program-1"]
    cache._trim(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
