"""Proofs that every assisted rule inherits: an update at a mode is the written-out one, and chains go on at it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.rules.mode_assisted import ModeAssisted
from harmonium.typing import Batch
from tests.contracts.assisted_cases import ASSISTED
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.test_rules import step_of

PAIRS = (("cd", "rbm"), ("cd", "three layers"), ("cd", "machine, spins below"), ("pcd", "rbm"))
"""On an RBM, a deep machine, and a general one, of both kinds of unit."""


def slopes_of(rule: ModeAssisted, name: str, rows: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Gradient of the surrogate in float64, pairs and then units; the states of before and after."""
    with jax.enable_x64(True):
        model, step = jax.tree.map(jnp.asarray, model_of(name)), step_of(0)
        batch = Batch(x=jnp.asarray(rows))
        before = rule.init(step.key, model, batch)
        slopes, (after, _) = jax.jit(jax.grad(rule.loss, has_aux=True))(model, step, before, batch)
        coupled = np.argwhere(np.triu(np.asarray(model_of(name).pairwise()[0])))
        matrix = np.asarray(slopes.pairwise()[0])
    found = [matrix[coupled[:, 0], coupled[:, 1]], *(np.asarray(units.bias) for units in slopes.units)]
    return np.concatenate(found), before, after


def written_out(name: str, rows: np.ndarray, push: float) -> np.ndarray:
    """The push times the mean statistics of the ground state minus those of the data, by sums over the table."""
    model, table = model_of(name), table_of(name)
    x, law = np.concatenate(table.layers, axis=1), table.law()
    data = np.zeros(table.count)
    for row in rows:
        chosen = (table.layers[0] == row).all(axis=1)
        data[chosen] += law[chosen] / law[chosen].sum() / len(rows)
    data[np.argmin(table.energy)] -= 1
    coupled = np.argwhere(np.triu(np.asarray(model.pairwise()[0])))
    return -push * np.concatenate([data @ (x[:, coupled[:, 0]] * x[:, coupled[:, 1]]), data @ x])


def test_every_rule_is_proved_on_a_machine() -> None:
    assert {name for name, _ in PAIRS} == ASSISTED.keys()


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_the_update_at_a_mode_is_the_written_out_one(name: str, machine: str) -> None:
    case, table = ASSISTED[name], table_of(machine)
    rows = table.draw(5, table.law(), 2)[0].astype(np.float64)
    found, before, after = slopes_of(case.rule, machine, rows)
    expected = written_out(machine, rows, case.push(machine))
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert int(after.taken) == int(before.taken) + 1
    assert float(after.energy) == pytest.approx(table.energy.min(), abs=1e-12)
    chains = case.rule.chains(before)
    if chains is not None:
        moved = case.rule.chains(after)
        assert moved is not None
        assert any((one != other).any() for one, other in zip(chains, moved, strict=True))
        base = case.rule.base
        with jax.enable_x64(True):
            model, batch = jax.tree.map(jnp.asarray, model_of(machine)), Batch(x=jnp.asarray(rows))
            alone = jax.jit(base.loss)(model, step_of(0), before.base, batch)[1][0]
        its = base.chains(alone)
        assert its is not None
        for one, other in zip(its, moved, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ASSISTED)
def test_the_sabotaged_twin_is_caught(name: str) -> None:
    case, table = ASSISTED[name], table_of("rbm")
    rows = table.draw(5, table.law(), 2)[0].astype(np.float64)
    found, _, _ = slopes_of(case.twin, "rbm", rows)
    assert np.abs(found - written_out("rbm", rows, case.push("rbm"))).max() > 1e-3
