"""Counter-based noise: Threefry2x32-20, with both output words used.

A draw is a pure function of (key words, element counter, draw counter), so results do not depend on how the elements
are spread over devices, and nothing has to be split inside a compiled loop. ``jax.random`` uses the same cipher but
folds its two output words into one; a sampler that alternates between two classes of units can use both, one for
each class, and then pays half.
"""

from __future__ import annotations

from typing import SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from harmonium.errors import SettingError
from harmonium.numerics.whole import seed_number
from harmonium.typing import Words

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_STREAM_BITS = 8
_DRAW_LIMIT = 1 << (32 - _STREAM_BITS)
_FOLD_STREAM = (1 << _STREAM_BITS) - 1

BEYOND_UPDATES = 1 << 31
"""Indices of updates stay below; whatever else is folded into a run's key lies from here on, so that no words recur."""


def seed_key(seed: SupportsIndex) -> Array:
    """The jax key of a seed from 0 below 2^63, all of whose bits count; below 2^32 it is ``jax.random.key(seed)``.

    jax alone, with its numbers of 32 bits, would drop the higher ones in silence. Raises `SettingError` for any other
    seed.
    """
    number = seed_number(seed)
    key = jax.random.key(number & 0xFFFFFFFF)
    return key if number < 1 << 32 else jax.random.fold_in(key, np.uint32(number >> 32))


def threefry2x32(
    key: tuple[Array, Array], counter: tuple[Array, Array]
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Encrypt a two-word counter with the 20-round Threefry-2x32 cipher.

    All four words are uint32 and broadcast against each other. Source: Salmon, Moraes, Dror and Shaw, "Parallel
    random numbers: as easy as 1, 2, 3" (2011); agrees with the known-answer vectors of Random123.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    first = counter[0] + schedule[0]
    second = counter[1] + schedule[1]
    for block in range(5):
        for distance in _ROTATIONS[block % 2]:
            first = first + second
            second = (second << jnp.uint32(distance)) | (second >> jnp.uint32(32 - distance))
            second = second ^ first
        first = first + schedule[(block + 1) % 3]
        second = second + schedule[(block + 2) % 3] + jnp.uint32(block + 1)
    return first, second


def key_words(key: Array) -> Words:
    """Two noise words from a jax key: the one bridge between the two worlds.

    ``key_data`` is not used, because its length depends on the key's implementation.
    """
    return jax.random.bits(key, (2,), jnp.uint32)


def update_words(base_key: Array, indices: Array) -> UInt32[Array, "updates 2"]:
    """Noise words of the updates ``indices``: the base key folded with each index.

    Because an update's noise depends on nothing but the base key and its index, a resumed run draws the same numbers
    as the unbroken one.
    """
    return jax.vmap(lambda index: key_words(jax.random.fold_in(base_key, index)))(indices)


class Noise(eqx.Module):
    """A stream of random words addressed by (element, draw); a value, never advanced in place.

    ``stream`` separates consumers within one update, ``draw`` separates the draws of one consumer (a Gibbs sweep is
    one draw). Two draws with different (stream, draw) never share a counter. Where the consumers of a step are not
    known (a sampler inside a loop), each step is given words of its own by :meth:`fold`.
    """

    words: Words
    draw: UInt32[Array, ""]

    @classmethod
    def of(cls, words: Words) -> Noise:
        return cls(words, jnp.uint32(0))

    @classmethod
    def from_key(cls, key: Array) -> Noise:
        return cls.of(key_words(key))

    def stream(self, number: int) -> Noise:
        """The same words and draw under another consumer's counters (0 to 254)."""
        if not 0 <= number < _FOLD_STREAM:
            raise SettingError(
                f"a noise stream is a number from 0 to 254, got {number}; use another key instead"
            )
        return self._in_stream(number)

    def fold(self, number: int | Array) -> Noise:
        """A noise with words of its own, whose streams and draws are all free; ``number`` is below 2**32."""
        return Noise.of(
            jnp.stack(self._in_stream(_FOLD_STREAM).words_at(jnp.asarray(number).astype(jnp.uint32)))
        )

    def _in_stream(self, number: int) -> Noise:
        draw = self.draw & jnp.uint32(_DRAW_LIMIT - 1)
        return Noise(self.words, draw | jnp.uint32(number << (32 - _STREAM_BITS)))

    def at(self, draw: int | Array) -> Noise:
        """The noise of draw number ``draw`` of this stream; ``draw`` must stay below 2**24."""
        if isinstance(draw, int) and not 0 <= draw < _DRAW_LIMIT:
            raise SettingError(
                f"a noise stream holds {_DRAW_LIMIT} draws, got draw {draw}; use another key instead"
            )
        return Noise(self.words, self.draw + jnp.asarray(draw).astype(jnp.uint32))

    def pair(self, shape: tuple[int, ...]) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
        """Two independent arrays of random words of ``shape``, for the price of one."""
        count = 1
        for extent in shape:
            count *= extent
        if count >= 1 << 32:
            raise SettingError(
                f"one draw of {count} random words would wrap its 32-bit counter; use fewer chains or split the rows"
            )
        return self.words_at(jax.lax.iota(jnp.uint32, count).reshape(shape))

    def words_at(self, element: UInt32[Array, "..."]) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
        """Two independent words for each element counter."""
        return threefry2x32((self.words[0], self.words[1]), (element, self.draw))

    def words_of_draws(
        self, elements: UInt32[np.ndarray, " n"], draws: int
    ) -> tuple[UInt32[Array, "draws n"], UInt32[Array, "draws n"]]:
        """The words of ``at(0)`` to ``at(draws - 1)`` for each element counter, drawn in one pass over all of them."""
        counters = jnp.asarray(np.tile(elements, draws))
        draw = jnp.asarray(np.repeat(np.arange(draws, dtype=np.uint32), len(elements)))
        first, second = threefry2x32((self.words[0], self.words[1]), (counters, self.draw + draw))
        return first.reshape(draws, -1), second.reshape(draws, -1)


def uniform(words: UInt32[Array, "..."], dtype: jnp.dtype = jnp.float32) -> Float[Array, "..."]:
    """Uniform numbers strictly between 0 and 1 from random words.

    Single precision keeps the upper 23 bits and sits half a step off both ends; double precision keeps all 32. The
    probability of an event drawn by ``uniform < p`` is right to 2**-24 (2**-33 in double precision).
    """
    if dtype == jnp.float64:
        return (words.astype(jnp.float64) + 0.5) * 2.0**-32
    return ((words >> jnp.uint32(9)).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-23)
