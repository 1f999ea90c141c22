"""The general Boltzmann machine: any pair of units may be coupled."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num
from numpy.typing import ArrayLike

from harmonium.energy.base import AbstractEnergyModel, as_layers, check_two_valued, with_shifted_biases
from harmonium.energy.couplings.graph import Graph
from harmonium.energy.couplings.pairs import Pairs
from harmonium.energy.cumulant import Split
from harmonium.energy.enumeration import free_energy_of
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE, as_parameter, starting_weights
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.typing import Clamp, Configuration, Layers
from harmonium.units.base import AbstractUnits, check_size
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.kinds import unit_class


class BoltzmannMachine(AbstractEnergyModel):
    r"""A Boltzmann machine over visible units and, if there are any, hidden ones.

    .. math:: E(x) = -\tfrac12 x^\top C x - b^\top x, \qquad C = \begin{pmatrix} R & W \\ W^\top & S \end{pmatrix}

    in nats, with ``C`` symmetric and zero on its diagonal, ``x`` the visible units and then the hidden ones. A
    configuration is ``(v,)`` or ``(v, h)``. Each pair is stored once, so a gradient is that of the tied parameter.

    **Arguments:** ``visible`` and ``hidden`` are sizes (Bernoulli units) or layers such as ``Spin(16)``; ``hidden=0``
    makes a machine without hidden units. ``pairs`` names the pairs that are coupled, by two numbers of units each,
    visible units first (see `harmonium.energy.couplings.graph.grid`); without it all are. Couplings are
    ``weight_scale`` times standard normal numbers of ``seed``.

    A sweep draws one layer after the other. Units of a layer that are not coupled to each other are drawn at once, in
    as few groups as a greedy colouring finds; where all are coupled it draws one unit after the other. Each draw is
    exact, :math:`p(x_i = 1 \mid \text{rest}) = \sigma(\sum_j C_{ij} x_j + b_i)` for units that are 0 or 1.

    Raises `SettingError` for sizes, a seed or pairs that make no machine. Source: the chapter's Boltzmann machine with
    and without hidden units. It prints :math:`-x^\top U x - b^\top x`: that is ``C = 2(U - diag U)``, the diagonal of a
    symmetric ``U`` added to ``b``, because :math:`x_i^2 = x_i`.

    >>> machine = BoltzmannMachine(4, 2, seed=0)
    >>> machine.parameters()["coupling"].shape
    (6, 6)
    """

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Pairs]

    def __init__(
        self,
        visible: SupportsIndex | AbstractUnits,
        hidden: SupportsIndex | AbstractUnits = 0,
        *,
        pairs: ArrayLike | None = None,
        seed: SupportsIndex = 0,
        weight_scale: float = INITIAL_WEIGHT_SCALE,
    ):
        layers = [visible] if not isinstance(hidden, AbstractUnits) and hidden == 0 else [visible, hidden]
        self.units = tuple(
            layer if isinstance(layer, AbstractUnits) else Bernoulli(check_size(layer, "BoltzmannMachine"))
            for layer in layers
        )
        check_two_valued(self, "a Boltzmann machine")
        graph = Graph(sum(units.size for units in self.units), pairs)
        self.couplings = (Pairs(starting_weights((len(graph.pairs),), seed, weight_scale), graph),)

    @classmethod
    def from_arrays(
        cls,
        coupling: ArrayLike,
        bias: ArrayLike,
        n_visible: SupportsIndex | None = None,
        *,
        pairs: ArrayLike | None = None,
        visible: str = Bernoulli.kind,
        hidden: str = Bernoulli.kind,
    ) -> BoltzmannMachine:
        """A machine with given parameters, whose dtype is kept (float64 stays float64).

        ``coupling`` is symmetric with a zero diagonal and ``bias`` has one number per unit; the first ``n_visible``
        units are visible, all of them when it is left out. ``pairs`` are those that are coupled, ``visible`` and
        ``hidden`` the kinds of unit. Raises `SettingError` for arrays that make no machine.
        """
        matrix, biases = as_parameter(coupling, "coupling", 2), as_parameter(bias, "bias", 1)
        size = len(biases)
        if matrix.shape != (size, size):
            raise SettingError(
                f"coupling must be {size} by {size}, as bias has {size} entries, got shape {matrix.shape}"
            )
        if np.any(np.diag(matrix)):
            raise SettingError(
                "coupling must be zero on its diagonal; set it to zero, and for units that are 0 or 1 add half of it "
                "to the bias"
            )
        if not np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-6 * float(np.abs(matrix).max(initial=0))):
            raise SettingError(
                "coupling must be symmetric; pass (coupling + coupling.T) / 2, the same energy"
            )
        count = size if n_visible is None else n_visible
        count = whole_number(count, f"n_visible must be a whole number from 1 to {size}", most=size)
        graph = Graph(size, pairs)
        beyond = (matrix != 0) & ~graph.adjacency
        if beyond.any():
            first, second = np.argwhere(beyond)[0]
            raise SettingError(
                f"coupling holds {matrix[first, second]:g} for the units {first} and {second}, which pairs does not "
                "name; add the pair or set the entry to zero"
            )
        units = [unit_class(visible)(bias=biases[:count])]
        if count < size:
            units.append(unit_class(hidden)(bias=biases[count:]))
        machine = cls(*units, pairs=pairs)
        held = Pairs.of_matrix((matrix + matrix.T) / 2, graph)
        return eqx.tree_at(lambda tree: tree.couplings, machine, (held,))

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`: numpy arrays, sizes, and what is not at its default."""
        graph = self.couplings[0].graph
        strengths = np.asarray(self.couplings[0].strengths)
        arguments: dict[str, Any] = {
            "coupling": np.append(strengths, np.zeros(1, strengths.dtype))[graph.places],
            "bias": np.concatenate([np.asarray(units.bias) for units in self.units]),
            "n_visible": self.units[0].size,
        }
        if not graph.is_complete:
            arguments["pairs"] = graph.pairs
        for name, units in zip(("visible", "hidden"), self.units, strict=False):
            if units.kind != Bernoulli.kind:
                arguments[name] = units.kind
        return arguments

    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        layers = as_layers(self, configuration)
        matrix, edges = self.couplings[0].matrix(), self._edges
        total = self.units[0].base_energy(layers[0])
        for units, layer in zip(self.units[1:], layers[1:], strict=True):
            total = total + units.base_energy(layer)
        for one, layer in enumerate(layers):
            for other in range(one, len(layers)):
                block = matrix[edges[one] : edges[one + 1], edges[other] : edges[other + 1]]
                meeting = jnp.sum(layer @ block * layers[other], axis=-1)
                total = total - (meeting / 2 if one == other else meeting)
        return total

    def field(self, layer: int, configuration: Configuration) -> Float[Array, "*batch n"]:
        """Natural parameter of the units of one layer, each given all other units, those of its own layer included."""
        matrix, edges = self.couplings[0].matrix(), self._edges
        field = self.units[layer].natural()
        for other, values in enumerate(configuration):
            field = field + values @ matrix[edges[other] : edges[other + 1], edges[layer] : edges[layer + 1]]
        return field

    def groups(self, layer: int) -> tuple[tuple[int, ...], ...]:
        """Units of a layer that a sweep draws at once, in its order; units are numbered through all layers."""
        edges = self._edges
        return self.couplings[0].graph.colours(np.arange(edges[layer], edges[layer + 1]))

    def sweep(
        self,
        noise: Noise,
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
        *,
        backwards: bool = False,
        tilt: Tilt | None = None,
    ) -> Configuration:
        """Layer after layer, group after group of units that are not coupled to each other, each drawn exactly.

        ``backwards`` it is the last group of the last layer that is drawn first.

        Every unit reads a noise word of its own. ``beta`` multiplies every field, one value for all rows or one per
        row; what ``tilt`` adds is not multiplied by it. The field of a group is taken from the present state by one
        product with its rows of ``C``: a sweep costs what one product with all of ``C`` costs, and no rounding adds up
        from group to group.
        """
        batch, edges = configuration[0].shape[:-1], self._edges
        size = edges[-1]
        groups = [self.groups(layer) for layer in range(len(self.units))]
        order = np.array([unit for layer in groups for group in layer for unit in group])
        place = np.argsort(order)

        def by_unit(values: Array) -> Array:
            """Units first, in the order of the sweep, and rows last, so that a group of units is one stretch."""
            return values.reshape(-1, size).T[order]

        words = jnp.concatenate(noise.pair((*batch, -(-size // 2))), axis=-1)[..., :size]
        now = _Sweep(
            states=by_unit(jnp.concatenate(configuration, axis=-1)),
            words=by_unit(words),
            matrix=self.couplings[0].matrix()[order][:, order],
            bias=jnp.concatenate([units.bias for units in self.units])[order],
            beta=None if beta is None else jnp.broadcast_to(beta, batch).reshape(-1),
            tilt=None
            if tilt is None
            else Tilt(tilt.bias[order], jnp.broadcast_to(tilt.share, batch).reshape(-1)),
            held=_held(clamp, batch, [units.size for units in self.units]),
        )
        now = now._replace(held=None if now.held is None else by_unit(now.held))
        turn = -1 if backwards else 1
        for layer in range(len(self.units))[::turn]:
            if clamp is not None and clamp[layer] is True:
                continue
            for stretch in _stretches([len(group) for group in groups[layer]], edges[layer])[::turn]:
                now = now._replace(states=now.drawn(self.units[layer], stretch, backwards))
        values = now.states[place].T.reshape(*batch, size)
        return tuple(values[..., edges[layer] : edges[layer + 1]] for layer in range(len(self.units)))

    def free_energy(self, visible: Num[Array | np.ndarray, "*batch visible"]) -> Float[Array, "*batch"]:
        return free_energy_of(self, visible)

    def chain_energy(self, configuration: Configuration) -> Float[Array, "*batch"]:
        if len(self.units) == 1 or self.split(held=True).bits:
            return self.energy(configuration)
        return self.free_energy(configuration[0])

    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        return self.couplings[0].matrix(), jnp.concatenate([units.bias for units in self.units])

    def split(self, held: bool) -> Split:
        edges = self._edges
        free = np.arange(edges[1] if held else 0, edges[-1])
        groups = self.couplings[0].graph.colours(free)
        return Split(tuple(unit for group in groups[1:] for unit in group), groups[0] if groups else ())

    def from_centred(self, offsets: Configuration) -> Self:
        return with_shifted_biases(self, offsets, -1)

    def to_centred(self, offsets: Configuration) -> Self:
        return with_shifted_biases(self, offsets, 1)

    @property
    def _edges(self) -> tuple[int, ...]:
        """Where the units of each layer begin, and where the last ones end."""
        return tuple(int(edge) for edge in np.cumsum([0, *(units.size for units in self.units)]))


class Tilt(NamedTuple):
    """A field that does not come from the machine: ``share`` of ``bias``, of one number per unit of all layers.

    ``share`` is one number for all rows or one per row. With it a machine walks on a path from independent units, see
    `harmonium.energy.machine_path.MachinePath`.
    """

    bias: Float[Array, " n"]
    share: Float[Array, "*batch"]


class _Stretch(NamedTuple):
    """Groups of much the same size that lie one after the other: the widest, and where each begins and ends."""

    width: int
    starts: np.ndarray
    stops: np.ndarray


def _stretches(sizes: list[int], start: int) -> list[_Stretch]:
    """The groups of a layer by size, within a factor of two, so that one loop serves many and little is wasted."""
    edges = start + np.cumsum([0, *sizes])
    kinds = np.array([size.bit_length() for size in sizes])
    found = []
    for kind in sorted(set(kinds.tolist()), reverse=True):
        chosen = np.flatnonzero(kinds == kind)
        found.append(_Stretch(max(sizes[i] for i in chosen), edges[chosen], edges[chosen + 1]))
    return found


class _Sweep(NamedTuple):
    """What a sweep works on: units first, in the order in which they are drawn, and rows last."""

    states: Float[Array, "n rows"]
    words: Array
    matrix: Float[Array, "n n"]
    bias: Float[Array, " n"]
    beta: Float[Array, " rows"] | None
    tilt: Tilt | None
    held: Array | None

    def drawn(self, units: AbstractUnits, stretch: _Stretch, backwards: bool) -> Float[Array, "n rows"]:
        """The states once every group of a stretch has been drawn, the last one first if ``backwards``."""
        width, count = stretch.width, len(self.states)
        # A slice that would reach beyond the last unit begins earlier; what is not of the group keeps its state.
        first = jnp.asarray(np.minimum(stretch.starts, count - width))
        starts, stops = jnp.asarray(stretch.starts), jnp.asarray(stretch.stops)
        alike = bool(np.all(stretch.stops - stretch.starts == width))

        def draw(turn: Array | int, states: Array) -> Array:
            group = len(starts) - 1 - turn if backwards else turn
            here = first[group]

            def part(values: Array) -> Array:
                return jax.lax.dynamic_slice_in_dim(values, here, width)

            field = part(self.matrix) @ states + part(self.bias)[:, None]
            if self.beta is not None:
                field = field * self.beta.astype(field.dtype)
            if self.tilt is not None:
                field = field + part(self.tilt.bias)[:, None] * self.tilt.share.astype(field.dtype)
            drawn = units.sample(part(self.words), field)
            if not alike:
                unit = here + jnp.arange(width)
                inside = (unit >= starts[group]) & (unit < stops[group])
                drawn = jnp.where(inside[:, None], drawn, part(states))
            if self.held is not None:
                drawn = jnp.where(part(self.held), part(states), drawn)
            return jax.lax.dynamic_update_slice_in_dim(states, drawn, here, 0)

        return jax.lax.fori_loop(0, len(stretch.starts), draw, self.states)


def _held(clamp: Clamp | None, batch: tuple[int, ...], sizes: list[int]) -> Array | None:
    """A mask over all units where some of a layer are held; None where layers are held as a whole or not at all."""
    if clamp is None or all(layer is None or isinstance(layer, bool) for layer in clamp):
        return None
    masks = [
        jnp.broadcast_to(jnp.asarray(False if layer is None else layer), (*batch, size))
        for layer, size in zip(clamp, sizes, strict=True)
    ]
    return jnp.concatenate(masks, axis=-1)
