"""Valleys of hidden codes: those that were planted, and those that flooding level by level finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.data.modes import planted_machine
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate.valleys import hidden_of, hidden_valleys


def rough_machine(hidden: int, seed: int, units: Any = None) -> hm.RBM:
    """A machine with many valleys."""
    draw = np.random.default_rng(seed)
    weights = draw.normal(size=(8, hidden)) * 3
    # Without a field a code and its opposite would be alike, and which of them is the lower a matter of rounding.
    field = draw.normal(size=hidden) / 2
    if units is None:
        return hm.RBM.from_arrays(weights, -weights.sum(axis=1) / 2, field - weights.sum(axis=0) / 2)
    return hm.RBM.from_arrays(weights / 4, np.zeros(8), field / 2, visible=units, hidden=units)


def energies(model: hm.RBM) -> np.ndarray:
    """Of all hidden codes, by adding up all visible states."""
    count = model.units[1].size
    codes = hidden_of(model, np.arange(1 << count))
    weights, visible_bias, hidden_bias = (
        model.parameters()[name] for name in ("weights", "visible_bias", "hidden_bias")
    )
    states = (np.arange(1 << 8)[:, None] >> np.arange(8) & 1).astype(float)
    low, high = model.units[0].support
    states = low + (high - low) * states
    joint = states @ weights @ codes.T + (states @ visible_bias)[:, None] + codes @ hidden_bias
    return -np.logaddexp.reduce(joint, axis=0)


def survivors(energy: np.ndarray, barrier: float) -> set[int]:
    """Codes that are the lowest of their flooded part until the water stands ``barrier`` above them, level by level."""
    bits = len(energy).bit_length() - 1
    found = set()
    for code in range(len(energy)):
        # The water rises to just below the barrier, or drowns everything.
        wet = {code}
        frontier = [code]
        while frontier:
            near = frontier.pop()
            for bit in range(bits):
                other = near ^ (1 << bit)
                if other not in wet and energy[other] - energy[code] < barrier:
                    wet.add(other)
                    frontier.append(other)
        if min(wet, key=lambda other: energy[other]) == code:
            found.add(code)
    return found


def test_planted_clusters_are_the_valleys() -> None:
    machine = planted_machine(clusters=6, visible=64)
    found = hidden_valleys(
        hm.RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias), barrier=5.0
    )
    assert found.bottoms.tolist() == [1 << j for j in reversed(range(6))]
    # A valley has more codes than its bottom, but these hardly weigh anything here.
    np.testing.assert_allclose(found.weights, machine.mode_weights[::-1], atol=1e-4)
    assert found.elsewhere == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("barrier", [0.01, 0.5, 1.0, 2.0, 4.0, 1e6])
def test_valleys_are_those_of_rising_water(seed: int, barrier: float) -> None:
    model = rough_machine(6, seed)
    found = hidden_valleys(model, barrier, least_weight=0.0)
    assert set(found.bottoms.tolist()) == survivors(energies(model), barrier)
    assert found.weights.sum() == pytest.approx(1)
    assert (np.diff(found.weights) <= 0).all()


def test_there_is_something_to_find() -> None:
    counts = [len(hidden_valleys(rough_machine(6, 0), barrier, 0.0).weights) for barrier in (0.01, 1.0, 1e6)]
    assert counts[0] > counts[1] > counts[2] == 1


def test_weights_are_those_of_the_codes() -> None:
    model = rough_machine(5, 1)
    found = hidden_valleys(model, 0.5, least_weight=0.1)
    weight = np.exp(-energies(model))
    weight /= weight.sum()
    np.testing.assert_allclose(found.code_weights, weight, rtol=1e-10)
    for valley, total in enumerate(found.weights):
        assert total == pytest.approx(weight[found.labels == valley].sum())
        assert found.labels[found.bottoms[valley]] == valley
        assert total >= 0.1
    assert found.elsewhere == pytest.approx(weight[found.labels == -1].sum())


def test_spins_have_valleys_too() -> None:
    model = rough_machine(4, 2, "spin")
    found = hidden_valleys(model, 0.1, least_weight=0.0)
    assert len(found.bottoms) > 1
    assert set(found.bottoms.tolist()) == survivors(energies(model), 0.1)


def test_what_has_no_valleys_is_refused() -> None:
    with pytest.raises(SettingError, match="two layers"):
        hidden_valleys(hm.BoltzmannMachine.from_arrays(np.zeros((2, 2)), np.zeros(2)))
    with pytest.raises(BudgetError, match=r"2\*\*20 states"):
        hidden_valleys(hm.RBM(4, 20))
    with pytest.raises(SettingError, match="barrier"):
        hidden_valleys(hm.RBM(4, 2), barrier=-1.0)
    with pytest.raises(SettingError, match="least_weight must be a number from 0 below 1, got 1"):
        hidden_valleys(hm.RBM(4, 2), least_weight=1)
