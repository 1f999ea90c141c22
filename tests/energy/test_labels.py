"""Machines with a label layer, against sums over every configuration written out in numpy."""

from functools import cache
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.enumeration import hidden_means_of, label_scores_of, log_partition_of
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate.exact import sum_states
from harmonium.inference.base import Posterior
from harmonium.inference.exact import Exact
from harmonium.inference.mean_field import MeanField, bound_at, started
from harmonium.numerics.random import Noise
from harmonium.typing import Batch
from tests.contracts.machines import wave_matrix, wave_vector
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against

SIZES = {"one": (4, 3, 3), "two": (4, 3, 2, 3)}
CLASSES = 3

hidden = pytest.mark.parametrize("name", SIZES)


@cache
def machine(name: str) -> hm.DBM:
    sizes = SIZES[name]
    return hm.DBM.from_arrays(
        [1.5 * wave_matrix(*pair, phase=0.7 * place) for place, pair in enumerate(pairwise(sizes))],
        [wave_vector(size, phase=float(place)) for place, size in enumerate(sizes)],
        ["bernoulli"] * (len(sizes) - 1) + [f"categorical:{CLASSES}"],
    )


def bits(size: int) -> np.ndarray:
    return np.array(list(product((0.0, 1.0), repeat=size)))


@cache
def scores(name: str) -> np.ndarray:
    """``log sum_h exp(-E(v, h, y))`` of every row and class, by a loop over every state."""
    given = machine(name).parameters()
    weights, biases = given["weights"], given["biases"]
    found = np.zeros((2 ** SIZES[name][0], CLASSES))
    for row, v in enumerate(bits(SIZES[name][0])):
        for k, y in enumerate(np.eye(CLASSES)):
            minus = []
            for states in product(*(bits(size) for size in SIZES[name][1:-1])):
                layers = (v, *states, y)
                own = sum(layer @ bias for layer, bias in zip(layers, biases, strict=True))
                pairs = zip(layers[:-1], weights, layers[1:], strict=True)
                minus.append(own + sum(lower @ matrix @ upper for lower, matrix, upper in pairs))
            found[row, k] = np.logaddexp.reduce(minus)
    return found


def posterior(name: str) -> np.ndarray:
    """``p(y | v)``, row by class."""
    found = scores(name)
    return np.exp(found - np.logaddexp.reduce(found, axis=1)[:, None])


