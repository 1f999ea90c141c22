"""Training a deep Boltzmann machine: one update written out, whole runs, and runs that go on."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.exact import likelihood_operations, plan_enumeration
from harmonium.numerics.random import Noise, key_words, seed_key
from harmonium.rules.contrastive import Contrastive
from harmonium.train import ensemble_monitor, monitor
from harmonium.train.ensemble_monitor import EnsembleMonitor
from harmonium.train.monitor import Monitor, _held_at
from harmonium.typing import Batch, Step
from tests.contracts.machines import wave_layers

ROWS = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 1]])
PATTERNS = hm.load_data("bars-and-stripes:side=2")


def logistic(field: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-field))


def slopes_of(rule: Contrastive) -> tuple[Any, Any]:
    """Minus the slopes of a rule's surrogate at its first update, in float64, and the chains that it used."""
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, wave_layers(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 2)))
        batch = Batch(x=jnp.asarray(ROWS))
        state = rule.init(key_words(seed_key(3)), model, batch)
        words = key_words(seed_key(4))
        step = Step(jnp.int32(0), jnp.int32(10), words, words)
        slopes, (after, _) = jax.grad(rule.loss, has_aux=True)(model, step, state, batch)
        return jax.tree.map(lambda slope: -np.asarray(slope), slopes), after.sampler.particles


def test_an_update_is_the_means_of_the_data_minus_the_chains_and_not_zero() -> None:
    """Printed: both terms of an update are V'H and H'H of the data, so that it is identically zero.

    Right: the variational means in the first and the persistent chains in the second, each over its own count. Layers
    of odd number stand in it as means given their neighbours, where the chapter has draws: less noisy, the same mean.
    """
    ours, chains = slopes_of(
        hm.PCD(steps=2, chains=6, inference="mean-field", inference_sweeps=500, centred=False)
    )
    given = wave_layers(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 2)).parameters()
    (lower, upper), (_, first_bias, second_bias) = given["weights"], given["biases"]
    first, second = np.zeros((4, 3)), np.zeros((4, 2))
    for _ in range(500):
        first = logistic(ROWS @ lower + second @ upper.T + first_bias)
        second = logistic(first @ upper + second_bias)
    visible, _, top = (np.asarray(layer) for layer in chains)
    between = logistic(visible @ lower + top @ upper.T + first_bias)
    right = ROWS.T @ first / 4 - visible.T @ between / 6, first.T @ second / 4 - between.T @ top / 6
    printed = ROWS.T @ first / 4 - ROWS.T @ first / 4, first.T @ second / 4 - first.T @ second / 4
    for coupling, expected, zero in zip(ours.couplings, right, printed, strict=True):
        np.testing.assert_allclose(coupling.kernel.T, expected, atol=1e-6)
        assert np.abs(expected).max() > 0.05
        assert not zero.any()
    biases = [
        ROWS.mean(axis=0) - visible.mean(axis=0),
        first.mean(axis=0) - between.mean(axis=0),
        second.mean(axis=0) - top.mean(axis=0),
    ]
    for units, expected in zip(ours.units, biases, strict=True):
        np.testing.assert_allclose(units.bias, expected, atol=1e-6)


def train(rule: Any, model: hm.DBM | None = None, **settings: Any) -> hm.Run:
    model = hm.DBM(4, [4, 3], seed=1, weight_scale=0.3) if model is None else model
    return hm.fit(model, PATTERNS, rule, batch_size=6, seed=0, **settings)


def test_training_raises_the_exact_likelihood_and_the_bound() -> None:
    rule = hm.PCD(steps=5, chains=50, inference="mean-field", inference_sweeps=10)
    run = train(rule, updates=1000, learning_rate=1.0)
    assert isinstance(run.model, hm.DBM)
    scores = [record["log_likelihood_train"] for record in run.history]
    assert run.history[-1]["log_likelihood_kind"] == "exact"
    assert scores[-1] > scores[0] + 0.3
    assert scores[-1] > -2.3  # the rows alone would have -log 6 = -1.79, coin flips -2.77
    bound = hm.log_likelihood(run.model, PATTERNS, "bound")
    assert bound.value == pytest.approx(scores[-1], abs=0.5)
    assert bound.value < scores[-1]


