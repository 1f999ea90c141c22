"""Moments, gradients and weights of modes against sums over all configurations of small machines."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import BudgetError, DataError, SettingError
from tests.contracts.model_cases import GUIDED, MODELS, STACKS, TRAINABLE, model_of, table_gradient, table_of

models = pytest.mark.parametrize("name", [name for name in MODELS if name not in (*STACKS, *GUIDED)])
trainable = pytest.mark.parametrize("name", TRAINABLE)


@models
def test_moments_are_sums_over_all_states(name: str) -> None:
    table, found = table_of(name), hm.moments(model_of(name))
    x, law = np.concatenate(table.layers, axis=1), table.law()
    np.testing.assert_allclose(np.concatenate(found.means), law @ x, atol=1e-13)
    np.testing.assert_allclose(found.second, x.T @ (law[:, None] * x), atol=1e-13)
    np.testing.assert_allclose(found.covariance, np.cov(x.T, aweights=law, bias=True), atol=1e-13)
    assert found.log_partition == pytest.approx(table.log_partition(), rel=1e-13)
    assert [mean.shape for mean in found.means] == [(size,) for size in table.sizes]


@trainable
def test_the_gradient_is_the_difference_of_moments(name: str) -> None:
    """Of tied parameters: both places of a pair hold its derivative, and the diagonal holds nothing."""
    table, model = table_of(name), model_of(name)
    rows = table.draw(9, table.law(), 1)[0]
    found = hm.exact_gradient(model, rows)
    biases: list[Any] = [value for key, value in found.items() if "bias" in key]
    expected = -table_gradient(name, rows, np.ones(len(rows)))
    flat = np.concatenate(
        [np.ravel(part) for value in biases for part in (value if isinstance(value, list) else [value])]
    )
    np.testing.assert_allclose(flat, expected[len(expected) - len(flat) :], atol=1e-13)
    couplings = expected[: len(expected) - len(flat)]
    with jax.enable_x64(True):
        pairs = np.argwhere(np.triu(np.asarray(model.pairwise()[0])))
    if "coupling" in found:
        matrix = found["coupling"]
        np.testing.assert_array_equal(matrix, matrix.T)
        assert not np.diag(matrix).any()
    else:
        layers = found["weights"] if isinstance(found["weights"], list) else [found["weights"]]
        edges = np.cumsum([0, *table.sizes])
        matrix = np.zeros((edges[-1], edges[-1]))
        for place, layer in enumerate(layers):
            matrix[edges[place] : edges[place + 1], edges[place + 1] : edges[place + 2]] = layer
    np.testing.assert_allclose(matrix[pairs[:, 0], pairs[:, 1]], couplings, atol=1e-13)
    assert np.abs(couplings).max() > 1e-3


def test_differentiating_the_full_matrix_gives_half() -> None:
    """The mistake that storing each pair once rules out."""
    table, model = table_of("machine, fully visible"), model_of("machine, fully visible")
    rows = table.draw(9, table.law(), 1)[0]
    with jax.enable_x64(True):
        states = jnp.asarray(table.layers[0])
        coupling, bias = jax.tree.map(jnp.asarray, model.pairwise())

        def log_likelihood(coupling: Any) -> Any:
            def score(x: Any) -> Any:
                return jnp.sum(x @ coupling * x, axis=1) / 2 + x @ bias

            return jnp.mean(score(jnp.asarray(rows))) - jax.nn.logsumexp(score(states))

        full = np.asarray(jax.jit(jax.grad(log_likelihood))(coupling))
    tied = hm.exact_gradient(model, rows)["coupling"]
    off_diagonal = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(full[off_diagonal], tied[off_diagonal] / 2, atol=1e-13)
    assert np.abs(np.diag(full)).max() > 1e-3


@models
def test_the_most_probable_states_come_first(name: str) -> None:
    table, model = table_of(name), model_of(name)
    states, law = table.marginal(0, table.law())
    found = hm.mode_weights(model, count=3)
    order = np.argsort(-law, kind="stable")[:3]
    np.testing.assert_allclose(found.probabilities, law[order], atol=1e-13)
    asked = hm.mode_weights(model, states)
    np.testing.assert_allclose(asked.probabilities, law, atol=1e-13)
    np.testing.assert_array_equal(asked.states, states)
    everything = hm.mode_weights(model, count=1000)
    assert len(everything.states) == len(states)
    assert everything.probabilities.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    "question",
    [
        hm.moments,
        hm.mode_weights,
        lambda model: hm.exact_gradient(model, np.zeros((1, model.units[0].size))),
    ],
)
def test_a_network_is_no_undirected_machine(question: Any) -> None:
    """Its two laws, of the product that is trained and of the density that is read, would be mixed up."""
    assert STACKS
    for name in STACKS:
        with pytest.raises(SettingError, match=r"takes an undirected machine, got DBN.* dbn.levels\[0\]"):
            question(model_of(name))


def test_ties_and_many_states() -> None:
    flat = hm.BoltzmannMachine.from_arrays(np.zeros((13, 13)), np.zeros(13))
    found = hm.mode_weights(flat, count=3)
    np.testing.assert_array_equal(found.states @ 2.0 ** np.arange(13)[::-1], [0, 1, 2])
    np.testing.assert_allclose(found.probabilities, 2.0**-13, rtol=1e-12)


def test_many_chunks_add_up() -> None:
    """A machine whose states fill several chunks, against blocks of the law of its visible part."""
    machine = hm.BoltzmannMachine(15, 5, seed=2, weight_scale=0.4)
    found = hm.moments(machine)
    parameters = machine.parameters()
    turned = {**parameters, "coupling": parameters["coupling"][::-1, ::-1], "bias": parameters["bias"][::-1]}
    again = hm.moments(hm.BoltzmannMachine.from_arrays(**turned))
    np.testing.assert_allclose(again.second[::-1, ::-1], found.second, atol=1e-12)
    assert again.log_partition == pytest.approx(found.log_partition, rel=1e-13)
    assert np.trace(found.second) == pytest.approx(np.concatenate(found.means).sum(), rel=1e-12)


def test_budgets_and_rows_are_refused() -> None:
    large = hm.BoltzmannMachine(40, seed=0)
    for question, cure in (
        (hm.moments, r"average over hm.sample\(model, 10000\)"),
        (
            lambda model: hm.exact_gradient(model, np.zeros((1, model.units[0].size))),
            r"train with hm.PCD\(\)",
        ),
        (hm.mode_weights, r"count how often hm.sample\(model, 10000\) draws them"),
    ):
        bits = r"2\*\*39 states, but the budget is 26 bits"
        with pytest.raises(BudgetError, match=f"{bits}; {cure}.*, or pass bit_budget=39 if you can wait$"):
            question(large)
        # Nobody can wait for more.
        with pytest.raises(BudgetError, match=f"{cure}[^=]*$"):
            question(hm.BoltzmannMachine(42, seed=0))
    with pytest.raises(BudgetError, match="pass the states that you ask for"):
        hm.mode_weights(hm.RBM(40, 3, seed=0))
    assert hm.mode_weights(hm.RBM(40, 3, seed=0), np.zeros((1, 40))).probabilities[0] == pytest.approx(
        2**-40, rel=0.2
    )
    with pytest.raises(BudgetError, match="budget is 2 bits"):
        hm.moments(model_of("rbm"), bit_budget=2)
    with pytest.raises(DataError, match="columns"):
        hm.exact_gradient(model_of("rbm"), np.zeros((1, 7)))
    with pytest.raises(SettingError, match="count must be"):
        hm.mode_weights(model_of("rbm"), count=0)
