"""Plain Python values out of whatever holds numbers, for JSON and TOML."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Literal

from harmonium.errors import SettingError


def plain(value: Any, where: str, *, not_finite: Literal["refuse", "null", "keep"] = "refuse") -> Any:
    """Returns ``value`` made of dict, list, str, int, float, bool and None only.

    Arrays and scalars of numpy and jax become numbers and nested lists (float32 widened exactly), tuples become
    lists, paths become text. ``not_finite`` says what becomes of NaN and infinities. ``where`` names the value in
    messages.

    Raises SettingError for anything else, and for a mapping whose keys are not text.

    >>> plain({"rate": (0.5, float("nan"))}, "the record", not_finite="null")
    {'rate': [0.5, None]}
    """
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        if math.isfinite(value) or not_finite == "keep":
            return value
        if not_finite == "null":
            return None
        raise SettingError(f"{where} is {value}, which a file cannot hold; store a finite number, or None")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise SettingError(f"{where} has the key {key!r}, but keys must be text; write {str(key)!r}")
        return {key: plain(item, f"{where}[{key!r}]", not_finite=not_finite) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", not_finite=not_finite) for i, item in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, int | float):  # subclasses, such as enumerations and numpy's float64
        return plain(int(value) if isinstance(value, int) else float(value), where, not_finite=not_finite)
    if hasattr(value, "tolist"):
        listed = value.tolist()
        if hasattr(listed, "tolist"):  # numpy does not know how to list the short floats of ml_dtypes
            listed = float(listed)
        return plain(listed, where, not_finite=not_finite)
    raise SettingError(
        f"{where} is of type {type(value).__name__}, which a file cannot hold; "
        "store numbers, text, lists and mappings of these"
    )
