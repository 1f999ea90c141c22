"""A SampleSet as configurations of a machine."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from harmonium.energy.base import AbstractEnergyModel, check_model, check_two_valued
from harmonium.energy.variables import (
    checked_vartype,
    configuration_of,
    own_vartype,
    states_of,
    variable_names,
)
from harmonium.typing import Layers


def from_sampleset(
    sampleset: Any,
    model: AbstractEnergyModel,
    vartype: str | None = None,
    names: Sequence[Hashable] | None = None,
) -> Layers:
    """The rows of a dimod SampleSet as a configuration of the machine, each row as often as it occurred.

    ``vartype`` and ``names`` are those that the machine was written with by `harmonium.interop.dimod.to_bqm`. The
    SampleSet must be of that vartype and have these variables, and no others; values are then those of the units.

    **Returns** a tuple with one array per layer, rows first: what ``model.energy``, `harmonium.estimate_beta` and
    `harmonium.gradient_from_samples` take. **Raises** `SettingError` for another vartype and for other variables,
    `DataError` for values that are none of the vartype's and for a SampleSet without rows.

    >>> import dimod
    >>> from harmonium.energy.rbm import RBM
    >>> from harmonium.interop.dimod.bqm import to_bqm
    >>> rbm = RBM(2, 1, seed=0)
    >>> visible, hidden = from_sampleset(dimod.ExactSolver().sample(to_bqm(rbm)), rbm)
    >>> visible.shape, hidden.shape
    ((8, 2), (8, 1))
    """
    check_model(model)
    check_two_valued(model, "a SampleSet")
    kind = own_vartype(model) if vartype is None else checked_vartype(vartype)
    return configuration_of(model, states_of(sampleset, variable_names(model, names), kind), kind)
