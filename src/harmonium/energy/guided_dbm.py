"""The deep Boltzmann machine with a guide, as deep tempering takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import equinox as eqx
import numpy as np

from harmonium.energy.couplings.absent import Absent
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.dbm import DBM
from harmonium.energy.dbn import DBN
from harmonium.energy.guided import AbstractGuided, joined_kernel, joined_units
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.numerics.whole import seed_number
from harmonium.units.base import AbstractUnits

_GUIDE_SEED = 0x617D
"""Apart from the seed of the machine, so that the weights of the two are not the same numbers."""


class GuidedDBM(AbstractGuided):
    r"""A deep Boltzmann machine, and RBMs over all its even layers that propose configurations of them.

    .. math:: E(x) + E_g(z, g) = E(x) - a^\top z - c^\top g - z^\top U g, \qquad z \text{ like } (v, h_2, h_4, \dots)

    for a guide of one hidden layer, in nats. It is what `DeepTempering` moves: a configuration of the even layers of
    the machine is exchanged with the visible units of the guide, which learns them from the posterior of the data and
    mixes faster; see `harmonium.energy.guided.AbstractGuided`. Scores and samples are those of ``machine``.

    **Arguments:** ``machine`` is a `DBM` (given a guide, it is not changed), ``guide`` the sizes of the hidden layers
    of the guide, or layers such as ``Spin(16)``, bottom first. ``seed`` and ``weight_scale`` are of its weights.

    Raises `SettingError` for a machine of another class, for one whose even layers, or whose odd ones, are of several
    kinds, and for no hidden layer in the guide. Source: "Deep Tempering" (2014), section 5.

    >>> guided = GuidedDBM(DBM(6, [4, 3], seed=0), [5])
    >>> [units.size for units in guided.guide.units]  # v and h_2 together, and the hidden layer of the guide
    [9, 5]
    """

    machine: DBM
    guide: DBN
    apart: Absent

    def __init__(
        self,
        machine: AbstractLayered,
        guide: Sequence[SupportsIndex | AbstractUnits],
        *,
        seed: SupportsIndex = 0,
        weight_scale: float = INITIAL_WEIGHT_SCALE,
    ):
        if not isinstance(machine, DBM):
            raise SettingError(
                f"a guide is of a machine such as hm.DBM(64, [32, 16]), got {type(machine).__name__}; RBMs on each "
                "other, hm.DBN(64, [32, 16]), need none"
            )
        if isinstance(guide, int | np.integer | AbstractUnits) or len(guide) == 0:
            raise SettingError(
                f"guide takes a list of hidden layers, bottom first, got {guide!r}; pass e.g. [16]"
            )
        even = joined_units(machine.units[::2], "all even layers")
        joined_units(machine.units[1::2], "all odd layers")
        fresh = type(even)(bias=np.zeros(even.size, np.float32))
        self.machine = machine
        self.guide = DBN(fresh, guide, seed=seed_number(seed) ^ _GUIDE_SEED, weight_scale=weight_scale)
        self.apart = Absent(machine.units[-1].size, even.size)

    @classmethod
    def from_arrays(cls, machine: Mapping[str, Any], guide: Mapping[str, Any]) -> GuidedDBM:
        """A guided machine with given parameters: the arguments of `DBM.from_arrays` and those of `DBN.from_arrays`.

        Raises `SettingError` as they do, and for a guide whose visible layer has not the units of the even layers.
        """
        dbm, stack = DBM.from_arrays(**machine), DBN.from_arrays(**guide)
        fresh = cls(dbm, stack.units[1::2])
        even, below = fresh.guide.units[0], stack.units[0]
        if (even.kind, even.size) != (below.kind, below.size):
            raise SettingError(
                f"the even layers of the machine have {even.size} {even.kind} units, but the guide {below.size} "
                f"{below.kind} visible ones; they must be the same"
            )
        return eqx.tree_at(lambda tree: tree.guide, fresh, stack)

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`."""
        return {"machine": self.machine.parameters(), "guide": self.guide.parameters()}

    def as_stack(self) -> DBN:
        machine: DBM = self.machine
        odd = joined_units(machine.units[1::2], "all odd layers")
        even = joined_units(machine.units[::2], "all even layers")
        bottom = RBM(odd, even, weights=np.zeros((odd.size, even.size), np.float32))
        bottom = eqx.tree_at(lambda tree: tree.couplings, bottom, (Dense(joined_kernel(machine)),))
        return DBN.of([bottom, *self.guide.levels])
