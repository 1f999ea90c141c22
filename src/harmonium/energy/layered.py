"""Layers of units in a row, each coupled to its neighbours: what RBMs and deep Boltzmann machines share."""

from __future__ import annotations

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import as_layer, as_layers, check_two_valued, with_shifted_biases
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.cumulant import Split
from harmonium.energy.labels import label_units
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
    def observed(self) -> tuple[int, ...]:
        """The visible layer, and with it a label layer at the top."""
        return (0,) if label_units(self) is None else (0, len(self.units) - 1)

    @property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        depth = len(self.units)
        return tuple(range(0, depth, 2)), tuple(range(1, depth, 2))

    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        layers = as_layers(self, configuration)
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
            configuration[index] = as_layer(self, index, layer)
        return tuple(configuration)

    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        check_two_valued(self, "sums over pairs of units", but=label_units(self))
        edges = np.cumsum([0, *(units.size for units in self.units)])
        matrix = jnp.zeros((edges[-1], edges[-1]), jnp.result_type(self.units[0].bias))
        for index, coupling in enumerate(self.couplings):
            lower = slice(edges[index], edges[index + 1])
            upper = slice(edges[index + 1], edges[index + 2])
            matrix = matrix.at[lower, upper].set(coupling.weights).at[upper, lower].set(coupling.weights.T)
        return matrix, jnp.concatenate([units.bias for units in self.units])

    def split(self, held: bool) -> Split:
        labels = label_units(self)
        check_two_valued(self, "an exact sum", but=labels)
        edges = np.cumsum([0, *(units.size for units in self.units)])
        left_out = (0,) * held + (() if labels is None else (len(self.units) - 1,))
        sides = [
            tuple(
                unit
                for layer in side
                if layer not in left_out
                for unit in range(edges[layer], edges[layer + 1])
            )
            for side in self.sides
        ]
        return Split(*sorted(sides, key=len))

    def from_centred(self, offsets: Configuration) -> Self:
        return with_shifted_biases(self, offsets, -1)

    def to_centred(self, offsets: Configuration) -> Self:
        return with_shifted_biases(self, offsets, 1)
