"""What a run was computed with: everything known to change the bits of a result, and nothing about the person.

The description has no host name, no user name, no path and no clock, so that two runs on equal machines have equal
files and a run folder can be given away.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harmonium.train.storage import harmonium_version

_PACKAGES = ("equinox", "jax", "jaxlib", "numpy", "optax", "safetensors", "scikit-learn", "scipy")
_CPU_FEATURES = ("avx", "avx2", "fma", "avx512", "amx", "asimd", "sve")
_JAX_OPTIONS = (
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_enable_x64",
    "jax_threefry_partitionable",
)


def describe_environment() -> dict[str, Any]:
    """Returns versions, platform, devices, processor features and switches that decide the last bits of a result.

    Imports jax and starts its backend.
    """
    import jax

    return {
        "cpu": {"count": _cpu_count(), "features": _cpu_features(), "machine": platform.machine()},
        "devices": [{"kind": device.device_kind, "platform": device.platform} for device in jax.devices()],
        "harmonium": harmonium_version(),
        "jax": {option: getattr(jax.config, option, None) for option in _JAX_OPTIONS},
        "packages": {package: _version(package) for package in _PACKAGES},
        "platform": {
            "byte_order": sys.byteorder,
            "libc": " ".join(platform.libc_ver()),
            "system": platform.system(),
        },
        "python": {"implementation": platform.python_implementation(), "version": platform.python_version()},
        "xla_flags": [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not set("/\\") & set(flag)],
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Returns one line for each entry that differs, such as ``packages.jax was '0.10.2', is '0.11.0'``.

    >>> differences({"python": {"version": "3.11.9"}}, {"python": {"version": "3.12.1"}})
    ["python.version was '3.11.9', is '3.12.1'"]
    """
    found: list[str] = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += [f"{name}.{line}" for line in differences(before, after)]
        elif before != after:
            found.append(f"{name} was {before!r}, is {after!r}")
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_count() -> int:
    """The cores this process may use: compiled code splits its sums by them."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_features() -> list[str]:
    """Vector instructions, which decide the order of sums; known on Linux, elsewhere empty."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    flags: set[str] = set()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            flags.update(value.split())
    return sorted(
        flag for flag in flags if flag in _CPU_FEATURES or flag.startswith(("avx512", "amx", "avx_", "sve"))
    )
