"""Training with products of rounded weights: the same but for the rounding, and refused where nothing is rounded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.couplings.dense import Dense
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.rules.names import build_rule, describe_rule
from harmonium.typing import Batch, Step

WORDS = Noise.from_key(jax.random.key(0)).words
STEP = Step(jnp.int32(0), jnp.int32(1), WORDS, WORDS)


def gradient(model: hm.RBM, precision: str, batch: Batch) -> hm.RBM:
    rule = hm.PCD(chains=64, precision=precision, centred=False)
    state = jax.jit(rule.init)(WORDS, model, batch)
    return jax.jit(jax.grad(lambda model: rule.loss(model, STEP, state, batch)[0]))(model)


def test_the_gradient_is_that_of_a_machine_with_rounded_weights() -> None:
    model = jax.tree.map(jnp.asarray, hm.RBM(12, 8, seed=1, weight_scale=0.5))
    assert isinstance(model, hm.RBM)
    kernel = model.couplings[0].kernel.astype(jnp.bfloat16).astype(jnp.float32)
    rounded = hm.RBM(*model.units, weights=kernel.T)
    batch = Batch(x=jnp.asarray(np.random.default_rng(0).integers(0, 2, (50, 12)), jnp.float32))
    short, expected, full = (
        gradient(model, "bfloat16", batch),
        gradient(rounded, "float32", batch),
        gradient(model, "float32", batch),
    )
    assert isinstance(short.couplings[0], Dense)
    for one, other in zip(jax.tree.leaves(short), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)
    assert np.abs(short.couplings[0].kernel - full.couplings[0].kernel).max() > 1e-5


def test_a_machine_learns_as_well() -> None:
    scores = []
    for precision in ("float32", "bfloat16"):
        rule = hm.PCD(chains=100, precision=precision)
        run = hm.fit(hm.RBM(9, 8, seed=0), "bars-and-stripes:side=3", rule, updates=4000, batch_size=14)
        scores.append(hm.log_likelihood(run.model, "bars-and-stripes:side=3").value)
        assert run.model.parameters()["weights"].dtype == np.float32
    # 14 patterns: -2.639 at best, -6.24 for coin flips.
    assert min(scores) > -3.2
    assert abs(scores[0] - scores[1]) < 0.2


def test_the_setting_is_described_and_checked() -> None:
    for rule in (hm.PCD(precision="bfloat16"), hm.CD(precision="bfloat16")):
        described = describe_rule(rule)
        assert described is not None
        assert described["precision"] == "bfloat16"
        assert build_rule(described.pop("name"), described) == rule
    with pytest.raises(
        SettingError, match=r"no precision of products is called 'half'; choose one of float32"
    ):
        hm.PCD(precision="half")
    with pytest.raises(SettingError, match=r"precision='bfloat16' is for dense couplings between layers"):
        hm.fit(hm.BoltzmannMachine(4), np.eye(4, dtype=np.uint8), hm.PCD(precision="bfloat16"), updates=1)
