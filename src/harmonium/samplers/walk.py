"""What samplers share that walk between their model and a base: the betas, the base, and the energy between the two."""

from __future__ import annotations

from typing import Any, SupportsIndex

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.energy.machine_path import path_between
from harmonium.errors import SettingError
from harmonium.numerics.named import is_name
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Configuration
from harmonium.units.base import AbstractLinearUnits

BASES = ("data", "uniform")

_SMOOTHED = 0.01
"""The base has no unit nearer to an end of its range than this share of it."""

# -------------------------------------------------------------------------------------------------------------- betas


def checked_steps(steps: SupportsIndex) -> int:
    """The number of sweeps as an int. Raises `SettingError` for fewer than one."""
    return whole_number(steps, "tempering needs a whole number of steps, at least one sweep", "pass 1")


def checked_schedule(schedule: Any) -> str | tuple[float, ...]:
    """A schedule's name as it is, or betas as a tuple of floats, which `check_schedule` then looks at."""
    if isinstance(schedule, str):
        return schedule
    try:
        betas = tuple(schedule)
    except TypeError:
        betas = (schedule,)
    return tuple(float(beta) if is_number(beta) else beta for beta in betas)


def rungs_of(rungs: SupportsIndex | None, schedule: str | tuple[float, ...], default: int) -> SupportsIndex:
    """How many rungs are meant: as told, or one for each beta of a schedule of one's own, or ``default``."""
    if rungs is not None:
        return rungs
    return default if isinstance(schedule, str) else max(len(schedule), 2)


def check_schedule(
    schedule: str | tuple[float, ...], rungs: int, names: tuple[str, ...] = ("uniform",)
) -> None:
    """Raise `SettingError` unless this is one of ``names`` or as many betas as rungs, rising to 1."""
    if isinstance(schedule, str):
        if schedule not in names:
            raise SettingError(
                f"no schedule is called {schedule!r}; choose one of {', '.join(names)}, or pass betas, such as "
                "[0, 0.5, 1]"
            )
        return
    betas = list(schedule)
    if len(betas) < 2 or not all(map(is_number, betas)):
        raise SettingError(f"a schedule has at least two betas, got {betas}; pass e.g. [0, 0.5, 1]")
    if betas[-1] != 1 or not 0 <= betas[0] < 1 or not np.all(np.diff(betas) > 0):
        cure = "betas[::-1]" if betas[0] == 1 else "e.g. [0, 0.5, 1]"
        raise SettingError(f"betas must rise to 1, from 0 or above, got {betas}; pass {cure}")
    if rungs != len(betas):
        raise SettingError(f"rungs={rungs}, but the schedule has {len(betas)} betas; drop rungs")


def first_betas(schedule: str | tuple[float, ...], rungs: int) -> np.ndarray:
    """The betas that a ladder begins with, falling from 1: evenly spaced, or those of the schedule."""
    return np.linspace(1, 0, rungs) if isinstance(schedule, str) else np.asarray(schedule[::-1])


# --------------------------------------------------------------------------------------------------------------- base


def check_base(base: str) -> None:
    """Raise `SettingError` unless this is a name of `BASES`."""
    if not is_name(base, BASES):
        raise SettingError(f"no base is called {base!r}; choose one of {', '.join(BASES)}")


def first_bias(base: str, model: AbstractEnergyModel, dtype: Any) -> Float[Array, " visible"] | None:
    """Bias of the visible units of a base before any data are seen; None for a uniform base."""
    return jnp.asarray(model.units[0].natural(), dtype) if base == "data" else None


def bias_at(
    model: AbstractEnergyModel, mean: Float[Array, " visible"], bias: Float[Array, " visible"] | None
) -> Float[Array, " visible"] | None:
    """Bias of a base whose visible units have these means; a uniform base, of no bias, stays one."""
    if bias is None:
        return None
    units = model.units[0]
    low, high = units.support[0], units.support[-1]
    margin = _SMOOTHED * (high - low)
    return units.field_of_mean(jnp.clip(mean, low + margin, high - margin)).astype(bias.dtype)


def far_end(model: AbstractEnergyModel, bias: Float[Array, " visible"] | None) -> Independent | None:
    """The base as it is with the model as it is; None where it is uniform, with no energy at all."""
    return None if bias is None else base_of(model, bias)


def base_of(model: AbstractEnergyModel, bias: Float[Array, " visible"]) -> Independent:
    """Independent layers: the visible one of this bias, each other one at the field that the mean of those below makes.

    These fields move with the model, so that a base taken at the start of training stays a good one.
    """
    layers = [model.units[0].with_bias(bias)]
    means = [jnp.asarray(layers[0].mean(bias))]
    for index, units in enumerate(model.units[1:], start=1):
        above = tuple(jnp.asarray(rest.mean(rest.natural())) for rest in model.units[index:])
        field = model.field(index, (*means, *above))
        layers.append(units.with_bias(field))
        means.append(jnp.asarray(units.mean(field)))
    return Independent(layers)


# --------------------------------------------------------------------------------------------------------------- walk


def sweep_at(
    noise: Noise,
    model: AbstractEnergyModel,
    base: Independent | None,
    rows: Configuration,
    beta: Float[Array, "..."],
    *,
    backwards: bool = False,
) -> Configuration:
    """One sweep of every row at its own beta (or all at one) between base and model."""
    if base is None:
        beta = jnp.broadcast_to(beta, rows[0].shape[:-1])
        return model.sweep(noise, rows, beta, backwards=backwards)
    return path_between(base, model, beta).sweep(noise, rows, backwards=backwards)


def energy_difference(
    model: AbstractEnergyModel, base: Independent | None, rows: Configuration
) -> Float[Array, " rows"]:
    """Energy under the model minus that under the base, which for linear units is one energy of other biases."""
    if base is None:
        return model.energy(rows)
    if not all(isinstance(units, AbstractLinearUnits) for units in model.units):
        return model.energy(rows) - base.energy(rows)
    pairs = zip(model.units, base.units, strict=True)
    biases = [units.bias - start.bias for units, start in pairs]
    return eqx.tree_at(lambda tree: [units.bias for units in tree.units], model, biases).energy(rows)
