"""Descent from many random states: block Gibbs sampling at temperature zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.couplings.pairs import Pairs
from harmonium.energy.cumulant import ends_of
from harmonium.modes.base import AbstractRestarts, check_searchable, count_units, random_starts
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.typing import Configuration, Words


def _checked_starts(starts: SupportsIndex) -> int:
    return whole_number(starts, "descent needs a whole number of starts, at least one", "pass e.g. 32")


def _checked_sweeps(sweeps: SupportsIndex) -> int:
    return whole_number(sweeps, "descent needs a whole number of sweeps, at least one", "pass e.g. 10")


class Descent(AbstractRestarts):
    r"""Every unit goes to its best value given the others, block by block, from ``starts`` random states.

    .. math:: x_i \leftarrow \arg\max_x x f_i(x_{-i}), \qquad \text{a tie to the lower value}

    for ``sweeps`` sweeps or until nothing moves. A block is a set of units that are not coupled to each other: the
    layers of odd number and then those of even number, or a group of a general machine's colouring. No step raises the
    energy, so a run ends in a state that no single unit can better, or short of it where the sweeps are too few. The
    more starts, the likelier that one of them ends in the ground state; nothing is proved.

    Raises `SettingError` for no starts or sweeps. Source: iterated conditional modes; the defaults find the mode of
    machines of some fifty units often enough to train with, more starts are wanted for larger or deeper ones.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> Descent().explore(np.zeros(2, np.uint32), RBM.from_arrays([[4.0]], [-1.0], [-2.0])).energy
    -1.0
    """

    starts: int = eqx.field(default=32, converter=_checked_starts)
    sweeps: int = eqx.field(default=10, converter=_checked_sweeps)

    traceable: ClassVar[bool] = True

    def check(self, model: AbstractEnergyModel) -> None:
        check_descending(model)

    def ends(self, words: Words, model: AbstractEnergyModel) -> Configuration:
        start = random_starts(Noise.of(words), model, self.starts)
        return descend(model, start, self.sweeps)

    def unit_updates(self, model: AbstractEnergyModel) -> float:
        return float(self.starts * self.sweeps * count_units(model))


def check_descending(model: AbstractEnergyModel) -> None:
    """Raise `SettingError` for a machine that `descend` cannot take."""
    check_searchable(model)
    if not isinstance(model, AbstractBipartite):
        check_two_valued(model, "descent")


def descend(model: AbstractEnergyModel, configuration: Configuration, sweeps: int) -> Configuration:
    """Configurations, rows first, after ``sweeps`` sweeps at temperature zero, or when no unit of any row moves."""
    sweep = _sweep_of_sides(model) if isinstance(model, AbstractBipartite) else _sweep_of_groups(model)

    def go_on(carry: tuple[Configuration, Array, Array]) -> Array:
        return carry[1] & (carry[2] < sweeps)

    def once(carry: tuple[Configuration, Array, Array]) -> tuple[Configuration, Array, Array]:
        before, _, count = carry
        after = sweep(before)
        moved = [jnp.any(new != old) for new, old in zip(after, before, strict=True)]
        return after, jnp.any(jnp.stack(moved)), count + 1

    return jax.lax.while_loop(go_on, once, (configuration, jnp.bool_(True), jnp.int32(0)))[0]


def best_given(
    model: AbstractBipartite, side: int, configuration: Configuration
) -> tuple[Configuration, Array]:
    """The configurations with one side at its best given the other, and their energies, for the price of its fields.

    The energy is that of the other side by itself and minus what every unit of this one has of its field.
    """
    layers = list(configuration)
    energy = sum(model.units[index].base_energy(layers[index]) for index in model.sides[1 - side])
    for index in model.sides[side]:
        field = model.field(index, tuple(layers))
        best = model.units[index].mode(field)
        energy = energy - jnp.sum(best * field, axis=-1)
        layers[index] = jnp.broadcast_to(best, layers[index].shape)
    return tuple(layers), jnp.asarray(energy)


def _sweep_of_sides(model: AbstractBipartite) -> Callable[[Configuration], Configuration]:
    def sweep(configuration: Configuration) -> Configuration:
        for side in (1, 0):
            configuration, _ = best_given(model, side, configuration)
        return configuration

    return sweep


def _sweep_of_groups(model: AbstractEnergyModel) -> Callable[[Configuration], Configuration]:
    """One group of units that are not coupled to each other after the other, each unit by itself where all are."""
    coupling, bias = model.pairwise()
    size = count_units(model)
    edges = np.cumsum([units.size for units in model.units])[:-1]
    pairs = model.couplings[0]
    groups = (
        pairs.graph.colours(np.arange(size)) if isinstance(pairs, Pairs) else tuple((i,) for i in range(size))
    )
    # Groups are filled up to one width with a number that no unit has: what is read there is dropped.
    width = max(len(group) for group in groups)
    members = jnp.asarray([(*group, *[size] * (width - len(group))) for group in groups], jnp.int32)
    low, high = (jnp.asarray(values, coupling.dtype) for values in ends_of(model.units))

    def update(number: Array, states: Array) -> Array:
        group = members[number]
        rows = jnp.take(coupling, group, axis=0, mode="clip")
        field = states @ rows.T + jnp.take(bias, group, mode="clip")
        best = jnp.where(field > 0, jnp.take(high, group, mode="clip"), jnp.take(low, group, mode="clip"))
        return states.at[..., group].set(best, mode="drop")

    def sweep(configuration: Configuration) -> Configuration:
        states = jax.lax.fori_loop(0, len(groups), update, jnp.concatenate(configuration, axis=-1))
        return tuple(jnp.split(states, edges, axis=-1))

    return sweep
