"""Names: arrays, lists and whatever else are none, and are not compared as if they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harmonium.errors import SettingError
from harmonium.numerics.named import is_name
from harmonium.samplers.walk import check_base

NAMES = ("data", "uniform")


@pytest.mark.parametrize(
    "value", [np.zeros(3), np.array(["data", "uniform"]), ["data"], None, 3, "base", True]
)
def test_what_is_no_name(value: Any) -> None:
    assert is_name(value, NAMES) is False


def test_names_of_numpy_count() -> None:
    assert is_name(np.str_("data"), NAMES)
    check_base("uniform")
    with pytest.raises(SettingError, match="no base is called 'marginals'; choose one of data, uniform"):
        check_base("marginals")
