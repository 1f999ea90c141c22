"""Rows on the device and the order they are used in."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Num, UInt32

from harmonium.numerics.random import BEYOND_UPDATES, Noise, uniform
from harmonium.typing import Batch, Words

_ORDER_TAG = BEYOND_UPDATES | 0x0DE5
_BINARIZATION_TAG = BEYOND_UPDATES | 0xB1BA


class Feed(eqx.Module):
    """The training rows as they lie on the device, and how a batch is taken from them.

    Binary rows stay uint8 (spins int8) and become floats in the loop. With ``binarize_words`` the rows are grey
    levels in [0, 1] and are drawn to one of the two values of ``support`` anew in every epoch, from noise addressed
    by (entry, epoch). In the feed of an ensemble these words have a member axis. Of a model with a label layer
    ``label`` holds the number of each row's class, -1 where it is not known.
    """

    rows: Num[Array, "count n"]
    weight: Float[Array, " count"] | None
    binarize_words: UInt32[Array, "*members 2"] | None
    support: tuple[float, ...] = eqx.field(static=True, default=(0.0, 1.0))
    label: Int[Array, " count"] | None = None

    def batch(
        self,
        order: Int[Array, " batch"],
        real: Float[Array, " batch"] | None,
        epoch: Int[Array, ""],
        dtype: jnp.dtype,
    ) -> Batch:
        """Rows ``order``; ``real`` is 0 for the padding of a short last batch."""
        x = self.rows[order].astype(dtype)
        if self.binarize_words is not None:
            # Addressed by the row's place in the data, so that a row's draw does not depend on its batch.
            counter = order[:, None].astype(jnp.uint32) * jnp.uint32(self.rows.shape[1])
            counter = counter + jax.lax.iota(jnp.uint32, self.rows.shape[1])
            words, _ = Noise(self.binarize_words, epoch.astype(jnp.uint32)).words_at(counter)
            low, high = self.support
            x = jnp.where(uniform(words) < x, high, low).astype(dtype)
        weight = None
        if self.weight is not None:
            weight = self.weight[order] if real is None else self.weight[order] * real
        elif real is not None:
            weight = real
        label = None if self.label is None else self.label[order]
        return Batch(x=x, weight=weight, label=label, row=order)


class Order:
    """Which rows each update uses: every epoch a fresh permutation, its last batch short if it must be.

    The permutation of an epoch is a function of the run's key and the epoch alone. Batches of the whole data are taken
    in the order of the data: nothing depends on another.
    """

    def __init__(self, key: Array, count: int, batch_size: int):
        self.count = count
        self.batch_size = min(batch_size, count)
        self.per_epoch = -(-count // self.batch_size)
        self.ragged = count % self.batch_size != 0
        words = np.asarray(jax.random.bits(jax.random.fold_in(key, _ORDER_TAG), (2,)))
        self._philox = np.random.Philox(key=words.astype(np.uint64))
        self._generator = np.random.Generator(self._philox)
        self._fresh = self._philox.state

    def rows(self, first: int, updates: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Row numbers ``(updates, batch)``, 1 for real rows and 0 for padding (None if no batch is short), epochs."""
        batches = np.arange(first, first + updates)
        epochs = batches // self.per_epoch
        if self.per_epoch == 1:
            whole = np.arange(self.count, dtype=np.int32)
            return np.broadcast_to(whole, (updates, self.count)), None, epochs.astype(np.int32)
        padded = np.zeros((epochs[-1] - epochs[0] + 1, self.per_epoch * self.batch_size), np.int32)
        for place, epoch in enumerate(range(int(epochs[0]), int(epochs[-1]) + 1)):
            padded[place, : self.count] = self._permutation(epoch)
        order = padded.reshape(-1, self.batch_size)[batches - epochs[0] * self.per_epoch]
        real = None
        if self.ragged:
            real = np.ones((updates, self.batch_size), np.float32)
            real[batches % self.per_epoch == self.per_epoch - 1, self.count % self.batch_size :] = 0
        return order, real, epochs.astype(np.int32)

    def _permutation(self, epoch: int) -> np.ndarray:
        # In the counter's highest word: one generator counts its lowest up, so that with the epoch there the next epoch
        # would read nearly the same words, and permute nearly alike. Set back, a generator is as good as a new one at a
        # quarter of the time.
        counter = np.array([0, 0, 0, epoch], np.uint64)
        self._philox.state = {**self._fresh, "state": {**self._fresh["state"], "counter": counter}}
        return self._generator.permutation(self.count)


def binarization_words(key: Array) -> Words:
    """The noise words that a run's stochastic binarisation draws from."""
    return jax.random.bits(jax.random.fold_in(key, _BINARIZATION_TAG), (2,), jnp.uint32)
