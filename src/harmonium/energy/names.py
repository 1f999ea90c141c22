"""The undirected models by name: what ``--model`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.dbm import DBM
from harmonium.energy.dbn import DBN
from harmonium.energy.labels import label_units
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.kinds import unit_class

MODELS = ("rbm", "bm", "dbm", "dbn")

_DEEP: Mapping[str, type[DBM] | type[DBN]] = MappingProxyType({"dbm": DBM, "dbn": DBN})

MOST_WEIGHTS = 2**31 - 1


def build_model(
    kind: str,
    visible_size: int,
    hidden: Sequence[int],
    *,
    visible: str = "bernoulli",
    hidden_units: str = "bernoulli",
    weight_scale: float | None = None,
    labels: int | None = None,
    seed: int = 0,
) -> AbstractEnergyModel:
    """A new model of the named kind for rows of ``visible_size`` values."""
    if kind not in MODELS:
        raise SettingError(f"no model is called {kind!r}; choose one of {', '.join(MODELS)}")
    article = "an rbm" if kind == "rbm" else f"a {kind}"
    if len(hidden) != 1 and kind not in _DEEP:
        raise SettingError(
            f"{article} has one hidden layer, got {len(hidden)} sizes {list(hidden)}; pass one, e.g. 128"
        )
    if labels is not None and kind != "dbm":
        raise SettingError(
            f"labels={labels} is a setting of a dbm, which {article} does not have; leave it out, or use kind 'dbm' "
            "(--model dbm), with one hidden layer a classification RBM"
        )
    sizes = [visible_size, *hidden, *([] if labels is None else [labels])]
    units = sum(sizes)
    weights = (
        units * (units - 1) // 2
        if kind == "bm"
        else max((lower * upper for lower, upper in pairwise(sizes)), default=0)
    )
    if weights > MOST_WEIGHTS:
        raise SettingError(
            f"{article} of {' x '.join(map(str, sizes))} units has {weights} weights, more than the {MOST_WEIGHTS} "
            "that can be numbered in 32 bits; choose fewer hidden units"
        )
    scale = INITIAL_WEIGHT_SCALE if weight_scale is None else weight_scale
    below = unit_class(visible)(visible_size)
    if kind in _DEEP:
        layers = [unit_class(hidden_units)(count) for count in hidden]
        if labels is not None:
            return DBM(below, layers, labels=labels, seed=seed, weight_scale=scale)
        return _DEEP[kind](below, layers, seed=seed, weight_scale=scale)
    (count,) = hidden
    if kind == "bm":
        above = unit_class(hidden_units)(count) if count else 0
        return BoltzmannMachine(below, above, seed=seed, weight_scale=scale)
    return RBM(below, unit_class(hidden_units)(count), seed=seed, weight_scale=scale)


def describe_model(model: AbstractEnergyModel) -> dict[str, Any] | None:
    """The name and settings that `build_model` makes a model of this shape of; None for one it does not know."""
    if isinstance(model, BoltzmannMachine):
        kind, layers = "bm", model.units
        if not model.couplings[0].graph.is_complete:
            return None
    elif isinstance(model, DBN):
        kind, layers = "dbn", model.layers
    elif isinstance(model, DBM):
        kind, layers = "dbm", model.units
    elif isinstance(model, RBM):
        kind, layers = "rbm", model.units
    else:
        return None
    labels = label_units(model)
    above = layers[1:] if labels is None else layers[1:-1]
    if len({units.kind for units in above}) > 1:
        return None
    return {
        "kind": kind,
        "visible": layers[0].kind,
        "hidden": [units.size for units in above] or [0],
        "hidden_units": above[0].kind if above else Bernoulli.kind,
        **({} if labels is None else {"labels": labels.states}),
    }
