"""Models whose layers fall into two sides, each independent given the other."""

from __future__ import annotations

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num, UInt32

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.enumeration import free_energy_of
from harmonium.energy.labels import split_observed
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.typing import Clamp, Configuration, Layers


class AbstractBipartite(AbstractEnergyModel):
    """A model whose layers fall into two sides, each conditionally independent given the other."""

    @property
    @abstractmethod
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Layer indices of either side; the first side holds layer 0."""

    @abstractmethod
    def marginal_energy(self, side: int, layers: Layers) -> Float[Array, "*batch"]:
        """Energy of one side with the other side summed out exactly, in nats."""

    def free_energy(self, visible: Num[Array | np.ndarray, "*batch visible"]) -> Float[Array, "*batch"]:
        if self.sides == (self.observed, (1,)):
            rows, label = split_observed(self, jnp.asarray(visible))
            if label is not None or len(self.observed) == 1:
                return self.marginal_energy(0, (rows,) if label is None else (rows, label))
        return free_energy_of(self, visible)

    def chain_energy(self, configuration: Configuration) -> Float[Array, "*batch"]:
        return self.marginal_energy(0, tuple(configuration[index] for index in self.sides[0]))

    def sweep(
        self,
        noise: Noise,
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
        *,
        backwards: bool = False,
    ) -> Configuration:
        """The first side given the second, then the second given the first, each drawn exactly.

        ``backwards`` it is the second side and then the first. The first side reads the first word of each noise
        counter and the second side the second. ``beta`` multiplies every field, one value for all rows or one per row.
        """
        words_of_side = self.words_of_sides(noise, configuration[0].shape[:-1])
        for side in (1, 0) if backwards else (0, 1):
            configuration = self.draw_side(side, words_of_side[side], configuration, beta, clamp)
        return configuration

    def words_of_sides(
        self, noise: Noise, batch: tuple[int, ...]
    ) -> tuple[UInt32[Array, "*batch n"], UInt32[Array, "*batch n"]]:
        """Random words for a draw of each side, wide enough for the larger one."""
        return noise.pair((*batch, self._width()))

    def elements_of(self, side: int, rows: int) -> list[UInt32[np.ndarray, " n"]]:
        """For each layer of a side the elements of :meth:`words_of_sides` that draw it, row after row."""
        width, start, found = self._width(), 0, []
        for index in self.sides[side]:
            units = np.arange(start, start + self.units[index].size, dtype=np.uint32)
            found.append((np.arange(rows, dtype=np.uint32)[:, None] * np.uint32(width) + units).ravel())
            start += self.units[index].size
        return found

    def _width(self) -> int:
        return max(sum(self.units[index].size for index in side) for side in self.sides)

    def draw_side(
        self,
        side: int,
        words: UInt32[Array, "*batch width"],
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
    ) -> Configuration:
        """The configuration with the layers of one side drawn exactly given the other side."""
        layers = list(configuration)
        start = 0
        for index in self.sides[side]:
            layer_words = words[..., start : start + self.units[index].size]
            start += self.units[index].size
            held = None if clamp is None else clamp[index]
            if held is True:
                continue
            field = self.field(index, tuple(layers))
            if beta is not None:
                field = field * jnp.expand_dims(jnp.asarray(beta, field.dtype), -1)
            # A layer that nothing is coupled to has one field for all rows.
            field = jnp.broadcast_to(field, layer_words.shape)
            # The barrier keeps a compiler from recomputing noise and sigmoid in every consumer of the draw.
            drawn = jax.lax.optimization_barrier(self.units[index].sample(layer_words, field))
            layers[index] = drawn if held is None or held is False else jnp.where(held, layers[index], drawn)
        return tuple(layers)


def as_bipartite(model: AbstractEnergyModel, what: str) -> AbstractBipartite:
    """The model itself, known to have two sides; raises `SettingError` with ``what`` needs it otherwise."""
    if not isinstance(model, AbstractBipartite):
        raise SettingError(
            f"{what} needs a model whose layers fall into two sides, such as hm.RBM(64, 16), "
            f"got {type(model).__name__}"
        )
    return model
