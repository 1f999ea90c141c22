"""Golden values of the RBM ``W = M(4, 3), b = V(4), c = V(3, 1)``, computed outside this library, to 1e-9.

The machine is `tests.contracts.machines.wave_rbm`; the rows are 1010, 1100 and 0001. Parameters are float64.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.rbm import RBM
from tests.contracts.machines import wave_matrix, wave_rbm, wave_vector
from tests.contracts.tables import Table, visible_kernel

ROWS = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]])

LOG_PARTITION = 5.135519330520
MEAN_LOG_LIKELIHOOD = -2.730077714935
GRADIENT_NORMS = {"weights": 0.2698074635724, "visible": 0.2922212998064, "hidden": 0.0279333492334}
SECOND_EIGENVALUE = 0.1234145668
CD_ERRORS = {1: 9.014491e-3, 3: 1.275769e-4, 10: 5.467e-11}


@cache
def table() -> Table:
    return Table.of(wave_rbm())


@cache
def gradient() -> dict[str, np.ndarray]:
    """Gradient of the exact mean log-likelihood, by automatic differentiation of the free energy."""
    with jax.enable_x64(True):
        states = jnp.asarray(table().marginal(0, table().law())[0])

        @jax.jit
        def mean_log_likelihood(model: RBM) -> jax.Array:
            partition = jax.nn.logsumexp(-model.free_energy(states))
            return jnp.mean(-model.free_energy(jnp.asarray(ROWS))) - partition

        slopes = jax.grad(mean_log_likelihood)(jax.tree.map(jnp.asarray, wave_rbm()))
        return {
            "weights": np.asarray(slopes.couplings[0].weights),
            "visible": np.asarray(slopes.units[0].bias),
            "hidden": np.asarray(slopes.units[1].bias),
        }


def test_log_partition() -> None:
    assert hm.log_partition(wave_rbm()).value == pytest.approx(LOG_PARTITION, abs=1e-9)
    assert table().log_partition() == pytest.approx(LOG_PARTITION, abs=1e-9)


def test_mean_log_likelihood() -> None:
    assert hm.log_likelihood(wave_rbm(), ROWS).value == pytest.approx(MEAN_LOG_LIKELIHOOD, abs=1e-9)


def test_single_precision_parameters_are_read_as_they_are() -> None:
    """Rounding the parameters to float32 moves the numbers by what the parameters moved, not by float32 sums."""
    rounded = wave_matrix(4, 3).astype(np.float32), wave_vector(4).astype(np.float32), wave_vector(3, 1.0)
    value = hm.log_likelihood(RBM.from_arrays(*rounded), ROWS).value
    exact = hm.log_likelihood(RBM.from_arrays(*(part.astype(np.float64) for part in rounded)), ROWS).value
    assert value == exact
    assert 0 < abs(value - MEAN_LOG_LIKELIHOOD) < 1e-6


def test_gradient_norms() -> None:
    for name, norm in GRADIENT_NORMS.items():
        assert np.linalg.norm(gradient()[name]) == pytest.approx(norm, abs=1e-9)


def test_gradient_is_the_difference_of_the_two_phases() -> None:
    """``mean(v h^) - E[v h']`` and its kin, the expectations by sums over the table (visible by hidden)."""
    (v, h), law = table().layers, table().law()
    on = 1 / (1 + np.exp(-(wave_vector(3, 1.0) + ROWS @ wave_matrix(4, 3))))
    analytic = {
        "weights": ROWS.T @ on / len(ROWS) - v.T @ (law[:, None] * h),
        "visible": ROWS.mean(axis=0) - law @ v,
        "hidden": on.mean(axis=0) - law @ h,
    }
    for name, expected in analytic.items():
        assert gradient()[name].shape == expected.shape
        np.testing.assert_allclose(gradient()[name], expected, atol=1e-13)


def library_kernel() -> np.ndarray:
    """One sweep on the visible layer, from the library's own fields and means."""
    model = wave_rbm()
    with jax.enable_x64(True):
        (v, _), (h, _) = table().marginal(0, table().law()), table().marginal(1, table().law())
        on_h = np.asarray(model.units[1].mean(model.field(1, (jnp.asarray(v), jnp.zeros((len(v), 3))))))
        on_v = np.asarray(model.units[0].mean(model.field(0, (jnp.zeros((len(h), 4)), jnp.asarray(h)))))
    h_given_v = np.prod(np.where(h[None] == 1, on_h[:, None], 1 - on_h[:, None]), axis=2)
    v_given_h = np.prod(np.where(v[None] == 1, on_v[:, None], 1 - on_v[:, None]), axis=2)
    return h_given_v @ v_given_h


def test_the_block_gibbs_kernel() -> None:
    kernel, (_, law) = library_kernel(), table().marginal(0, table().law())
    np.testing.assert_allclose(kernel, visible_kernel(table()), atol=1e-15)
    np.testing.assert_allclose(law @ kernel, law, atol=1e-16)
    flow = law[:, None] * kernel
    np.testing.assert_allclose(flow, flow.T, atol=1e-16)
    eigenvalues = np.sort(np.abs(np.linalg.eigvals(kernel)))
    assert eigenvalues[-1] == pytest.approx(1, abs=1e-12)
    assert eigenvalues[-2] == pytest.approx(SECOND_EIGENVALUE, abs=1e-10)


@pytest.mark.parametrize("sweeps", CD_ERRORS)
def test_the_bias_of_contrastive_divergence(sweeps: int) -> None:
    """Frobenius error of the expected CD-k gradient of the weights, through powers of the library's kernel."""
    states, _ = table().marginal(0, table().law())
    on = 1 / (1 + np.exp(-(wave_vector(3, 1.0) + states @ wave_matrix(4, 3))))
    rows = [int((states == row).all(axis=1).argmax()) for row in ROWS]
    chains = np.linalg.matrix_power(library_kernel(), sweeps)[rows]
    expected = ROWS.T @ on[rows] / len(ROWS) - states.T @ (chains.mean(axis=0)[:, None] * on)
    # The last figures of the golden value are its own rounding.
    assert np.linalg.norm(expected - gradient()["weights"]) == pytest.approx(
        CD_ERRORS[sweeps], rel=1e-4, abs=1e-14
    )
