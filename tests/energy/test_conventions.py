"""Machines and moments in either convention: what is computed in one is what is computed in the other."""

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.conventions import moments_to_binary, moments_to_spin
from harmonium.energy.independent import Independent
from harmonium.errors import SettingError
from tests.contracts.model_cases import model_of


@pytest.mark.parametrize("name", ["rbm", "machine on a sparse graph"])
def test_partition_functions_and_moments_are_those_of_the_same_machine(name: str) -> None:
    model = model_of(name)
    spins, offset = hm.to_spin(model)
    assert type(spins) is type(model)
    assert {units.kind for units in spins.units} == {"spin"}
    bits, turned = hm.moments(model), hm.moments(spins)
    assert bits.log_partition == pytest.approx(turned.log_partition - offset, abs=1e-12)
    means, second = moments_to_spin(np.concatenate(bits.means), bits.second)
    np.testing.assert_allclose(means, np.concatenate(turned.means), atol=1e-12)
    np.testing.assert_allclose(second, turned.second, atol=1e-12)
    back = moments_to_binary(means, second)
    np.testing.assert_allclose(back[0], np.concatenate(bits.means), atol=1e-12)
    np.testing.assert_allclose(back[1], bits.second, atol=1e-12)
    with pytest.raises(SettingError, match="use moments_to_binary"):
        moments_to_spin(means, second)
    with pytest.raises(SettingError, match="use moments_to_spin"):
        moments_to_binary(np.concatenate(bits.means), bits.second)


def test_units_without_couplings_are_rewritten_too() -> None:
    bits = Independent([hm.Bernoulli(bias=np.array([1.0, -3.0])), hm.Bernoulli(bias=np.array([2.0]))])
    spins, offset = hm.to_spin(bits)
    assert isinstance(spins, Independent)
    assert bits.log_partition() == pytest.approx(spins.log_partition() - offset, abs=1e-12)
