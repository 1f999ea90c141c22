"""The deep Boltzmann machine against numbers computed elsewhere, and against sums over all its states, written out."""

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.errors import HarmoniumError
from harmonium.evaluate.exact import marginal_energies
from harmonium.numerics.enumerate import all_states
from tests.contracts.machines import wave_layers, wave_matrix, wave_vector

LOG_PARTITION = 6.270674469590
ROW = np.array([[1.0, 0, 1, 0]])
LOG_PROBABILITY = -2.932044143032


def wave_dbm(*sizes: int, kind: str = "bernoulli") -> DBM:
    return wave_layers(*((kind, size) for size in sizes))


def written_log_weights(dbm: DBM) -> np.ndarray:
    """Minus the energy of every configuration, an axis for each layer, from its definition."""
    given = dbm.parameters()
    states = []
    for bias, kind in zip(given["biases"], given.get("kinds", ["bernoulli"] * len(dbm.units)), strict=True):
        bits = all_states(len(bias)).astype(np.float64)
        states.append(2 * bits - 1 if kind == "spin" else bits)
    found = np.zeros([len(layer) for layer in states])
    for place in product(*(range(len(layer)) for layer in states)):
        layers = [layer[index] for layer, index in zip(states, place, strict=True)]
        own = sum(layer @ bias for layer, bias in zip(layers, given["biases"], strict=True))
        joined = sum(
            lower @ matrix @ upper
            for (lower, upper), matrix in zip(pairwise(layers), given["weights"], strict=True)
        )
        found[place] = own + joined
    return found


def test_golden_numbers() -> None:
    dbm = wave_dbm(4, 3, 2)
    assert hm.log_partition(dbm).value == pytest.approx(LOG_PARTITION, abs=1e-9)
    found = hm.log_likelihood(dbm, ROW, "exact")
    assert found.value == pytest.approx(LOG_PROBABILITY, abs=1e-9)
    assert found.reliable
    assert found.stderr == 0


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((3, 2, 2), "bernoulli"), ((2, 3, 2, 2), "bernoulli"), ((3, 2, 2), "spin"), ((3, 4), "bernoulli")],
)
def test_sums_over_all_states(sizes: tuple[int, ...], kind: str) -> None:
    dbm = wave_dbm(*sizes, kind=kind)
    weights = written_log_weights(dbm)
    log_partition = np.logaddexp.reduce(weights, axis=None)
    of_rows = np.logaddexp.reduce(weights.reshape(len(weights), -1), axis=1) - log_partition
    rows = all_states(dbm.units[0].size)
    if dbm.units[0].kind == "spin":
        rows = 2 * rows.astype(int) - 1
    assert hm.log_partition(dbm).value == pytest.approx(log_partition, abs=1e-12)
    np.testing.assert_allclose(hm.log_likelihood(dbm, rows, "exact", rows=True).value, of_rows, atol=1e-12)


@pytest.mark.parametrize("sizes", [(4, 3, 2), (3, 2, 3, 2), (2, 2, 2, 2, 2)])
def test_even_and_odd_layers_traced_out_give_one_partition_function(sizes: tuple[int, ...]) -> None:
    dbm = wave_dbm(*sizes)
    found = []
    for side in (0, 1):
        layers = [sizes[layer] for layer in dbm.sides[side]]
        states = all_states(sum(layers)).astype(np.float64)
        parts = tuple(np.split(states, np.cumsum(layers)[:-1], axis=1))
        found.append(np.logaddexp.reduce(-marginal_energies(dbm, side, parts)))
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert hm.log_partition(dbm).value == pytest.approx(found[0], abs=1e-9)


