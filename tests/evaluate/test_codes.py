"""The distance of the two laws of a code, against sums over all configurations."""

import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import BudgetError
from harmonium.evaluate.codes import code_distances
from tests.contracts.deep_cases import codes_of, place_of
from tests.contracts.model_cases import model_of, table_of


@pytest.mark.parametrize("name", ["stack of two", "square stack"])
def test_it_is_the_total_variation_of_the_two_laws(name: str) -> None:
    table, codes = table_of(name), codes_of(model_of(name))
    laws = [np.bincount(place_of(table.layers[layer], codes), table.law(), len(codes)) for layer in (1, 2)]
    expected = np.abs(laws[0] - laws[1]).sum() / 2
    assert expected > 0.01
    assert code_distances(model_of(name)) == [pytest.approx(expected, abs=1e-12)]


def test_there_is_one_for_every_pair_of_levels() -> None:
    assert len(code_distances(model_of("stack of three"))) == 2
    assert code_distances(hm.DBN(4, [3])) == []


def test_levels_that_agree_and_levels_that_have_parted() -> None:
    """An upper level at the law of the codes of the lower one, and one with all its mass on another code."""
    bias = np.array([0.7, -0.4])
    lower = hm.RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), bias)
    same = hm.RBM.from_arrays(np.zeros((2, 1)), bias, np.zeros(1))
    other = hm.RBM.from_arrays(np.zeros((2, 1)), np.array([-40.0, 40.0]), np.zeros(1))
    assert code_distances(hm.DBN.of([lower, same])) == [pytest.approx(0, abs=1e-15)]
    on = 1 / (1 + np.exp(-bias))
    assert code_distances(hm.DBN.of([lower, other])) == [pytest.approx(1 - (1 - on[0]) * on[1], abs=1e-12)]


def test_codes_of_several_chunks_and_spins() -> None:
    """Fourteen units without couplings: a product of laws, whose distance to itself shifted is known."""
    bias = np.zeros(14)
    lower = hm.RBM.from_arrays(np.zeros((2, 14)), np.zeros(2), bias, hidden="spin")
    tilted = bias.copy()
    tilted[13] = 0.3
    upper = hm.RBM.from_arrays(np.zeros((14, 1)), tilted, np.zeros(1), visible="spin")
    expected = 1 / (1 + np.exp(-0.6)) - 0.5
    assert code_distances(hm.DBN.of([lower, upper])) == [pytest.approx(expected, abs=1e-12)]


def test_codes_that_are_too_long_are_refused() -> None:
    with pytest.raises(BudgetError, match=r"law of a code would enumerate 2\*\*15 states"):
        code_distances(hm.DBN(4, [15, 2]))
