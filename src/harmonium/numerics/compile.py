"""One way to compile: ``jax.jit`` with the vector width that this processor is fastest at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax


@cache
def has_wide_vectors() -> bool:
    """Whether the processor has 512-bit vectors, which XLA leaves unused unless asked."""
    try:
        return " avx512f " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def compile_function(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``jax.jit(function, **options)``, with 512-bit vectors on a CPU that has them.

    The width can change the last bits of a result: runs are reproducible on one machine and build, not across them.
    """
    wide = jax.default_backend() == "cpu" and has_wide_vectors()
    compiler_options = {"xla_cpu_prefer_vector_width": 512} if wide else None
    return jax.jit(function, compiler_options=compiler_options, **options)
