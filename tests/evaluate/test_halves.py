"""The fast path of the exact oracle agrees with the plain one, and steps aside where it would not be safe."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.evaluate import exact
from harmonium.evaluate.exact import plan_enumeration
from harmonium.evaluate.halves import (
    FEWEST_BITS,
    Halves,
    can_halve,
    log_partition_by_halves,
    split_in_halves,
)
from harmonium.numerics.halves import LARGEST_HALF
from harmonium.numerics.precision import as_double
from tests.contracts.machines import wave_layers, wave_machine, wave_rbm


def plain(model: AbstractEnergyModel) -> float:
    with jax.enable_x64(True):
        return float(exact.log_partition_program()(as_double(model), plan_enumeration(model).side))


def fast(model: AbstractEnergyModel) -> float:
    assert can_halve(model)
    with jax.enable_x64(True):
        return log_partition_by_halves(as_double(model))


def halves_of(model: AbstractEnergyModel) -> Halves:
    with jax.enable_x64(True):
        return split_in_halves(as_double(model))


@pytest.mark.parametrize("hidden", ["bernoulli", "spin"])
@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
@pytest.mark.parametrize("sizes", [(11, 8), (8, 11)])
def test_either_side_may_be_the_smaller(visible: str, hidden: str, sizes: tuple[int, int]) -> None:
    model = wave_rbm(visible, hidden, sizes=sizes, gain=2.0)
    assert fast(model) == pytest.approx(plain(model), abs=1e-11)
    assert hm.log_partition(model).value == fast(model)


def test_a_side_may_have_several_layers_of_several_kinds() -> None:
    model = wave_layers(("bernoulli", 7), ("spin", 10), ("spin", 6), ("bernoulli", 3))
    assert fast(model) == pytest.approx(plain(model), abs=1e-11)


@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_the_enumerated_units_may_be_coupled(kind: str) -> None:
    model = wave_machine(9, 4, visible=kind, hidden=kind)
    assert not isinstance(model, hm.RBM)
    assert fast(model) == pytest.approx(plain(model), abs=1e-11)


def test_few_units_and_large_fields_take_the_plain_sum() -> None:
    assert not can_halve(wave_rbm(sizes=(20, FEWEST_BITS - 1)))
    strong = wave_rbm(sizes=(20, FEWEST_BITS), gain=60.0)
    halves = halves_of(strong)
    assert max(np.abs(part).max() for part in (halves.first_field, halves.second_field)) > LARGEST_HALF
    assert not can_halve(strong)
    assert hm.log_partition(strong).value == pytest.approx(plain(strong), abs=1e-9)


@pytest.mark.parametrize("gain", [8.0, 12.0, 16.0, 20.0, 24.0, 28.0])
@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
def test_the_largest_field_is_that_of_the_tables(visible: str, gain: float) -> None:
    model = wave_rbm(visible, "spin", sizes=(20, FEWEST_BITS), gain=gain)
    halves = halves_of(model)
    largest = max(np.abs(part).max() for part in (halves.first_field, halves.second_field))
    assert can_halve(model) == (largest <= LARGEST_HALF)


def test_weights_beyond_single_precision_are_summed_plainly() -> None:
    model = hm.RBM.from_arrays(np.full((8, 8), 1e39), np.zeros(8), np.zeros(8))
    assert not can_halve(model)
    assert hm.log_partition(model).value == pytest.approx(64e39, rel=1e-12)


def test_fields_that_would_overflow_a_product_do_not() -> None:
    """200 up against 200 down: the split exponentials of such a machine are not a number in single precision."""
    model = hm.RBM.from_arrays(np.full((30, 12), -200.0), np.full(30, 200.0), np.full(12, 200.0))
    assert not can_halve(model)
    # With every hidden unit off, 30 visible units are on at 200 nats each; any other state is e^-5000 rarer.
    assert hm.log_partition(model).value == pytest.approx(6000, abs=1e-9)
