"""Rules without a sample, and chains where hidden units are coupled: the exact gradient of tied parameters."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.rules.contrastive import Contrastive, ContrastiveState
from harmonium.typing import Batch
from tests.contracts.cases import EXACT_RULES
from tests.contracts.model_cases import STACKS, TRAINABLE, model_of, table_gradient, table_of
from tests.contracts.tables import (
    deviation_limit,
    largest_deviation,
)
from tests.contracts.test_rules import step_of


@pytest.mark.parametrize("rule", EXACT_RULES)
@pytest.mark.parametrize("name", TRAINABLE)
def test_a_rule_without_a_sample_has_the_exact_gradient(rule: str, name: str) -> None:
    """Of tied parameters, against sums over all states; half of it, as a full matrix would give, is far away."""
    model, table = model_of(name), table_of(name)
    rows, weight = table.draw(7, table.law(), 2)[0].astype(np.float64), np.arange(7.0)
    with jax.enable_x64(True):
        batch = Batch(x=jnp.asarray(rows), weight=jnp.asarray(weight))
        state = EXACT_RULES[rule].init(step_of(0).key, model, batch)
        loss = jax.jit(jax.grad(EXACT_RULES[rule].loss, has_aux=True))
        slopes, (after, _) = loss(jax.tree.map(jnp.asarray, model), step_of(0), state, batch)
        coupled = np.argwhere(np.triu(np.asarray(model.pairwise()[0])))
        matrix = np.asarray(slopes.pairwise()[0])
    found = np.concatenate(
        [matrix[coupled[:, 0], coupled[:, 1]], *(np.asarray(units.bias) for units in slopes.units)]
    )
    expected = table_gradient(name, rows, weight)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert np.abs(found[: len(coupled)] / 2 - expected[: len(coupled)]).max() > 1e-3
    assert not np.diag(matrix).any()
    np.testing.assert_allclose(after.offsets[0], weight @ rows / weight.sum(), atol=1e-13)


@pytest.mark.parametrize("name", STACKS)
def test_the_levels_of_a_stack_have_the_exact_gradients_of_machines_of_their_own(name: str) -> None:
    """Each on the means of the level below; on its blank layers, as the law of the product has it, another one."""
    stack = model_of(name)
    rows, weight = table_of(name).draw(7, table_of(name).law(), 2)[0].astype(np.float64), np.arange(7.0)
    rule = hm.ExactGradient(centred=False)
    with jax.enable_x64(True):

        def slopes(model: Any, rows: np.ndarray) -> Any:
            batch = Batch(x=jnp.asarray(rows), weight=jnp.asarray(weight))
            state = rule.init(step_of(0).key, model, batch)
            return jax.grad(rule.loss, has_aux=True)(
                jax.tree.map(jnp.asarray, model), step_of(0), state, batch
            )[0]

        found, passed = slopes(stack, rows), rows
        for level, rbm in enumerate(stack.levels):
            alone = slopes(rbm, passed)
            for mine, its in zip(jax.tree.leaves(found.level(level)), jax.tree.leaves(alone), strict=True):
                np.testing.assert_allclose(mine, its, atol=1e-13)
            parameters = rbm.parameters()
            field = passed @ parameters["weights"] + parameters["hidden_bias"]
            blank = jax.tree.leaves(slopes(rbm, np.zeros_like(passed)))
            assert (
                max(float(np.abs(a - b).max()) for a, b in zip(blank, jax.tree.leaves(alone), strict=True))
                > 1e-3
            )
            passed = 1 / (1 + np.exp(-field))


@pytest.mark.parametrize("inference", ["exact", "gibbs"])
@pytest.mark.parametrize("name", ["machine", "machine on a sparse graph"])
def test_persistent_chains_of_a_general_machine_have_the_exact_mean_gradient(
    name: str, inference: str
) -> None:
    """Chains at the target and hidden units inferred: the exact gradient in the mean; with weaker chains, another."""
    model, table = model_of(name), table_of(name)
    states, _ = table.marginal(0, table.law())
    rows = states[[0, 3, 5, 5]]
    rule = hm.PCD(chains=20_000, inference=inference, inference_sweeps=None if inference == "exact" else 30)
    tall = np.tile(rows, (5000, 1))
    right = table_gradient(name, rows, np.ones(4))
    found, twin = [], []
    for seed in range(8):
        for law, into in ((table.law(), found), (table.law(beta=0.8), twin)):
            chains = [layer.astype(np.float64) for layer in table.draw(20_000, law, seed)]
            with jax.enable_x64(True):
                step, batch = step_of(seed), Batch(x=jnp.asarray(tall))
                state = ContrastiveState(
                    rule.sampler.init(step.key, model, tuple(map(jnp.asarray, chains))), None
                )
                into.append(machine_program(rule)(model, step, state, batch))
    found, twin = np.stack(found), np.stack(twin)
    # Spread of one draw is at most 1/2 per phase; so is that of a mean over chains, divided by their root.
    stderr = np.full(len(right), np.sqrt(2 * 0.25 / (8 * 20_000)))
    limit = deviation_limit(len(right))
    assert largest_deviation(found.mean(axis=0), right, stderr) < limit
    assert largest_deviation(twin.mean(axis=0), right, stderr) > limit


def test_chains_that_restart_from_the_law_of_the_machine_move_nothing() -> None:
    """Contrastive divergence with coupled hidden units: rows of the model's own law leave it where it is, in the mean.

    A start from one sweep, which is no draw of coupled units given the data, would not.
    """
    model, table = model_of("machine"), table_of("machine")
    found: dict[int, list[np.ndarray]] = {30: [], 1: []}
    for sweeps, gradients in found.items():
        rule = hm.CD(inference="gibbs", inference_sweeps=sweeps, centred=False)
        for seed in range(4):
            rows = table.draw(100_000, table.law(), seed)[0].astype(np.float64)
            with jax.enable_x64(True):
                step, batch = step_of(seed), Batch(x=jnp.asarray(rows))
                gradients.append(machine_program(rule)(model, step, rule.init(step.key, model, batch), batch))
    count = len(found[1][0])
    stderr = np.full(count, np.sqrt(2 * 0.25 / 400_000))
    right, wrong = (largest_deviation(np.mean(found[n], axis=0), np.zeros(count), stderr) for n in (30, 1))
    assert right < deviation_limit(count) < wrong


@cache
def machine_program(rule: Contrastive) -> Callable[..., np.ndarray]:
    run = jax.jit(jax.grad(lambda *arguments: rule.loss(*arguments)[0]))

    def flat(*arguments: Any) -> np.ndarray:
        slopes = run(*arguments)
        return np.concatenate([slopes.couplings[0].strengths, *(units.bias for units in slopes.units)])

    return flat
