"""Proofs that every kind of unit inherits: its laws against sums over its values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.units.base import AbstractTwoValuedUnits, AbstractUnits
from harmonium.units.kinds import UNIT_KINDS
from harmonium.units.pair import AbstractPair
from tests.contracts.cases import UNITS
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against

FIELDS = np.array([-30.0, -4.0, -1.3, -0.2, 0.0, 0.7, 2.0, 30.0])
DRAWS = 1 << 16

kinds = pytest.mark.parametrize(
    "kind",
    [kind for kind, units in UNITS.items() if issubclass(units, AbstractTwoValuedUnits | AbstractPair)],
)


def law_at(kind: str, field: np.ndarray | float) -> np.ndarray:
    """Probability of each value (first axis) of a unit at each field, by the sum over its values."""
    values = np.asarray(UNITS[kind].support)
    weight = values.reshape(-1, *[1] * np.ndim(field)) * np.asarray(field)
    return np.exp(weight - np.logaddexp.reduce(weight, axis=0))


def moment_at(kind: str, field: np.ndarray) -> np.ndarray:
    return np.tensordot(np.asarray(UNITS[kind].support), law_at(kind, field), axes=1)


def layer_of(kind: str, bias: np.ndarray = FIELDS) -> AbstractUnits:
    return UNITS[kind](bias=bias)


@kinds
def test_cumulant_is_the_sum_over_values(kind: str) -> None:
    values = np.asarray(UNITS[kind].support)
    fields = np.stack([FIELDS, FIELDS[::-1] / 3])
    by_sum = np.logaddexp.reduce(values[:, None, None] * fields, axis=0).sum(axis=-1)
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            np.asarray(layer_of(kind).log_partition(jnp.asarray(fields))), by_sum, rtol=1e-14
        )


@kinds
def test_change_of_the_cumulant_is_its_difference(kind: str) -> None:
    """To rounding in double precision; in single precision to rounding of the changes, however large the fields are."""
    values = np.asarray(UNITS[kind].support)
    generator = np.random.default_rng(0)
    field = generator.choice([0.5, 5.0, 50.0], (40, 300)) * generator.standard_normal((40, 300))
    units = layer_of(kind, np.zeros(300))
    for size in (1e-4, 1e-2, 1.0, 100.0):
        field32, change32 = (
            field.astype(np.float32),
            (size * generator.standard_normal((40, 300))).astype(np.float32),
        )
        fields, change = field32.astype(np.float64), change32.astype(np.float64)
        total, start = (
            np.logaddexp.reduce(values[:, None, None] * np.asarray(f, np.longdouble), axis=0)
            for f in (fields + change, fields)
        )
        expected = (total - start).sum(axis=-1).astype(np.float64)
        with jax.enable_x64(True):
            found = np.asarray(units.log_partition_change(jnp.asarray(fields), jnp.asarray(change)))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
        single = np.asarray(
            UNITS[kind](300).log_partition_change(jnp.asarray(field32), jnp.asarray(change32))
        )
        assert single.dtype == np.float32
        scale = np.abs(change).sum(axis=-1)
        np.testing.assert_array_less(np.abs(single - expected), 1e-6 * scale + 1e-5)


@kinds
def test_mean_is_the_derivative_of_the_cumulant(kind: str) -> None:
    units = layer_of(kind)
    with jax.enable_x64(True):
        fields = jnp.asarray(FIELDS)
        mean = np.asarray(units.mean(fields))
        np.testing.assert_allclose(mean, np.asarray(jax.grad(units.log_partition)(fields)), atol=1e-15)
    np.testing.assert_allclose(mean, moment_at(kind, FIELDS), atol=1e-15)


@kinds
def test_field_of_mean_inverts_the_mean(kind: str) -> None:
    units = layer_of(kind)
    inner = FIELDS[np.abs(FIELDS) < 5]
    assert len(inner) >= 5
    with jax.enable_x64(True):
        found = np.asarray(units.field_of_mean(units.mean(jnp.asarray(inner))))
    np.testing.assert_allclose(found, inner, atol=1e-12)


@kinds
def test_mode_is_the_most_probable_value(kind: str) -> None:
    law = law_at(kind, FIELDS)
    values = np.asarray(UNITS[kind].support)
    # argmax takes the first of equals, and values are in rising order: a tie falls to the lower one.
    expected = values[np.argmax(np.round(law, 12), axis=0)]
    np.testing.assert_array_equal(np.asarray(layer_of(kind).mode(jnp.asarray(FIELDS, jnp.float32))), expected)


@kinds
def test_entropy_is_the_sum_over_values(kind: str) -> None:
    law = law_at(kind, FIELDS)
    by_sum = -np.sum(law * np.log(law), axis=0).sum()
    with jax.enable_x64(True):
        units = layer_of(kind)
        assert float(units.entropy(jnp.asarray(FIELDS))) == pytest.approx(by_sum, rel=1e-12)
        flat = float(units.entropy(jnp.zeros(len(FIELDS))))
    assert flat == pytest.approx(len(FIELDS) * np.log(len(units.support)))


@kinds
def test_own_energy_and_its_expectation(kind: str) -> None:
    """The layer alone has probability ``exp(-base_energy)`` up to its cumulant at rest; the mean is over that law."""
    bias = np.array([-0.8, 0.3, 1.1])
    values = np.asarray(UNITS[kind].support)
    states = values[np.indices([len(values)] * 3).reshape(3, -1).T]
    field = np.array([0.4, -0.9, 0.2])
    law = np.prod(
        [law_at(kind, x)[np.searchsorted(values, states[:, i])] for i, x in enumerate(field)], axis=0
    )
    with jax.enable_x64(True):
        units = layer_of(kind, bias)
        energy = np.asarray(units.base_energy(jnp.asarray(states)))
        cumulant = float(units.log_partition(jnp.asarray(units.natural())))
        expected = float(units.expected_energy(units.mean(jnp.asarray(field))))
    assert np.logaddexp.reduce(-energy) == pytest.approx(cumulant, rel=1e-13)
    assert expected == pytest.approx(law @ energy, rel=1e-13)


def sampled_counts(kind: str, field: float, seed: int) -> np.ndarray:
    units = UNITS[kind](1)
    words, _ = Noise.from_key(jax.random.key(seed)).pair((DRAWS, 1))
    drawn = np.asarray(units.sample(words, jnp.full((DRAWS, 1), field, jnp.float32)))
    assert np.isin(drawn, units.support).all()
    return np.array([(drawn == value).sum() for value in np.unique(units.support)])


def drawn_law_at(kind: str, field: float) -> np.ndarray:
    """Probability of each distinct value: states of a pair in which its copies differ are one value."""
    values, places = np.unique(UNITS[kind].support, return_inverse=True)
    return np.bincount(places, weights=law_at(kind, field), minlength=len(values))


@kinds
@pytest.mark.parametrize("field", [-1.3, 0.0, 0.7])
def test_samples_follow_their_law(kind: str, field: float) -> None:
    """Pearson's chi-squared over the values; a field wrong by a tenth would be caught."""
    law, wrong = drawn_law_at(kind, field), drawn_law_at(kind, field + 0.1)
    assert power_against(wrong, law, DRAWS) >= POWER
    counts = sampled_counts(kind, field, seed=11)
    assert agreement(counts, law) > FALSE_ALARM
    assert agreement(counts, wrong) < FALSE_ALARM


