"""Many models of one shape, kept as one: what training with ``members`` gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import SupportsIndex

import equinox as eqx
import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.errors import SettingError
from harmonium.numerics.whole import is_whole


def _checked_faults(faults: Iterable[str]) -> tuple[str, ...]:
    return tuple(faults)


class Ensemble(eqx.Module):
    """Independent models of one shape, member by member along a leading axis of every array.

    **Arguments:** ``stacked`` is a model whose arrays have that leading axis, so that its own methods are of no use:
    take a member out, which is an ordinary model. ``faults`` says for each member why the divergence guard stopped it,
    "" where it did not; left out, no member was stopped. `Ensemble.of` makes an ensemble of models.

    ``len(ensemble)`` counts the members, and iteration goes through them. Raises `SettingError` for as many faults as
    there are no members.

    >>> from harmonium.energy.rbm import RBM
    >>> ensemble = Ensemble.of([RBM(4, 2, seed=seed) for seed in range(3)])
    >>> len(ensemble), ensemble.member(2).parameters()["weights"].shape
    (3, (4, 2))
    """

    stacked: AbstractEnergyModel
    faults: tuple[str, ...] = eqx.field(static=True, default=(), converter=_checked_faults)

    def __check_init__(self):
        if self.faults and len(self.faults) != len(self):
            raise SettingError(
                f"an ensemble of {len(self)} members was given {len(self.faults)} faults; pass one for each member"
            )

    @classmethod
    def of(cls, models: Iterable[AbstractEnergyModel]) -> Ensemble:
        """The ensemble of some models, in their order.

        Raises `SettingError` for no model at all, and for models that differ in kind, size or dtype.

        >>> from harmonium.energy.rbm import RBM
        >>> len(Ensemble.of([RBM(4, 2), RBM(4, 2)]))
        2
        """
        members = list(models)
        if not members:
            raise SettingError("an ensemble needs at least one model, got none; pass e.g. [hm.RBM(64, 16)]")
        for number, member in enumerate(members):
            check_model(member)
            if _form(member) != _form(members[0]):
                raise SettingError(
                    f"the members of an ensemble must be of one kind, one size and one dtype, but member {number} is "
                    f"a {_words(member)} and member 0 a {_words(members[0])}; make them alike"
                )
        return cls(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *members))

    def __len__(self) -> int:
        return int(jax.tree.leaves(self.stacked)[0].shape[0])

    def __iter__(self) -> Iterator[AbstractEnergyModel]:
        return (self.member(number) for number in range(len(self)))

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


def _words(model: AbstractEnergyModel) -> str:
    layers = " - ".join(f"{units.size} {units.kind}" for units in model.units)
    return f"{type(model).__name__} of {layers} units, {np.asarray(model.units[0].bias).dtype}"
