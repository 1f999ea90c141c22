"""Proofs of softmax units, as of every kind of unit: their laws against sums over the states of a variable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.units.kinds import UNIT_KINDS, unit_class
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against

FIELD = np.array([[0.7, -1.3, 0.2, 2.0, 2.0, -30.0], [-4.0, 0.0, 30.0, 0.1, 0.2, 0.3]])
"""Two rows of two variables of three states."""

DRAWS = 1 << 16


def laws(field: np.ndarray) -> np.ndarray:
    """Probability of every state, row by variable by state."""
    blocks = field.reshape(*field.shape[:-1], -1, 3)
    return np.exp(blocks - np.logaddexp.reduce(blocks, axis=-1)[..., None])


def test_the_laws_of_a_layer_are_sums_over_its_states() -> None:
    law = laws(FIELD)
    blocks = FIELD.reshape(2, 2, 3)
    with jax.enable_x64(True):
        units, field = hm.Categorical(3, bias=np.zeros(6)), jnp.asarray(FIELD)
        cumulant = np.asarray(units.log_partition(field))
        mean, slope = units.mean(field), jax.grad(lambda field: jnp.sum(units.log_partition(field)))(field)
        entropy, mode = np.asarray(units.entropy(field)), np.asarray(units.mode(field))
        again = units.mean(units.field_of_mean(mean))
        gauge = np.asarray(units.log_partition(units.field_of_mean(mean)))
        expected = np.asarray(hm.Categorical(3, bias=FIELD[0]).expected_energy(mean))
    np.testing.assert_allclose(cumulant, np.logaddexp.reduce(blocks, axis=-1).sum(axis=-1), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(mean), law.reshape(2, 6), atol=1e-15)
    np.testing.assert_allclose(np.asarray(slope), law.reshape(2, 6), atol=1e-15)
    np.testing.assert_allclose(np.asarray(again), np.asarray(mean), atol=1e-15)
    np.testing.assert_allclose(gauge, 0, atol=1e-12)
    np.testing.assert_allclose(entropy, -(law * np.log(law)).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(expected, -law.reshape(2, 6) @ FIELD[0], rtol=1e-13)
    # Of a tie the first state is the mode.
    np.testing.assert_array_equal(mode, [[1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1]])


@pytest.mark.parametrize("size", [1e-4, 0.3, 1.0, 100.0])
def test_change_of_the_cumulant_is_its_difference(size: float) -> None:
    """To rounding of the change in single precision too, however large the fields are."""
    generator = np.random.default_rng(0)
    field = (generator.choice([0.5, 5.0, 50.0], (40, 30)) * generator.standard_normal((40, 30))).astype("f4")
    change = (size * generator.standard_normal((40, 30))).astype("f4")
    after, before = (
        np.logaddexp.reduce(part.astype(np.longdouble).reshape(40, 10, 3), axis=-1).sum(axis=-1)
        for part in (field.astype(np.float64) + change.astype(np.float64), field)
    )
    units = hm.Categorical(3, 10)
    found = np.asarray(units.log_partition_change(jnp.asarray(field), jnp.asarray(change)))
    assert found.dtype == np.float32
    scale = np.abs(change).sum(axis=-1)
    np.testing.assert_array_less(np.abs(found - (after - before).astype(float)), 1e-6 * scale + 1e-6)
    with jax.enable_x64(True):
        double = units.log_partition_change(jnp.asarray(field, float), jnp.asarray(change, float))
    np.testing.assert_allclose(np.asarray(double), (after - before).astype(float), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_samples_follow_their_law_also_when_tempered(beta: float) -> None:
    """Two variables together, so that one word of each is read; a field wrong by a tenth would be caught."""
    field = np.array([0.7, -1.3, 0.2, 0.4, 0.0, -0.6]) * beta
    one, other = laws(field)
    joint = np.outer(one, other).ravel()
    wrong = np.outer(laws(field + [0.1, 0, 0, 0, 0, 0])[0], other).ravel()
    assert power_against(wrong, joint, DRAWS) >= POWER
    words, _ = Noise.from_key(jax.random.key(3)).pair((DRAWS, 6))
    drawn = np.asarray(hm.Categorical(3, 2).sample(words, jnp.full((DRAWS, 6), field, jnp.float32)))
    states = drawn.reshape(DRAWS, 2, 3)
    assert np.isin(drawn, (0, 1)).all()
    assert (states.sum(axis=-1) == 1).all()
    counts = np.bincount(states.argmax(axis=-1) @ [3, 1], minlength=9)
    assert agreement(counts, joint) > FALSE_ALARM
    assert agreement(counts, wrong) < FALSE_ALARM


def test_huge_fields_stay_finite_in_single_precision() -> None:
    units = hm.Categorical(3)
    field = jnp.asarray([-200.0, 200.0, -200.0], jnp.float32)
    words, _ = Noise.from_key(jax.random.key(0)).pair((1000, 3))
    assert float(units.log_partition(field)) == 200
    assert float(units.entropy(field)) == 0
    drawn = np.asarray(units.sample(words, jnp.broadcast_to(field, words.shape)))
    np.testing.assert_array_equal(np.unique(drawn, axis=0), [[0, 1, 0]])


def test_a_kind_says_its_states() -> None:
    units = unit_class("categorical:4")(bias=np.zeros(4))
    assert isinstance(units, UNIT_KINDS["categorical"])
    assert (units.kind, units.size, unit_class(units.kind)(3).size) == ("categorical:4", 4, 12)
    assert units.with_bias(np.ones(4)).kind == units.kind
    with pytest.raises(SettingError, match="categorical:STATES"):
        unit_class("categorical")
    with pytest.raises(SettingError, match="how many states"):
        unit_class("categorical:many")
    with pytest.raises(SettingError, match="at least 2"):
        hm.Categorical(1)
    with pytest.raises(SettingError, match="at least 1"):
        hm.Categorical(3, 0)
    with pytest.raises(SettingError, match="a bias of 5 units is not one of 1 variables of 3 states"):
        hm.Categorical(3, bias=np.zeros(5))
