"""Layers of units in a row, each coupled to its neighbours: what RBMs and deep Boltzmann machines share."""

from __future__ import annotations

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite
from harmonium.energy.couplings.dense import Dense
from harmonium.errors import SettingError
from harmonium.typing import Configuration, Layers
from harmonium.units.base import AbstractUnits


class AbstractLayered(AbstractBipartite):
    r"""Layers :math:`x^0, \dots, x^L` with couplings between neighbours only.

    .. math:: E(x) = \sum_l E_l(x^l) - \sum_l (x^l)^\top W_l\, x^{l+1}

    with :math:`E_l(x) = -b_l^\top x` for binary units (in nats). Even and odd layers are each conditionally
    independent given the other, so a sweep is two blocks: the even layers given the odd ones, then the odd layers
    given the even ones. Source: the chapter's RBM energy and the odd/even rearrangement of the DBM; the printed DBM
    energy has no biases, ours has.
    """

    units: eqx.AbstractVar[tuple[AbstractUnits, ...]]
    couplings: eqx.AbstractVar[tuple[Dense, ...]]

    @property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        depth = len(self.units)
        return tuple(range(0, depth, 2)), tuple(range(1, depth, 2))

    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        layers = self._as_layers(configuration)
        total = self.units[0].base_energy(layers[0])
        for units, layer in zip(self.units[1:], layers[1:], strict=True):
            total = total + units.base_energy(layer)
        for coupling, lower, upper in zip(self.couplings, layers[:-1], layers[1:], strict=True):
            total = total - jnp.sum(coupling.forward(lower) * upper, axis=-1)
        return total

    def field(self, layer: int, configuration: Configuration) -> Float[Array, "*batch n"]:
        field = self.units[layer].natural()
        if layer > 0:
            field = field + self.couplings[layer - 1].forward(configuration[layer - 1])
        if layer < len(self.units) - 1:
            field = field + self.couplings[layer].backward(configuration[layer + 1])
        return field

    def marginal_energy(self, side: int, layers: Layers) -> Float[Array, "*batch"]:
        r"""Energy of one side, the other summed out: :math:`\sum_l E_l(x^l) - \sum_m A_m(f_m(x))`, in nats.

        ``layers`` are those of the side in order; ``side`` 0 holds the visible layer. For an RBM, side 0 gives the
        free energy of the visible units and side 1 that of the hidden ones, with the same partition function.
        """
        configuration = self.spread(side, layers)
        total = sum(self.units[i].base_energy(configuration[i]) for i in self.sides[side])
        for index in self.sides[1 - side]:
            total = total - self.units[index].log_partition(self.field(index, configuration))
        return jnp.asarray(total)

    def spread(self, side: int, layers: Layers) -> Configuration:
        """The layers of one side in their places in a configuration; the others are left empty.

        Raises `SettingError` when they are not those of the side.
        """
        if len(layers) != len(self.sides[side]):
            raise SettingError(
                f"side {side} of this {type(self).__name__} consists of the layers {list(self.sides[side])}, got "
                f"{len(layers)} arrays; pass one for each of them"
            )
        configuration: list[Array] = [jnp.zeros(0)] * len(self.units)
        for index, layer in zip(self.sides[side], layers, strict=True):
            configuration[index] = self._as_layer(index, layer)
        return tuple(configuration)

    def from_centred(self, offsets: Configuration) -> Self:
        return self._with_shifted_biases(offsets, -1)

    def to_centred(self, offsets: Configuration) -> Self:
        return self._with_shifted_biases(offsets, 1)

    def _with_shifted_biases(self, offsets: Configuration, sign: int) -> Self:
        """Move between coordinates: ``-(x-m)'W(y-n) - b'x`` is ``-x'Wy - (b - Wn)'x`` up to a constant."""
        biases = []
        for index, units in enumerate(self.units):
            shift = self.field(index, offsets) - units.natural()
            biases.append(units.bias + sign * shift)
        return eqx.tree_at(lambda model: [units.bias for units in model.units], self, biases)

    def _as_layer(self, index: int, layer: Array | np.ndarray) -> Float[Array, "*batch n"]:
        size = self.units[index].size
        if np.shape(layer)[-1:] != (size,):
            raise SettingError(
                f"layer {index} has {size} units, got an array of shape {np.shape(layer)}; its last axis must be {size}"
            )
        return jnp.asarray(layer).astype(jnp.result_type(self.units[0].bias))

    def _as_layers(self, configuration: Layers) -> Configuration:
        if len(configuration) != len(self.units):
            raise SettingError(
                f"a configuration of this {type(self).__name__} has {len(self.units)} layers, got "
                f"{len(configuration)}; pass a tuple with one array per layer"
            )
        layers = tuple(self._as_layer(index, layer) for index, layer in enumerate(configuration))
        shapes = [layer.shape[:-1] for layer in layers]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise SettingError(
                f"the layers of one configuration have the leading shapes {', '.join(map(str, shapes))}, which do not "
                "go together; pass as many rows in each layer"
            ) from None
        return layers
