"""Short products are those of rounded weights, and their gradient is that of the weights themselves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.energy.couplings.dense import Dense
from harmonium.energy.couplings.short import Short

GENERATOR = np.random.default_rng(0)
KERNEL = jnp.asarray(GENERATOR.normal(size=(5, 7)), jnp.float32)
STATES = {
    "forward": jnp.asarray(GENERATOR.integers(0, 2, (3, 4, 7)), jnp.float32),
    "backward": jnp.asarray(GENERATOR.choice([-1, 1], (3, 4, 5)), jnp.float32),
}


@pytest.mark.parametrize("way", STATES)
def test_states_are_exact_and_only_weights_are_rounded(way: str) -> None:
    rounded = KERNEL.astype(jnp.bfloat16).astype(jnp.float32)
    found = getattr(Short(KERNEL), way)(STATES[way])
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, getattr(Dense(rounded), way)(STATES[way]), rtol=1e-6, atol=1e-6)
    assert np.abs(found - getattr(Dense(KERNEL), way)(STATES[way])).max() > 1e-4


@pytest.mark.parametrize("way", STATES)
def test_the_gradient_passes_through_the_rounding(way: str) -> None:
    def total(coupling: type[Dense] | type[Short], kernel: jax.Array, states: jax.Array) -> jax.Array:
        # Linear in the products, so that both have the same slopes.
        products = getattr(coupling(kernel), way)(states)
        return jnp.sum(products * jnp.cos(jnp.arange(products.size).reshape(products.shape)))

    for argument in (1, 2):
        short, dense = (
            jax.grad(total, argument)(coupling, KERNEL, STATES[way]) for coupling in (Short, Dense)
        )
        np.testing.assert_allclose(short, dense, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", STATES)
def test_single_rows_and_batches_agree(way: str) -> None:
    coupling = Short(KERNEL)
    rows = STATES[way]
    for place in np.ndindex(rows.shape[:-1]):
        np.testing.assert_allclose(
            getattr(coupling, way)(rows[place]), getattr(coupling, way)(rows)[place], rtol=1e-6
        )
