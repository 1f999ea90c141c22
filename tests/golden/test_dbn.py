"""The deep belief network against sums over all its states, written out."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbn import DBN
from harmonium.energy.rbm import RBM
from harmonium.evaluate.estimate import Kind
from harmonium.numerics.enumerate import all_states
from tests.contracts.machines import wave_matrix, wave_vector


def wave_dbn(*sizes: int, gain: float = 1.0, kinds: list[str] | None = None) -> DBN:
    """A network of float64 waves, with two different biases for every inner layer."""
    return DBN.from_arrays(
        [gain * wave_matrix(*pair, phase=0.7 * place) for place, pair in enumerate(pairwise(sizes))],
        [wave_vector(size, float(place)) for place, size in enumerate(sizes)],
        [wave_vector(size, 3.0 + place) for place, size in enumerate(sizes[1:-1])],
        kinds=kinds,
    )


def states_of(size: int, kind: str) -> np.ndarray:
    bits = all_states(size).astype(np.float64)
    return 2 * bits - 1 if kind == "spin" else bits


def joint_of(dbn: DBN) -> tuple[list[np.ndarray], np.ndarray]:
    """All states of every layer, and the joint law as an array with an axis for each layer, from its definition."""
    given = dbn.parameters()
    weights, biases = given["weights"], given["biases"]
    kinds = given.get("kinds", ["bernoulli"] * len(biases))
    states = [states_of(len(bias), kind) for bias, kind in zip(biases, kinds, strict=True)]
    top = (
        states[-2] @ weights[-1] @ states[-1].T + (states[-2] @ biases[-2])[:, None] + states[-1] @ biases[-1]
    )
    law = np.exp(top) / np.exp(top).sum()
    for level in range(len(weights) - 2, -1, -1):
        down = np.exp(states[level] @ (biases[level][:, None] + weights[level] @ states[level + 1].T))
        conditional = down / down.sum(axis=0)
        law = conditional.reshape(*conditional.shape, *[1] * (law.ndim - 1)) * law[None]
    return states, law


NETWORKS = {
    "two levels": wave_dbn(4, 3, 2),
    "two levels, strong": wave_dbn(3, 4, 3, gain=4.0),
    "three levels": wave_dbn(3, 2, 3, 2),
    "four levels": wave_dbn(2, 2, 1, 2, 2, gain=2.0),
    "spins": wave_dbn(3, 2, 2, kinds=["spin", "bernoulli", "spin"]),
    "spins inside": wave_dbn(3, 2, 2, 2, kinds=["bernoulli", "spin", "spin", "bernoulli"]),
    "one level": wave_dbn(4, 3),
}
networks = pytest.mark.parametrize("name", NETWORKS)


@networks
def test_the_likelihood_is_the_sum_over_the_joint(name: str) -> None:
    dbn = NETWORKS[name]
    states, law = joint_of(dbn)
    assert law.sum() == pytest.approx(1, rel=1e-12)
    expected = np.log(law.reshape(len(states[0]), -1).sum(axis=1))
    found = hm.log_likelihood(dbn, states[0], rows=True)
    np.testing.assert_allclose(found.value, expected, rtol=1e-12, atol=1e-12)
    assert found.kind == Kind.EXACT
    assert np.logaddexp.reduce(found.value) == pytest.approx(0, abs=1e-12)
    assert hm.log_likelihood(dbn, states[0]).value == pytest.approx(expected.mean(), rel=1e-12)


@networks
def test_the_partition_function_is_that_of_the_top(name: str) -> None:
    """The only normaliser in the joint law; not that of the product that is trained."""
    dbn = NETWORKS[name]
    given = dbn.parameters()
    kinds = given.get("kinds", ["bernoulli"] * len(given["biases"]))
    v, h = (states_of(len(given["biases"][place]), kinds[place]) for place in (-2, -1))
    table = v @ given["weights"][-1] @ h.T + (v @ given["biases"][-2])[:, None] + h @ given["biases"][-1]
    assert hm.log_partition(dbn).value == pytest.approx(np.logaddexp.reduce(table, axis=None), rel=1e-13)
    assert hm.log_partition(dbn).value == hm.log_partition(dbn.levels[-1]).value


def test_the_network_is_neither_its_bottom_machine_nor_blind_to_the_top() -> None:
    dbn = NETWORKS["two levels"]
    rows = all_states(4)[:5]
    whole, bottom = hm.log_likelihood(dbn, rows).value, hm.log_likelihood(dbn.levels[0], rows).value
    assert abs(whole - bottom) > 0.01
    # The hidden bias of the bottom machine is recognition alone.
    given = dbn.parameters()
    other = DBN.from_arrays(given["weights"], given["biases"], [np.ones(3)])
    assert hm.log_likelihood(other, rows).value == pytest.approx(whole, rel=1e-13)
    assert hm.log_likelihood(other.levels[0], rows).value != pytest.approx(bottom, abs=0.01)


def test_a_transposed_second_level_leaves_the_density_as_it_is() -> None:
    """With the biases of the first level; without them log p moves, here by about a nat."""
    weights = 8 * wave_matrix(5, 3, phase=0.3)
    visible, hidden = 2 * wave_vector(5) - 0.4, wave_vector(3, 1.0) + 1.2
    rbm = RBM.from_arrays(weights, visible, hidden)
    rows = all_states(5)
    before = hm.log_likelihood(rbm, rows, rows=True).value
    same = DBN.from_arrays([weights, weights.T], [visible, hidden, visible])
    np.testing.assert_allclose(hm.log_likelihood(same, rows, rows=True).value, before, atol=1e-12)
    bare = DBN.from_arrays([weights, weights.T], [visible, np.zeros(3), np.zeros(5)], [hidden])
    assert np.abs(hm.log_likelihood(bare, rows, rows=True).value - before).max() > 0.9


def test_nothing_coupled_knows_nothing() -> None:
    dbn = DBN.from_arrays([np.zeros((4, 3)), np.zeros((3, 2))], [np.zeros(4), np.zeros(3), np.zeros(2)])
    assert hm.log_likelihood(dbn, all_states(4)).value == pytest.approx(-4 * math.log(2), rel=1e-14)
    assert hm.log_partition(dbn).value == pytest.approx(5 * math.log(2), rel=1e-14)


def test_a_dbn_is_a_model_like_others(tmp_path: Path) -> None:
    dbn = hm.DBN(6, [4, 3], seed=1)
    assert isinstance(dbn, AbstractEnergyModel)
    again = hm.load(hm.save(dbn, tmp_path / "dbn.safetensors"))
    for left, right in zip(dbn.parameters()["weights"], again.parameters()["weights"], strict=True):
        np.testing.assert_array_equal(left, right)
    assert isinstance(again, DBN)
