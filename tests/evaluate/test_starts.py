"""Where reversed walks start: exact draws against the table, and runs that start where they are told to."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.evaluate.base_rate import chosen_rows
from harmonium.evaluate.starts import affordable_plan, equilibrium_starts, exact_draws, from_rows
from harmonium.numerics.precision import as_single
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against

DRAWS = 20_000


def words(seed: int) -> jax.Array:
    return jax.random.bits(jax.random.key(seed), (2,))


@pytest.mark.parametrize("name", ["strong rbm", "rbm of spins", "four layers"])
@pytest.mark.parametrize("side", [0, 1])
def test_exact_draws_follow_the_table(name: str, side: int) -> None:
    """Pearson's chi-squared over the states of a side; draws at another temperature would be caught."""
    model, table = model_of(name), table_of(name)
    layers = model.sides[side]
    groups = table.groups(layers)
    _, first = np.unique(groups, return_index=True)
    drawn = exact_draws(model, side, DRAWS, 3)
    states = np.concatenate([table.layers[layer][first] for layer in layers], axis=1)
    found = (np.concatenate(drawn, axis=1)[:, None, :] == states[None]).all(axis=2)
    assert (found.sum(axis=1) == 1).all()
    law, mistaken = (np.bincount(groups, weights=table.law(beta)) for beta in (1.0, 0.8))
    assert power_against(mistaken, law, DRAWS) >= POWER
    assert agreement(found.sum(axis=0), law) > FALSE_ALARM


def test_draws_come_from_every_chunk_of_states() -> None:
    """Fourteen bits are four chunks; a machine without energy draws from all of them alike."""
    free = hm.RBM.from_arrays(np.zeros((14, 15)), np.zeros(14), np.zeros(15))
    drawn = exact_draws(free, 0, 4000, 0)[0]
    codes = drawn @ 2.0 ** np.arange(14)
    counts = np.bincount((codes // 4096).astype(int), minlength=4)
    assert agreement(counts, np.full(4, 0.25)) > FALSE_ALARM
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 5 / np.sqrt(4 * 4000)


def test_what_can_be_enumerated_is() -> None:
    model = as_single(model_of("strong rbm"))
    start = equilibrium_starts(model, 1, None, None, 10, 5, (words(0), words(1), words(2)))
    assert (start.origin, start.first) == ("reversed from exact draws", 0)
    assert affordable_plan(hm.RBM(40, 30)) is None
    assert affordable_plan(hm.RBM(40, 10)) is not None
    assert affordable_plan(hm.RBM(40, 10), bits=9) is None
    assert affordable_plan(hm.RBM(40, 10), operations=1e3) is None


def test_half_of_the_chains_start_from_rows() -> None:
    """Without a sweep they are still there; the other half is at rest."""
    model = as_single(hm.RBM.from_arrays(np.zeros((30, 29)), np.zeros(30), np.zeros(29)))
    rows = np.ones((3, 30), np.uint8)
    start = equilibrium_starts(model, 1, rows, None, 9, 0, (words(0), words(1), words(2)))
    assert start.first == 4
    assert start.particles[0].shape == (9, 30)
    assert start.particles[0][:4].all()
    assert 0.2 < start.particles[0][4:].mean() < 0.8
    with pytest.raises(SettingError, match="start from the ends of a forward walk"):
        equilibrium_starts(model, 1, None, None, 9, 0, (words(0), words(1), words(2)))


def test_layers_above_rows_are_drawn_given_them() -> None:
    model = as_single(hm.RBM.from_arrays(np.full((3, 2), 9.0), np.zeros(3), np.full(2, -13.0)))
    rows = np.array([[1, 1, 1], [0, 0, 0]])
    particles = from_rows(model, rows, words(4))
    np.testing.assert_array_equal(particles[0], rows)
    np.testing.assert_array_equal(particles[1], [[1, 1], [0, 0]])


def test_rows_are_spread_over_all_of_them() -> None:
    rows = np.arange(10)[:, None].astype(np.uint8)
    np.testing.assert_array_equal(chosen_rows(rows, 5)[:, 0], [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(chosen_rows(rows[:2], 4)[:, 0], [0, 0, 1, 1])
