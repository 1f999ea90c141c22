"""What all tests share: one compilation cache, the folder of real data, and the word on missing extras."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

import tests.typechecker  # noqa: F401 - pyproject.toml names it, and the import hook only looks it up

CACHE = "JAX_COMPILATION_CACHE_DIR"
OWNED = "HARMONIUM_TEST_CACHE"

# Before jax is imported anywhere. The first process makes the folder; the workers it starts inherit the variable, so
# that a program compiled by one worker is read by the others.
if CACHE not in os.environ:
    os.environ[CACHE] = os.environ[OWNED] = tempfile.mkdtemp(prefix="harmonium-compiled-")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


_LOOK_EVERY = 20
_MOST_MAPPINGS = 30_000
_tests_run = 0


def pytest_runtest_teardown() -> None:
    """Forget compiled programs before their memory mappings, some 25 each, reach what Linux grants a process."""
    global _tests_run
    _tests_run += 1
    mappings = Path("/proc/self/maps")
    if _tests_run % _LOOK_EVERY or "jax" not in sys.modules or not mappings.exists():
        return
    if mappings.read_bytes().count(b"\n") > _MOST_MAPPINGS:
        sys.modules["jax"].clear_caches()
        gc.collect()


def everything_is_demanded() -> bool:
    """Whether HARMONIUM_ALL is set: then a missing extra is a failure, not a reason to skip."""
    return os.environ.get("HARMONIUM_ALL", "0") not in ("", "0")


def need(module: str, extra: str) -> ModuleType:
    """Import an optional module, or skip the test with the reason; with HARMONIUM_ALL=1, fail instead."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        reason = f"{module} is not installed: pip install 'harmonium[{extra}]'"
        if everything_is_demanded():
            raise AssertionError(f"HARMONIUM_ALL is set, but {reason}") from error
        pytest.skip(reason)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of benchmark data named by HARMONIUM_DATA; tests that need it skip where it is not set."""
    folder = os.environ.get("HARMONIUM_DATA", "")
    if not folder:
        pytest.skip("HARMONIUM_DATA does not name a folder of benchmark data (nltcs.npz, ...)")
    path = Path(folder)
    if not path.is_dir():
        raise AssertionError(
            f"HARMONIUM_DATA names {folder!r}, which is not a folder; unset it or correct it"
        )
    return path


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree, where README.md and docs/ lie."""
    return Path(__file__).resolve().parent.parent


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the compilation cache, if this run made one and this process is not one of its workers."""
    if hasattr(config, "workerinput"):
        return
    if OWNED in os.environ and os.environ[OWNED] == os.environ.get(CACHE):
        shutil.rmtree(os.environ[OWNED], ignore_errors=True)
