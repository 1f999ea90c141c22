"""What no model can be made of is refused by name, and nothing that is not finite passes for a number."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.couplings.graph import MOST_UNITS
from harmonium.errors import BudgetError, SettingError

SIX = np.zeros((1, 40), np.uint8)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: hm.RBM(9, 2, weight_scale=1e39),
            "weight_scale must be at most 1e.37, so that weights are finite",
        ),
        (lambda: hm.BoltzmannMachine(3, weight_scale=1e39), "weight_scale must be at most"),
        (
            lambda: hm.BoltzmannMachine.from_arrays([[0, 1], [1]], [0, 0]),
            "coupling must be an array, got rows of unequal",
        ),
        (lambda: hm.BoltzmannMachine(MOST_UNITS + 1), f"at most {MOST_UNITS} units can be coupled"),
    ],
)
def test_it_is_named_with_the_cure(build: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        build()


def test_what_moves_chains_takes_finite_weights() -> None:
    model = hm.RBM.from_arrays(np.full((3, 2), 1e300), np.zeros(3), np.zeros(2))
    rows = np.eye(3, dtype=np.uint8)
    for work in (
        lambda: hm.sample(model, 2, steps=1),
        lambda: hm.fit(model, rows, updates=1),
        lambda: hm.fit_greedy(hm.DBN.of([model]), rows, updates=1),
    ):
        with pytest.raises(SettingError, match="not finite in float32, in which sampling computes"):
            work()


def test_a_bracket_of_a_model_that_is_not_finite_is_doubted_without_noise() -> None:
    """No warning of numpy, which tests would turn into an error, and a verdict instead of a number."""
    rows = np.eye(3, dtype=np.uint8)
    zero = hm.RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    for weight in (1e300, np.nan):
        model = eqx.tree_at(lambda tree: tree.couplings[0].kernel, zero, np.full((2, 3), weight))
        estimate = hm.log_partition(model, hm.Bracket(ladders=8, rungs=2, sweeps=8), rows)
        assert not estimate.reliable
        assert "not finite" in estimate.reason


def test_an_exact_sum_that_is_not_finite_says_so() -> None:
    model = hm.RBM.from_arrays(np.full((3, 2), 1e308), np.zeros(3), np.zeros(2))
    estimate = hm.log_partition(model)
    assert not np.isfinite(estimate.value)
    assert not estimate.reliable
    assert "not a finite number" in estimate.reason
    assert not hm.log_likelihood(model, np.ones((1, 3), np.uint8)).reliable


def test_a_general_machine_that_cannot_be_enumerated_has_a_cure_that_helps() -> None:
    model = hm.BoltzmannMachine(40)
    with pytest.raises(BudgetError, match=r'2\*\*39 states.*use method="bracket"'):
        hm.log_likelihood(model, SIX, "exact")
    for method in ("auto", "bracket", "ais"):
        estimate = hm.log_likelihood(model, SIX, method, operation_budget=3e8)
        assert estimate.method == ("bracket" if method == "auto" else method)
        assert np.isfinite(estimate.value)
