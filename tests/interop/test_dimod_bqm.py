"""Machines and binary quadratic models: the same energy of every state, constants included, whatever is done to it."""

from __future__ import annotations

import sys
from typing import Any

import dimod
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.variables import configuration_of, variable_names
from harmonium.errors import DataError, MissingExtraError, SettingError
from harmonium.interop.dimod import from_bqm, from_sampleset, to_bqm, to_ising, to_qubo
from tests.contracts.machines import wave_layers, wave_machine, wave_rbm
from tests.contracts.model_cases import model_of

BITS = (np.arange(32)[:, None] >> np.arange(5)) & 1
SPARSE = np.array([[0, 3], [1, 2], [2, 4], [0, 4]])
MACHINES = {
    "rbm": lambda: wave_rbm(sizes=(3, 2)),
    "rbm, one side spins": lambda: wave_rbm("spin", "bernoulli", sizes=(3, 2)),
    "sparse machine of spins": lambda: wave_machine(3, 2, pairs=SPARSE, visible="spin", hidden="spin"),
    "visible machine": lambda: wave_machine(5),
    "three layers": lambda: wave_layers(("bernoulli", 2), ("spin", 1), ("bernoulli", 2)),
}


def energies(model: AbstractEnergyModel) -> np.ndarray:
    """Energies of all states, one of whose units is up where a bit is set, by the model's own words."""
    with jax.enable_x64(True):
        return np.asarray(model.energy(configuration_of(model, BITS, "BINARY")))


def energies_of(bqm: Any, names: list[Any]) -> np.ndarray:
    states = BITS if bqm.vartype is dimod.BINARY else 2 * BITS - 1
    return bqm.energies((states.astype(np.int8), names))


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(list(MACHINES)),
    st.lists(st.sampled_from(["spin", "binary", "SPIN", "BINARY", "turned"]), min_size=1, max_size=8),
)
def test_energies_outlive_any_chain_of_conversions(name: str, chain: list[str]) -> None:
    model = MACHINES[name]()
    expected, offset = energies(model), 0.0
    for step in chain:
        if step in ("spin", "binary"):
            model, more = hm.to_spin(model) if step == "spin" else hm.to_binary(model)
            offset += more
            continue
        bqm = to_bqm(model, None if step == "turned" else step, offset=offset)
        if step == "turned":
            bqm.change_vartype("SPIN" if bqm.vartype is dimod.BINARY else "BINARY", inplace=True)
        np.testing.assert_allclose(energies_of(bqm, variable_names(model)), expected, atol=1e-9)
        model, offset, names = from_bqm(bqm)
        assert list(names) == variable_names(MACHINES[name]()) or name == "three layers"
    np.testing.assert_allclose(energies(model) + offset, expected, atol=1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_a_bqm_has_the_energies_of_the_machine_and_its_names(name: str) -> None:
    model = MACHINES[name]()
    names: list[Any] = [f"unit {unit}" for unit in range(5)]
    for vartype in ("BINARY", "SPIN"):
        bqm = to_bqm(model, vartype, names, offset=2.5)
        assert bqm.vartype.name == vartype
        assert list(bqm.variables) == names
        np.testing.assert_allclose(energies_of(bqm, names), energies(model) + 2.5, atol=1e-12)
    qubo, offset = to_qubo(model, names)
    by_hand = [
        sum(q * row[names.index(a)] * row[names.index(b)] for (a, b), q in qubo.items()) for row in BITS
    ]
    np.testing.assert_allclose(np.array(by_hand) + offset, energies(model), atol=1e-12)
    ising = dimod.BinaryQuadraticModel.from_ising(*to_ising(model, names))
    np.testing.assert_allclose(energies_of(ising, names), energies(model), atol=1e-12)


def test_the_partition_function_is_that_of_all_states_of_dimod() -> None:
    model = model_of("rbm")
    assert [units.size for units in model.units] == [4, 3]
    for vartype in ("BINARY", "SPIN"):
        states = dimod.ExactSolver().sample(to_bqm(model, vartype))
        total = np.logaddexp.reduce(-states.record.energy)
        assert total == pytest.approx(hm.log_partition(model).value, abs=1e-12)


def test_visible_variables_are_those_that_are_named() -> None:
    bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -2.0, "c": 0.5}, {("a", "c"): 3.0}, 4.0, "SPIN")
    model, offset, names = from_bqm(bqm, ["c", "a"])
    assert (offset, names, model.units[0].size, model.units[1].size) == (4.0, ("c", "a", "b"), 2, 1)
    assert model.couplings[0].graph.pairs.tolist() == [[0, 1]]
    assert float(model.energy((np.array([-1.0, 1.0]), np.array([1.0])))) + offset == 4 - 3 + 1 - 2 - 0.5
    counted = from_bqm(bqm, 2)
    assert (counted.names, counted.model.units[0].size) == (tuple(bqm.variables), 2)
    assert len(from_bqm(bqm).model.units) == 1


