"""What a greedy run consists of: its levels, and the training of all of them together that may follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import optax

from harmonium.data.base import DataSet
from harmonium.energy.dbm import DBM
from harmonium.energy.dbn import DBN
from harmonium.energy.names import describe_model
from harmonium.energy.parameters import seed_of_level
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.rules.base import AbstractRule
from harmonium.rules.names import describe_assistance, describe_rule
from harmonium.train import rebuild
from harmonium.train.asked import as_rule
from harmonium.train.config import JointConfig, RunConfig, SamplerConfig, read_settings
from harmonium.train.levels import Network, split
from harmonium.train.setup import DEFAULT_UPDATES

JOINT = "joint"
"""The folder of the joint training inside that of the whole run."""

_OF_TRAINING = tuple(key for key in JointConfig.model_fields if key not in SamplerConfig.model_fields)
_OF_LEVELS = ("greedy", "levels", "transposed", "stop_on_decrease")


class Greedy(NamedTuple):
    """A greedy run ready to start: the network, how every level is trained, the settings, and the data."""

    model: Network
    rule: AbstractRule
    optimizer: str | optax.GradientTransformation
    config: RunConfig
    data: DataSet
    joint: AbstractRule | None = None

    @property
    def levels(self) -> int:
        """How many levels are trained, from the bottom."""
        return self.config.train.levels or len(split(self.model))

    @property
    def planned(self) -> int:
        """Updates of every level, where none stops before."""
        return self._updates(self.config)

    @property
    def planned_jointly(self) -> int:
        """Updates of the joint training; 0 where there is none."""
        return 0 if self.joint is None else self._updates(settings_of_joint(self.config, self.model))

    def _updates(self, config: RunConfig) -> int:
        train = config.train
        per_epoch = -(-len(self.data.train) // train.batch_size)
        return train.updates or (train.epochs * per_epoch if train.epochs else DEFAULT_UPDATES)


def joint_settings(joint: Any, network: Network) -> tuple[AbstractRule | None, dict[str, Any] | None]:
    """The rule and the section [joint] of what a call in Python asks for; None and None where it asks for nothing.

    Raises `SettingError` for what is no mapping of arguments of `harmonium.fit`, and for a rule that no settings
    describe: a run could not be gone on with.
    """
    if joint is None:
        return None, None
    known = ("rule", *_OF_TRAINING)
    if not isinstance(joint, Mapping):
        raise SettingError(
            f"joint holds the arguments of a joint training by name, got {joint!r}; pass e.g. "
            "{'rule': hm.PCD(steps=5), 'updates': 5000}"
        )
    for key in joint:
        if key not in known:
            raise SettingError(f"joint has no argument {key!r}; it takes {', '.join(known)}")
    rule = as_rule(joint.get("rule"), "mean-field" if isinstance(network, DBM) else "exact")
    described = describe_rule(rule)
    if described is None or describe_assistance(rule):
        raise SettingError(
            "no settings describe the rule of the joint training, so that its run could not be gone on with; train "
            "jointly in a call of its own, hm.fit(run.model, data, rule)"
        )
    return rule, described | {key: value for key, value in joint.items() if key != "rule"}


def settings_of_joint(config: RunConfig, network: Network) -> RunConfig:
    """The settings of the joint run, whose seed is derived from that of the whole."""
    assert config.joint is not None
    own = config.joint.model_dump(include=set(_OF_TRAINING), exclude_none=True)
    dropped = {*_OF_LEVELS, *(("epochs", "updates") if {"epochs", "updates"} & own.keys() else ())}
    depth = len(network.levels) if isinstance(network, DBN) else len(network.couplings)
    train = config.train.model_dump(exclude=dropped, exclude_none=True) | own
    train["seed"] = seed_of_level(config.train.seed, depth)
    if isinstance(network, DBN):
        train["greedy"] = False
    return read_settings(
        {
            "data": config.data.model_dump(exclude_none=True),
            "model": describe_model(network) or {"kind": rebuild.CUSTOM},
            "sampler": config.joint.model_dump(include=set(SamplerConfig.model_fields), exclude_none=True),
            "train": train,
        }
    )


def settings_of_level(greedy: Greedy, index: int, rbm: RBM, data: DataSet) -> RunConfig:
    """The settings of one level's run; its seed is the network's for the bottom level, and derived from it above."""
    train = greedy.config.train
    none = {"greedy": None, "levels": None, "transposed": None}
    own = train.model_copy(update={"seed": seed_of_level(train.seed, index), **none})
    return read_settings(
        {
            "data": rebuild.describe_data(data),
            "model": describe_model(rbm) or {"kind": rebuild.CUSTOM},
            "sampler": greedy.config.sampler.model_dump(exclude_none=True),
            "mode_assisted": greedy.config.mode_assisted.model_dump(exclude_none=True),
            "train": own.model_dump(exclude_none=True),
        }
    )


def optimizer_of(greedy: Greedy, own: RunConfig) -> str | optax.GradientTransformation:
    """The optimiser of a stage: one by name, or the one that was given in Python."""
    return greedy.optimizer if own.train.optimizer == rebuild.CUSTOM else own.train.optimizer
