"""Golden values of the general machine ``U = (M(5, 5) + M') / 2, b = V(5)``, computed outside this library, to 1e-9.

The chapter writes ``E = -x'Ux - b'x``. As ``E = -x'Cx / 2 - b'x`` that is ``C = 2(U - diag U)`` with the diagonal of
``U`` added to the biases, because units that are 0 or 1 are their own squares.
"""

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from tests.contracts.machines import wave_machine, wave_matrix, wave_rbm, wave_vector
from tests.contracts.tables import Table

LOG_PARTITION = 4.346133400344
WITHOUT_DIAGONAL = 4.217867372940

U = (wave_matrix(5, 5) + wave_matrix(5, 5).T) / 2
DIAGONAL = np.diag(U)
COUPLING = 2 * (U - np.diag(DIAGONAL))
BIAS = wave_vector(5)


def test_log_partition_of_the_chapters_machine() -> None:
    machine = hm.BoltzmannMachine.from_arrays(COUPLING, BIAS + DIAGONAL, 5)
    assert hm.log_partition(machine).value == pytest.approx(LOG_PARTITION, abs=1e-9)
    states = Table.of(machine).layers[0]
    printed = -np.sum(states @ U * states, axis=1) - states @ BIAS
    np.testing.assert_allclose(Table.of(machine).energy, printed, atol=1e-14)
    assert np.logaddexp.reduce(-printed) == pytest.approx(LOG_PARTITION, abs=1e-9)


@pytest.mark.parametrize("n_visible", range(1, 6))
def test_log_partition_without_a_diagonal(n_visible: int) -> None:
    """Whatever part of the units is hidden: the partition function does not know of it."""
    machine = hm.BoltzmannMachine.from_arrays(COUPLING, BIAS, n_visible)
    assert hm.log_partition(machine).value == pytest.approx(WITHOUT_DIAGONAL, abs=1e-9)
    states = np.array(np.meshgrid(*[[0, 1]] * n_visible)).reshape(n_visible, -1).T
    total = np.exp(hm.log_likelihood(machine, states, rows=True).value).sum()
    assert total == pytest.approx(1, abs=1e-12)


def test_two_machines_side_by_side_add_up() -> None:
    """Partition functions of machines that are not coupled add in the logarithm, and their units are uncorrelated."""
    one, other = wave_machine(3), wave_machine(4, gain=1.7)
    parts = [machine.parameters() for machine in (one, other)]
    both = np.zeros((7, 7))
    both[:3, :3], both[3:, 3:] = parts[0]["coupling"], parts[1]["coupling"]
    bias = np.concatenate([part["bias"] for part in parts])
    total = hm.log_partition(one).value + hm.log_partition(other).value
    for pairs in (None, np.argwhere(np.triu(both))):
        joint = hm.BoltzmannMachine.from_arrays(both, bias, 7, pairs=pairs)
        assert hm.log_partition(joint).value == pytest.approx(total, rel=1e-13)
        assert np.abs(hm.moments(joint).covariance[:3, 3:]).max() < 1e-14
    shifted = both.copy()
    shifted[0, 3] = shifted[3, 0] = 0.5
    assert abs(hm.log_partition(hm.BoltzmannMachine.from_arrays(shifted, bias, 7)).value - total) > 1e-2


