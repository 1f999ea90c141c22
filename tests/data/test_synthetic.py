"""Generators against counts and entropies worked out by hand."""

import math
from itertools import product

import numpy as np
import pytest

from harmonium.data import load_data
from harmonium.data.synthetic import bars_and_stripes, shifting_bars
from harmonium.errors import DataError, SettingError


def all_bars_or_stripes(side: int) -> set[tuple[int, ...]]:
    """Every picture of the full space that has constant columns or constant rows."""
    found = set()
    for bits in product((0, 1), repeat=side * side):
        picture = np.array(bits).reshape(side, side)
        if (picture == picture[:1]).all() or (picture == picture[:, :1]).all():
            found.add(bits)
    return found


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_bars_and_stripes_are_the_patterns_of_the_definition(side):
    data = bars_and_stripes(side)
    rows = [tuple(row) for row in data.train.tolist()]
    assert len(rows) == len(set(rows)) == 2 ** (side + 1) - 2
    if side < 4:
        assert set(rows) == all_bars_or_stripes(side)
    assert data.train.dtype == np.uint8
    assert data.shape == (side, side)
    assert data.entropy == pytest.approx(math.log(2 ** (side + 1) - 2), abs=1e-15)


# Mean log-likelihood per row with all-on and all-off kept twice.
@pytest.mark.parametrize(("side", "best"), [(2, -1.732867951), (3, -2.599301927), (4, -3.379092505)])
def test_repeated_patterns_have_the_known_bound(side, best):
    data = bars_and_stripes(side, repeat=True)
    patterns, counts = np.unique(data.train, axis=0, return_counts=True)
    assert len(data.train) == 2 ** (side + 1)
    assert sorted(counts)[-2:] == [2, 2]
    assert sorted(counts)[:-2] == [1] * (len(patterns) - 2)
    assert set(map(int, patterns[counts == 2].sum(axis=1))) == {0, side * side}
    share = counts / counts.sum()
    assert data.entropy == pytest.approx(-float((share * np.log(share)).sum()), abs=1e-14)
    assert data.entropy == pytest.approx(-best, abs=1e-9)


@pytest.mark.parametrize(("length", "bar"), [(2, 1), (5, 2), (12, 6), (24, 12)])
def test_shifting_bars_are_the_cyclic_shifts(length, bar):
    data = shifting_bars(length, bar)
    first = np.array([1] * bar + [0] * (length - bar))
    assert (data.train == np.array([np.roll(first, i) for i in range(length)])).all()
    assert len(np.unique(data.train, axis=0)) == length
    assert data.entropy == pytest.approx(math.log(length), abs=1e-15)


def test_best_likelihoods_of_the_papers_sizes():
    assert shifting_bars(12).entropy == pytest.approx(2.4849, abs=5e-5)
    assert shifting_bars(24).entropy == pytest.approx(3.1781, abs=5e-5)
    assert bars_and_stripes(4).entropy == pytest.approx(3.401, abs=5e-4)
    assert "max mean log-likelihood -3.401" in bars_and_stripes(4).describe()


def test_inverted_bars_are_the_bars_of_the_rest_of_the_ring():
    inverted = {tuple(row) for row in (1 - shifting_bars(7, 2).train).tolist()}
    assert inverted == {tuple(row) for row in shifting_bars(7, 5).train.tolist()}


@pytest.mark.parametrize("name", ["bars-and-stripes:side=3", "shifting-bars:length=8,bar=3"])
def test_every_split_is_the_whole_set(name):
    data = load_data(name)
    assert (data.valid == data.train).all()
    assert (data.test == data.train).all()
    assert data.name == name


def test_stream_is_uniform_over_the_set_and_repeatable():
    data = bars_and_stripes(2)
    fresh = data.stream(7, 60_000)
    assert fresh.dtype == np.uint8
    assert (fresh == data.stream(7, 60_000)).all()
    assert (fresh != data.stream(8, 60_000)).any()
    assert data.stream(7, 0).shape == (0, 4)
    patterns, counts = np.unique(fresh, axis=0, return_counts=True)
    assert len(patterns) == 6
    # Chi-squared with 5 degrees of freedom: its 1 - 1e-5 quantile is 30.9.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 30.9


def test_stream_is_frozen():
    rows = shifting_bars(24, 1).stream(0, 6)
    assert rows.argmax(axis=1).tolist() == [23, 19, 7, 18, 1, 16]


def test_stream_takes_old_and_new_jax_keys():
    import jax

    data = shifting_bars(24, 1)
    new, old = data.stream(jax.random.key(3), 100), data.stream(jax.random.PRNGKey(3), 100)
    assert (new == old).all()
    assert (new != data.stream(jax.random.key(4), 100)).any()


@pytest.mark.parametrize("key", [-1, 2**64, "seed", True, 0.5])
def test_stream_refuses_what_is_no_key(key):
    with pytest.raises(SettingError, match="must be a whole number from 0"):
        shifting_bars(4).stream(key, 1)


def test_stream_refuses_a_negative_count_and_a_fixed_table():
    with pytest.raises(SettingError, match="whole number from 0, got -1"):
        shifting_bars(4).stream(0, -1)
    with pytest.raises(DataError, match="the rows is a fixed table, not a generator"):
        load_data([[0, 1]], name="the rows").stream(0, 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bars-and-stripes:side=0", "side to be a whole number of at least 1, got 0"),
        ("bars-and-stripes:side=21", "choose a side of at most 20"),
        ("bars-and-stripes:side=100000", "more than a gibibyte"),
        ("shifting-bars:length=1", "length to be a whole number of at least 2, got 1"),
        ("shifting-bars:length=4,bar=4", "a bar from 1 to length - 1 = 3, got bar=4"),
        ("shifting-bars:length=4,bar=0", "got bar=0"),
        ("shifting-bars:length=100000", "choose at most 32768"),
    ],
)
def test_parameters_are_checked(name, said):
    with pytest.raises(SettingError, match=said):
        load_data(name)
