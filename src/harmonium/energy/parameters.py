"""The arrays that models are made of: checked as they come from outside, or drawn for a new model."""

from __future__ import annotations

from typing import SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from harmonium.errors import SettingError
from harmonium.numerics.random import seed_key
from harmonium.numerics.whole import is_number

INITIAL_WEIGHT_SCALE = 0.01
"""Standard deviation of the weights of a new machine."""


_LARGEST_SCALE = 1e37


def starting_weights(shape: tuple[int, ...], seed: SupportsIndex, weight_scale: float) -> Float[Array, "..."]:
    """``weight_scale`` times standard normal numbers of ``seed``, in float32.

    Raises `SettingError` for a seed or a scale out of range.
    """
    if not is_number(weight_scale) or not 0 <= weight_scale < float("inf"):
        raise SettingError(
            f"weight_scale must be a finite number of at least 0, got {weight_scale!r}; pass e.g. 0.01"
        )
    if weight_scale > _LARGEST_SCALE:
        raise SettingError(
            f"weight_scale must be at most {_LARGEST_SCALE:g}, so that weights are finite in float32, got "
            f"{weight_scale!r}; pass e.g. 0.01"
        )
    return weight_scale * jax.random.normal(seed_key(seed), shape, jnp.float32)


def seed_of_level(seed: int, level: int) -> int:
    """The seed itself for the weights above the visible layer, and one derived from it for each level above."""
    if level == 0:
        return seed
    state = np.random.SeedSequence([seed, level]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def as_parameter(values: ArrayLike, name: str, axes: int) -> np.ndarray:
    """An array of finite real numbers with so many axes; floats keep their dtype, whole numbers become float32.

    Raises `SettingError` for anything else.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise SettingError(
            f"{name} must be an array, got rows of unequal length; pass {axes} axes of numbers"
        ) from None
    if array.dtype.kind not in "fiub":
        raise SettingError(f"{name} must hold real numbers, got dtype {array.dtype}; pass a float array")
    if array.ndim != axes or array.size == 0:
        raise SettingError(
            f"{name} must have {axes} axes and at least one entry, got shape {array.shape}; reshape it"
        )
    array = array if array.dtype.kind == "f" else array.astype(np.float32)
    if not np.all(np.isfinite(array)):
        raise SettingError(
            f"{name} holds a number that is not finite; clean the array before building a model"
        )
    return array
