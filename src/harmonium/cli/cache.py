"""Compiled programs are kept between commands, so that the second one starts at once."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import warnings
from contextlib import suppress
from pathlib import Path

_SHORTEST_COMPILATION = 0.1
"""Seconds from which on a compilation is worth keeping."""

_MOST_BYTES = 1 << 29


def keep_compiled_programs() -> None:
    """Point jax's compilation cache at ``harmonium/xla`` in the user's cache folder (``XDG_CACHE_HOME``).

    ``JAX_COMPILATION_CACHE_DIR`` names another folder, ``HARMONIUM_CACHE=off`` keeps nothing. A folder that cannot be
    written is no reason to fail: then nothing is kept.
    """
    import jax

    if os.environ.get("HARMONIUM_CACHE", "").lower() in ("off", "0", "no", "false"):
        jax.config.update("jax_enable_compilation_cache", False)
        return
    # What a torn or unwritable entry costs is one compilation, which is nothing to tell a user.
    warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
    logging.getLogger("jax").setLevel(logging.ERROR)
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST_COMPILATION)
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    folder = cache_folder()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _trim(folder)
        if os.access(folder, os.W_OK):
            jax.config.update("jax_compilation_cache_dir", str(folder))


def cache_folder() -> Path:
    """The folder of this machine's compiled programs.

    Its name ends in a digest of the processor's features: home folders are shared between machines, and a program
    compiled for one processor may not run on another.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(root) if Path(root).is_absolute() else Path("~/.cache").expanduser()
    return home / "harmonium" / "xla" / _processor()


def _trim(folder: Path) -> None:
    """Remove the oldest programs, down to half, once they are more than half a gibibyte.

    Not left to jax, whose own limit fails for good after a process was killed in the middle of a write.
    """
    files = sorted(
        (status.st_mtime, status.st_size, path) for path in folder.iterdir() if (status := path.stat())
    )
    excess = sum(size for _, size, _ in files) - _MOST_BYTES
    if excess <= 0:
        return
    excess += _MOST_BYTES // 2
    for _, size, path in files:
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        excess -= size


def _processor() -> str:
    features = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        pass
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]