def labelled(name: str) -> hm.DataSet:
    """Every row with every class once."""
    rows = np.repeat(bits(SIZES[name][0]), CLASSES, axis=0).astype(np.uint8)
    return hm.DataSet("all", rows, labels={"train": np.tile(np.arange(CLASSES), len(rows) // CLASSES)})


@hidden
def test_sums_over_even_and_over_odd_layers_and_over_the_classes_agree(name: str) -> None:
    model, expected = machine(name), np.logaddexp.reduce(scores(name), axis=None)
    assert model.observed == (0, len(SIZES[name]) - 1)
    with jax.enable_x64(True):
        sides = [float(jax.jit(sum_states, static_argnums=1)(model, side)) for side in (0, 1)]
        by_class = [float(log_partition_of(model.given_label(k))) for k in range(CLASSES)]
    np.testing.assert_allclose([*sides, hm.log_partition(model).value], expected, rtol=1e-12)
    biases = np.asarray(model.units[-1].bias)
    assert np.logaddexp.reduce(biases + by_class) == pytest.approx(expected, rel=1e-12)


@hidden
def test_likelihoods_with_labels_and_without(name: str) -> None:
    model, found = machine(name), scores(name)
    log_partition = np.logaddexp.reduce(found, axis=None)
    joint = hm.log_likelihood(model, labelled(name), rows=True)
    np.testing.assert_allclose(joint.value, (found - log_partition).ravel(), atol=1e-12)
    alone = hm.log_likelihood(model, bits(SIZES[name][0]), rows=True)
    np.testing.assert_allclose(alone.value, np.logaddexp.reduce(found, axis=1) - log_partition, atol=1e-12)
    given = model.given_label(1)
    of_class = found[:, 1] - np.logaddexp.reduce(found[:, 1])
    np.testing.assert_allclose(hm.log_likelihood(given, bits(4), rows=True).value, of_class, atol=1e-12)


def test_the_exact_gradient_is_that_of_the_likelihood_with_labels_or_without() -> None:
    share = np.exp(np.logaddexp.reduce(scores("one"), axis=0))
    for data, seen in (
        (labelled("one"), np.full(CLASSES, 1 / CLASSES)),
        (bits(4).astype(int), posterior("one").mean(axis=0)),
    ):
        found = hm.exact_gradient(machine("one"), data)["biases"][-1]
        np.testing.assert_allclose(found, seen - share / share.sum(), rtol=0, atol=1e-12)


@hidden
def test_classification_is_the_exact_posterior(name: str) -> None:
    model, expected = machine(name), posterior(name)
    found = hm.classify(model, bits(4))
    np.testing.assert_allclose(found.probability, expected, atol=1e-12)
    np.testing.assert_array_equal(found.label, expected.argmax(axis=1))
    assert (found.method, str(found.kind), found.error) == ("free-energy", "exact", None)
    data = labelled(name)
    wrong = np.mean(np.repeat(expected.argmax(axis=1), CLASSES) != np.tile(np.arange(CLASSES), 16))
    assert hm.classify(model, data).error == pytest.approx(wrong)
    assert hm.classify(model, bits(4), classes=["a", "b", "c"]).label.tolist() == [
        "abc"[k] for k in expected.argmax(axis=1)
    ]


def test_bounds_of_the_classes_are_below_their_scores() -> None:
    """And exact where hidden units given row and label are independent; then the bound is the classification itself."""
    exact = hm.classify(machine("one"), bits(4), "bound")
    assert str(exact.kind) == "exact"
    np.testing.assert_allclose(exact.probability, posterior("one"), atol=1e-9)
    bound = hm.log_likelihood(machine("two"), labelled("two"), "bound", rows=True)
    joint = (scores("two") - np.logaddexp.reduce(scores("two"), axis=None)).ravel()
    assert str(bound.kind) == "lower bound"
    assert (bound.value < joint + 1e-9).all()
    assert (bound.value > joint - 0.2).all()
    alone = hm.log_likelihood(machine("two"), bits(4), "bound", rows=True)
    marginal = np.logaddexp.reduce(joint.reshape(-1, CLASSES), axis=1)
    assert (alone.value < marginal + 1e-9).all()
    proxy = hm.classify(machine("two"), bits(4), "bound")
    assert str(proxy.kind) == "proxy"
    assert np.abs(proxy.probability - posterior("two")).max() < 0.1
    assert proxy.residual < 1e-10


@hidden
def test_clamped_inference_raises_its_bound_and_finds_its_fixed_point(name: str) -> None:
    """With the label free: from the doubled start on, each sweep raises the bound, up to where nothing moves."""
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, machine(name))
        batch = Batch(x=jnp.asarray(bits(4)))
        rule = MeanField(400, tolerance=1e-13)
        means, bounds = started(model, batch), []
        for _ in range(6):
            bounds.append(np.asarray(bound_at(model, means)))
            means = rule.sweep(model, means)
        fixed = rule.solve(model, batch).means
        expected = [units.mean(model.field(i, fixed)) for i, units in enumerate(model.units)]
        held = rule.solve(model, Batch(x=batch.x, label=jnp.full(16, 2))).means
    assert (np.diff(bounds, axis=0) > -1e-13).all()
    for now, then in zip(fixed[1:], expected[1:], strict=True):
        np.testing.assert_allclose(np.asarray(now), np.asarray(then), atol=1e-10)
    inferred = hm.classify(machine(name), bits(4), "mean-field")
    np.testing.assert_allclose(inferred.probability, np.asarray(fixed[-1]), atol=1e-7)
    np.testing.assert_array_equal(np.asarray(held[-1]), np.tile([0.0, 0.0, 1.0], (16, 1)))


@hidden
def test_the_positive_phase_has_the_gradient_of_the_exact_sum(name: str) -> None:
    """Of log p(v, y) where labels are given and of log p(v) where not; mean field agrees where it is exact."""
    numbers = np.arange(16) % CLASSES
    batches = [Batch(x=jnp.asarray(bits(4)), label=label) for label in (jnp.asarray(numbers), None)]
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, machine(name))
        batches = [Batch(x=jnp.asarray(bits(4)), label=batch.label) for batch in batches]

        def exact(model: hm.DBM, batch: Batch) -> jax.Array:
            found = label_scores_of(model, batch.x)
            if batch.label is None:
                return -jnp.sum(jax.nn.logsumexp(found, axis=1))
            return -jnp.sum(found[jnp.arange(16), batch.label])

        def found(inference: Exact | MeanField, model: hm.DBM, batch: Batch) -> tuple[jax.Array, Posterior]:
            posterior = inference.posterior(Noise.from_key(jax.random.key(0)), model, batch)
            return jnp.sum(posterior.energy), posterior

        np.testing.assert_allclose(np.asarray(label_scores_of(model, batches[0].x)), scores(name), atol=1e-12)
        for batch in batches:
            wanted = jax.tree.leaves(jax.grad(exact)(model, batch))
            slopes, made = jax.grad(lambda model, b=batch: found(Exact(), model, b), has_aux=True)(model)
            for one, other in zip(jax.tree.leaves(slopes), wanted, strict=True):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-11)
            assert [mean.shape[1] for mean in made.means] == list(SIZES[name])
        wanted = jax.tree.leaves(jax.grad(exact)(model, batches[0]))
        by_means, _ = jax.grad(lambda model: found(MeanField(), model, batches[0]), has_aux=True)(model)
        apart = max(
            np.abs(np.asarray(one) - np.asarray(other)).max()
            for one, other in zip(jax.tree.leaves(by_means), wanted, strict=True)
        )
        means = hidden_means_of(model, batches[0].x)
    assert apart < 1e-11 if name == "one" else 1e-3 < apart < 1.0
    np.testing.assert_allclose(np.asarray(means[-1]), posterior(name), atol=1e-12)


