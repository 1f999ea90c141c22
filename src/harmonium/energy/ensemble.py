"""Many models of one shape, kept as one: what training with ``members`` gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

import equinox as eqx
import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.errors import SettingError
from harmonium.numerics.whole import is_whole


def _checked_stacked(stacked: Any) -> AbstractEnergyModel:
    if not isinstance(stacked, AbstractEnergyModel):
        raise SettingError(
            f"an ensemble is made of one model with a member axis on every array, got {stacked!r}; use "
            "hm.Ensemble.of([...]) with a model for each member"
        )
    return stacked


def _checked_faults(faults: Any) -> tuple[str, ...]:
    words = None if isinstance(faults, str) or not isinstance(faults, Iterable) else tuple(faults)
    if words is None or not all(isinstance(fault, str) for fault in words):
        raise SettingError(
            f"faults must be a list of one text for each member, got {faults!r}; leave it out, or pass '' for a "
            "sound one"
        )
    return words


class Ensemble(eqx.Module):
    """Independent models of one shape, member by member along a leading axis of every array.

    **Arguments:** ``stacked`` is a model whose arrays have that leading axis, so that its own methods are of no use:
    take a member out, which is an ordinary model. ``faults`` says for each member why the divergence guard stopped it,
    "" where it did not; left out, no member was stopped. `Ensemble.of` makes an ensemble of models.

    ``len(ensemble)`` counts the members, ``ensemble[i]`` is ``ensemble.member(i)``, and iteration goes through them.
    Raises `SettingError` for what is no stacked model, and for as many faults as there are no members.

    >>> from harmonium.energy.rbm import RBM
    >>> ensemble = Ensemble.of([RBM(4, 2, seed=seed) for seed in range(3)])
    >>> len(ensemble), ensemble.member(2).parameters()["weights"].shape
    (3, (4, 2))
    """

    stacked: AbstractEnergyModel = eqx.field(converter=_checked_stacked)
    faults: tuple[str, ...] = eqx.field(static=True, default=(), converter=_checked_faults)

    def __check_init__(self):
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(self.stacked)]
        flat = any(np.ndim(units.bias) != 2 for units in self.stacked.units)
        if flat or len({shape[:1] for shape in shapes}) != 1:
            raise SettingError(
                f"the arrays of this {type(self.stacked).__name__} have no member axis in front, the same for all; use "
                "hm.Ensemble.of([...]) with a model for each member"
            )
        if self.faults and len(self.faults) != len(self):
            raise SettingError(
                f"an ensemble of {len(self)} members was given {len(self.faults)} faults; pass one for each member"
            )

    @classmethod
    def of(cls, models: Any) -> Ensemble:
        """The ensemble of some models, a list or any iterable of them, in their order.

        Raises `SettingError` for no model at all, and for models that differ in kind, size, dtype or coupled pairs.

        >>> from harmonium.energy.rbm import RBM
        >>> len(Ensemble.of([RBM(4, 2), RBM(4, 2)]))
        2
        """
        if not isinstance(models, Iterable):
            what = models if models is None else type(models).__name__
            raise SettingError(
                f"an ensemble is made of a list of models, got {what}; pass e.g. [hm.RBM(64, 16)]"
            )
        members = list(models)
        if not members:
            raise SettingError("an ensemble needs at least one model, got none; pass e.g. [hm.RBM(64, 16)]")
        for number, member in enumerate(members):
            check_model(member)
            if _form(member) != _form(members[0]):
                raise SettingError(_difference(number, member, members[0]))
        return cls(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *members))

    def __len__(self) -> int:
        return int(jax.tree.leaves(self.stacked)[0].shape[0])

    def __iter__(self) -> Iterator[AbstractEnergyModel]:
        return (self.member(number) for number in range(len(self)))

    def __getitem__(self, number: Any) -> AbstractEnergyModel:
        """`member`. Raises `SettingError` for a number that no member has, one below 0 among them, and for slices."""
        if isinstance(number, slice):
            raise SettingError(
                "an ensemble gives one member at a time, got a slice; use hm.Ensemble.of(list(ensemble)[a:b])"
            )
        return self.member(number)

    def member(self, number: SupportsIndex) -> AbstractEnergyModel:
        """Member ``number``, from 0, as an ordinary model. Raises `SettingError` where there is none."""
        if not is_whole(number) or not 0 <= int(number) < len(self):
            raise SettingError(
                f"this ensemble has the members 0 to {len(self) - 1}, got member {number!r}; choose one of them"
            )
        return jax.tree.map(lambda leaf: np.asarray(leaf)[int(number)], self.stacked)

    @property
    def sound(self) -> tuple[int, ...]:
        """The numbers of the members that no guard has stopped."""
        return tuple(number for number in range(len(self)) if not self.faults or not self.faults[number])


def _form(model: AbstractEnergyModel) -> tuple:
    leaves = jax.tree.leaves(model)
    return jax.tree.structure(model), [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves]


def _difference(number: int, member: AbstractEnergyModel, first: AbstractEnergyModel) -> str:
    """Why two models do not go together, in a sentence."""
    rule = "the members of an ensemble must be of one kind, one size and one dtype, but"
    one, other = _words(member), _words(first)
    if one != other:
        return f"{rule} member {number} is a {one} and member 0 a {other}; make them alike"
    for mine, its in zip(member.couplings, first.couplings, strict=True):
        graphs = getattr(mine, "graph", None), getattr(its, "graph", None)
        if graphs[0] is not None and graphs[1] is not None and graphs[0] != graphs[1]:
            return (
                f"the members of an ensemble must couple the same pairs of units, but member {number} has "
                f"{_pairs_beyond(*graphs)} and member 0 has {_pairs_beyond(*reversed(graphs))}; pass all the same pairs"
            )
    return f"{rule} member {number} and member 0, each a {one}, differ in what is no number; make them alike"


def _pairs_beyond(graph: Any, other: Any) -> str:
    """How many pairs of units a graph couples, with one that the other lacks."""
    beyond = np.argwhere(np.triu(graph.adjacency & ~other.adjacency))
    such = "" if len(beyond) == 0 else f", such as {beyond[0][0]} - {beyond[0][1]}, which the other lacks"
    return f"{len(graph.pairs)} pairs{such}"


def _words(model: AbstractEnergyModel) -> str:
    layers = " - ".join(f"{units.size} {units.kind}" for units in model.units)
    return f"{type(model).__name__} of {layers} units, {np.asarray(model.units[0].bias).dtype}"