@pytest.mark.parametrize("listed", [False, True])
def test_without_couplings_inside_the_layers_it_is_the_rbm(listed: bool) -> None:
    """Energies, likelihoods, moments and gradients; with the pairs named, in closed form as there."""
    rbm = wave_rbm()
    weights = wave_matrix(4, 3)
    coupling = np.zeros((7, 7))
    coupling[:4, 4:], coupling[4:, :4] = weights, weights.T
    bias = np.concatenate([wave_vector(4), wave_vector(3, 1.0)])
    pairs = np.argwhere(np.triu(coupling)) if listed else None
    machine = hm.BoltzmannMachine.from_arrays(coupling, bias, 4, pairs=pairs)
    assert (machine.split(held=True).bits == 0) == listed
    if listed:
        assert [machine.groups(layer) for layer in (0, 1)] == [((0, 1, 2, 3),), ((4, 5, 6),)]
    rows = Table.of(rbm).marginal(0, Table.of(rbm).law())[0]
    np.testing.assert_allclose(Table.of(machine).energy, Table.of(rbm).energy, atol=1e-14)
    scores = [hm.log_likelihood(model, rows, rows=True).value for model in (machine, rbm)]
    np.testing.assert_allclose(*scores, atol=1e-12)
    np.testing.assert_allclose(hm.moments(machine).second, hm.moments(rbm).second, atol=1e-14)
    slopes = [hm.exact_gradient(model, rows[[1, 5, 5]]) for model in (machine, rbm)]
    np.testing.assert_allclose(slopes[0]["coupling"][:4, 4:], slopes[1]["weights"], atol=1e-14)
    np.testing.assert_allclose(
        slopes[0]["bias"], np.concatenate([slopes[1]["visible_bias"], slopes[1]["hidden_bias"]]), atol=1e-14
    )


def test_one_unit_alone() -> None:
    machine = hm.BoltzmannMachine.from_arrays(np.zeros((1, 1)), np.array([0.7]))
    assert hm.log_partition(machine).value == pytest.approx(np.log1p(np.exp(0.7)), abs=1e-14)
    assert hm.sample(machine, 5, steps=3, seed=0).shape == (5, 1)
    assert hm.moments(machine).second.tolist() == [[pytest.approx(1 / (1 + np.exp(-0.7)))]]


def test_couplings_of_two_hundred_in_single_precision() -> None:
    signs = np.where(np.indices((5, 5)).sum(axis=0) % 2 == 0, 1, -1) * (1 - np.eye(5))
    machine = hm.BoltzmannMachine.from_arrays(np.float32(200) * signs.astype(np.float32), np.zeros(5), 3)
    double = hm.BoltzmannMachine.from_arrays(200.0 * signs, np.zeros(5), 3)
    table = Table.of(double)
    assert hm.log_partition(machine).value == pytest.approx(table.log_partition(), rel=1e-14)
    assert np.isfinite(np.asarray(jax.jit(lambda rows: machine.free_energy(rows))(table.layers[0]))).all()
    assert np.isfinite(hm.sample(machine, 20, steps=10)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            dict(coupling=np.zeros((2, 3)), bias=np.zeros(2)),
            r"coupling must be 2 by 2, .* got shape \(2, 3\)",
        ),
        (dict(coupling=np.eye(2), bias=np.zeros(2)), "coupling must be zero on its diagonal; set it to zero"),
        (dict(coupling=[[0.0, 1.0], [2.0, 0.0]], bias=np.zeros(2)), "coupling must be symmetric; pass"),
        (
            dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), n_visible=0),
            "n_visible must be .* 1 to 2, got 0",
        ),
        (
            dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), n_visible=3),
            "n_visible must be .* 1 to 2, got 3",
        ),
        (
            dict(coupling=[[0.0, 1.0], [1.0, 0.0]], bias=np.zeros(2), pairs=np.zeros((0, 2), int)),
            "holds 1 for the units 0 and 1, which pairs does not name",
        ),
        (dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), pairs=[[0, 2]]), "names a unit 2, .* from 0 to 1"),
        (dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), pairs=[[1, 1]]), "couples unit 1 with itself"),
        (dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), pairs=[[0, 1], [1, 0]]), "names a pair twice"),
        (dict(coupling=np.zeros((2, 2)), bias=np.zeros(2), pairs=[0.5]), "pairs must be whole numbers"),
    ],
)
def test_arrays_that_make_no_machine_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        hm.BoltzmannMachine.from_arrays(**arguments)


def test_sizes_that_make_no_machine_are_refused() -> None:
    for visible, hidden in ((0, 0), (-1, 0), (3, -1), (3, True)):
        with pytest.raises(SettingError, match="whole number of units, at least 1"):
            hm.BoltzmannMachine(visible, hidden)
