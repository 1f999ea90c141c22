"""Machines that carry labels: a softmax layer at the top of a row, observed like the rows at its foot."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits
from harmonium.units.categorical import Categorical


def label_units(model: AbstractEnergyModel) -> Categorical | None:
    """The label layer of a model, which is its last one; None for a model without."""
    top = model.units[-1]
    return top if isinstance(top, Categorical) and len(model.units) > 1 else None


def check_labels(model: AbstractEnergyModel, what: str) -> Categorical:
    """The label layer of a model. Raises `SettingError` with ``what`` needs one where there is none."""
    found = label_units(model)
    if found is None:
        raise SettingError(
            f"{what} needs a machine with a label layer, such as hm.DBM(64, [32], labels=10), got a "
            f"{type(model).__name__} without"
        )
    return found


def check_unlabelled(model: AbstractEnergyModel, what: str) -> None:
    """Raise `SettingError` for a model with a label layer, which ``what`` cannot take."""
    if label_units(model) is not None:
        raise SettingError(
            f"{what} cannot take a machine with a label layer; pass model.given_label(k), which is the machine without "
            "it that class k leaves"
        )


def check_softmax_layers(units: Sequence[AbstractUnits], what: str, labels: bool = False) -> None:
    """Raise `SettingError` for softmax units where ``what`` has none: anywhere but, with ``labels``, at the top."""
    for index, layer in enumerate(units):
        if not isinstance(layer, Categorical):
            continue
        if not labels or index + 1 < len(units) or index < 2:
            raise SettingError(
                f"layer {index} of {what} has {layer.kind} units; softmax units can only be the label layer on top of "
                "the hidden layers of a DBM: pass hm.DBM(64, [32], labels=10)"
            )
        if layer.variables != 1:
            raise SettingError(
                f"a label layer is one variable, got {layer.variables} of {layer.states} states; pass labels="
                f"{layer.states}"
            )


def split_observed(
    model: AbstractEnergyModel, rows: Num[Array, "*batch n"]
) -> tuple[Num[Array, "*batch visible"], Num[Array, "*batch states"] | None]:
    """Rows as they are scored, in their visible part and their labels: None where they have no labels behind them.

    Raises `SettingError` for rows of another width.
    """
    labels, visible = label_units(model), model.units[0].size
    if labels is not None and rows.shape[-1] == visible + labels.size:
        return rows[..., :visible], rows[..., visible:]
    if rows.shape[-1] != visible:
        either = (
            "" if labels is None else f", or {visible + labels.size} with the label behind them (one-hot)"
        )
        raise SettingError(
            f"layer 0 has {visible} units, got an array of shape {rows.shape}; its last axis must be {visible}{either}"
        )
    return rows, None


def with_labels(
    rows: Num[Array, "*batch visible"], labels: Float[Array, "*batch states"]
) -> Num[Array, "*batch n"]:
    """Rows with their labels behind them, the inverse of `split_observed`."""
    return jnp.concatenate([rows, labels.astype(rows.dtype)], axis=-1)