def test_estimates_that_draw_cover_the_exact_log_partition() -> None:
    exact = np.logaddexp.reduce(scores("two"), axis=None)
    bracket = hm.log_partition(machine("two"), "bracket", bits(4), operation_budget=2e8)
    assert bracket.reliable
    assert abs(bracket.value - exact) < 5 * bracket.stderr + 1e-3
    annealed = hm.log_partition(machine("two"), hm.AIS(chains=200, temperatures=100), bits(4))
    assert annealed.reliable
    assert abs(annealed.value - exact) < 5 * annealed.stderr + 1e-3


def test_samples_of_a_class_follow_the_law_of_its_machine() -> None:
    model, found = machine("two"), scores("two")
    laws = [np.exp(found[:, k] - np.logaddexp.reduce(found[:, k])) for k in range(CLASSES)]
    drawn = hm.sample(model, n=20_000, steps=30, seed=1, label=2)
    counts = np.bincount((drawn @ [8, 4, 2, 1]).astype(int), minlength=16)
    assert agreement(counts, laws[2]) > FALSE_ALARM
    assert power_against(laws[1], laws[2], 20_000) >= POWER
    part = hm.sample(model, n=20_000, steps=30, seed=2, label=2, clamp=[1, np.nan, np.nan, np.nan])
    conditional = np.where(bits(4)[:, 0] == 1, laws[2], 0)
    counts = np.bincount((part @ [8, 4, 2, 1]).astype(int), minlength=16)
    assert agreement(counts, conditional / conditional.sum()) > FALSE_ALARM
    each = hm.sample(model, n=3, steps=5, seed=0, label=[0, 1, 2])
    assert each.shape == (3, 4)


def test_what_labels_cannot_be() -> None:
    model = hm.DBM(4, [3], labels=3)
    with pytest.raises(SettingError, match=r"labels must be a whole number of at least 2"):
        hm.DBM(4, [3], labels=1)
    with pytest.raises(SettingError, match="softmax units can only be the label layer"):
        hm.RBM(hm.Categorical(3), 2)
    with pytest.raises(SettingError, match="layer 1 of a DBM has categorical:3 units"):
        hm.DBM(4, [hm.Categorical(3), 2])
    with pytest.raises(SettingError, match="a label layer is one variable, got 2 of 3 states"):
        hm.DBM(4, [2, hm.Categorical(3, 2)])
    with pytest.raises(SettingError, match="categorical:3 units, which a Boltzmann machine cannot take"):
        hm.BoltzmannMachine(hm.Categorical(3), 2)
    with pytest.raises(
        SettingError, match="categorical:3 units, which exact moments cannot take; pass model"
    ):
        hm.moments(model)
    with pytest.raises(SettingError, match="from 0 to 2, got 3"):
        model.given_label(3)
    with pytest.raises(SettingError, match="needs a machine with a label layer"):
        hm.classify(model.given_label(0), bits(4))
    with pytest.raises(SettingError, match="no way to classify is called 'svm'"):
        hm.classify(model, bits(4), "svm")
    with pytest.raises(BudgetError, match='use method="bound"'):
        hm.classify(hm.DBM(4, [9, 9], labels=3), bits(4), "free-energy", bit_budget=8)
    with pytest.raises(SettingError, match=r"its last axis must be 4, or 7 with the label behind them"):
        model.free_energy(np.zeros((2, 5), np.float32))
    assert hm.DBM(4, [3], labels=hm.Categorical(3)).units[-1].size == 3
