"""Proofs that every rule inherits: its mean gradient is the expected one, and every row counts as it should."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import BudgetError, SettingError
from harmonium.inference.exact import Exact
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.rules.contrastive import Contrastive, ContrastiveState
from harmonium.samplers.gibbs import Gibbs, GibbsState
from harmonium.typing import Batch, Step
from tests.contracts.cases import RULES
from tests.contracts.machines import wave_vector
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import (
    FALSE_ALARM,
    POWER,
    agreement,
    deviation_limit,
    deviation_power,
    largest_deviation,
    visible_kernel,
)

KEYS = 4
CASES = np.array([0, 3, 5, 6, 9, 10, 10, 15])
"""Visible states that the rows of a batch are, by number; one of them twice."""

rules = pytest.mark.parametrize("name", RULES)


def step_of(seed: int) -> Step:
    words = Noise.from_key(jax.random.key(seed)).words
    return Step(jnp.int32(0), jnp.int32(1), words, words)


@cache
def program(rule: Contrastive) -> Callable[..., Any]:
    """Gradient of the surrogate as one vector (weights, visible, hidden biases), and the next state."""

    def run(model: Any, step: Step, state: ContrastiveState, batch: Batch) -> Any:
        gradient, (state, _) = jax.grad(rule.loss, has_aux=True)(model, step, state, batch)
        return flattened(gradient), state

    return jax.jit(run)


def flattened(gradient: Any) -> jax.Array:
    """Axes of free energies in front stay there."""
    weights = jnp.swapaxes(gradient.couplings[0].kernel, -1, -2)
    parts = (weights.reshape(*weights.shape[:-2], -1), gradient.units[0].bias, gradient.units[1].bias)
    return jnp.concatenate(parts, axis=-1)


def gradient_of(
    rule: Contrastive,
    model_name: str,
    seed: int,
    x: np.ndarray,
    weight: Any = None,
    chains: Any = None,
    extended: Any = None,
) -> tuple[np.ndarray, Any]:
    """The rule's gradient in float64 on rows, with given persistent chains and what belongs to them."""
    with jax.enable_x64(True):
        step = step_of(seed)
        model = model_of(model_name)
        sampler = (
            None if chains is None else rule.sampler.init(step.key, model, tuple(map(jnp.asarray, chains)))
        )
        if extended is not None:
            settings = RULES["pt"].rule.sampler
            sampler = extended(settings, model_of(model_name), table_of(model_name), sampler, seed)
        batch = Batch(x=jnp.asarray(x), weight=None if weight is None else jnp.asarray(weight, jnp.float64))
        gradient, state = program(rule)(model, step, ContrastiveState(sampler, None), batch)
        return np.asarray(gradient), jax.tree.map(np.asarray, state)


@cache
def slopes(model_name: str) -> np.ndarray:
    """Gradient of the free energy at every visible state, one row each."""
    states, _ = table_of(model_name).marginal(0, table_of(model_name).law())
    with jax.enable_x64(True):
        one = jax.grad(lambda model, row: model.free_energy(row))
        return np.asarray(
            flattened(jax.jit(jax.vmap(one, (None, 0)))(model_of(model_name), jnp.asarray(states)))
        )