def test_what_is_not_coupled_adds() -> None:
    """Two machines side by side in one: their log partition functions and their log-probabilities add."""
    one, two = wave_dbm(3, 2, 2), wave_dbm(2, 3, 1)

    def blocks(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
        joined = np.zeros(np.add(upper.shape, lower.shape))
        joined[: upper.shape[0], : upper.shape[1]] = upper
        joined[upper.shape[0] :, upper.shape[1] :] = lower
        return joined

    first, second = one.parameters(), two.parameters()
    both = DBM.from_arrays(
        [blocks(*pair) for pair in zip(first["weights"], second["weights"], strict=True)],
        [np.concatenate(pair) for pair in zip(first["biases"], second["biases"], strict=True)],
    )
    apart = hm.log_partition(one).value + hm.log_partition(two).value
    assert hm.log_partition(both).value == pytest.approx(apart, abs=1e-9)
    rows = all_states(5)
    scores = hm.log_likelihood(one, rows[:, :3], rows=True) + hm.log_likelihood(two, rows[:, 3:], rows=True)
    np.testing.assert_allclose(hm.log_likelihood(both, rows, rows=True).value, scores.value, atol=1e-9)


def test_a_row_costs_the_smaller_parity_of_its_hidden_layers() -> None:
    assert hm.DBM(6, [5, 2, 4]).split(held=True).bits == 2
    assert hm.DBM(6, [2, 50, 3]).split(held=True).bits == 5
    assert hm.DBM(6, [50]).split(held=True).bits == 0
    # The other parity has 40 units, far beyond what can be enumerated.
    assert hm.log_likelihood(hm.DBM(6, [40, 3], seed=1), all_states(6), "exact").reliable


def test_one_hidden_layer_is_an_rbm() -> None:
    weights, visible, hidden = wave_matrix(4, 3), wave_vector(4), wave_vector(3, 1.0)
    deep = DBM.from_arrays([weights], [visible, hidden])
    flat = hm.RBM.from_arrays(weights, visible, hidden)
    rows = all_states(4)
    np.testing.assert_allclose(
        hm.log_likelihood(deep, rows, rows=True).value,
        hm.log_likelihood(flat, rows, rows=True).value,
        atol=1e-13,
    )
    seeded = hm.DBM(4, [3], seed=5).parameters()["weights"][0]
    np.testing.assert_array_equal(seeded, hm.RBM(4, 3, seed=5).parameters()["weights"])


def test_a_dbm_is_a_model_like_others(tmp_path: Path) -> None:
    dbm = hm.DBM(hm.Spin(6), [4, hm.Spin(3)], seed=1, weight_scale=0.5)
    assert isinstance(dbm, AbstractEnergyModel)
    again = hm.load(hm.save(dbm, tmp_path / "dbm.safetensors"))
    assert isinstance(again, DBM)
    assert [units.kind for units in again.units] == ["spin", "bernoulli", "spin"]
    for left, right in zip(dbm.parameters()["weights"], again.parameters()["weights"], strict=True):
        np.testing.assert_array_equal(left, right)
    both = hm.Ensemble.of([dbm, hm.DBM(hm.Spin(6), [4, hm.Spin(3)], seed=2)])
    members = hm.load(hm.save(both, tmp_path / "both.safetensors"))
    assert isinstance(members.member(1), DBM)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: hm.DBM(4, []),
            r"takes a list of hidden layers, bottom first, got \[\]; pass e.g. \[120, 18\]",
        ),
        (lambda: hm.DBM(4, [0]), r"at least"),
        (lambda: hm.DBM(4, [2], weight_scale=-1.0), r"weight_scale must be"),
        (lambda: DBM.from_arrays([np.zeros((3, 2))], [np.zeros(3)]), r"has 2 layers with a bias each, got 1"),
        (
            lambda: DBM.from_arrays([np.zeros((2, 3))], [np.zeros(3), np.zeros(2)]),
            r"weights\[0\] must be lower by upper layer, here \(3, 2\).*pass weights\[0\].T",
        ),
        (
            lambda: DBM.from_arrays([np.zeros((3, 2))], [np.zeros(3), np.zeros(2)], ["spin"]),
            r"kinds must name 2 layers, got 1",
        ),
        (
            lambda: DBM.from_arrays([np.zeros((3, 2))], [np.zeros(3), np.full(2, np.nan)]),
            r"biases\[1\] holds a number that is not finite",
        ),
    ],
)
def test_what_is_no_machine_is_refused(build, words: str) -> None:
    with pytest.raises(HarmoniumError, match=words):
        build()
