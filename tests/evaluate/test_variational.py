"""The mean-field bound of a deep Boltzmann machine: golden numbers, and what it must be beside exact ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.variational import mean_field_bound
from harmonium.inference.mean_field import MeanField, bound_at, started
from harmonium.numerics.enumerate import all_states
from harmonium.typing import Batch
from tests.contracts.machines import wave_layers, wave_matrix, wave_vector

ROW = np.array([[1.0, 0, 1, 0]])
FIRST = (0.4957470614, 0.3637695738, 0.5340913343)
SECOND = (0.3829083198, 0.4427331782)
BOUND = -3.001017127493
LOG_PROBABILITY = -2.932044143032


def wave_dbm(*sizes: int, kind: str = "bernoulli") -> hm.DBM:
    return wave_layers(*((kind, size) for size in sizes))


def test_golden_numbers() -> None:
    dbm = wave_dbm(4, 3, 2)
    with jax.enable_x64(True):
        found = MeanField(200, tolerance=1e-13).solve(
            jax.tree.map(jnp.asarray, dbm), Batch(x=jnp.asarray(ROW))
        )
        np.testing.assert_allclose(found.means[1][0], FIRST, atol=1e-9)
        np.testing.assert_allclose(found.means[2][0], SECOND, atol=1e-9)
        assert float(found.residual) <= 1e-13
        assert 1 < int(found.sweeps) < 200
    estimate = hm.log_likelihood(dbm, ROW, "bound")
    assert estimate.value == pytest.approx(BOUND, abs=1e-9)
    assert estimate.kind == Kind.LOWER
    assert estimate.method == "mean-field"
    assert "sweeps to a residual of" in estimate.reason
    assert estimate.value < LOG_PROBABILITY


def test_the_start_goes_up_from_the_data_with_what_is_missing_above_doubled() -> None:
    dbm = wave_dbm(4, 3, 2, 2)
    given = dbm.parameters()
    with jax.enable_x64(True):
        start = started(jax.tree.map(jnp.asarray, dbm), Batch(x=jnp.asarray(ROW)))
    below = ROW
    for level, doubled in enumerate((2, 2, 1)):
        below = 1 / (1 + np.exp(-(doubled * below @ given["weights"][level] + given["biases"][level + 1])))
        np.testing.assert_allclose(start[level + 1], below, atol=1e-14)


@pytest.mark.parametrize(
    ("sizes", "kind"), [((4, 3, 2), "bernoulli"), ((3, 3, 2, 3), "bernoulli"), ((3, 2, 3), "spin")]
)
def test_the_bound_rises_with_every_sweep_and_stays_below(sizes: tuple[int, ...], kind: str) -> None:
    dbm = wave_dbm(*sizes, kind=kind)
    rows = all_states(sizes[0]).astype(float)
    rows = 2 * rows - 1 if kind == "spin" else rows
    with jax.enable_x64(True):
        model, batch = jax.tree.map(jnp.asarray, dbm), Batch(x=jnp.asarray(rows))
        means, bounds = started(model, batch), []
        for _ in range(15):
            bounds.append(np.asarray(bound_at(model, means)))
            means = MeanField().sweep(model, means)
        exact = -np.asarray(model.free_energy(rows))
        # At the fixed point nothing pulls: the bound is stationary in every mean.
        settled = MeanField(500, tolerance=1e-13).solve(model, batch).means
        pull = jax.grad(lambda hidden: jnp.sum(bound_at(model, (settled[0], *hidden))))(settled[1:])
    assert np.all(np.diff(bounds, axis=0) > -1e-12)
    assert np.all(bounds[-1] > bounds[0])
    assert np.all(bounds[-1] < exact)
    for slope in pull:
        np.testing.assert_allclose(slope, 0, atol=1e-9)


def test_a_machine_whose_second_layer_is_not_coupled_has_no_gap() -> None:
    """It is the RBM below, and the layer above adds its own cumulant to log Z."""
    weights, visible, hidden = wave_matrix(4, 3), wave_vector(4), wave_vector(3, 1.0)
    dbm = hm.DBM.from_arrays([weights, np.zeros((3, 2))], [visible, hidden, np.ones(2)])
    rows = all_states(4)
    bound = hm.log_likelihood(dbm, rows, "bound", rows=True)
    flat = hm.log_likelihood(hm.RBM.from_arrays(weights, visible, hidden), rows, rows=True)
    np.testing.assert_allclose(bound.value, flat.value, atol=1e-10)
    single = hm.DBM.from_arrays([weights], [visible, hidden])
    one = hm.log_likelihood(single, rows, "bound", rows=True)
    np.testing.assert_allclose(one.value, flat.value, atol=1e-10)
    assert one.kind == Kind.EXACT


def test_auto_is_exact_where_that_is_affordable_and_else_the_bound() -> None:
    dbm, rows = wave_dbm(4, 3, 2), all_states(4)
    assert hm.log_likelihood(dbm, rows).kind == Kind.EXACT
    tight = hm.log_likelihood(dbm, rows, bit_budget=1, operation_budget=1e7)
    assert tight.kind == Kind.PROXY  # the bound minus a bracketed log Z
    assert tight.value == pytest.approx(hm.log_likelihood(dbm, rows, "bound").value, abs=0.2)
    # Each of 8 rows sums over 2**3 states of the top layer, log Z over 2**5 once.
    narrow = hm.log_likelihood(wave_dbm(3, 5, 3), all_states(3), operation_budget=7e3)
    assert narrow.kind == Kind.LOWER
    with pytest.raises(BudgetError, match=r"this DBM would enumerate 2\*\*3 states"):
        hm.log_likelihood(dbm, rows, "exact", bit_budget=1)


def test_settings_of_networks_are_refused() -> None:
    for settings in (hm.Bound("importance"), hm.Bound(exact=True), hm.Bound(exact=False)):
        with pytest.raises(SettingError, match="the bound of a DBM is its mean-field fixed point"):
            hm.log_likelihood(wave_dbm(3, 2, 2), all_states(3), settings)


def test_blocks_of_rows_make_no_difference() -> None:
    dbm = wave_dbm(4, 3, 2)
    rows = np.tile(all_states(4), (40, 1))
    found = mean_field_bound(dbm, rows).value.reshape(40, 16)
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), atol=1e-12)


def test_the_bound_of_random_machines_lies_below() -> None:
    """Weak and strong couplings: the gap is never negative, and it is not always small."""
    rows, gaps = all_states(4), []
    for seed in range(12):
        dbm = hm.DBM(4, [3, 2], seed=seed, weight_scale=(0.1, 1.0, 4.0)[seed % 3])
        bound, exact = (
            hm.log_likelihood(dbm, rows, method, rows=True).value for method in ("bound", "exact")
        )
        gaps.append(np.asarray(exact - bound))
    assert np.min(gaps) > -1e-9
    assert np.max(gaps) > 0.05


def test_a_reconstruction_holds_even_hidden_layers_at_their_means_not_at_their_biases() -> None:
    dbm = wave_dbm(4, 3, 2)
    weights, biases = (dbm.parameters()[name] for name in ("weights", "biases"))
    rest = 1 / (1 + np.exp(-biases[2]))
    first = 1 / (1 + np.exp(-(biases[1] + ROW @ weights[0] + weights[1] @ rest)))
    back = 1 / (1 + np.exp(-(biases[0] + first @ weights[0].T)))
    found = hm.reconstruction_error(dbm, ROW.astype(int)).value
    assert found == pytest.approx(np.sum((ROW - back) ** 2), abs=1e-12)
