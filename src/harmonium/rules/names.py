"""The rules by name: what ``--sampler`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harmonium.errors import SettingError
from harmonium.inference.names import describe_inference
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import CD, PCD, Contrastive
from harmonium.rules.likelihood import ExactGradient
from harmonium.samplers.gibbs import Gibbs

RULES: Mapping[str, Callable[..., AbstractRule]] = MappingProxyType(
    {"pcd": PCD, "cd": CD, "exact": ExactGradient}
)

_NOT_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pcd": (),
        "cd": ("chains", "burn_in"),
        "exact": ("steps", "chains", "burn_in", "inference", "inference_sweeps", "precision"),
    }
)
"""Per rule, the settings of other rules that it does not have."""


def build_rule(name: str, settings: Mapping[str, Any]) -> AbstractRule:
    """The rule called ``name``; settings that it does not have are refused, None means its default."""
    if name not in RULES:
        raise SettingError(f"no sampler is called {name!r}; choose one of {', '.join(RULES)}")
    given = {key: value for key, value in settings.items() if value is not None}
    for key in _NOT_OF[name]:
        if key in given:
            owners = [other for other in RULES if key not in _NOT_OF[other]]
            raise SettingError(
                f"{key}={given[key]} is a setting of {' and '.join(owners)}, which {name} does not have; leave it out, "
                "or use sampler='pcd' (--sampler)"
            )
    return RULES[name](**given)


def describe_rule(rule: AbstractRule) -> dict[str, Any] | None:
    """The name and settings that `build_rule` makes this rule of; None for a rule put together by hand."""
    if isinstance(rule, ExactGradient):
        described = {"name": "exact", "centred": rule.centred, "offset_rate": rule.offset_rate}
        return described if rule == build_rule("exact", described | {"name": None}) else None
    if (
        not isinstance(rule, Contrastive)
        or not isinstance(rule.sampler, Gibbs)
        or rule.sampler.clamp is not None
    ):
        return None
    inference = describe_inference(rule.inference)
    if inference is None:
        return None
    described: dict[str, Any] = {
        "name": "pcd" if rule.persistent else "cd",
        "steps": rule.sampler.steps,
        **inference,
        "centred": rule.centred,
        "offset_rate": rule.offset_rate,
        "precision": rule.precision,
    }
    if rule.persistent:
        described |= {"chains": rule.chains_count, "burn_in": rule.burn_in}
    return described