@kinds
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_tempering_multiplies_the_field(kind: str, beta: float) -> None:
    """At inverse temperature beta the law is the law to the power beta, normalised; no stored array is touched."""
    field = 0.7
    tempered = law_at(kind, field) ** beta
    tempered /= tempered.sum()
    np.testing.assert_allclose(law_at(kind, beta * field), tempered, rtol=1e-12)
    assert (
        agreement(sampled_counts(kind, beta * field, seed=12), drawn_law_at(kind, beta * field)) > FALSE_ALARM
    )
    units = layer_of(kind)
    with jax.enable_x64(True):
        mean = float(units.mean(jnp.asarray([beta * field]))[0])
    assert mean == pytest.approx(np.asarray(UNITS[kind].support) @ tempered, abs=1e-15)


@kinds
def test_huge_fields_stay_finite_in_single_precision(kind: str) -> None:
    units = layer_of(kind, np.zeros(2, np.float32))
    low, high = units.support[0], units.support[-1]

    @jax.jit
    def answers(fields: jax.Array) -> tuple:
        words, _ = Noise.from_key(jax.random.key(0)).pair((1000, 2))
        drawn = units.sample(words, jnp.broadcast_to(fields, words.shape))
        return (
            units.log_partition(fields),
            units.entropy(fields),
            units.mean(fields),
            units.mode(fields),
            drawn,
        )

    cumulant, entropy, mean, mode, drawn = map(np.asarray, answers(np.array([-200, 200], np.float32)))
    assert float(cumulant) == pytest.approx(200 * (high - low), rel=1e-6)
    assert float(entropy) == pytest.approx(0, abs=1e-3)
    np.testing.assert_array_equal(mean, [low, high])
    np.testing.assert_array_equal(mode, [low, high])
    np.testing.assert_array_equal(np.unique(drawn, axis=0), [[low, high]])


@kinds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_methods_broadcast_over_leading_axes_and_keep_the_dtype(kind: str, dtype: type) -> None:
    field = np.linspace(-1, 1, 12).reshape(2, 3, 2).astype(dtype)

    @jax.jit
    def answers(units: AbstractUnits, field: jax.Array) -> tuple:
        words, _ = Noise.from_key(jax.random.key(0)).pair(field.shape)
        mode = units.mode(field)
        wide = (units.mean(field), mode, units.sample(words, field))
        return wide, (units.log_partition(field), units.entropy(field), units.base_energy(mode))

    with jax.enable_x64(dtype == np.float64):
        wide, summed = answers(layer_of(kind, np.array([0.1, -0.2], dtype)), field)
    assert {(result.shape, str(result.dtype)) for result in wide} == {((2, 3, 2), np.dtype(dtype).name)}
    assert {(result.shape, str(result.dtype)) for result in summed} == {((2, 3), np.dtype(dtype).name)}
    np.testing.assert_allclose(np.asarray(wide[0]), moment_at(kind, field), atol=1e-6)
    by_sum = np.logaddexp.reduce(np.multiply.outer(UNITS[kind].support, field), axis=0).sum(axis=-1)
    np.testing.assert_allclose(np.asarray(summed[0]), by_sum, rtol=1e-6)


@kinds
def test_layers_at_rest_and_their_sizes(kind: str) -> None:
    units = UNITS[kind](5)
    assert units.size == 5
    assert units.kind == kind
    assert UNIT_KINDS[kind] is UNITS[kind]
    assert not np.any(units.natural())
    given = np.array([0.5, -0.5])
    assert UNITS[kind](bias=given).natural() is given


@kinds
@pytest.mark.parametrize("size", [0, -1, True, None])
def test_a_layer_has_at_least_one_unit(kind: str, size: int) -> None:
    with pytest.raises(SettingError, match="at least 1"):
        UNITS[kind](size)
