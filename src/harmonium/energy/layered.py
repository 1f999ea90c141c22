"""Layers of units in a row, each coupled to its neighbours: what RBMs and deep Boltzmann machines share."""

from __future__ import annotations

from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from harmonium.energy.base import AbstractBipartite, as_layer, as_layers, check_two_valued
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.cumulant import Split
from harmonium.energy.enumeration import free_energy_of
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.typing import Clamp, Configuration, Layers
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
        if len(layers) != len(self.sides[side]):
            raise SettingError(
                f"side {side} of this {type(self).__name__} consists of the layers {list(self.sides[side])}, got "
                f"{len(layers)} arrays; pass one for each of them"
            )
        configuration: list[Array] = [jnp.zeros(0)] * len(self.units)
        for index, layer in zip(self.sides[side], layers, strict=True):
            configuration[index] = as_layer(self, index, layer)
        total = sum(self.units[i].base_energy(configuration[i]) for i in self.sides[side])
        for index in self.sides[1 - side]:
            total = total - self.units[index].log_partition(self.field(index, tuple(configuration)))
        return jnp.asarray(total)

    def sweep(
        self,
        noise: Noise,
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
    ) -> Configuration:
        """Even layers given odd ones, then odd layers given even ones, each drawn exactly.

        Even layers read the first word of each noise counter and odd layers the second. ``beta`` multiplies every
        field, one value for all rows or one per row.
        """
        layers = list(configuration)
        sizes = [units.size for units in self.units]
        width = max(sum(sizes[i] for i in side) for side in self.sides)
        words_of_side = noise.pair((*layers[0].shape[:-1], width))
        for side, words in zip(self.sides, words_of_side, strict=True):
            start = 0
            for index in side:
                layer_words = words[..., start : start + sizes[index]]
                start += sizes[index]
                held = None if clamp is None else clamp[index]
                if held is True:
                    continue
                field = self.field(index, tuple(layers))
                if beta is not None:
                    field = field * jnp.expand_dims(jnp.asarray(beta, field.dtype), -1)
                # The barrier keeps a compiler from recomputing noise and sigmoid in every consumer of the draw.
                drawn = jax.lax.optimization_barrier(self.units[index].sample(layer_words, field))
                layers[index] = (
                    drawn if held is None or held is False else jnp.where(held, layers[index], drawn)
                )
        return tuple(layers)

    def free_energy(self, visible: Num[Array | np.ndarray, "*batch visible"]) -> Float[Array, "*batch"]:
        if self.sides == (self.observed, (1,)):
            return self.marginal_energy(0, (visible,))
        return free_energy_of(self, visible)

    def chain_energy(self, configuration: Configuration) -> Float[Array, "*batch"]:
        return self.marginal_energy(0, tuple(configuration[index] for index in self.sides[0]))

    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        check_two_valued(self, "sums over pairs of units")
        edges = np.cumsum([0, *(units.size for units in self.units)])
        matrix = jnp.zeros((edges[-1], edges[-1]), jnp.result_type(self.couplings[0].kernel))
        for index, coupling in enumerate(self.couplings):
            lower = slice(edges[index], edges[index + 1])
            upper = slice(edges[index + 1], edges[index + 2])
            matrix = matrix.at[upper, lower].set(coupling.kernel).at[lower, upper].set(coupling.kernel.T)
        return matrix, jnp.concatenate([units.bias for units in self.units])

    def split(self, held: bool) -> Split:
        check_two_valued(self, "an exact sum")
        edges = np.cumsum([0, *(units.size for units in self.units)])
        sides = [
            tuple(
                unit for layer in side if layer or not held for unit in range(edges[layer], edges[layer + 1])
            )
            for side in self.sides
        ]
        return Split(*sorted(sides, key=len))

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
