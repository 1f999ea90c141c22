"""The fast path of the exact oracle agrees with the plain one, and steps aside where it would not be safe."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.layered import AbstractLayered
from harmonium.evaluate import exact
from harmonium.evaluate.halves import FEWEST_BITS, log_partition_by_halves, split_in_halves
from harmonium.numerics.halves import LARGEST_HALF
from harmonium.numerics.precision import as_double
from tests.contracts.machines import wave_layers, wave_rbm


def plain(model: AbstractLayered, side: int) -> float:
    with jax.enable_x64(True):
        return float(exact._log_partition_program()(as_double(model), side))


def fast(model: AbstractLayered, side: int) -> float | None:
    with jax.enable_x64(True):
        return log_partition_by_halves(as_double(model), side)


@pytest.mark.parametrize("hidden", ["bernoulli", "spin"])
@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
def test_either_side_may_be_enumerated(visible: str, hidden: str) -> None:
    model = wave_rbm(visible, hidden, sizes=(13, 12), gain=2.0)
    expected = plain(model, 1)
    for side in (0, 1):
        assert fast(model, side) == pytest.approx(expected, abs=1e-11)
    assert hm.log_partition(model).value == fast(model, 1)


def test_a_side_may_have_several_layers_of_several_kinds() -> None:
    model = wave_layers(("bernoulli", 7), ("spin", 13), ("spin", 6), ("bernoulli", 3))
    for side in (0, 1):
        assert fast(model, side) == pytest.approx(plain(model, side), abs=1e-11)


def test_few_units_and_large_fields_take_the_plain_sum() -> None:
    assert fast(wave_rbm(sizes=(20, FEWEST_BITS - 1)), 1) is None
    strong = wave_rbm(sizes=(20, FEWEST_BITS), gain=40.0)
    with jax.enable_x64(True):
        halves = split_in_halves(as_double(strong), 1)
    assert max(np.abs(part).max() for part in (halves.first_field, halves.second_field)) > LARGEST_HALF
    assert fast(strong, 1) is None
    assert hm.log_partition(strong).value == pytest.approx(plain(strong, 1), abs=1e-9)


def test_fields_that_would_overflow_a_product_do_not() -> None:
    """200 up against 200 down: the split exponentials of such a machine are not a number in single precision."""
    model = hm.RBM.from_arrays(np.full((30, 12), -200.0), np.full(30, 200.0), np.full(12, 200.0))
    assert fast(model, 1) is None
    value = hm.log_partition(model).value
    assert np.isfinite(value)
    # With every hidden unit off, 30 visible units are on at 200 nats each; any other state is e^-5000 rarer.
    assert value == pytest.approx(6000, abs=1e-9)
    assert value == pytest.approx(plain(model, 1), abs=1e-9)