def test_rows_of_a_sampleset_find_their_layers_as_often_as_they_occurred() -> None:
    model = wave_rbm("spin", "bernoulli", sizes=(2, 1))
    rows = np.array([[0, 1, 1], [1, 0, 0]], np.int8)
    found = dimod.SampleSet.from_samples(
        (rows, ["h1_0", "v1", "v0"]), "BINARY", energy=[0.0, 0.0], num_occurrences=[2, 1]
    )
    visible, hidden = from_sampleset(found, model)
    np.testing.assert_array_equal(visible, [[1, 1], [1, 1], [-1, -1]])
    np.testing.assert_array_equal(hidden, [[0], [0], [1]])
    spins = found.change_vartype("SPIN", inplace=False)
    np.testing.assert_array_equal(from_sampleset(spins, model, "SPIN")[0], visible)
    with pytest.raises(SettingError, match=r"is SPIN .* where BINARY is expected"):
        from_sampleset(spins, model)
    with pytest.raises(SettingError, match=r"is BINARY .* where SPIN is expected"):
        from_sampleset(found, model, "SPIN")


def test_mistakes_are_said() -> None:
    model = wave_rbm(sizes=(2, 1))
    states = dimod.ExactSolver().sample(to_bqm(model))
    states.record.sample[3, 1] = -1
    with pytest.raises(DataError, match="says BINARY and has -1 for"):
        from_sampleset(states, model)
    with pytest.raises(SettingError, match="lacks the variable 'v2'"):
        from_sampleset(dimod.ExactSolver().sample(to_bqm(model)), wave_rbm(sizes=(3, 1)))
    with pytest.raises(SettingError, match="has a variable 'v1'"):
        from_sampleset(dimod.ExactSolver().sample(to_bqm(model)), wave_rbm(sizes=(1, 1)))
    with pytest.raises(DataError, match="no rows"):
        from_sampleset(dimod.ExactSolver().sample(to_bqm(model)).slice(0), model)
    with pytest.raises(SettingError, match="a dimod SampleSet is needed, got a tuple"):
        from_sampleset((), model)
    with pytest.raises(SettingError, match="vartype must be"):
        to_bqm(model, "BOOL")
    with pytest.raises(SettingError, match="names is a list of words or numbers"):
        to_bqm(model, names=["a", "b", (1, [2])])  # no key of a dictionary
    with pytest.raises(SettingError, match="offset must be a finite number of nats"):
        to_bqm(model, offset=np.nan)
    with pytest.raises(SettingError, match="3 units; pass one for each"):
        to_bqm(model, names=["a"])
    with pytest.raises(SettingError, match="'a' twice"):
        to_bqm(model, names=["a", "b", "a"])
    with pytest.raises(SettingError, match="BinaryQuadraticModel is needed"):
        from_bqm({("a", "a"): 1.0})
    with pytest.raises(SettingError, match="visible names 'x'"):
        from_bqm(to_bqm(model), ["x"])
    with pytest.raises(SettingError, match="visible must name or count from 1 to 3"):
        from_bqm(to_bqm(model), 4)
    with pytest.raises(SettingError, match="visible must name or count from 1 to 3"):
        from_bqm(to_bqm(model), -1)
    with pytest.raises(DataError, match="no variables"):
        from_bqm(dimod.BinaryQuadraticModel("SPIN"))
    with pytest.raises(SettingError, match="undirected machine"):
        to_bqm(hm.DBN(3, [2, 2]))


def test_without_dimod_the_cure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dimod", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'harmonium\[anneal\]'"):
        to_bqm(wave_rbm())
    assert to_qubo(wave_rbm())[0]
