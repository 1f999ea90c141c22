"""The temperature of samples, against samples whose temperature is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import DataError, HarmoniumWarning, SettingError
from tests.contracts.machines import wave_machine
from tests.contracts.model_cases import model_of, table_of

ROWS = 16_000
LIMIT = 4.5
"""Standard errors that a right estimate exceeds less often than once in 100 000."""


@pytest.mark.parametrize("name", ["strong rbm", "rbm of spins", "machine"])
@pytest.mark.parametrize("beta", [1.0, 0.5, -0.5])
def test_the_temperature_of_exact_samples_is_found(name: str, beta: float) -> None:
    model, table = model_of(name), table_of(name)
    found = hm.estimate_beta(model, table.draw(ROWS, table.law(beta), seed=1))
    assert found.reliable
    assert found.rows == ROWS
    assert abs(found.beta - beta) < LIMIT * found.stderr
    # And it is sharp enough to tell 0.8 of it.
    assert abs(0.2 * beta) > (LIMIT + 2.5) * found.stderr


def test_the_error_is_that_of_repeated_estimates() -> None:
    model, table = model_of("strong rbm"), table_of("strong rbm")
    law = table.law()
    found = [hm.estimate_beta(model, table.draw(300, law, seed)) for seed in range(100)]
    scores = np.array([(one.beta - 1) / one.stderr for one in found])
    # The variance of 100 scores is 1 up to 0.14.
    assert 0.4 < np.var(scores) < 1.9
    covered = np.mean([one.low <= 1 <= one.high for one in found])
    assert covered >= 0.84


def test_what_tells_no_temperature_is_flagged() -> None:
    model, table = model_of("strong rbm"), table_of("strong rbm")
    ground = tuple(layer[[np.argmin(table.energy)] * 5].astype(float) for layer in table.layers)
    with pytest.warns(HarmoniumWarning, match="no temperature is too low"):
        cold = hm.estimate_beta(model, ground)
    assert (cold.beta, cold.reliable) == (math.inf, False)
    top = tuple(layer[[np.argmax(table.energy)] * 5].astype(float) for layer in table.layers)
    with pytest.warns(HarmoniumWarning, match="turned round"):
        assert hm.estimate_beta(model, top).beta == -math.inf
    middle = tuple(layer[[3] * 5].astype(float) for layer in table.layers)
    with pytest.warns(HarmoniumWarning, match="all 5 samples are one state"):
        same = hm.estimate_beta(model, middle)
    assert math.isfinite(same.beta)
    assert same.stderr == math.inf
    flat = wave_machine(4, gain=0.0)
    flat = type(flat).from_arrays(np.zeros((4, 4)), np.zeros(4))
    with pytest.warns(HarmoniumWarning, match="no field at these samples"):
        assert math.isnan(hm.estimate_beta(flat, (np.eye(4),)).beta)


def test_other_values_and_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="sample 0 has -1 for unit 1, whose values are 0 and 1"):
        hm.estimate_beta(wave_machine(2), (np.array([[1.0, -1.0]]),))
    with pytest.raises(SettingError, match="layer 0 has 2 units"):
        hm.estimate_beta(wave_machine(2), (np.ones((3, 5)),))
    with pytest.raises(SettingError, match="undirected machine"):
        hm.estimate_beta(hm.DBN(3, [2, 2]), (np.ones((3, 3)),))


def test_a_gradient_from_samples_is_the_exact_one_for_many_of_them() -> None:
    """Every state as often as it is probable, so that what is left is rounding to whole numbers."""
    model, table = model_of("strong rbm"), table_of("strong rbm")
    counts = np.round(2e5 * table.law()).astype(int)
    samples = tuple(np.repeat(layer, counts, axis=0) for layer in table.layers)
    rows = table.layers[0][::7]
    exact, found = hm.exact_gradient(model, rows), hm.gradient_from_samples(model, rows, samples)
    assert exact.keys() == found.keys()
    for name, slopes in exact.items():
        np.testing.assert_allclose(found[name], slopes, atol=1e-3)
        assert np.abs(slopes).max() > 0.02
    with pytest.raises(DataError, match="sample 0 has -1 for unit 0, whose values are 0 and 1"):
        hm.gradient_from_samples(model, rows, tuple(2 * layer - 1 for layer in samples))
    with pytest.raises(SettingError, match="has 2 layers, got 1"):
        hm.gradient_from_samples(model, rows, samples[:1])
