"""Branch and bound against enumeration, and what is said when it is stopped."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import BudgetError
from harmonium.modes.branch_and_bound import branch_and_bound
from harmonium.modes.exact import Exact
from harmonium.modes.spins import SpinForm, layers_of, others_given, spin_form
from harmonium.numerics.precision import as_double
from tests.modes.glasses import glass


def coupled(size: int) -> hm.BoltzmannMachine:
    generator = np.random.default_rng(size)
    matrix = np.triu(generator.normal(size=(size, size)), 1)
    return hm.BoltzmannMachine.from_arrays(
        matrix + matrix.T, generator.normal(size=size), size, visible="spin"
    )


@pytest.mark.parametrize("model", [glass(15, 14, 1), coupled(14)], ids=["two sides", "one population"])
def test_branch_and_bound_finds_what_enumeration_finds(
    model: AbstractEnergyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing known at all, and nothing from the best known."""
    monkeypatch.setattr("harmonium.modes.branch_and_bound._LEAF_BITS", 2)
    lowest = hm.modes.find(model, "exact").energy
    split = model.split(held=False)
    assert split.bits > 12
    with jax.enable_x64(True):
        double = as_double(model)
        form: SpinForm = jax.tree.map(np.asarray, jax.jit(spin_form, static_argnums=1)(double, split))
        spins, bound, count = branch_and_bound(form, -np.inf, 10**6)
        assert spins is not None
        found = float(double.energy(layers_of(double, split, spins, others_given(form, spins))))
        nothing, same, fewer = branch_and_bound(form, -lowest, 10**6)
    assert found == pytest.approx(lowest, abs=1e-9)
    assert bound == pytest.approx(-lowest, abs=1e-9)
    assert nothing is None
    assert same == -lowest
    assert fewer < count < 2**split.bits


def test_what_is_stopped_claims_no_more_than_its_bound() -> None:
    model = glass(30, 30, 2)
    stopped = hm.modes.find(model, "exact", bit_budget=8, nodes=50)
    assert stopped.certificate == "best found"
    assert stopped.gap is not None
    assert stopped.gap > 0
    # The bound at the root alone is further down, and the mode lies between.
    assert stopped.lower_bound is not None
    root = hm.modes.find(model, "exact", bit_budget=8, nodes=1).lower_bound
    assert root is not None
    assert root < stopped.lower_bound < hm.modes.find(model, "annealing").energy


def test_what_branch_and_bound_leaves_open_is_enumerated() -> None:
    model = glass(23, 21, 3)
    proved = hm.modes.find(model, "exact", nodes=1)
    assert proved.certificate == "exact"
    assert proved.unit_updates == 2**21 * 44
    assert proved.energy == pytest.approx(hm.modes.find(model, "annealing").energy, abs=1e-9)


def test_a_compiled_search_is_for_few_units() -> None:
    Exact().check(hm.RBM(100, 20))
    with pytest.raises(BudgetError, match=r"2\*\*21 states"):
        Exact().check(hm.RBM(100, 21))


def test_where_rounding_hides_the_energy_nothing_is_proved() -> None:
    """All terms of the spins cancel in a machine whose couplings forbid what they couple: -10.5 beside 1e17."""
    forbidding = np.full((4, 3), -1.0)
    biases = np.array([1.0, 2.0, 3.0, 4.5]), np.array([1.5, 2.5, 3.5])
    for size, proved in ((1e3, True), (1e17, False)):
        mode = hm.modes.find(hm.RBM.from_arrays(size * forbidding, *biases), "exact")
        assert (mode.certificate == "exact") is proved
        assert mode.lower_bound is not None
        assert mode.lower_bound <= -10.5 + 1e-6
