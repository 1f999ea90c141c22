"""The kinds of unit by name: what ``--visible`` and saved files may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import KIND, Categorical
from harmonium.units.pair import BernoulliPair, SpinPair
from harmonium.units.spin import Spin

UNIT_KINDS: Mapping[str, type[AbstractUnits]] = MappingProxyType(
    {unit.kind: unit for unit in (Bernoulli, Spin, BernoulliPair, SpinPair)} | {KIND: Categorical}
)


def unit_class(kind: str) -> Callable[..., AbstractUnits]:
    """What makes a layer of the kind of unit called ``kind``, of a size or of a ``bias``.

    Of "categorical:10" the size counts variables of ten states.
    """
    name, _, states = kind.partition(":") if isinstance(kind, str) else ("", "", "")
    if name not in UNIT_KINDS or bool(states) != (name == KIND):
        shown = repr(kind) if isinstance(kind, str) else f"a {type(kind).__name__}"
        names = ", ".join(f"{name}:STATES" if name == KIND else name for name in UNIT_KINDS)
        raise SettingError(f"no kind of unit is called {shown}; choose one of {names}")
    if name != KIND:
        return UNIT_KINDS[name]
    if not states.isdecimal():
        raise SettingError(f"{kind!r} does not say how many states a variable has; write e.g. {KIND}:10")
    return partial(Categorical, int(states))
