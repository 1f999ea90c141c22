"""The noise: known answers, uniformity with computed power, and counters that are never shared."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from harmonium.errors import SettingError
from harmonium.numerics.random import Noise, key_words, seed_key, threefry2x32, uniform, update_words

FALSE_ALARM = 1e-5

KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Key, counter and answer: the vectors of Random123 for threefry2x32-20."""


def noise_of(seed: int) -> Noise:
    return Noise.from_key(jax.random.key(seed))


@pytest.mark.parametrize(("key", "counter", "answer"), KNOWN_ANSWERS)
def test_threefry_known_answers(key: tuple, counter: tuple, answer: tuple) -> None:
    words = threefry2x32(
        (jnp.uint32(key[0]), jnp.uint32(key[1])), (jnp.uint32(counter[0]), jnp.uint32(counter[1]))
    )
    assert tuple(int(word) for word in words) == answer


def test_threefry_is_the_cipher_of_jax() -> None:
    """The same words as jax's own generator, whose key is the two words and whose counters run on."""
    key = jax.random.wrap_key_data(jnp.array([7, 9], jnp.uint32), impl="threefry2x32")
    theirs = jax.random.bits(key, (6,), jnp.uint32)
    element = jnp.arange(6, dtype=jnp.uint32)
    first, second = threefry2x32((jnp.uint32(7), jnp.uint32(9)), (jnp.zeros_like(element), element))
    np.testing.assert_array_equal(theirs, first ^ second)


def test_words_are_uniform_in_every_byte_and_in_pairs() -> None:
    """Each byte of either word, and the top nibbles of a word with its twin and with its neighbour, by chi-squared."""
    first, second = (np.asarray(words) for words in noise_of(0).pair((1 << 16,)))
    looked = 0
    for words in (first, second):
        for place in range(4):
            counts = np.bincount((words >> (8 * place)) & 255, minlength=256)
            assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM
            looked += 1
    for left, right in ((first, second), (first[:-1], first[1:]), (second[:-1], second[1:])):
        counts = np.bincount((left >> 28) * 16 + (right >> 28), minlength=256)
        assert scipy.stats.chisquare(counts).pvalue > FALSE_ALARM
        looked += 1
    assert looked == 11


def test_a_lost_word_would_be_seen() -> None:
    """The chi-squared above, on a generator that uses one word twice, has a statistic beyond any doubt."""
    first, _ = (np.asarray(words) for words in noise_of(0).pair((1 << 16,)))
    counts = np.bincount((first >> 28) * 16 + (first >> 28), minlength=256)
    assert scipy.stats.chisquare(counts).pvalue < 1e-100


def test_uniform_numbers_are_uniform_and_strictly_inside() -> None:
    ends = jnp.array([0, 0xFFFFFFFF], jnp.uint32)
    low, high = (float(x) for x in uniform(ends))
    assert (low, high) == (2.0**-24, 1 - 2.0**-24)
    words, _ = noise_of(1).pair((1 << 16,))
    assert scipy.stats.kstest(np.asarray(uniform(words), np.float64), "uniform").pvalue > FALSE_ALARM
    with jax.enable_x64(True):
        low, high = (float(x) for x in uniform(ends, jnp.dtype(jnp.float64)))
        assert (low, high) == (2.0**-33, 1 - 2.0**-33)
        assert uniform(words, jnp.dtype(jnp.float64)).dtype == jnp.float64


def test_streams_and_draws_never_share_a_counter() -> None:
    noise = noise_of(2)
    addresses = [(stream, draw) for stream in (0, 1, 2, 101, 254) for draw in (0, 1, 2, 255, (1 << 24) - 1)]
    counters = [int(noise.stream(stream).at(draw).draw) for stream, draw in addresses]
    assert len(set(counters)) == len(addresses) == 25
    words = [tuple(np.asarray(noise.stream(s).at(d).pair((4,))).ravel().tolist()) for s, d in addresses]
    assert len({word for row in words for word in row}) == 25 * 8


def test_a_stream_keeps_the_draw() -> None:
    """A sampler inside a loop takes its streams from ``noise.at(i)``: the draw must not be lost."""
    noise = noise_of(3)
    assert int(noise.at(7).stream(2).draw) == int(noise.stream(2).at(7).draw)
    assert int(noise.stream(5).at(7).stream(2).draw) == int(noise.stream(2).at(7).draw)
    assert not np.array_equal(noise.at(0).stream(1).pair((4,))[0], noise.at(1).stream(1).pair((4,))[0])


def test_a_fold_has_words_of_its_own() -> None:
    noise = noise_of(4)
    folds = [noise.fold(i) for i in range(50)] + [noise.at(1).fold(0), noise.fold(1).fold(0)]
    seen = {tuple(np.asarray(fold.words).tolist()) for fold in (noise, *folds)}
    assert len(seen) == 53
    assert all(int(fold.draw) == 0 for fold in folds)
    # Not words that any consumer of the parent can draw: the stream that they come from is closed to them.
    with pytest.raises(SettingError, match="from 0 to 254, got 255"):
        noise.stream(255)
    assert np.array_equal(noise.fold(3).words, noise.fold(jnp.int32(3)).words)


@pytest.mark.parametrize("number", [-1, 255, 256])
def test_streams_out_of_range_are_refused(number: int) -> None:
    with pytest.raises(SettingError, match="use another key"):
        noise_of(0).stream(number)


@pytest.mark.parametrize("draw", [-1, 1 << 24])
def test_draws_out_of_range_are_refused(draw: int) -> None:
    with pytest.raises(SettingError, match="use another key"):
        noise_of(0).at(draw)


def test_a_draw_whose_counter_would_wrap_is_refused() -> None:
    with pytest.raises(SettingError, match="would wrap its 32-bit counter"):
        noise_of(0).pair((1 << 16, 1 << 16))


def test_noise_does_not_depend_on_how_the_elements_are_spread() -> None:
    """Counters are global: the rows of a large draw are the draws of the rows."""
    whole, _ = noise_of(5).pair((6, 4))
    part, _ = noise_of(5).words_at(jnp.arange(8, 16, dtype=jnp.uint32).reshape(2, 4))
    np.testing.assert_array_equal(whole[2:4], part)


def test_every_update_has_words_of_its_own() -> None:
    key = jax.random.key(6)
    words = np.asarray(update_words(key, jnp.arange(500)))
    assert len({tuple(row) for row in words.tolist()}) == 500
    np.testing.assert_array_equal(words[17], update_words(key, jnp.array([17]))[0])
    assert key_words(key).shape == (2,)


def test_all_bits_of_a_seed_count() -> None:
    keys = [jax.random.key_data(seed_key(seed)).tolist() for seed in (7, 7 + 2**32, 7 + 2**62, 2**63 - 1)]
    assert len({tuple(key) for key in keys}) == 4
    assert keys[0] == jax.random.key_data(jax.random.key(7)).tolist()
    with pytest.raises(SettingError, match="seed must be a whole number from 0 below 2"):
        seed_key(2**63)
