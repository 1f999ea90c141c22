"""Whole runs against exact likelihoods, and ``hm.fit`` on every odd input."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import DataError, SettingError
from harmonium.train import drive
from harmonium.train.setup import biases_from_data
from harmonium.units.kinds import UNIT_KINDS
from tests.contracts.machines import wave_rbm

BEST_3X3 = -2.599301927
"""Mean log-likelihood per row that no model exceeds on bars and stripes of side 3, all-on and all-off given twice."""


# ------------------------------------------------------------------------------------------------- known bounds


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nltcs_with_eight_hidden_units(real_data: Path, seed: int) -> None:
    """The exact maximum-likelihood RBM of 8 hidden units scores about -6.02 on the test rows."""
    data = hm.load_data(real_data / "nltcs.npz")
    run = hm.fit(hm.RBM(16, 8, seed=seed), data, updates=20_000, seed=seed)
    assert run.reliable
    score = hm.log_likelihood(run.model, data.test)
    assert score.kind == "exact"
    assert -6.03 <= score.value <= -5.9


def test_bars_and_stripes_come_near_their_entropy() -> None:
    data = hm.load_data("bars-and-stripes:side=3,repeat=true")
    run = hm.fit(
        hm.RBM(9, 24, seed=0),
        data,
        hm.PCD(steps=10, chains=100),
        updates=4000,
        batch_size=16,
        learning_rate=0.15,
        seed=0,
    )
    score = hm.log_likelihood(run.model, data.train).value
    assert BEST_3X3 - 0.1 <= score <= BEST_3X3 + 1e-9


def test_default_settings_learn_digits() -> None:
    """From the independent model, where a run starts, to well above it; a run reports what it reaches."""
    data = hm.load_data("digits")
    run = hm.fit(hm.RBM(64, 16, seed=0), data, updates=2000)
    first, last = run.history[0], run.history[-1]
    assert data.valid is not None
    marginal = np.clip(data.train.mean(axis=0), 1e-3, 1 - 1e-3)
    alone = float(np.mean(data.valid @ np.log(marginal) + (1 - data.valid) @ np.log(1 - marginal)))
    assert first["log_likelihood_valid"] == pytest.approx(alone, abs=0.3)
    assert last["log_likelihood_valid"] > alone + 4
    assert last["log_likelihood_valid"] == pytest.approx(
        hm.log_likelihood(run.model, data.valid).value, rel=1e-9
    )
    assert last["index"] == 2000
    assert last["learning_rate"] == 0
    assert run.reliable


# ---------------------------------------------------------------------------------------------------- odd inputs

COLUMNS = 6
PATTERN = (np.indices((8, COLUMNS)).sum(axis=0) % 3 == 0).astype(np.uint8)

SPIN = 2 * PATTERN.astype(np.int8) - 1
CONSTANT = np.concatenate([np.zeros((8, 2)), np.ones((8, 2)), PATTERN[:, :2]], axis=1)
GREY = 0.1 + 0.8 * PATTERN

WHOLE = {"batch_size": 1000}
"""A batch larger than the data, which is then the whole data: most cases share this one compiled program."""

ODD: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "a batch larger than the data": (hm.RBM(COLUMNS, 3), PATTERN, WHOLE),
    "a short last batch": (hm.RBM(COLUMNS, 3), PATTERN, {"batch_size": 3}),
    "one row and one hidden unit": (hm.RBM(COLUMNS, 1), PATTERN[:1], {}),
    "one column": (hm.RBM(1, 3), PATTERN[:, :1], {}),
    "constant columns": (hm.RBM(COLUMNS, 3), CONSTANT, WHOLE),
    "all rows the same": (hm.RBM(COLUMNS, 3), np.zeros((8, COLUMNS)), WHOLE),
    "rows that are true or false": (hm.RBM(COLUMNS, 3), PATTERN.astype(bool), WHOLE),
    "spins for 0/1 units": (hm.RBM(COLUMNS, 3), SPIN, WHOLE),
    "0/1 rows for spins below and above": (hm.RBM(hm.Spin(COLUMNS), hm.Spin(3)), PATTERN, {"batch_size": 3}),
    "weights": (hm.RBM(COLUMNS, 3), hm.load_data(PATTERN, weight=np.arange(8.0)), {"batch_size": 3}),
    "grey levels for spins": (hm.RBM(hm.Spin(COLUMNS), 3), hm.load_data(GREY, binarize="stochastic"), {}),
}


def trained(model: Any, data: Any, rule: Any = None, **settings: Any) -> hm.Run:
    return hm.fit(model, data, rule or hm.PCD(chains=16), **{"updates": 100, "seed": 0, **settings})


def assert_same(one: hm.Run, other: hm.Run) -> None:
    for left, right in zip(jax.tree.leaves(one.model), jax.tree.leaves(other.model), strict=True):
        np.testing.assert_array_equal(left, right)


def assert_differ(one: hm.Run, other: hm.Run) -> None:
    leaves = map(jax.tree.leaves, (one.model, other.model))
    assert any((left != right).any() for left, right in zip(*leaves, strict=True))


@pytest.mark.parametrize("name", ODD)
def test_odd_inputs_are_learnt(name: str) -> None:
    """No NaN, no divergence, and rows more probable than under the uniform law that the model began with."""
    model, data, settings = ODD[name]
    run = trained(model, data, **settings)
    assert run.reliable, run.reason
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.model))
    rows = data.train if isinstance(data, hm.DataSet) else data
    if name.startswith("grey"):
        rows = PATTERN
    assert hm.log_likelihood(run.model, rows).value > -rows.shape[1] * np.log(2)
    assert run.history[-1]["index"] == 100


def test_constant_columns_have_finite_biases_and_are_kept() -> None:
    run = trained(hm.RBM(COLUMNS, 3), CONSTANT, **WHOLE)
    drawn = hm.sample(run.model, n=2000, steps=50, seed=0)
    assert drawn[:, :2].mean() < 0.15
    assert drawn[:, 2:4].mean() > 0.85


@pytest.mark.parametrize("rule", [hm.PCD(chains=16), hm.CD(1)], ids=["pcd", "cd"])
def test_rows_of_no_weight_do_not_move_the_fit(rule: Any) -> None:
    """Bit for bit: neither batches, nor means, nor the start of biases and chains, nor the count of an epoch."""
    weight = np.arange(8.0) + 1
    others = hm.load_data(
        np.concatenate([PATTERN, 1 - PATTERN]), weight=np.concatenate([weight, np.zeros(8)])
    )
    runs = [
        trained(hm.RBM(COLUMNS, 3), data, rule, batch_size=3)
        for data in (others, hm.load_data(PATTERN, weight=weight), hm.load_data(PATTERN, weight=weight[::-1]))
    ]
    assert_same(runs[0], runs[1])
    assert_differ(runs[1], runs[2])


def test_chains_are_those_of_the_rule_whatever_the_batch() -> None:
    for batch_size in (1000, 3):
        run = trained(hm.RBM(COLUMNS, 3), PATTERN, batch_size=batch_size)
        assert run.state is not None
        assert [layer.shape for layer in run.state.rule_state.sampler.particles] == [(16, COLUMNS), (16, 3)]


def test_a_run_is_a_function_of_its_seed() -> None:
    runs = [trained(hm.RBM(COLUMNS, 3, seed=0), PATTERN, batch_size=3, seed=seed) for seed in (4, 4, 5)]
    assert_same(runs[0], runs[1])
    assert_differ(runs[0], runs[2])


def test_the_model_that_was_given_is_not_changed() -> None:
    model = wave_rbm(sizes=(COLUMNS, 3))
    copies = [leaf.copy() for leaf in jax.tree.leaves(model)]
    trained(model, PATTERN, **WHOLE)
    for before, after in zip(copies, jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_first_biases_are_finite_for_any_number_of_rows(kind: str) -> None:
    """The odds of a constant column are those of its rows and one more against one, also beyond float32."""
    units = UNIT_KINDS[kind]
    low, high = units.support
    for count in (3, 10**5, 2**26):
        model = hm.RBM(units(3), 2, weights=np.zeros((3, 2), np.float32))
        mean = np.array([low, high, (low + high) / 2], np.float32)
        bias = biases_from_data(model, mean, count).parameters()["visible_bias"]
        odds = np.log(np.array([1 / (count + 1), count + 1, 1.0]))
        np.testing.assert_allclose(bias, odds / (high - low), rtol=1e-6)


def test_only_a_fresh_model_starts_at_the_marginals() -> None:
    """A model with biases of its own is trained from where it is; one of zeros starts at the columns' means."""
    given = wave_rbm(sizes=(COLUMNS, 3))
    still = trained(given, PATTERN, **WHOLE, learning_rate=0.0)
    for left, right in zip(jax.tree.leaves(still.model), jax.tree.leaves(given), strict=True):
        np.testing.assert_allclose(left, right, atol=2e-6)
    fresh = trained(hm.RBM(COLUMNS, 3), PATTERN, **WHOLE, learning_rate=0.0)
    smoothed = (PATTERN.sum(axis=0) + 1) / (len(PATTERN) + 2)
    means = hm.sample(fresh.model, n=50_000, steps=10, seed=0).mean(axis=0)
    np.testing.assert_allclose(means, smoothed, atol=0.02)
    left_alone = trained(hm.RBM(COLUMNS, 3, seed=0), PATTERN, **WHOLE, learning_rate=0.0, initialize=False)
    for left, right in zip(
        jax.tree.leaves(left_alone.model), jax.tree.leaves(hm.RBM(COLUMNS, 3, seed=0)), strict=True
    ):
        np.testing.assert_allclose(left, right, atol=1e-7)


