"""The undirected models by name: what ``--model`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harmonium.energy.base import AbstractBipartite, AbstractEnergyModel
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.units.kinds import unit_class

MODELS = ("rbm",)

MOST_WEIGHTS = 2**31 - 1


def build_model(
    kind: str,
    visible_size: int,
    hidden: Sequence[int],
    *,
    visible: str = "bernoulli",
    hidden_units: str = "bernoulli",
    weight_scale: float | None = None,
    seed: int = 0,
) -> AbstractBipartite:
    """A new model of the named kind for rows of ``visible_size`` values."""
    if kind not in MODELS:
        raise SettingError(f"no model is called {kind!r}; choose one of {', '.join(MODELS)}")
    if len(hidden) != 1:
        raise SettingError(
            f"an rbm has one hidden layer, got {len(hidden)} sizes {list(hidden)}; pass one, e.g. 128"
        )
    if visible_size * hidden[0] > MOST_WEIGHTS:
        raise SettingError(
            f"an rbm of {visible_size} x {hidden[0]} units has {visible_size * hidden[0]} weights, more than the "
            f"{MOST_WEIGHTS} that can be numbered in 32 bits; choose fewer hidden units"
        )
    return RBM(
        unit_class(visible)(visible_size),
        unit_class(hidden_units)(hidden[0]),
        seed=seed,
        weight_scale=INITIAL_WEIGHT_SCALE if weight_scale is None else weight_scale,
    )


def describe_model(model: AbstractEnergyModel) -> dict[str, Any] | None:
    """The name and settings that `build_model` makes a model of this shape of; None for one it does not know."""
    if not isinstance(model, RBM):
        return None
    return {
        "kind": "rbm",
        "visible": model.units[0].kind,
        "hidden": [model.units[1].size],
        "hidden_units": model.units[1].kind,
    }
