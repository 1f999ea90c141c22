"""Units as named variables: how the files and samplers of other people number them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from harmonium.energy.base import AbstractEnergyModel, as_layers
from harmonium.energy.cumulant import ends_of
from harmonium.errors import DataError, SettingError
from harmonium.typing import Layers

VALUES = {"BINARY": (0.0, 1.0), "SPIN": (-1.0, 1.0)}
"""The two values of a variable by the name of its kind, its *vartype*."""

_OURS = re.compile(r"v\d+|h\d+_\d+")


def variable_names(model: AbstractEnergyModel, names: Sequence[Hashable] | None = None) -> list[Hashable]:
    """One name per unit, layer after layer: those given, or ``v0, v1, ..., h1_0, h1_1, ..., h2_0, ...``.

    Raises `SettingError` for another number of names than of units and for a name that is given twice.

    >>> from harmonium.energy.rbm import RBM
    >>> variable_names(RBM(2, 2))
    ['v0', 'v1', 'h1_0', 'h1_1']
    """
    if names is None:
        sizes = [units.size for units in model.units]
        hidden = [f"h{layer}_{unit}" for layer, size in enumerate(sizes[1:], 1) for unit in range(size)]
        return [*(f"v{unit}" for unit in range(sizes[0])), *hidden]
    try:
        given = list(names)
        different = len(set(given))
    except TypeError:
        raise SettingError(
            f"names is a list of words or numbers, one for each variable, got {names!r}; leave it out for v0, v1, ..."
        ) from None
    count = sum(units.size for units in model.units)
    if len(given) != count:
        raise SettingError(
            f"names has {len(given)} entries for a machine of {count} units; pass one for each, visible units first"
        )
    if different < count:
        twice = next(name for place, name in enumerate(given) if name in given[:place])
        raise SettingError(f"names has {twice!r} twice; pass a name of its own for each unit")
    return given


def is_visible(names: Sequence[Hashable]) -> list[bool]:
    """Which of these variables are visible units: by their names where all are those of `variable_names`, else all."""
    if all(isinstance(name, str) and _OURS.fullmatch(name) for name in names):
        return [str(name).startswith("v") for name in names]
    return [True] * len(names)


def own_vartype(model: AbstractEnergyModel) -> str:
    """SPIN for a machine all of whose units are spins, else BINARY."""
    return "SPIN" if all(units.support == VALUES["SPIN"] for units in model.units) else "BINARY"


def checked_vartype(vartype: Any) -> str:
    """The name of a kind of variable. Raises `SettingError` for any other word."""
    name = getattr(vartype, "name", vartype)
    if not isinstance(name, str) or name not in VALUES:
        raise SettingError(f"vartype must be 'BINARY' (0 and 1) or 'SPIN' (-1 and +1), got {vartype!r}")
    return name


def states_of(sampleset: Any, names: Sequence[Hashable], vartype: str) -> Float[np.ndarray, "rows n"]:
    """The rows of a dimod SampleSet, columns in the order of ``names``, each as often as it occurred.

    Raises `SettingError` for what is no SampleSet, for one of another vartype, and for variables of other names;
    `DataError` for values that are none of its vartype and for one without rows.
    """
    if not all(hasattr(sampleset, part) for part in ("record", "variables", "vartype")):
        raise SettingError(
            f"a dimod SampleSet is needed, got a {type(sampleset).__name__}; pass what sampler.sample(bqm) gives"
        )
    found = checked_vartype(sampleset.vartype)
    if found != vartype:
        low, high = VALUES[found]
        raise SettingError(
            f"the SampleSet is {found} ({low:g} and {high:g}) where {vartype} is expected; sample the model that was "
            f"written as {vartype}, say vartype={found!r} if it was written so, or convert the samples by "
            f"sampleset.change_vartype({vartype!r}, inplace=False)"
        )
    place = {name: column for column, name in enumerate(sampleset.variables)}
    missing = [name for name in names if name not in place]
    if missing or len(place) != len(names):
        known = set(names)
        others = [name for name in place if name not in known]
        what = f"lacks the variable {missing[0]!r}" if missing else f"has a variable {others[0]!r}"
        raise SettingError(
            f"the SampleSet {what}, so that it is not one of this machine of {len(names)} units; pass the names that "
            "it was written with as names="
        )
    order = [place[name] for name in names]
    values = np.asarray(sampleset.record.sample)[:, order]
    wrong = ~np.isin(values, VALUES[vartype])
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise DataError(
            f"the SampleSet says {vartype} and has {values[row, column]} for {names[column]!r} in row {row}; its "
            f"values are {VALUES[vartype][0]:g} and {VALUES[vartype][1]:g}"
        )
    rows = np.repeat(values.astype(np.float64), np.asarray(sampleset.record.num_occurrences), axis=0)
    if len(rows) == 0:
        raise DataError("the SampleSet has no rows; ask the sampler for some, such as num_reads=100")
    return rows


def configuration_of(model: AbstractEnergyModel, states: Num[np.ndarray, "*batch n"], vartype: str) -> Layers:
    """States of one vartype as a configuration of the machine, in the values and the dtype of its layers."""
    high = VALUES[vartype][1]
    edges = np.cumsum([units.size for units in model.units])[:-1]
    layers = []
    for units, part in zip(model.units, np.split(states, edges, axis=-1), strict=True):
        down, up = units.support
        layers.append(np.where(part == high, up, down).astype(units.bias.dtype))
    return tuple(layers)


def rows_of(model: AbstractEnergyModel, samples: Layers) -> Float[np.ndarray, "rows n"]:
    """The states of a configuration, units of all layers side by side, in double precision.

    Raises `SettingError` for layers that do not fit and `DataError` for values that the units do not take.
    """
    as_layers(model, samples)
    parts = [np.asarray(layer, np.float64) for layer in samples]
    rows = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts], axis=-1)
    ends = ends_of(model.units)
    wrong = (rows != ends[0]) & (rows != ends[1])
    if wrong.any():
        row, unit = np.argwhere(wrong)[0]
        low, high = ends[:, unit]
        raise DataError(
            f"sample {row} has {rows[row, unit]:g} for unit {unit}, whose values are {low:g} and {high:g}; convert the "
            "samples into the values of the model's units"
        )
    return rows
