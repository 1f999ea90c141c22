"""Misprints of the source about RBMs, CD and SML: the printed form gives something else, ours what is right.

Source: the chapter on deep generative models whose algorithms are named in `harmonium.rules.contrastive`. ``v^`` and
``h^`` are of the data, ``v~`` and ``h~`` of the chains, ``h-`` is the mean of ``h~`` given ``v~``.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.rbm import RBM
from harmonium.inference.exact import Exact
from harmonium.rules.contrastive import Contrastive
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.gibbs import Gibbs
from tests.contracts.machines import wave_rbm
from tests.contracts.tables import Table
from tests.train.updates import RATE, Parameters, chunk_of, first_state, trainer_of

ROWS = np.array([[1.0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0]])
SQUARE_ROWS = ROWS[:, :3]
"""Rows of a machine of 3 by 3, where a transposed or exchanged array still has the right shape."""


@cache
def table() -> Table:
    return Table.of(wave_rbm())


def logistic(field: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-field))


# --------------------------------------------------------------------------------------------- likelihood


def test_the_log_partition_function_is_subtracted_once_per_row() -> None:
    """Printed: sum of (1/Z) log sum_h exp(-E). Right: the sum of log sum_h exp(-E), minus n log Z."""
    scores = np.asarray(-wave_rbm().free_energy(ROWS), np.float64)
    printed = scores.mean() / np.exp(table().log_partition())
    right = hm.log_likelihood(wave_rbm(), ROWS).value
    assert right == pytest.approx(scores.mean() - table().log_partition(), abs=1e-5)
    assert abs(printed - right) > 1
    states, _ = table().marginal(0, table().law())
    assert np.exp(hm.log_likelihood(wave_rbm(), states, rows=True).value).sum() == pytest.approx(1)
    assert (
        abs(np.exp(np.asarray(-wave_rbm().free_energy(states)) / np.exp(table().log_partition())).sum() - 1)
        > 1
    )


def test_rows_are_points_of_the_empirical_distribution() -> None:
    """P(v) is the mean of n points: a row that is there twice counts twice, and n is the number of rows."""
    doubled = np.concatenate([ROWS, ROWS[:1]])
    whole, first = hm.log_likelihood(wave_rbm(), ROWS).value, hm.log_likelihood(wave_rbm(), ROWS[:1]).value
    assert hm.log_likelihood(wave_rbm(), doubled).value == pytest.approx((5 * whole + first) / 6, abs=1e-12)


# -------------------------------------------------------------------------------------------- conditionals


def test_the_conditional_carries_two_h_minus_one() -> None:
    """Printed: prod_j s(c_j + v'W_j) for any h. It is right for h = 1 alone and does not add up to one."""
    model, v = wave_rbm(), ROWS[0]
    (_, h) = table().layers
    chosen = (table().layers[0] == v).all(axis=1)
    joint, h = table().law()[chosen], h[chosen]
    with jax.enable_x64(True):
        field = np.asarray(model.field(1, (jnp.asarray(v), jnp.zeros(3))))
        on = np.asarray(model.units[1].mean(jnp.asarray(field)))
        log_normaliser = float(model.units[1].log_partition(jnp.asarray(field)))
    ours = np.prod(np.where(h == 1, on, 1 - on), axis=1)
    # p(h, v) / p(v), where one line prints p(v) twice.
    np.testing.assert_allclose(ours, joint / joint.sum(), rtol=1e-12)
    np.testing.assert_allclose(ours, np.prod(logistic((2 * h - 1) * field), axis=1), rtol=1e-12)
    printed = np.full(len(h), np.prod(logistic(field)))
    assert printed[(h == 1).all(axis=1)] == pytest.approx(ours[(h == 1).all(axis=1)])
    assert abs(printed.sum() - 1) > 0.1
    # Its normaliser is its own, prod_j (1 + exp(c_j + v'W_j)), and not the Z of the joint.
    np.testing.assert_allclose(ours, np.exp(h @ field - log_normaliser), rtol=1e-12)
    assert log_normaliser == pytest.approx(np.log1p(np.exp(field)).sum(), rel=1e-13)
    assert abs(log_normaliser - table().log_partition()) > 1


# ---------------------------------------------------------------------------------------------- one update


class Telling(AbstractSampler):
    """Gibbs sampling that tells where its chains were and where they are."""

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return Gibbs().init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> Any:
        after, _ = Gibbs().step(noise, model, state)
        return after, {"h before": state.particles[1], "v": after.particles[0], "h": after.particles[1]}

    def unit_updates(self, model: Any, state: Any) -> int:
        return Gibbs().unit_updates(model, state)


CD = Contrastive(Telling(), Exact(), persistent=False, centred=False)
SML = Contrastive(Telling(), Exact(), persistent=True, chains_count=6, centred=False)

both_rules = pytest.mark.parametrize("rule", [CD, SML], ids=["cd", "sml"])


@cache
def one_update(rule: Contrastive, square: bool) -> tuple[Parameters, dict[str, np.ndarray]]:
    """What an uncentred update adds to the parameters, in float64, and the chains that it used."""
    model, rows = machine(square)
    with jax.enable_x64(True):
        trainer = trainer_of(rule)
        after, told = chunk_of(trainer, first_state(trainer, model, rows), rows, 1, length=1)
        moved = Parameters.of(after.model)
    return Parameters(*(a - b for a, b in zip(moved, Parameters.of(model), strict=True))), {
        key: np.asarray(value) for key, value in told.items()
    }


def machine(square: bool) -> tuple[RBM, np.ndarray]:
    return (wave_rbm(sizes=(3, 3)), SQUARE_ROWS) if square else (wave_rbm(), ROWS)


def means(square: bool, rule: Contrastive) -> tuple[np.ndarray, ...]:
    """``v^``, ``h^``, ``v~``, ``h-`` and the drawn ``h~``."""
    model, rows = machine(square)
    _, told = one_update(rule, square)
    now = Parameters.of(model)
    hidden = [logistic(now.hidden + v @ now.weights) for v in (rows, told["v"])]
    return rows, hidden[0], told["v"], hidden[1], told["h before"]


@both_rules
def test_products_of_the_phases_are_visible_by_hidden(rule: Contrastive) -> None:
    """Printed: h v' in one phase, v h' in the other. They do not even have one shape; both are v h'."""
    change, _ = one_update(rule, square=False)
    v, h, v_chain, h_chain, _ = means(False, rule)
    assert (h.T @ v).shape != (v_chain.T @ h_chain).shape
    assert change.weights.shape == (4, 3)
    np.testing.assert_allclose(
        change.weights, RATE * (v.T @ h / len(v) - v_chain.T @ h_chain / len(v_chain)), atol=1e-15
    )
    # On a square machine the printed mixture has a shape, and another value.
    change, _ = one_update(rule, square=True)
    v, h, v_chain, h_chain, _ = means(True, rule)
    right = RATE * (v.T @ h / len(v) - v_chain.T @ h_chain / len(v_chain))
    printed = RATE * (h.T @ v / len(v) - v_chain.T @ h_chain / len(v_chain))
    np.testing.assert_allclose(change.weights, right, atol=1e-15)
    assert np.abs(printed - right).max() > 1e-2


@both_rules
def test_each_phase_is_divided_by_its_own_count(rule: Contrastive) -> None:
    """Printed: N, elsewhere the number of hidden units, before the model's expectation. It is the number of rows."""
    change, _ = one_update(rule, square=False)
    v, h, v_chain, h_chain, _ = means(False, rule)
    per_row = v.T @ h / len(v) - v_chain.T @ h_chain / len(v_chain)
    hidden_count = (v.T @ h - h.shape[1] * v_chain.T @ h_chain / len(v_chain)) / len(v)
    np.testing.assert_allclose(change.weights, RATE * per_row, atol=1e-15)
    assert np.abs(RATE * hidden_count - change.weights).max() > 1e-2


@both_rules
def test_hidden_biases_move_from_where_they_were(rule: Contrastive) -> None:
    """Printed: Delta_c <- Delta_b - mean(h-). It is Delta_c <- Delta_c - mean(h-), with Delta_c = mean(h^) before."""
    change, _ = one_update(rule, square=True)
    v, h, v_chain, h_chain, _ = means(True, rule)
    np.testing.assert_allclose(change.visible, RATE * (v.mean(axis=0) - v_chain.mean(axis=0)), atol=1e-15)
    np.testing.assert_allclose(change.hidden, RATE * (h.mean(axis=0) - h_chain.mean(axis=0)), atol=1e-15)
    printed = RATE * ((v.mean(axis=0) - v_chain.mean(axis=0)) - h_chain.mean(axis=0))
    assert np.abs(printed - change.hidden).max() > 1e-2
    # With as many visible as hidden units it has a shape; otherwise it has none.
    assert one_update(rule, square=False)[0].hidden.shape != one_update(rule, square=False)[0].visible.shape


@both_rules
def test_there_is_a_step_size(rule: Contrastive) -> None:
    """Printed: W <- W + Delta_W. The step is the learning rate times it; at rate zero nothing moves."""
    change, _ = one_update(rule, square=False)
    v, h, v_chain, h_chain, _ = means(False, rule)
    assert np.abs(change.weights - (v.T @ h / len(v) - v_chain.T @ h_chain / len(v_chain))).max() > 1e-2
    still = hm.fit(wave_rbm(), ROWS, hm.CD(1), updates=100, learning_rate=0.0, seed=0)
    for found, given in zip(Parameters.of(still.model), Parameters.of(wave_rbm()), strict=True):
        # But for the rounding of the way to centred coordinates and back.
        np.testing.assert_allclose(found, given, atol=1e-6)


@both_rules
def test_the_negative_phase_has_means_and_not_draws(rule: Contrastive) -> None:
    """Printed: the drawn h~ of before v~. In expectation the same for chains at the target, but noisier: h- is used."""
    change, _ = one_update(rule, square=False)
    v, h, v_chain, _, h_drawn = means(False, rule)
    assert np.isin(h_drawn, (0, 1)).all()
    printed = RATE * (v.T @ h / len(v) - v_chain.T @ h_drawn / len(v_chain))
    assert np.abs(printed - change.weights).max() > 1e-2


def test_data_means_come_before_their_use() -> None:
    """Printed CD uses h^ before it is defined: the positive phase is that of the rows whatever the chains do."""
    v, h, *_ = means(False, CD)
    now = Parameters.of(wave_rbm())
    np.testing.assert_allclose(h, logistic(now.hidden + v @ now.weights), atol=1e-15)
    same = [one_update(rule, square=False)[0] for rule in (CD, SML)]
    chains = [means(False, rule)[2:4] for rule in (CD, SML)]
    positive = [change.weights + RATE * a.T @ b / len(a) for change, (a, b) in zip(same, chains, strict=True)]
    np.testing.assert_allclose(positive[0], positive[1], atol=1e-15)


def test_persistent_chains_are_never_reset_to_the_data() -> None:
    """SML keeps its particles through updates: they start where the last update left them. CD starts at the rows."""
    with jax.enable_x64(True):
        trainer = trainer_of(SML)
        first = first_state(trainer, wave_rbm(), ROWS)
        second, told = chunk_of(trainer, first, ROWS, 1, length=1)
        third, again = chunk_of(trainer, second, ROWS, 1, length=1)
    np.testing.assert_array_equal(told["h before"], first.rule_state.sampler.particles[1])
    np.testing.assert_array_equal(again["h before"], second.rule_state.sampler.particles[1])
    np.testing.assert_array_equal(again["v"], third.rule_state.sampler.particles[0])
    assert len(told["v"]) == 6 != len(ROWS)
    assert one_update(CD, square=False)[1]["v"].shape == ROWS.shape
