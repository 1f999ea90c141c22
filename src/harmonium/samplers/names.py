"""The samplers by name: what ``harmonium sample --sampler`` may say, and the part of a rule that is its sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harmonium.errors import SettingError
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.cast import CAST
from harmonium.samplers.deep_tempering import DeepTempering
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.tempering import ParallelTempering
from harmonium.samplers.transitions import TemperedTransitions

SAMPLERS: Mapping[str, Callable[..., AbstractSampler]] = MappingProxyType(
    {
        "gibbs": Gibbs,
        "pt": ParallelTempering,
        "cast": CAST,
        "transitions": TemperedTransitions,
        "deep": DeepTempering,
    }
)

SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gibbs": ("steps",),
        "pt": ("rungs", "steps", "swaps", "schedule", "base"),
        "cast": ("ratio", "rungs", "steps", "gain", "schedule", "base"),
        "transitions": ("rungs", "steps", "schedule", "base"),
        "deep": ("steps", "hot", "order"),
    }
)
"""What each of them can be told."""


def build_sampler(name: str, settings: Mapping[str, Any]) -> AbstractSampler:
    """The sampler called ``name``; None in a setting means its default.

    Raises `SettingError` for a name that is not known and a setting that the sampler does not have.

    >>> build_sampler("pt", {"rungs": 5}).rungs
    5
    """
    if name not in SAMPLERS:
        raise SettingError(f"no sampler is called {name!r}; choose one of {', '.join(SAMPLERS)}")
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if key not in SETTINGS[name]:
            raise SettingError(
                f"{key}={given[key]} is no setting of {name}; it has {', '.join(SETTINGS[name])}"
            )
    return SAMPLERS[name](**given)


def describe_sampler(sampler: AbstractSampler) -> tuple[str, dict[str, Any]] | None:
    """The name and settings that `build_sampler` makes this sampler of; None for one that has no name."""
    for name, kind in SAMPLERS.items():
        if type(sampler) is kind:
            settings = {key: _plain(getattr(sampler, key)) for key in SETTINGS[name]}
            return (name, settings) if sampler == build_sampler(name, settings) else None
    return None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