def test_a_second_run_of_the_same_shapes_compiles_nothing() -> None:
    """Ragged last batches, other rates, other seeds, other lengths of a run below one chunk: one program."""
    trained(hm.RBM(COLUMNS, 3), PATTERN, batch_size=3)
    program: Any = drive._chunk_program()
    compiled = program._cache_size()
    assert compiled > 0
    trained(hm.RBM(COLUMNS, 3, seed=8), 1 - PATTERN, batch_size=3, seed=9, learning_rate=0.01, updates=77)
    assert program._cache_size() == compiled
    # Another number of chains is another program: the count can rise.
    trained(hm.RBM(COLUMNS, 3), PATTERN, hm.PCD(chains=17), batch_size=3)
    assert program._cache_size() == compiled + 1


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((hm.RBM(5, 3), PATTERN), {}, "have 6 columns but the model has 5 visible units"),
        ((hm.RBM(6, 3), PATTERN.astype(float) * 0.5), {}, "grey values"),
        ((hm.RBM(6, 3), np.full((2, 6), np.nan)), {}, "NaN"),
        ((hm.RBM(6, 3), np.zeros((0, 6))), {}, "empty|no rows|at least one row"),
        ((hm.RBM(6, 3), PATTERN), {"epochs": 3, "updates": 10}, "keep one of them"),
        ((hm.RBM(6, 3), PATTERN), {"updates": 0}, "updates=0"),
        ((hm.RBM(6, 3), PATTERN), {"batch_size": 0}, "batch_size=0"),
        ((hm.RBM(6, 3), PATTERN), {"learning_rate": -1.0}, "learning_rate=-1.0"),
        ((hm.RBM(6, 3), PATTERN), {"learning_rate": float("nan")}, "learning_rate=nan"),
        ((hm.RBM(6, 3), PATTERN), {"momentum": 1.0}, "momentum=1.0"),
        ((hm.RBM(6, 3), PATTERN), {"optimizer": "adm"}, "did you mean 'adam'"),
        ((hm.RBM(6, 3), PATTERN), {"optimizer": "adam", "momentum": 0.5}, "belongs to sgd"),
        ((hm.RBM(6, 3), PATTERN), {"on_divergence": "hope"}, "on_divergence"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: tuple, settings: dict, message: str) -> None:
    with pytest.raises((DataError, SettingError), match=message):
        hm.fit(*arguments, **settings)
