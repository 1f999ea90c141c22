"""The rules by name: what ``--sampler`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harmonium.errors import SettingError
from harmonium.inference.names import describe_inference
from harmonium.modes.names import build_solver, describe_solver
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import CD, PCD, Contrastive
from harmonium.rules.likelihood import ExactGradient
from harmonium.rules.mode_assisted import ModeAssisted
from harmonium.samplers.names import SETTINGS, build_sampler, describe_sampler


def _with_sampler(name: str) -> Callable[..., AbstractRule]:
    """PCD with the sampler called ``name``, whose settings stand among those of the rule."""

    def build(**settings: Any) -> AbstractRule:
        own = {key: settings.pop(key) for key in SETTINGS[name] if key in settings}
        return PCD(sampler=build_sampler(name, own), **settings)

    return build


RULES: Mapping[str, Callable[..., AbstractRule]] = MappingProxyType(
    {
        "pcd": PCD,
        "cd": CD,
        **{name: _with_sampler(name) for name in SETTINGS if name != "gibbs"},
        "exact": ExactGradient,
    }
)

_NOT_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pcd": ("final_steps",),
        "cd": ("chains", "burn_in"),
        "pt": ("final_steps",),
        "cast": ("final_steps",),
        "transitions": ("final_steps",),
        "deep": ("final_steps",),
        "exact": ("steps", "chains", "burn_in", "inference", "inference_sweeps", "precision", "final_steps"),
    }
)
"""Per rule, the settings of other rules that it does not have."""


def build_rule(name: str, settings: Mapping[str, Any]) -> AbstractRule:
    """The rule called ``name``; settings that it does not have are refused, None means its default."""
    if name not in RULES:
        raise SettingError(f"no sampler is called {name!r}; choose one of {', '.join(RULES)}")
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        owners = [other for other in RULES if takes(other, key)]
        if name not in owners:
            whose = " and ".join(part for part in (", ".join(owners[:-1]), owners[-1]) if part)
            raise SettingError(
                f"{key}={given[key]} is a setting of {whose}, which {name} does not have; leave it out, or use "
                f"sampler={owners[0]!r} (--sampler)"
            )
    return RULES[name](**given)


def takes(name: str, key: str) -> bool:
    """Whether a rule has a setting: one of its own, or of the sampler it is called by."""
    samplers = [sampler for sampler, own in SETTINGS.items() if key in own and key not in SETTINGS["gibbs"]]
    return name in RULES and key not in _NOT_OF[name] and (not samplers or name in samplers)


def assisted(base: AbstractRule, settings: Mapping[str, Any]) -> AbstractRule:
    """The rule itself, or, where ``settings`` are ``enabled``, assisted by modes; None in a setting is its default.

    Settings are those of `ModeAssisted`, with the solver by its name and its own settings under ``solver_``.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    if not given.pop("enabled", False):
        return base
    own = {key: given.pop(key) for key in _ASSISTED if key in given}
    solver = given.pop("solver", "descent")
    told = {key.removeprefix(_TOLD): value for key, value in given.items()}
    return ModeAssisted(base, build_solver(solver, told), **own)  # pyright: ignore[reportArgumentType]


def describe_assistance(rule: AbstractRule) -> dict[str, Any]:
    """The settings that `assisted` makes this rule of, beside those of its base; empty where no modes assist it."""
    if not isinstance(rule, ModeAssisted) or describe_rule(rule) is None:
        return {}
    solver = describe_solver(rule.solver)
    assert solver is not None
    name, settings = solver
    own = {key: getattr(rule, key) for key in _ASSISTED}
    return {"enabled": True, "solver": name, **{_TOLD + key: told for key, told in settings.items()}, **own}


_TOLD = "solver_"
_ASSISTED = ("probability", "steepness", "offset", "push_scale", "push", "baseline_steps")


def describe_rule(rule: AbstractRule) -> dict[str, Any] | None:
    """The name and settings that `build_rule` makes this rule of; None for a rule put together by hand.

    Of an assisted rule they are those of its base; see `describe_assistance` for the rest.
    """
    if isinstance(rule, ModeAssisted):
        return None if describe_solver(rule.solver) is None else describe_rule(rule.base)
    if isinstance(rule, ExactGradient):
        described = {"name": "exact", "centred": rule.centred, "offset_rate": rule.offset_rate}
        return described if rule == build_rule("exact", described | {"name": None}) else None
    if not isinstance(rule, Contrastive):
        return None
    inference, sampler = describe_inference(rule.inference), describe_sampler(rule.sampler)
    if inference is None or sampler is None:
        return None
    name, settings = sampler
    if name == "gibbs":
        name = "pcd" if rule.persistent else "cd"
    elif not rule.persistent:
        return None
    described: dict[str, Any] = {
        "name": name,
        **settings,
        **inference,
        "centred": rule.centred,
        "offset_rate": rule.offset_rate,
        "precision": rule.precision,
    }
    if rule.final_steps is not None:
        described["final_steps"] = rule.final_steps
    if rule.persistent:
        described |= {"chains": rule.chains_count, "burn_in": rule.burn_in}
    return described
