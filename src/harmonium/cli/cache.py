"""Compiled programs are kept between commands, so that the second one starts at once."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import warnings
from pathlib import Path

_SHORTEST_COMPILATION = 0.1


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
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST_COMPILATION)


def cache_folder() -> Path:
    """The folder of this machine's compiled programs.

    Its name ends in a digest of the processor's features: home folders are shared between machines, and a program
    compiled for one processor may not run on another.
    """
    root = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(root) if Path(root).is_absolute() else Path("~/.cache").expanduser()
    return home / "harmonium" / "xla" / _processor()


def _processor() -> str:
    features = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        pass
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]
