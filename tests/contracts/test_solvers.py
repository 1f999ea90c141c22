"""Proofs that every mode solver inherits: what it returns is a state of the machine, and what it claims is true."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError
from harmonium.modes.base import AbstractModeSolver, Findings
from harmonium.modes.dimod_sampler import DimodSolver
from harmonium.modes.names import SOLVERS as SOLVER_NAMES
from harmonium.modes.names import build_solver, describe_solver
from harmonium.typing import Words
from tests.contracts.model_cases import STACKS, model_of, table_of
from tests.contracts.solver_cases import MACHINES, SOLVERS
from tests.contracts.test_cases import members

WORDS = np.array([3, 4], np.uint32)


def place_of(machine: str, state: tuple[Any, ...]) -> int:
    """Which configuration of the table a state is."""
    (place,) = table_of(machine).codes(tuple(np.asarray(layer, float)[None] for layer in state))
    return int(place)


def test_every_solver_has_its_row() -> None:
    found = members(AbstractModeSolver)
    assert found
    assert found == {type(solver) for solver in SOLVERS.values()} == {*SOLVER_NAMES.values(), DimodSolver}
    assert {*SOLVER_NAMES, "dimod"} == {name.split(",")[0] for name in SOLVERS}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SOLVERS)
def test_what_is_found_is_true(name: str, machine: str) -> None:
    """The energy is that of the state, the state is the mode, and only what proves it says "exact"."""
    table, mode = table_of(machine), hm.modes.find(model_of(machine), SOLVERS[name], seed=2)
    lowest = table.energy.min()
    assert mode.energy == pytest.approx(table.energy[place_of(machine, mode.state)], abs=1e-12)
    assert mode.energy == pytest.approx(lowest, abs=1e-12)
    assert mode.certificate == ("exact" if name.startswith("exact") else "best found")
    if mode.lower_bound is not None:
        assert mode.lower_bound <= lowest + 1e-9
    assert 1 <= mode.agreed <= mode.runs
    assert mode.unit_updates > 0


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        *((name, "three layers") for name in SOLVERS if "bound" not in name),
        ("descent", "machine, spins below"),
    ],
)
def test_a_search_is_a_function_of_its_words_and_the_model(name: str, machine: str) -> None:
    """Alone and among the members of an ensemble, inside a compiled program."""
    solver, model = SOLVERS[name], model_of(machine)
    assert solver.traceable
    solver.check(model)
    other = jax.tree.map(lambda leaf: -0.5 * leaf, model)
    members = hm.Ensemble.of([model, model, other]).stacked
    states, energies = jax.jit(jax.vmap(solver.search))(np.stack([WORDS, WORDS, WORDS]), members)
    for layer in states:
        np.testing.assert_array_equal(layer[0], layer[1])
    energy = table_of(machine).energy
    for index, scale in enumerate((1, 1, -0.5)):
        place = place_of(machine, tuple(layer[index] for layer in states))
        assert scale * energy[place] == pytest.approx(np.min(scale * energy), abs=1e-12)
        assert float(energies[index]) == pytest.approx(scale * energy[place], rel=1e-5)


class _Boaster(AbstractModeSolver):
    """Returns some state of an RBM of four by three, with another energy and with whatever bound it was given."""

    energy: float
    lower_bound: float | None

    traceable: ClassVar[bool] = False

    def check(self, model: AbstractEnergyModel) -> None: ...

    def search(self, words: Words, model: AbstractEnergyModel) -> Any:
        raise NotImplementedError

    def explore(self, words: Words, model: AbstractEnergyModel) -> Findings:
        return Findings((np.zeros(4), np.zeros(3)), self.energy, self.lower_bound, 1, 1, 1.0)


def test_a_claim_is_checked() -> None:
    """An energy is taken of the state itself, and a bound that it does not reach proves nothing."""
    table = table_of("rbm")
    lowest = float(table.energy.min())
    assert lowest < -0.1
    boasted = hm.modes.find(model_of("rbm"), _Boaster(lowest, lowest))
    assert (boasted.energy, boasted.certificate, boasted.gap) == (0.0, "best found", -lowest)
    assert boasted.solver == "_Boaster"
    assert hm.modes.find(model_of("rbm"), _Boaster(lowest, None)).certificate == "best found"


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "dimod"])
def test_solvers_are_rebuilt_from_their_names(name: str) -> None:
    described = describe_solver(SOLVERS[name])
    assert described is not None
    assert build_solver(*described) == SOLVERS[name]
    for machine in STACKS[:1]:
        with pytest.raises(SettingError, match="undirected"):
            hm.modes.find(model_of(machine), SOLVERS[name])
