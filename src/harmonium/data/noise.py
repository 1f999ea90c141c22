"""Noise for the host: counter-based bits whose stream is the same on every machine and numpy version.

numpy freezes the raw words of a bit generator but not what `numpy.random.Generator` makes of them, so whatever must
be the same in ten years is made from raw words here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harmonium.errors import SettingError

_PURPOSES = {"stream": 1, "binarization": 2, "rows": 3, "centres": 4}


def host_noise(key: Any, purpose: str) -> np.random.Philox:
    """A Philox bit generator for a whole number from 0 below 2^64, or for a jax key, and one purpose.

    **Raises** SettingError for a key that is neither.
    """
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        seed = int(key)
        if not 0 <= seed < 2**64:
            raise SettingError(f"a seed must be a whole number from 0 below 2^64, got {seed}")
    else:
        seed = _seed_of_jax_key(key)
    return np.random.Philox(key=np.array([seed, _PURPOSES[purpose]], np.uint64))


def _seed_of_jax_key(key: Any) -> int:
    # The words are drawn rather than read from the key: how long a key is depends on its implementation.
    import jax

    try:
        high, low = np.asarray(jax.random.bits(key, (2,), np.uint32)).tolist()
    except (TypeError, ValueError):
        raise SettingError(f"a key must be a whole number from 0 or a jax key, got {key!r}") from None
    return (high << 32) | low


def words(noise: np.random.Philox, count: int) -> np.ndarray:
    """The next ``count`` 32-bit words of the stream as uint32 (the low half of each 64-bit word first).

    An odd count leaves the last high half unused.
    """
    raw = np.asarray(noise.random_raw((count + 1) // 2), dtype="<u8")
    return raw.view("<u4")[:count]


def uniform_index(noise: np.random.Philox, count: int, size: int) -> np.ndarray:
    """``count`` numbers from 0 below ``size``, alike likely to within 2^-32 each; shape (count,), int64."""
    return ((words(noise, count).astype(np.uint64) * np.uint64(size)) >> np.uint64(32)).astype(np.int64)
