"""The kinds of unit by name: what ``--visible`` and saved files may say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.pair import BernoulliPair, SpinPair
from harmonium.units.spin import Spin

UNIT_KINDS: Mapping[str, type[AbstractUnits]] = MappingProxyType(
    {unit.kind: unit for unit in (Bernoulli, Spin, BernoulliPair, SpinPair)}
)


def unit_class(kind: str) -> type[AbstractUnits]:
    """The class of the kind of unit called ``kind``."""
    if not isinstance(kind, str) or kind not in UNIT_KINDS:
        shown = repr(kind) if isinstance(kind, str) else f"a {type(kind).__name__}"
        raise SettingError(f"no kind of unit is called {shown}; choose one of {', '.join(UNIT_KINDS)}")
    return UNIT_KINDS[kind]
