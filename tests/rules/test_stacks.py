"""Rules on a stack: every level is an RBM of its own, trained on what the one below passes up."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import BudgetError
from harmonium.inference.clamped import ClampedGibbs
from harmonium.inference.exact import Exact
from harmonium.inference.mean_field import MeanField
from harmonium.inference.stacked import passed_up, positive_phase
from harmonium.numerics.random import Noise
from harmonium.rules.contrastive import Contrastive
from harmonium.typing import Batch, Step
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, agreement

NAME = "stack of three"


def logistic(field: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-field))


def on_the_way_up(stack: Any, rows: np.ndarray) -> list[np.ndarray]:
    """Means of v_1, h_1 and so on, by hand."""
    parameters = stack.parameters()
    uppers = [*parameters["recognition_biases"], parameters["biases"][-1]]
    means = [rows]
    for matrix, bias in zip(parameters["weights"], uppers, strict=True):
        means.append(logistic(means[-1] @ matrix + bias))
    return means


def slopes(inference: Any, name: str, rows: np.ndarray, seed: int = 0) -> tuple[Any, Any]:
    """Gradient of the mean energy of the positive phase, as a stack, and its means."""
    with jax.enable_x64(True):

        def energy(model: Any) -> Any:
            posterior = positive_phase(
                inference, Noise.from_key(jax.random.key(seed)).stream(102), model, Batch(x=jnp.asarray(rows))
            )
            return jnp.mean(posterior.energy), posterior.means

        found, means = jax.jit(jax.grad(energy, has_aux=True))(jax.tree.map(jnp.asarray, model_of(name)))
        return jax.tree.map(np.asarray, found), [np.asarray(layer) for layer in means]


@pytest.mark.parametrize("inference", [Exact(), MeanField(sweeps=60, damping=0.0, tolerance=1e-13)])
def test_each_level_learns_what_is_passed_up_and_nothing_goes_back_down(inference: Any) -> None:
    """Gradients of every level are those of its data alone, written out with means."""
    rows = table_of(NAME).draw(7, table_of(NAME).law(), 3)[0].astype(np.float64)
    up = on_the_way_up(model_of(NAME), rows)
    found, means = slopes(inference, NAME, rows)
    for level in range(3):
        below, above = up[level], up[level + 1]
        np.testing.assert_allclose(means[2 * level], below, atol=1e-9)
        np.testing.assert_allclose(means[2 * level + 1], above, atol=1e-9)
        np.testing.assert_allclose(found.units[2 * level].bias, -below.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(found.units[2 * level + 1].bias, -above.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(found.couplings[2 * level].kernel, -above.T @ below / len(rows), atol=1e-9)


def test_inference_by_sampling_passes_draws_up() -> None:
    """Rows of the next level are 0 or 1, the very draws of the level below, and right on average."""
    row = table_of(NAME).layers[0][1]
    rows = np.tile(row, (40_000, 1)).astype(np.float64)
    found, means = slopes(ClampedGibbs(1), NAME, rows)
    passed = means[2]
    assert set(np.unique(passed)) == {0.0, 1.0}
    expected = on_the_way_up(model_of(NAME), rows[:1])[1][0]
    np.testing.assert_allclose(passed.mean(axis=0), expected, atol=6 * 0.5 / np.sqrt(len(rows)))
    # The statistics of the level below are of the same draws.
    np.testing.assert_allclose(found.units[1].bias, -passed.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.units[2].bias, -passed.mean(axis=0), atol=1e-12)


def test_chains_that_restart_begin_at_what_is_passed_up() -> None:
    """Of one row given many times: v_1 is the row, codes have the law of the way up, each the data of the next."""
    table, row = table_of(NAME), table_of(NAME).layers[0][2]
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), model_of(NAME))
    rows = jnp.asarray(np.tile(row, (50_000, 1)), jnp.float32)
    layers = jax.jit(passed_up)(Noise.from_key(jax.random.key(2)), model, Batch(x=rows))
    np.testing.assert_array_equal(layers[0], rows)
    np.testing.assert_array_equal(layers[1], layers[2])
    np.testing.assert_array_equal(layers[3], layers[4])
    parameters = model_of(NAME).parameters()
    uppers = [*parameters["recognition_biases"], parameters["biases"][-1]]
    law = ((table.layers[0] == row).all(axis=1) & same(table, 1, 2) & same(table, 3, 4)).astype(float)
    for level, (matrix, bias) in enumerate(zip(parameters["weights"], uppers, strict=True)):
        mean = logistic(table.layers[2 * level] @ matrix + bias)
        code = table.layers[2 * level + 1]
        law = law * np.where(code == 1, mean, 1 - mean).prod(axis=1)
    assert law.sum() == pytest.approx(1)
    assert agreement(table.counts(layers), law) > FALSE_ALARM


def same(table: Any, one: int, other: int) -> np.ndarray:
    return (table.layers[one] == table.layers[other]).all(axis=1)


def test_offsets_of_codes_start_in_the_middle_and_follow_the_means() -> None:
    model = model_of(NAME)
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), model)
    words = Noise.from_key(jax.random.key(0)).words
    batch = Batch(x=jnp.asarray([[0.2, 0.7]], jnp.float32))
    rule = hm.CD(1, offset_rate=0.5)
    state = jax.jit(rule.init)(words, single, batch)
    np.testing.assert_allclose(state.offsets[0], [0.2, 0.7], rtol=1e-6)
    for layer in state.offsets[1:]:
        np.testing.assert_array_equal(layer, 0.5)
    rows = np.array([[1.0, 0.0]])
    step = Step(jnp.int32(0), jnp.int32(1), words, words)
    _, (after, _) = jax.jit(rule.loss)(single, step, state, Batch(x=jnp.asarray(rows, jnp.float32)))
    up = on_the_way_up(model, rows)
    for layer, mean in zip(after.offsets[1:], (up[1], up[1], up[2], up[2], up[3]), strict=True):
        np.testing.assert_allclose(layer, 0.25 + 0.5 * mean[0], rtol=1e-5)


def test_budgets_are_of_levels() -> None:
    """A stack of wide layers has nothing to enumerate in its positive phase."""
    words = Noise.from_key(jax.random.key(0)).words
    stack = hm.DBN(4, [30, 30])
    state = hm.PCD(chains=2, burn_in=0).init(words, stack, Batch(x=jnp.full((1, 4), 0.5)))
    assert state.sampler is not None
    with pytest.raises(BudgetError, match="budget is 12 bits"):
        Exact().check(stack)


@pytest.mark.parametrize(
    "rule", [hm.CD(1), hm.PCD(chains=20), hm.CD(1, inference="gibbs", inference_sweeps=1)]
)
def test_levels_learn_under_every_rule(rule: Contrastive) -> None:
    """Patterns that are all on or all off: independent units would have -5.5 nats per row, independent codes -2.8."""
    rows = np.repeat([[0] * 8, [1] * 8], 100, axis=0)
    run = hm.fit(hm.DBN(8, [4, 3], seed=1, weight_scale=0.1), rows, rule, updates=400, batch_size=20, seed=0)
    assert run.reliable
    assert isinstance(run.model, hm.DBN)
    bottom, top = run.model.levels
    assert hm.log_likelihood(bottom, rows).value > -4
    codes = np.round(on_the_way_up(run.model, rows[[0, -1]].astype(float))[1])
    assert (codes[0] != codes[1]).any()
    assert hm.log_likelihood(top, codes).value > -2.5


def test_products_of_sixteen_bits_serve_a_stack() -> None:
    rows = np.repeat([[0] * 8, [1] * 8], 20, axis=0)
    rule = hm.PCD(chains=4, sampler=hm.DeepTempering(hot=1), precision="bfloat16")
    run = hm.fit(hm.DBN(8, [4, 3], seed=1), rows, rule, updates=100, batch_size=4, seed=0)
    assert run.reliable
