"""Names as a caller may give them: whatever else stands in their place is no name, and no comparison of it is tried."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


def is_name(value: Any, names: Container[str]) -> bool:
    """Whether this is one of the names; an array, which would be compared with them one by one, is none.

    >>> is_name("data", ("data", "uniform")), is_name([0.5, 0.5], ("data", "uniform"))
    (True, False)
    """
    return isinstance(value, str) and value in names
