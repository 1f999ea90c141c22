"""Layers whose rows lie end to end: how loops over small machines hold them."""

from __future__ import annotations

from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from harmonium.energy.base import AbstractEnergyModel
from harmonium.typing import Clamp, Configuration
from harmonium.units.base import AbstractLinearUnits, AbstractTwoValuedUnits, AbstractUnits


class EndToEnd(eqx.Module):
    """A model for ``rows`` rows whose layers are vectors, row after row.

    The fields, means and draws are the model's own. What differs is what a compiler makes of a loop over them: it makes
    vectors of the last axis, and of a layer of ten units for each of fifty members it makes none at all, so that a
    sigmoid takes ten times as long. ``rest`` holds the fields at rest *beside* the model without them: added inside, a
    compiler would undo the reshaping.
    """

    bare: AbstractEnergyModel
    units: tuple[AbstractUnits, ...]
    rest: Configuration
    rows: int = eqx.field(static=True)

    @classmethod
    def of(cls, model: AbstractEnergyModel, rows: int) -> Self:
        """The model, for so many rows."""
        bare, rest = list(model.units), []
        for index, units in enumerate(model.units):
            field = jnp.zeros_like(units.bias)
            if isinstance(units, AbstractLinearUnits):
                field, bare[index] = units.natural(), units.with_bias(field)
            rest.append(jnp.tile(field, rows))
        return cls(eqx.tree_at(lambda tree: tree.units, model, tuple(bare)), model.units, tuple(rest), rows)

    def laid(self, configuration: Configuration) -> Configuration:
        """Layers with their rows end to end."""
        return tuple(jnp.ravel(layer) for layer in configuration)

    def stacked(self, laid: Configuration) -> Configuration:
        """The same layers with their rows beneath each other."""
        return tuple(self._rows(layer) for layer in laid)

    def mean(self, layer: int, laid: Configuration) -> Float[Array, " n"]:
        """Means of one layer given all the others."""
        units, field = self.units[layer], self._field(layer, laid)
        if isinstance(units, AbstractTwoValuedUnits):
            return units.mean(field)
        return jnp.ravel(units.mean(self._rows(field)))

    def draw(self, layer: int, words: UInt32[Array, " n"], laid: Configuration) -> Float[Array, " n"]:
        """A draw of one layer given all the others."""
        units, field = self.units[layer], self._field(layer, laid)
        if isinstance(units, AbstractTwoValuedUnits):
            return units.sample(words, field)
        return jnp.ravel(units.sample(self._rows(words), self._rows(field)))

    def _field(self, layer: int, laid: Configuration) -> Float[Array, " n"]:
        bare = self.bare.field(layer, self.stacked(laid))
        return jnp.broadcast_to(bare, (self.rows, self.units[layer].size)).reshape(-1) + self.rest[layer]

    def _rows(self, layer: Array) -> Array:
        return layer.reshape(self.rows, -1)


def laid_clamp(clamp: Clamp, layers: Configuration) -> tuple[Array | bool | None, ...]:
    """A clamp of these layers, its masks laid like them."""
    return tuple(
        held if held is None or isinstance(held, bool) else jnp.ravel(jnp.broadcast_to(held, layer.shape))
        for held, layer in zip(clamp, layers, strict=True)
    )
