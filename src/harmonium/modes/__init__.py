"""Modes: the states of lowest energy, each with what is proved of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "find": "harmonium.modes.mode",
    "Mode": "harmonium.modes.mode",
    "Descent": "harmonium.modes.descent",
    "Annealing": "harmonium.modes.annealing",
    "Memcomputing": "harmonium.modes.memcomputing",
    "Exact": "harmonium.modes.exact",
}

__all__ = list(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from harmonium.modes.annealing import Annealing as Annealing
    from harmonium.modes.descent import Descent as Descent
    from harmonium.modes.exact import Exact as Exact
    from harmonium.modes.memcomputing import Memcomputing as Memcomputing
    from harmonium.modes.mode import Mode as Mode
    from harmonium.modes.mode import find as find


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'harmonium.modes' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
