"""One update against its formula: centred coordinates, momentum, decay, and what stays as it was."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.rules.contrastive import Contrastive
from tests.contracts.machines import wave_rbm
from tests.contracts.model_cases import table_of
from tests.train.updates import RATE, Parameters, chunk_of, first_state, gradient_of, step_of, trainer_of

ROWS = table_of("rbm").draw(12, table_of("rbm").law(), seed=1)[0].astype(np.float64)
RULES = {"pcd": hm.PCD(chains=20, offset_rate=0.25), "cd": hm.CD(2, offset_rate=0.25)}
SETTINGS = {
    "plain": {},
    "momentum and decay": {"momentum": 0.5, "weight_decay": 0.125},
}
CHUNKS = (3, 2)
"""Updates of two compiled calls: the offsets of the coordinates are those of each call's start."""


def by_formula(
    rule: Contrastive, state: Any, model: Any, momentum: float = 0.0, weight_decay: float = 0.0
) -> tuple[Parameters, Any]:
    """Training in centred coordinates written out in ordinary ones, update by update.

    Descent direction in centred coordinates, after Melchior, Fischer and Wiskott (2016):
    ``dW_c = dW - mu dc' - db lambda'``, ``db_c = db``, ``dc_c = dc``; and back ``db = db_c - dW_c lambda``,
    ``dc = dc_c - dW_c' mu``. Momentum and decay act between the two.
    """
    now, rule_state = Parameters.of(model), state.rule_state
    speed = Parameters(*(np.zeros_like(part) for part in now))
    index = 0
    for updates in CHUNKS:
        mu, lam = (np.zeros(4), np.zeros(3)) if not rule.centred else map(np.asarray, rule_state.offsets)
        for _ in range(updates):
            slope, rule_state = gradient_of(rule, now, model, step_of(state, index), rule_state, ROWS)
            weights = slope.weights - np.outer(mu, slope.hidden) - np.outer(slope.visible, lam)
            pulled = Parameters(weights + weight_decay * now.weights, slope.visible, slope.hidden)
            speed = Parameters(*(momentum * old + new for old, new in zip(speed, pulled, strict=True)))
            now = Parameters(
                now.weights - RATE * speed.weights,
                now.visible - RATE * (speed.visible - speed.weights @ lam),
                now.hidden - RATE * (speed.hidden - speed.weights.T @ mu),
            )
            index += 1
    return now, rule_state


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", RULES)
def test_updates_are_those_of_the_centred_formulas(name: str, settings: str) -> None:
    rule, model = RULES[name], wave_rbm()
    with jax.enable_x64(True):
        trainer = trainer_of(rule, **SETTINGS[settings])
        state = now = first_state(trainer, model, ROWS)
        for updates in CHUNKS:
            now, _ = chunk_of(trainer, now, ROWS, updates, length=3)
        expected, rule_state = by_formula(rule, state, model, **SETTINGS[settings])
        for found, wanted in zip(Parameters.of(now.model), expected, strict=True):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, wanted, atol=1e-12)
        for found, wanted in zip(jax.tree.leaves(now.rule_state), jax.tree.leaves(rule_state), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert int(now.index) == sum(CHUNKS)


def test_the_comparison_sees_where_the_gradient_is_taken() -> None:
    """Without centring the same run ends elsewhere, by far more than the tolerance, and at its own formula."""
    model = wave_rbm()
    ends = []
    for rule in (RULES["pcd"], hm.PCD(chains=20, centred=False)):
        with jax.enable_x64(True):
            trainer = trainer_of(rule)
            state = now = first_state(trainer, model, ROWS)
            for updates in CHUNKS:
                now, _ = chunk_of(trainer, now, ROWS, updates, length=3)
            if not rule.centred:
                expected, _ = by_formula(rule, state, model)
                for found, wanted in zip(Parameters.of(now.model), expected, strict=True):
                    np.testing.assert_allclose(found, wanted, atol=1e-12)
            ends.append(Parameters.of(now.model))
    assert min(np.abs(a - b).max() for a, b in zip(*ends, strict=True)) > 1e-3


def test_offsets_follow_the_positive_phase() -> None:
    """The visible offset stays at the data's mean; the hidden one moves by its rate towards the mean of h^."""
    rule, model = RULES["pcd"], wave_rbm()
    with jax.enable_x64(True):
        state = first_state(trainer_of(rule), model, ROWS)
        _, after = gradient_of(rule, Parameters.of(model), model, step_of(state, 0), state.rule_state, ROWS)
        before, moved = (tuple(map(np.asarray, part.offsets)) for part in (state.rule_state, after))
        on = np.asarray(model.units[1].mean(model.field(1, (jnp.asarray(ROWS), jnp.zeros((len(ROWS), 3))))))
    np.testing.assert_allclose(before[0], ROWS.mean(axis=0), atol=1e-15)
    np.testing.assert_array_equal(moved[0], before[0])
    np.testing.assert_allclose(moved[1], before[1] + 0.25 * (on.mean(axis=0) - before[1]), atol=1e-15)
