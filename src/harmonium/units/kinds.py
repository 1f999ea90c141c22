"""The kinds of unit by name: what ``--visible`` and saved files may say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.spin import Spin

UNIT_KINDS: Mapping[str, type[AbstractUnits]] = MappingProxyType({"bernoulli": Bernoulli, "spin": Spin})


def unit_class(kind: str) -> type[AbstractUnits]:
    """The class of the kind of unit called ``kind``."""
    if kind not in UNIT_KINDS:
        raise SettingError(f"no kind of unit is called {kind!r}; choose one of {', '.join(UNIT_KINDS)}")
    return UNIT_KINDS[kind]
