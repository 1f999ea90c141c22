"""What no model can be made of is refused by name, and nothing that is not finite passes for a number."""

from __future__ import annotations

from typing import Any

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


def test_samples_are_of_finite_weights() -> None:
    model = hm.RBM.from_arrays(np.full((3, 2), 1e300), np.zeros(3), np.zeros(2))
    with pytest.raises(SettingError, match="not finite in float32, in which sampling computes"):
        hm.sample(model, 2, steps=1)


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