def expected_gradient(
    name: str, negative: Callable[..., np.ndarray], chains: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the gradient over the noise, and the standard error of its mean over so many chains."""
    model_name = RULES[name].model
    table = table_of(model_name)
    laws = negative(visible_kernel(table), table.marginal(0, table.law())[1])[CASES]
    slope = slopes(model_name)
    means, squares = laws @ slope, laws @ slope**2
    variance = (squares - means**2).mean(axis=0)
    return slope[CASES].mean(axis=0) - means.mean(axis=0), np.sqrt(np.maximum(variance, 0) / chains)


@cache
def mean_gradient(name: str, twin: bool) -> np.ndarray:
    """The gradient over many rows or chains and several noise keys."""
    case = RULES[name]
    rule, table = (case.twin if twin else case.rule), table_of(case.model)
    states, _ = table.marginal(0, table.law())
    found = []
    for seed in range(KEYS):
        if rule.persistent:
            chains = [layer.astype(np.float64) for layer in table.draw(case.rows, table.law(), seed)]
            gradient, _ = gradient_of(
                rule, case.model, seed, states[CASES], chains=chains, extended=case.extended
            )
            found.append(gradient)
        else:
            found.append(
                gradient_of(rule, case.model, seed, np.tile(states[CASES], (case.rows // len(CASES), 1)))[0]
            )
    return np.mean(found, axis=0)


@rules
def test_the_mean_gradient_is_the_expected_one(name: str) -> None:
    case = RULES[name]
    expected, stderr = expected_gradient(name, case.negative, KEYS * case.rows)
    assert largest_deviation(mean_gradient(name, twin=False), expected, stderr) < deviation_limit(
        len(expected)
    )


@rules
def test_the_sabotaged_twin_is_caught(name: str) -> None:
    """The same comparison, with a rule whose mistake and its size are known; the power is computed."""
    case = RULES[name]
    expected, stderr = expected_gradient(name, case.negative, KEYS * case.rows)
    mistaken, its_stderr = expected_gradient(name, case.mistaken, KEYS * case.rows)
    limit = deviation_limit(len(expected))
    assert deviation_power(mistaken, expected, stderr) >= POWER
    assert largest_deviation(mean_gradient(name, twin=True), expected, stderr) > limit
    assert largest_deviation(mean_gradient(name, twin=True), mistaken, its_stderr) < limit


def test_at_stationarity_the_gradient_is_that_of_the_exact_likelihood() -> None:
    """What the proof of PCD compares with is automatic differentiation of ``mean(log p)``, enumerated."""
    table = table_of("strong rbm")
    states, _ = table.marginal(0, table.law())
    with jax.enable_x64(True):

        @jax.jit
        def log_likelihood(model: Any) -> jax.Array:
            scores = -model.free_energy(states)
            return jnp.mean(scores[CASES]) - jax.nn.logsumexp(scores)

        exact = np.asarray(
            flattened(jax.grad(log_likelihood)(jax.tree.map(jnp.asarray, model_of("strong rbm"))))
        )
    expected, _ = expected_gradient("pcd", RULES["pcd"].negative, 1)
    np.testing.assert_allclose(-expected, exact, atol=1e-13)
    # And the expected gradient of CD is another one, by far more than the proof's resolution.
    biased, stderr = expected_gradient("cd", RULES["cd"].negative, KEYS * RULES["cd"].rows)
    assert deviation_power(biased, expected, stderr) >= POWER


# ------------------------------------------------------------------------------- rows, weights, padding, chains

SMALL = {"pcd": hm.PCD(chains=24), "cd": hm.CD(2)}
"""Rules by name, with few chains: what follows is exact, not statistical."""

small = pytest.mark.parametrize("name", SMALL)


def small_chains() -> list[np.ndarray]:
    table = table_of("rbm")
    return [layer.astype(np.float64) for layer in table.draw(24, table.law(), 3)]


def small_gradient(name: str, x: np.ndarray, weight: Any = None, seed: int = 0) -> np.ndarray:
    return gradient_of(
        SMALL[name], "rbm", seed, x, weight, small_chains() if SMALL[name].persistent else None
    )[0]


def some_rows(count: int) -> np.ndarray:
    table = table_of("rbm")
    return table.draw(count, table.law(), 4)[0].astype(np.float64)


@small
def test_a_short_batch_is_worth_its_rows(name: str) -> None:
    """Padded to the length of a batch with rows of no weight, whatever is in them, the gradient is the same."""
    rows = some_rows(7)
    unpadded = small_gradient(name, rows)
    for padding in (np.zeros((3, 4)), np.ones((3, 4))):
        padded, weight = np.concatenate([rows, padding]), np.repeat([1.0, 0.0], [7, 3])
        np.testing.assert_allclose(small_gradient(name, padded, weight), unpadded, atol=1e-14)
    # Divided by the wrong count it would be another gradient.
    assert np.abs(unpadded * 7 / 10 - unpadded).max() > 1e-3
    uncounted = small_gradient(name, np.concatenate([rows, np.ones((3, 4))]))
    assert np.abs(uncounted - unpadded).max() > 1e-3


@small
def test_only_ratios_of_weights_matter(name: str) -> None:
    rows, weight = some_rows(7), np.array([0.5, 2.0, 1.0, 0.0, 3.0, 1.0, 0.25])
    weighted = small_gradient(name, rows, weight)
    np.testing.assert_allclose(small_gradient(name, rows, 10 * weight), weighted, atol=1e-14)
    np.testing.assert_allclose(small_gradient(name, rows, np.ones(7)), small_gradient(name, rows), atol=1e-14)
    assert np.abs(weighted - small_gradient(name, rows)).max() > 1e-3


def test_a_weight_is_a_row_given_that_many_times() -> None:
    """Exactly so where chains do not start from the rows."""
    rows, times = some_rows(7), np.array([1, 3, 2, 0, 1, 1, 2])
    weighted = small_gradient("pcd", rows, times)
    np.testing.assert_allclose(weighted, small_gradient("pcd", np.repeat(rows, times, axis=0)), atol=1e-14)


def test_weights_of_rows_that_chains_start_from() -> None:
    """For CD a row's chain carries the row's weight: the gradient is the weighted mean of one-row gradients."""
    rows, weight = some_rows(4), np.array([1.0, 0.0, 2.0, 0.5])
    units = np.eye(4)
    alone = np.stack([small_gradient("cd", rows, units[i]) for i in range(4)])
    np.testing.assert_allclose(small_gradient("cd", rows, weight), weight @ alone / weight.sum(), atol=1e-14)


def test_one_row_and_one_hidden_unit() -> None:
    for rule in SMALL.values():
        chains = None
        if rule.persistent:
            chains = [np.ones((24, 1)), np.zeros((24, 1))]
        gradient, _ = gradient_of(rule, "rbm of one by one", 0, np.ones((1, 1)), chains=chains)
        assert gradient.shape == (3,)
        assert np.isfinite(gradient).all()


@small
@pytest.mark.parametrize("size", [0.0, 200.0])
def test_weights_of_nothing_and_of_two_hundred_in_single_precision(name: str, size: float) -> None:
    """The gradient is finite, and that of float64 on the same random words."""
    rows, chains, answers = some_rows(7), small_chains(), []
    signs = np.where(np.indices((4, 3)).sum(axis=0) % 2 == 0, 1.0, -1.0)
    for double in (False, True):
        dtype = np.float64 if double else np.float32
        with jax.enable_x64(double):
            arrays = (size * signs, wave_vector(4), wave_vector(3, 1.0))
            model = hm.RBM.from_arrays(*(part.astype(dtype) for part in arrays))
            sampler = None
            if SMALL[name].persistent:
                sampler = GibbsState(tuple(jnp.asarray(layer, dtype) for layer in chains))
            batch = Batch(x=jnp.asarray(rows, dtype))
            gradient, _ = program(SMALL[name])(model, step_of(0), ContrastiveState(sampler, None), batch)
            assert gradient.dtype == dtype
            answers.append(np.asarray(gradient))
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-6)


def test_chains_do_not_know_the_batch() -> None:
    """Their number, their moves and their place in the state are the same whatever rows come by."""
    chains = small_chains()
    ends = [gradient_of(SMALL["pcd"], "rbm", 0, some_rows(count), chains=chains)[1] for count in (1, 7, 60)]
    for end in ends:
        assert [layer.shape for layer in end.sampler.particles] == [(24, 4), (24, 3)]
        for one, other in zip(end.sampler.particles, ends[0].sampler.particles, strict=True):
            np.testing.assert_array_equal(one, other)


def test_chains_go_on_where_they_were() -> None:
    """The next state holds the chains one sampler step on; the state that was given keeps its own."""
    rule, chains = SMALL["pcd"], small_chains()
    copies = [layer.copy() for layer in chains]
    _, end = gradient_of(rule, "rbm", 5, some_rows(7), chains=chains)
    with jax.enable_x64(True):
        step, model = step_of(5), model_of("rbm")
        start = rule.sampler.init(step.key, model, tuple(map(jnp.asarray, chains)))
        by_hand, _ = jax.jit(rule.sampler.step)(Noise.of(step.key), model, start)
    for now, hand, before, given in zip(
        end.sampler.particles, by_hand.particles, copies, chains, strict=True
    ):
        np.testing.assert_array_equal(now, hand)
        np.testing.assert_array_equal(before, given)
        assert (now != before).any()


def test_first_chains_are_independent_of_the_rows_and_burnt_in() -> None:
    model, table = as_single(model_of("strong rbm")), table_of("strong rbm")
    many = hm.PCD(chains=40_000)
    init = jax.jit(lambda x: many.init(Noise.from_key(jax.random.key(1)).words, model, Batch(x=x)))
    low, high = (init(np.full((1, 4), value, np.float32)) for value in (0.2, 0.9))
    for left, right in zip(low.sampler.particles, high.sampler.particles, strict=True):
        np.testing.assert_array_equal(left, right)
    assert agreement(table.counts(low.sampler.particles), table.law()) > FALSE_ALARM
    np.testing.assert_allclose(low.offsets[0], 0.2, rtol=1e-6)
    np.testing.assert_allclose(high.offsets[0], 0.9, rtol=1e-6)
    np.testing.assert_allclose(low.offsets[1], 1 / (1 + np.exp(-wave_vector(3, 1.0))), rtol=1e-6)


def test_a_state_holds_only_what_its_rule_needs() -> None:
    words, batch = Noise.from_key(jax.random.key(1)).words, Batch(x=jnp.zeros((1, 4)))
    for rule in (hm.PCD(chains=3), hm.PCD(chains=3, centred=False), hm.CD(1), hm.CD(1, centred=False)):

        def parts(rule: Contrastive = rule) -> Any:
            state = rule.init(words, as_single(model_of("rbm")), batch)
            return rule.offsets(state), rule.chains(state)

        offsets, chains = jax.eval_shape(parts)
        assert (offsets is not None) == rule.centred
        assert (chains is not None) == rule.persistent


@pytest.mark.parametrize("chains", [0, -3, True])
def test_persistent_training_needs_a_chain(chains: int) -> None:
    with pytest.raises(SettingError, match="at least one chain"):
        hm.PCD(chains=chains)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="offset_rate is a fraction"):
        Contrastive(Gibbs(), Exact(), persistent=False, offset_rate=1.5)
    with pytest.raises(SettingError, match="at least one sweep"):
        hm.CD(0)


def test_exact_inference_refuses_hidden_units_it_cannot_enumerate() -> None:
    model = model_of("machine")
    batch, noise = Batch(x=jnp.zeros((2, 3))), Noise.from_key(jax.random.key(0))
    with pytest.raises(
        BudgetError, match=r"enumerate 2\*\*2 states.*budget is 1 bits; use inference='mean-field'"
    ):
        Exact(bit_budget=1).posterior(noise, model, batch)
