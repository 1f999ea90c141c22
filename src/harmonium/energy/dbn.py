"""The deep belief network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import equinox as eqx
import numpy as np
from numpy.typing import ArrayLike

from harmonium.energy.couplings.absent import Absent
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE, as_parameter, seed_of_level
from harmonium.energy.rbm import RBM
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.numerics.whole import seed_number
from harmonium.units.base import AbstractUnits, check_size
from harmonium.units.bernoulli import Bernoulli


class DBN(AbstractStack):
    r"""A deep belief network: a stack of RBMs, of which the top one is the prior of what lies below.

    .. math:: p(v, h_1, \dots, h_M) = p(v \mid h_1) \cdots p(h_{M-2} \mid h_{M-1})\, p_M(h_{M-1}, h_M)

    with :math:`p(h_{l-1} \mid h_l) = \prod_i \sigma(\pm (b_i + W_{i:} h_l))` for units that are 0 or 1. Training sees
    it as the product of its RBMs; see `harmonium.energy.stack.AbstractStack`.

    **Arguments:** ``visible`` is a size (Bernoulli units) or a layer such as ``Spin(64)``, ``hidden`` the same for each
    hidden layer, bottom first. Weights are ``weight_scale`` times standard normal numbers: those of the bottom RBM of
    ``seed``, those above of seeds derived from it. Biases are as the layers have them (zero for sizes); an inner layer
    gives its own to both RBMs that share it.

    Raises `SettingError` for sizes below one, for no hidden layer, and for a seed or ``weight_scale`` out of range.
    Source: the chapter's deep belief network; the printed range of its layers and its subscripts are wrong, see the
    form above.

    >>> dbn = DBN(6, [4, 3], seed=0)
    >>> [rbm.parameters()["weights"].shape for rbm in dbn.levels]
    [(6, 4), (4, 3)]
    """

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Dense | Absent, ...]  # pyright: ignore[reportIncompatibleUnannotatedOverride]

    def __init__(
        self,
        visible: SupportsIndex | AbstractUnits,
        hidden: Sequence[SupportsIndex | AbstractUnits],
        *,
        seed: SupportsIndex = 0,
        weight_scale: float = INITIAL_WEIGHT_SCALE,
    ):
        if not isinstance(hidden, Sequence | np.ndarray) or len(hidden) == 0:
            raise SettingError(
                f"a DBN takes a list of hidden layers, bottom first, got {hidden!r}; pass e.g. [100, 50]"
            )
        layers = [
            layer if isinstance(layer, AbstractUnits) else Bernoulli(check_size(layer, "DBN"))
            for layer in (visible, *hidden)
        ]
        rbms = [
            RBM(*pair, seed=seed_of_level(seed_number(seed), level), weight_scale=weight_scale)
            for level, pair in enumerate(pairwise(layers))
        ]
        self.units, self.couplings = _joined(rbms)

    @classmethod
    def of(cls, levels: Sequence[RBM]) -> DBN:
        """RBMs laid on each other, bottom first.

        Raises `SettingError` where the visible layer of one has not the units of the hidden layer below.
        """
        if len(levels) == 0:
            raise SettingError("a DBN has at least one RBM, got none; pass them bottom first")
        for place, (lower, upper) in enumerate(pairwise(levels)):
            below, above = lower.units[1], upper.units[0]
            if (below.kind, below.size) != (above.kind, above.size):
                raise SettingError(
                    f"RBM {place} has {below.size} {below.kind} hidden units, but RBM {place + 1} above it has "
                    f"{above.size} {above.kind} visible ones; they must be the same layer"
                )
        first, above = levels[0].units[0], [rbm.units[1] for rbm in levels]
        fresh = cls(first, above, weight_scale=0.0)
        return eqx.tree_at(lambda tree: (tree.units, tree.couplings), fresh, _joined(levels))

    @classmethod
    def from_arrays(
        cls,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        recognition_biases: Sequence[ArrayLike] | None = None,
        *,
        kinds: Sequence[str] | None = None,
    ) -> DBN:
        """A network with given parameters, whose dtype is kept (float64 stays float64).

        ``weights`` are lower by upper layer, bottom first. ``biases`` are those of the network as a density, one for
        each layer from the visible one: the visible biases of the RBMs, and last the hidden bias of the top one.
        ``recognition_biases`` are the hidden biases of the RBMs below the top, one for each inner layer; None takes
        those of ``biases``. ``kinds`` names the units of each layer where they are not all Bernoulli. Raises
        `SettingError` for numbers of arrays or shapes that do not go together.
        """
        count = len(weights)
        if len(biases) != count + 1:
            raise SettingError(
                f"a DBN of {count} weight matrices has {count + 1} layers with a bias each, got {len(biases)} biases"
            )
        inner = biases[1:-1] if recognition_biases is None else recognition_biases
        if len(inner) != count - 1:
            raise SettingError(
                f"a DBN of {count} weight matrices has {count - 1} inner layers with a recognition bias each, got "
                f"{len(inner)} recognition_biases"
            )
        names = [Bernoulli.kind] * (count + 1) if kinds is None else list(kinds)
        if len(names) != count + 1:
            raise SettingError(f"kinds must name {count + 1} layers, got {len(names)}")
        upper = [*inner, biases[-1]]
        return cls.of(
            [
                RBM.from_arrays(
                    as_parameter(weights[level], f"weights[{level}]", 2),
                    as_parameter(biases[level], f"biases[{level}]", 1),
                    as_parameter(upper[level], _name_of_upper(level, count, recognition_biases), 1),
                    visible=names[level],
                    hidden=names[level + 1],
                )
                for level in range(count)
            ]
        )

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`: numpy arrays, and the kinds of unit when not all are Bernoulli."""
        arguments: dict[str, Any] = {
            "weights": [np.asarray(coupling.weights) for coupling in self.couplings[::2]],
            "biases": [np.asarray(units.bias) for units in (*self.units[::2], self.units[-1])],
        }
        if self.depth > 1:
            arguments["recognition_biases"] = [np.asarray(units.bias) for units in self.units[1:-1:2]]
        kinds = [units.kind for units in (*self.units[::2], self.units[-1])]
        if set(kinds) != {Bernoulli.kind}:
            arguments["kinds"] = kinds
        return arguments


def _joined(levels: Sequence[RBM]) -> tuple[tuple[AbstractUnits, ...], tuple[Dense | Absent, ...]]:
    """Units and couplings of the product of RBMs, one after the other."""
    units = tuple(layer for rbm in levels for layer in rbm.units)
    couplings: list[Dense | Absent] = []
    for place, rbm in enumerate(levels):
        if place:
            size = rbm.units[0].size
            couplings.append(Absent(size, size))
        couplings.append(rbm.couplings[0])
    return units, tuple(couplings)


def _name_of_upper(level: int, count: int, recognition_biases: Sequence[ArrayLike] | None) -> str:
    """What the argument that holds the hidden bias of a level is called."""
    inner = level < count - 1 and recognition_biases is not None
    return f"recognition_biases[{level}]" if inner else f"biases[{level + 1}]"
