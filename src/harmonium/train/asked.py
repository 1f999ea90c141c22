"""What a call in Python asks for, as the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optax

from harmonium.data.base import DataSet
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.names import describe_model
from harmonium.errors import SettingError
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import PCD
from harmonium.rules.names import describe_assistance, describe_rule
from harmonium.samplers.base import AbstractSampler
from harmonium.train import rebuild
from harmonium.train.config import RunConfig, read_settings


def as_rule(rule: Any, inference: str = "exact") -> AbstractRule:
    """The rule that is given, PCD with the sampler that is, or PCD; the latter two with an inference by its name.

    Raises `SettingError` for anything else.
    """
    if rule is None or isinstance(rule, AbstractSampler):
        return PCD(sampler=rule, inference=inference)
    if not isinstance(rule, AbstractRule):
        what = getattr(rule, "__name__", repr(rule))
        raise SettingError(
            f"a rule such as hm.PCD() is needed, got {what}; pass one with its settings, hm.PCD(steps=1)"
        )
    return rule


def settings_of(
    data: DataSet,
    model: AbstractEnergyModel,
    rule: AbstractRule,
    optimizer: str | optax.GradientTransformation,
    joint: Mapping[str, Any] | None = None,
    **train: Any,
) -> RunConfig:
    """All settings of a run of these objects, with those of the section ``train`` as they were given.

    Objects that no settings describe are called "custom". Raises `SettingError` as `read_settings`.
    """
    return read_settings(
        {
            "data": rebuild.describe_data(data),
            "model": describe_model(model) or {"kind": rebuild.CUSTOM},
            "sampler": describe_rule(rule) or {"name": rebuild.CUSTOM},
            "mode_assisted": describe_assistance(rule),
            "train": {"optimizer": optimizer if isinstance(optimizer, str) else rebuild.CUSTOM, **train},
            "joint": joint,
        }
    )