def test_a_run_without_a_rule_infers_by_mean_field_and_says_so() -> None:
    run = train(None, updates=100)
    settings: Any = run.config
    assert settings["model"] == {
        "kind": "dbm",
        "visible": "bernoulli",
        "hidden": [4, 3],
        "hidden_units": "bernoulli",
    }
    assert settings["sampler"]["inference"] == "mean-field"


def test_a_fresh_machine_starts_at_the_marginals_of_the_data() -> None:
    rows = np.repeat([[1, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 1]], 20, axis=0)
    started = hm.fit(hm.DBM(4, [3, 2], weight_scale=0.0), rows, updates=1, learning_rate=0.0).model
    on = logistic(np.asarray(started.units[0].bias))
    np.testing.assert_allclose(on, (rows.sum(axis=0) + 1) / 62, atol=1e-6)


def test_an_interrupted_run_ends_where_the_unbroken_one_does(tmp_path: Path) -> None:
    whole = train(hm.PCD(steps=2, chains=8, inference="mean-field"), updates=300, out=tmp_path / "whole")
    stopped: list[int] = []

    def stop(record: dict[str, Any], timing: dict[str, Any]) -> None:
        stopped.append(1)
        if len(stopped) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            hm.PCD(steps=2, chains=8, inference="mean-field"),
            updates=300,
            out=tmp_path / "broken",
            reporter=stop,
        )
    resumed = hm.resume(tmp_path / "broken")
    assert isinstance(resumed.model, hm.DBM)
    for one, other in zip(jax.tree.leaves(whole.model), jax.tree.leaves(resumed.model), strict=True):
        np.testing.assert_array_equal(one, other)


def test_members_are_told_bounds_where_one_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as the budget of one machine allows, and not at all where log Z alone is too much."""
    members = [hm.DBM(4, [3, 2], seed=seed, weight_scale=0.7) for seed in range(2)]
    rows = np.tile(ROWS, (50, 1))
    limit = plan_enumeration(members[0]).operations
    assert likelihood_operations(members[0], len(rows)) > 2 * limit
    watch = EnsembleMonitor(Monitor(hm.PCD(), rows, None))
    stacked = hm.Ensemble.of(members).stacked
    for module in (monitor, ensemble_monitor):
        monkeypatch.setattr(module, "EXACT_OPERATIONS", limit)
    for member, own in zip(members, watch.likelihoods(stacked, None), strict=True):
        bound = hm.log_likelihood(member, rows, "bound")
        assert own["train"].kind == bound.kind == Kind.LOWER
        assert own["train"].value == pytest.approx(bound.value, abs=1e-9)
    assert watch.likelihoods(stacked, 0)[1].keys() == {"train"}
    assert watch.likelihoods(stacked, 1) == [{}, {}]
    monkeypatch.setattr(ensemble_monitor, "EXACT_OPERATIONS", limit / 2)
    assert watch.likelihoods(stacked, None) == [{}, {}]


def test_health_holds_rows_of_the_machine_at_the_energy_of_its_chains() -> None:
    """One clamped sweep from rest leaves these hidden layers 13 nats above, and training was stopped for such a gap."""
    model = hm.DBM(9, [12, 12], seed=2, weight_scale=1.0)
    rows = jnp.asarray(hm.sample(model, 400, steps=200, seed=0), jnp.float32)
    held = _held_at(Noise.from_key(jax.random.key(0)), model, rows[:200], None)
    chains = (rows[200:], *(jnp.zeros((200, 12)) for _ in range(2)))
    noise = Noise.from_key(jax.random.key(1))
    for draw in range(50):
        chains = model.sweep(noise.at(draw), chains)
    gap = np.asarray(model.energy(held)) - np.asarray(model.energy(chains))
    assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(len(gap))
    assert 5 * gap.std() / np.sqrt(len(gap)) < 5
