"""The energy of a machine of two-valued units as a quadratic form, its constant included, in any two values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int, Num

from harmonium.energy.base import AbstractEnergyModel, check_model, check_two_valued
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.couplings.absent import Absent
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.cumulant import ends_of
from harmonium.energy.guided import check_undirected
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_double, in_double_precision

SPIN = (-1.0, 1.0)
BINARY = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Quadratic:
    r"""An energy of two-valued units in nats, in double precision.

    .. math:: E(x) = e_0 + \sum_i a_i x_i + \sum_{i<j} q_{ij} x_i x_j

    ``offset`` is :math:`e_0`, ``linear`` holds the :math:`a_i`, ``strengths`` one :math:`q_{ij}` per row of ``pairs``,
    and ``ends`` the lower and the upper value of every unit, layer after layer. Signs are those of an energy: minus a
    bias, minus a coupling.
    """

    linear: Float[np.ndarray, " n"]
    strengths: Float[np.ndarray, " pairs"]
    pairs: Int[np.ndarray, "pairs 2"]
    offset: float
    ends: Float[np.ndarray, "2 n"]

    def energy(self, states: Num[np.ndarray, "*batch n"]) -> Float[np.ndarray, "*batch"]:
        """Energy of states that are written in the values of ``ends``."""
        x = np.asarray(states, np.float64)
        size = len(self.linear)
        upper = scipy.sparse.coo_array((self.strengths, tuple(self.pairs.T)), (size, size)).tocsr()
        met = (x.reshape(-1, size) @ upper).reshape(x.shape)
        return self.offset + x @ self.linear + np.sum(met * x, axis=-1)

    def written_in(self, values: tuple[float, ...] | Float[np.ndarray, "2 n"]) -> Quadratic:
        r"""The same energy of the same states, whose units take other two values: :math:`x = s + g y` in each unit.

        .. math:: a'_i = g_i \Big(a_i + \sum_j q_{ij} s_j\Big), \qquad q'_{ij} = g_i g_j q_{ij}, \qquad
            e'_0 = e_0 + \sum_i a_i s_i + \sum_{i<j} q_{ij} s_i s_j

        ``values`` are those of all units, lower first, or of each.
        """
        column = np.asarray(values, np.float64)
        ends = np.broadcast_to(column[:, None] if column.ndim == 1 else column, self.ends.shape)
        gain = (self.ends[1] - self.ends[0]) / (ends[1] - ends[0])
        start = self.ends[0] - gain * ends[0]
        first, second = self.pairs.T
        met = np.bincount(first, self.strengths * start[second], len(start))
        met += np.bincount(second, self.strengths * start[first], len(start))
        return Quadratic(
            linear=gain * (self.linear + met),
            strengths=gain[first] * gain[second] * self.strengths,
            pairs=self.pairs,
            offset=float(self.offset + self.linear @ start + met @ start / 2),
            ends=np.array(ends),
        )


def quadratic_of(model: AbstractEnergyModel) -> Quadratic:
    """The energy of a machine, written in the values of its own units and without a constant.

    Pairs are all that the machine could couple, those of strength zero included. Raises `SettingError` for units that
    are not two-valued, for a stack, and for what is no machine.
    """
    pairs = pairs_of(model)
    coupling, bias = _pairwise(as_double(model))
    first, second = pairs.T
    return Quadratic(-bias, -coupling[first, second], pairs, 0.0, ends_of(model.units))


def pairs_of(model: AbstractEnergyModel) -> Int[np.ndarray, "pairs 2"]:
    """Numbers of the units of every pair that a machine couples, the smaller first; raises as `quadratic_of`."""
    check_model(model)
    check_undirected(model, "a quadratic form")
    check_two_valued(model, "a quadratic form")
    if isinstance(model, BoltzmannMachine):
        return model.couplings[0].graph.pairs
    couplings = model.couplings
    if not isinstance(model, AbstractLayered) or not all(
        isinstance(one, Dense | Absent) for one in couplings
    ):
        parts = ", ".join(dict.fromkeys(type(one).__name__ for one in couplings))
        raise SettingError(
            "a quadratic form is written of a machine such as hm.RBM, hm.DBM or hm.BoltzmannMachine, in single or "
            f"double precision, got a {type(model).__name__} whose couplings are {parts}"
        )
    edges = np.cumsum([0, *(units.size for units in model.units)]).tolist()
    found = [
        np.stack(np.meshgrid(np.arange(low, middle), np.arange(middle, high), indexing="ij"), -1).reshape(
            -1, 2
        )
        for (low, middle), (_, high), one in zip(
            pairwise(edges), pairwise(edges[1:]), couplings, strict=False
        )
        if isinstance(one, Dense)
    ]
    return np.concatenate([np.zeros((0, 2), np.int32), *found]).astype(np.int32)


@in_double_precision
def _pairwise(model: AbstractEnergyModel) -> tuple[np.ndarray, np.ndarray]:
    coupling, bias = model.pairwise()
    return np.asarray(coupling), np.asarray(bias)
