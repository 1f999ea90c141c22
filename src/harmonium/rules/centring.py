"""Where the centred coordinates of a rule lie, and how they move."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.numerics.whole import is_number
from harmonium.typing import Batch, Configuration


def check_centring(centred: Any, offset_rate: Any) -> None:
    """Raise `SettingError` unless these are settings of a centred rule."""
    if not isinstance(centred, bool | np.bool_):
        raise SettingError(f"centred must be True or False, got {centred!r}; pass one of them")
    if not is_number(offset_rate) or not 0 <= offset_rate <= 1:
        raise SettingError(f"offset_rate is a fraction from 0 to 1, got {offset_rate!r}; pass e.g. 0.01")


def first_offsets(model: AbstractEnergyModel, batch: Batch) -> Configuration:
    """The mean of the data for the visible layer, the mean at rest for hidden ones.

    In a stack, whose codes pass from level to level, these are the middle of their range instead: one offset for the
    hidden units below and the visible ones above.
    """
    if isinstance(model, AbstractStack):
        # With a type that is not weak: the first compiled call of a run is then the same program as the next one.
        dtype = jnp.result_type(*jax.tree.leaves(model))
        middles = [
            jnp.full(units.size, sum(units.support[:: len(units.support) - 1]) / 2, dtype)
            for units in model.units[1:]
        ]
        return (weighted_mean(batch.x, batch.weight).astype(middles[0].dtype), *middles)
    resting = tuple(jnp.asarray(units.mean(units.natural())) for units in model.units)
    return (weighted_mean(batch.x, batch.weight).astype(resting[0].dtype), *resting[1:])


def moved_offsets(
    offsets: Configuration | None, means: Configuration, weight: Float[Array, " rows"] | None, rate: float
) -> Configuration | None:
    """The visible offset stays at the data mean; hidden ones follow the positive phase slowly."""
    if offsets is None:
        return None
    moved = [offsets[0]]
    for offset, mean in zip(offsets[1:], means[1:], strict=True):
        moved.append(offset + rate * (weighted_mean(mean, weight) - offset))
    return tuple(moved)


def weighted_mean(
    values: Float[Array, "rows *rest"], weight: Float[Array, " rows"] | None
) -> Float[Array, "*rest"]:
    """Mean over rows, weighted if there are weights."""
    if weight is None:
        return jnp.mean(values, axis=0)
    return jnp.tensordot(weight.astype(values.dtype), values, axes=1) / jnp.sum(weight)
