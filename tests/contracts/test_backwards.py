"""What undoes a sweep, on every machine: the sweep backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from tests.contracts.model_cases import MODELS, model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against
from tests.contracts.walks import sweep_kernel

CHAINS = 50_000


@pytest.mark.parametrize("name", MODELS)
def test_a_sweep_backwards_undoes_a_sweep(name: str) -> None:
    """Detailed balance of the two together by enumeration; neither alone has it, unless the order does not matter."""
    table = table_of(name)
    forth, back = (table.law()[:, None] * sweep_kernel(table, table.energy, way) for way in (False, True))
    np.testing.assert_allclose(forth, back.T, atol=1e-15)
    if name != "independent":
        assert np.abs(forth - forth.T).max() > 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_the_blocks_are_drawn_in_the_opposite_order(name: str) -> None:
    """From the least likely state, where the two orders give laws that are told apart."""
    table, model = table_of(name), as_single(model_of(name))
    worst = int(np.argmin(table.law()))
    start = tuple(
        jnp.asarray(np.repeat(layer[worst : worst + 1], CHAINS, axis=0), jnp.float32)
        for layer in table.layers
    )
    noise = Noise.from_key(jax.random.key(4))
    laws = [sweep_kernel(table, table.energy, way)[worst] for way in (False, True)]
    for backwards, law in zip((False, True), laws, strict=True):
        drawn = jax.jit(lambda rows, way=backwards: model.sweep(noise, rows, backwards=way))(start)
        assert agreement(table.counts(drawn), law) > FALSE_ALARM
    if name != "independent":
        assert power_against(laws[0], laws[1], CHAINS) >= POWER
