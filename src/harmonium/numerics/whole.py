"""Whole numbers as a caller may give them: of Python or of numpy, never truth values or floats."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from harmonium.errors import SettingError

LARGEST_SEED = 2**63 - 1
"""Seeds are at most this: jax and TOML count in 64 bits with a sign."""


def is_whole(value: Any) -> bool:
    """Whether this is a whole number: an int of Python or of numpy, but no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a real number, of Python or of numpy, but no truth value."""
    return is_whole(value) or isinstance(value, float | np.floating)


def whole_number(value: Any, fault: str, cure: str = "", *, least: int = 1, most: int | None = None) -> int:
    """The value as an int of Python.

    Raises `SettingError`, "FAULT, got VALUE; CURE", when it is no whole number from ``least`` to ``most``. Of a value
    above ``most`` it also says how many are allowed.

    >>> import numpy as np
    >>> whole_number(np.int64(3), "n must be a whole number of at least 1")
    3
    """
    number = operator.index(value) if is_whole(value) else None
    if number is None or number < least or (most is not None and number > most):
        shown = repr(value.item()) if isinstance(value, np.generic) else repr(value)
        if most is not None and number is not None and number > most:
            shown += f", which is more than {most}"
        raise SettingError(f"{fault}, got {shown}" + (f"; {cure}" if cure else ""))
    return number


def seed_number(seed: Any) -> int:
    """The seed as an int of Python. Raises `SettingError` when it is no whole number from 0 below 2^63.

    >>> seed_number(7)
    7
    """
    return whole_number(seed, "seed must be a whole number from 0 below 2^63", least=0, most=LARGEST_SEED)


def rounded_up(number: float) -> float:
    """The next number of two digits, so that what is advised is enough.

    >>> rounded_up(1234.5)
    1300.0
    """
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit
