"""The order of rows and what a batch holds: every row once an epoch, padding without weight, fresh bits by epoch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from harmonium.numerics.random import key_words, update_words
from harmonium.train import feed, setup
from harmonium.train.feed import Feed, Order, binarization_words
from tests.contracts.tables import FALSE_ALARM

FLOAT32 = jnp.dtype(jnp.float32)


def order_of(count: int, batch_size: int, seed: int = 0) -> Order:
    return Order(jax.random.key(seed), count, batch_size)


@pytest.mark.parametrize(
    ("count", "batch_size"), [(12, 4), (10, 4), (1, 1), (1, 100), (7, 7), (5, 100), (101, 100)]
)
def test_every_row_is_used_once_an_epoch(count: int, batch_size: int) -> None:
    """Whole batches or a short last one, one row, a batch larger than the data."""
    order = order_of(count, batch_size)
    assert order.per_epoch == -(-count // batch_size)
    assert order.batch_size == min(batch_size, count)
    rows, real, epochs = order.rows(0, 3 * order.per_epoch)
    assert (real is None) == (count % order.batch_size == 0)
    weight = np.ones_like(rows) if real is None else real
    for epoch in range(3):
        within = epochs == epoch
        used = rows[within][weight[within] > 0]
        np.testing.assert_array_equal(np.sort(used), np.arange(count))
    assert set(np.unique(weight)) <= {0, 1}


def test_epochs_are_shuffled_anew_and_by_the_key_alone() -> None:
    order = order_of(200, 50)
    rows, _, _ = order.rows(0, 8)
    first, second = rows[:4].ravel(), rows[4:].ravel()
    assert (first != second).any()
    assert (first != np.arange(200)).any()
    np.testing.assert_array_equal(order_of(200, 50).rows(0, 8)[0], rows)
    assert (order_of(200, 50, seed=1).rows(0, 8)[0] != rows).any()


def test_permutations_of_different_epochs_are_independent() -> None:
    """Places of a row in different epochs do not depend on each other, by rank correlation and by shared batches.

    Were the words of an epoch's generator those of the epoch before, some places on, the correlation would be 0.74 and
    a row would meet its old batch 7 times as often.
    """
    count, batch_size, epochs = 1400, 100, 40
    order = order_of(count, batch_size)
    rows, _, _ = order.rows(0, epochs * order.per_epoch)
    places = np.argsort(rows.reshape(epochs, count), axis=1)
    for lag in (1, 2, 3):
        pairs = list(zip(places, places[lag:], strict=False))
        correlations = [np.corrcoef(one, other)[0, 1] for one, other in pairs]
        z = np.mean(correlations) * np.sqrt((count - 1) * len(pairs))
        assert 2 * scipy.stats.norm.sf(abs(z)) > FALSE_ALARM
        shared = sum(int((one // batch_size == other // batch_size).sum()) for one, other in pairs)
        chance = 1 / order.per_epoch
        assert scipy.stats.binomtest(shared, count * len(pairs), chance).pvalue > FALSE_ALARM


def test_any_stretch_of_updates_is_part_of_one_order() -> None:
    """What a resumed run asks for in the middle is what the unbroken run had there."""
    order = order_of(23, 5)
    rows, real, epochs = order.rows(0, 40)
    assert real is not None
    for first, updates in ((0, 7), (3, 9), (17, 23), (39, 1)):
        part, part_real, part_epochs = order.rows(first, updates)
        np.testing.assert_array_equal(part, rows[first : first + updates])
        np.testing.assert_array_equal(part_real, real[first : first + updates])
        np.testing.assert_array_equal(part_epochs, epochs[first : first + updates])


def test_a_batch_is_the_rows_with_their_weights() -> None:
    data = np.arange(12, dtype=np.uint8).reshape(6, 2) % 2
    chosen, real = jnp.array([4, 1, 0]), jnp.array([1.0, 1.0, 0.0])
    rows = Feed(jnp.asarray(data), None, None)
    plain = rows.batch(chosen, None, jnp.int32(0), FLOAT32)
    np.testing.assert_array_equal(plain.x, data[[4, 1, 0]])
    assert plain.x.dtype == jnp.float32
    assert rows.rows.dtype == jnp.uint8
    assert plain.weight is None
    np.testing.assert_array_equal(rows.batch(chosen, real, jnp.int32(0), FLOAT32).weight, [1, 1, 0])
    weighted = Feed(jnp.asarray(data), jnp.arange(6.0) + 1, None)
    np.testing.assert_array_equal(weighted.batch(chosen, None, jnp.int32(0), FLOAT32).weight, [5, 2, 1])
    np.testing.assert_array_equal(weighted.batch(chosen, real, jnp.int32(0), FLOAT32).weight, [5, 2, 0])


def test_nothing_of_a_run_shares_its_words_with_an_update() -> None:
    """Start, shared coins, order and grey levels are folded into the base key beyond the index of any update."""
    tags = (setup._INIT_TAG, setup._SHARED_TAG, feed._ORDER_TAG, feed._BINARIZATION_TAG)
    assert len(set(tags)) == 4
    assert all(2**31 <= tag < 2**32 for tag in tags)
    key = jax.random.key(0)
    taken = [key_words(jax.random.fold_in(key, tag)) for tag in tags]
    assert np.array_equal(binarization_words(key), taken[3])
    low = update_words(key, jnp.array([tag - 2**31 for tag in tags], jnp.int32))
    assert len({tuple(np.asarray(words).tolist()) for words in (*taken, *low)}) == 8


@pytest.mark.parametrize("support", [(0.0, 1.0), (-1.0, 1.0)])
def test_grey_levels_are_drawn_anew_in_every_epoch(support: tuple[float, float]) -> None:
    """Bits have the grey level as their probability, independently by row and epoch, whatever batch they are in."""
    grey = np.tile(np.array([0.0, 0.1, 0.5, 1.0], np.float32), (20_000, 1))
    rows = Feed(jnp.asarray(grey), None, binarization_words(jax.random.key(0)), support)
    everything = jnp.arange(len(grey))
    one, two = (np.asarray(rows.batch(everything, None, jnp.int32(epoch), FLOAT32).x) for epoch in (0, 1))
    assert set(np.unique(one)) == set(support)
    for bits in (one, two):
        for column, level in enumerate((0.0, 0.1, 0.5, 1.0)):
            ups = int((bits[:, column] == support[1]).sum())
            assert scipy.stats.binomtest(ups, len(grey), level).pvalue > FALSE_ALARM
    agreeing = int((one[:, 2] == two[:, 2]).sum())
    assert scipy.stats.binomtest(agreeing, len(grey), 0.5).pvalue > FALSE_ALARM
    again = np.asarray(rows.batch(jnp.array([19_999, 3]), None, jnp.int32(1), FLOAT32).x)
    np.testing.assert_array_equal(again, two[[19_999, 3]])
