"""Bounds of a deep belief network: their order, their sums written out, and what they say of themselves."""

import math
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.dbn import DBN
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate.bounds import (
    Bound,
    can_sum,
    drawn_bound,
    exact_bound,
    exact_scores,
    inner_bits,
    recognition_draws,
)
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.likelihood import both_estimates
from harmonium.numerics.enumerate import all_states
from tests.golden.test_dbn import NETWORKS, joint_of, states_of, wave_dbn

networks = pytest.mark.parametrize("name", [name for name in NETWORKS if name != "one level"])

FALSE_ALARM_SIGMAS = 5.0
"""Two-sided: a false alarm in fewer than one of a million comparisons."""


def recognition_of(dbn: DBN) -> list[np.ndarray]:
    """The log recognition of every inner layer: an array of states of the layer by states of the one below."""
    given = dbn.parameters()
    kinds = given.get("kinds", ["bernoulli"] * len(given["biases"]))
    tables = []
    for level, bias in enumerate(given["recognition_biases"]):
        below, above = (states_of(len(given["biases"][level + i]), kinds[level + i]) for i in (0, 1))
        joint = (below @ given["weights"][level] + bias) @ above.T
        tables.append(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    return tables


def written_bound(dbn: DBN) -> np.ndarray:
    """``E_Q[log p(v, h) - log Q(h | v)]`` of every visible state, by the sum over all inner states."""
    _, law = joint_of(dbn)
    inner = np.log(law.sum(axis=-1))  # the top hidden layer is summed out, not recognised
    log_q = np.zeros(inner.shape)
    for level, table in enumerate(recognition_of(dbn)):
        log_q = log_q + table.reshape(*[1] * level, *table.shape, *[1] * (inner.ndim - level - 2))
    weight = np.exp(log_q)
    assert np.allclose(weight.reshape(len(inner), -1).sum(axis=1), 1)
    return (weight * (inner - log_q)).reshape(len(inner), -1).sum(axis=1)


@networks
def test_the_bound_is_its_sum_and_below_the_likelihood(name: str) -> None:
    dbn = NETWORKS[name]
    rows = joint_of(dbn)[0][0]
    exact = hm.log_likelihood(dbn, rows, rows=True)
    bound = hm.log_likelihood(dbn, rows, method="bound", rows=True)
    np.testing.assert_allclose(bound.value, written_bound(dbn), rtol=1e-12, atol=1e-12)
    assert bound.kind == Kind.LOWER
    assert (bound.value < exact.value).all()
    assert not np.any(bound.stderr)
    assert hm.log_likelihood(dbn, rows, method="bound").value == pytest.approx(bound.value.mean(), rel=1e-13)


@networks
def test_draws_of_the_bound_have_its_mean(name: str) -> None:
    """Row by row within five of their own errors; with another recognition they would not have."""
    dbn = NETWORKS[name]
    rows = joint_of(dbn)[0][0]
    exact = exact_bound(dbn, rows).value
    drawn = drawn_bound(dbn, rows, Bound(draws=4000), seed=1)
    assert drawn.kind == Kind.STOCHASTIC_LOWER
    assert (np.abs(drawn.value - exact) < FALSE_ALARM_SIGMAS * drawn.stderr).all()
    assert (drawn.stderr > 0).all()
    mean = hm.log_likelihood(dbn, rows, method=Bound(draws=4000, exact=False), seed=1)
    assert mean.value + hm.log_partition(dbn).value == pytest.approx(drawn.value.mean(), rel=1e-12)
    assert mean.stderr == pytest.approx(math.sqrt(np.sum(drawn.stderr**2)) / len(rows), rel=1e-9)
    assert mean.low < mean.value < mean.high


def test_importance_weights_have_the_probability_as_their_mean() -> None:
    """And the logarithm of a mean of K of them lies between the bound and log p, rising with K."""
    dbn = NETWORKS["two levels, strong"]
    rows = joint_of(dbn)[0][0]
    bound, exact = exact_bound(dbn, rows).value, exact_scores(dbn, rows).value
    assert (exact - bound).max() > 0.1
    many = drawn_bound(dbn, rows, Bound("importance", draws=16_000), seed=3)
    error = np.abs(np.exp(many.value - exact) - 1)
    assert (error < FALSE_ALARM_SIGMAS * many.stderr).all()
    means = []
    for draws in (2, 8, 32):
        repeated = [
            drawn_bound(dbn, rows, Bound("importance", draws=draws), seed=s).value for s in range(200)
        ]
        means.append(np.mean(repeated, axis=0).mean())
    assert bound.mean() < means[0] < means[1] < means[2] < exact.mean()
    assert "worth" in many.reason


def test_the_kind_follows_the_partition_function() -> None:
    """A lower bound minus a lower bound of log Z points in no direction; an exact sum minus one is too high."""
    dbn = NETWORKS["two levels"]
    rows = all_states(4)
    annealed = hm.AIS(chains=20, temperatures=50)
    likelihood, partition = both_estimates(dbn, rows, annealed, seed=0)
    assert (likelihood.kind, partition.kind) == (Kind.STOCHASTIC_UPPER, Kind.STOCHASTIC_LOWER)
    assert partition.value == pytest.approx(hm.log_partition(dbn).value, abs=0.1)
    bounded = exact_bound(dbn, rows)
    assert (bounded - partition).kind == Kind.PROXY
    upper = -partition
    assert (bounded + upper).kind == Kind.PROXY


def test_what_is_chosen_is_counted() -> None:
    small, large = wave_dbn(3, 2, 2), hm.DBN(8, [30, 4], seed=1)
    assert inner_bits(large) == 30
    assert can_sum(small, 100, 26, 2e11)
    assert not can_sum(large, 100, 26, 2e11)
    rows = all_states(8)[:10]
    assert hm.log_likelihood(large, rows).kind == Kind.STOCHASTIC_LOWER
    assert hm.log_likelihood(small, all_states(3)).kind == Kind.EXACT
    with pytest.raises(BudgetError, match=r'2\*\*30 states, but the budget is 26 bits; use method="bound"'):
        hm.log_likelihood(large, rows, method="exact")
    with pytest.raises(BudgetError, match="the variational bound by its full sum"):
        hm.log_likelihood(large, rows, method=Bound(exact=True))
    # Not even a sum: with an operation budget of nothing, draws.
    assert hm.log_likelihood(small, all_states(3), operation_budget=1e3).kind != Kind.EXACT


def test_recognition_goes_up_by_draws() -> None:
    dbn = NETWORKS["three levels"]
    rows = np.repeat(all_states(3)[3:4], 20_000, axis=0)
    drawn = recognition_draws(dbn, rows, seed=0)
    assert drawn.shape == (20_000, 3)
    first, second = (np.exp(table) for table in recognition_of(dbn))
    law = (first[3] @ second).reshape(2, 2, 2).transpose(2, 1, 0)
    expected = [law.sum(axis=tuple({0, 1, 2} - {axis}))[1] for axis in range(3)]
    assert np.abs(drawn.mean(axis=0) - expected).max() < FALSE_ALARM_SIGMAS * 0.5 / math.sqrt(20_000)
    np.testing.assert_array_equal(recognition_draws(NETWORKS["one level"], rows[:, :2], 0), rows[:, :2])


def test_exact_is_a_truth_value_or_left_out() -> None:
    """Checked by the settings themselves, since the type checker of tests would refuse it before."""
    settings = Bound()
    object.__setattr__(settings, "exact", "yes")
    with pytest.raises(
        SettingError, match="exact of a bound must be True, False or None, got 'yes'; leave it out"
    ):
        settings.__post_init__()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Bound("elbo"), "no bound is called 'elbo'; choose one of variational, importance"),
        (lambda: Bound(draws=1), "draws of a bound must be a whole number from 2"),
        (
            lambda: Bound("importance", exact=True),
            "a full sum of importance weights is the likelihood itself",
        ),
        (lambda: hm.log_likelihood(hm.RBM(3, 2), all_states(3), "bound"), r"is of networks such as hm.DBN"),
        (lambda: hm.log_partition(hm.RBM(3, 2), Bound()), r"is of networks such as hm.DBN"),
        (
            lambda: hm.pseudo_likelihood(hm.DBN(3, [2]), all_states(3)),
            "a pseudo-likelihood takes an undirected",
        ),
        (
            lambda: hm.raise_likelihood(hm.DBN(3, [2]), all_states(3)),
            r"pass one of its RBMs, such as dbn.levels\[0\]",
        ),  # pyright: ignore[reportArgumentType]
        (
            lambda: hm.reconstruction_error(hm.DBN(3, [2]), all_states(3)),
            "a reconstruction error takes an undirected",
        ),
    ],
)
def test_what_bounds_cannot_be(build: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        build()


def test_the_numbers_of_an_ensemble() -> None:
    ensemble = hm.Ensemble.of([hm.DBN(5, [3, 2], seed=seed, weight_scale=1.0) for seed in range(3)])
    found = hm.log_likelihood(ensemble, all_states(5))
    each = [hm.log_likelihood(member, all_states(5)).value for member in ensemble]
    assert found.value == np.median(each)
    assert found.kind == Kind.EXACT
