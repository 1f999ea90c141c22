"""Contrastive divergence whose sweeps grow: how many there are at every update, and that they are those of CD-k."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.random import key_words, seed_key
from harmonium.rules.contrastive import Contrastive
from harmonium.rules.names import build_rule, describe_rule
from harmonium.typing import Batch, Step
from tests.contracts.machines import wave_rbm

WORDS = key_words(seed_key(3))


def at(index: int, horizon: int = 200) -> Step:
    return Step(jnp.int32(index), jnp.int32(horizon), WORDS, WORDS)


def test_every_number_of_sweeps_has_as_many_updates() -> None:
    """One epoch an update: the recipe's ceil(epoch/20) over 200 epochs, which count from 1."""
    rule = hm.CD(1, final_steps=10)
    assert [int(rule.steps_at(at(index))) for index in range(200)] == [
        -(-epoch // 20) for epoch in range(1, 201)
    ]
    assert int(rule.steps_at(at(250))) == 10
    assert hm.CD(3).steps_at(at(7)) == 3
    assert [int(hm.CD(2, final_steps=3).steps_at(at(index, 4))) for index in range(4)] == [2, 2, 3, 3]


@pytest.mark.parametrize(("index", "steps"), [(0, 1), (199, 4)])
def test_an_update_is_that_of_its_number_of_sweeps(index: int, steps: int) -> None:
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), wave_rbm(gain=2.0))
    batch = Batch(x=jnp.asarray(np.eye(4, dtype=np.float32)))

    def slopes(rule: Contrastive) -> list[np.ndarray]:
        state = rule.init(WORDS, model, batch)
        found = jax.jit(jax.grad(lambda model: rule.loss(model, at(index), state, batch)[0]))(model)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(found)]

    for one, other in zip(slopes(hm.CD(1, final_steps=4)), slopes(hm.CD(steps)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert np.abs(one).max() > 1e-3


def test_settings_say_it_and_refuse_it() -> None:
    rule = hm.CD(2, final_steps=5)
    described = describe_rule(rule)
    assert described is not None
    assert described["final_steps"] == 5
    assert build_rule("cd", described | {"name": None}) == rule
    assert "final_steps" not in (describe_rule(hm.CD(2)) or {})
    with pytest.raises(SettingError, match="final_steps=2 are fewer than the steps=5 of the first update"):
        hm.CD(5, final_steps=2)
    with pytest.raises(SettingError, match="final_steps must be a whole number of at least 1, got 0"):
        hm.CD(5, final_steps=0)
    with pytest.raises(SettingError, match=r"final_steps=5 is a setting of cd, which pcd does not have"):
        build_rule("pcd", {"final_steps": 5})
