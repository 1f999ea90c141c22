"""Dimod samplers as mode solvers: the right state, the right energy, and no certificate that was not earned."""

from __future__ import annotations

import dimod
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from tests.contracts.annealer_cases import HeatBath
from tests.contracts.model_cases import model_of, table_of

MACHINES = ["rbm of spins", "three layers", "machine on a sparse graph"]


@pytest.mark.parametrize("name", MACHINES)
def test_the_list_of_all_states_has_the_mode(name: str) -> None:
    model, table = model_of(name), table_of(name)
    found = hm.modes.find(model, solver=dimod.ExactSolver())
    best = int(np.argmin(table.energy))
    assert found.energy == pytest.approx(table.energy[best], abs=1e-12)
    for layer, expected in zip(found.state, table.layers, strict=True):
        np.testing.assert_array_equal(layer, expected[best])
    assert (found.certificate, found.lower_bound, found.runs) == ("best found", None, table.count)
    assert found.unit_updates == table.count * sum(table.sizes)


def test_options_go_to_the_sampler() -> None:
    model = model_of("machine")
    first, again = (hm.modes.find(model, solver=HeatBath(), seed=4, num_reads=7) for _ in range(2))
    assert first.runs == 7
    assert first.energy == again.energy
    with pytest.raises(SettingError, match="HeatBath has no option 'reads'"):
        hm.modes.find(model, solver=HeatBath(), reads=7)
    with pytest.raises(SettingError, match="no mode solver is called"):
        hm.modes.find(model, solver=HeatBath)
