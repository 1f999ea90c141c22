"""The deep Boltzmann machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, SupportsIndex

import equinox as eqx
import numpy as np
from numpy.typing import ArrayLike

from harmonium.energy.couplings.dense import Dense
from harmonium.energy.labels import check_labels, check_softmax_layers
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE, as_parameter, seed_of_level, starting_weights
from harmonium.errors import SettingError
from harmonium.numerics.whole import seed_number, whole_number
from harmonium.units.base import AbstractUnits, check_size
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import Categorical
from harmonium.units.kinds import unit_class


class DBM(AbstractLayered):
    r"""A deep Boltzmann machine: layers in a row, every one coupled to its neighbours, all couplings undirected.

    .. math:: E(v, h_1, \dots, h_L) = -\sum_{l=0}^{L} b_l^\top h_l - \sum_{l=1}^{L} h_{l-1}^\top W_l\, h_l,
        \qquad h_0 = v

    in nats, with ``W`` lower by upper layer. A hidden unit follows from the layer below *and* the one above,
    :math:`p(h_1 = 1 \mid v, h_2) = \sigma(b_1 + v^\top W_1 + W_2 h_2)`, so that hidden layers given the data are
    coupled: :meth:`free_energy` enumerates the smaller of the hidden layers of even and of odd number, and the log
    partition function the smaller side of all layers. With one hidden layer it is an RBM.

    **Arguments:** ``visible`` is a size (Bernoulli units) or a layer such as ``Spin(64)``, ``hidden`` the same for each
    hidden layer, bottom first. Weights are ``weight_scale`` times standard normal numbers: those of the bottom layer of
    ``seed``, those above of seeds derived from it. Biases are as the layers have them (zero for sizes).

    With ``labels`` classes a softmax layer :math:`y` stands on top, coupled to the last hidden layer and observed like
    the visible one, ``observed == (0, L + 1)``: :meth:`given_label` is the machine that a class leaves. With one hidden
    layer that is the classification RBM, both :math:`v` and :math:`y` joined to :math:`h`.

    Raises `SettingError` for sizes below one, for no hidden layer, for softmax units elsewhere or fewer than two
    classes, and for a seed or ``weight_scale`` out of range.
    Source: the chapter's deep Boltzmann machine; its printed energy has no biases, ours has.

    >>> dbm = DBM(6, [4, 3], seed=0)
    >>> [weights.shape for weights in dbm.parameters()["weights"]]
    [(6, 4), (4, 3)]
    """

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Dense, ...]

    def __init__(
        self,
        visible: SupportsIndex | AbstractUnits,
        hidden: Sequence[SupportsIndex | AbstractUnits],
        *,
        labels: SupportsIndex | Categorical | None = None,
        seed: SupportsIndex = 0,
        weight_scale: float = INITIAL_WEIGHT_SCALE,
    ):
        if not isinstance(hidden, Sequence | np.ndarray) or len(hidden) == 0:
            raise SettingError(
                f"a DBM takes a list of hidden layers, bottom first, got {hidden!r}; pass e.g. [120, 18]"
            )
        self.units = tuple(
            layer if isinstance(layer, AbstractUnits) else Bernoulli(check_size(layer, "DBM"))
            for layer in (visible, *hidden, *_label_layer(labels))
        )
        check_softmax_layers(self.units, "a DBM", labels=True)
        self.couplings = tuple(
            Dense(
                starting_weights(
                    (upper.size, lower.size), seed_of_level(seed_number(seed), level), weight_scale
                )
            )
            for level, (lower, upper) in enumerate(pairwise(self.units))
        )

    @classmethod
    def from_arrays(
        cls,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        kinds: Sequence[str] | None = None,
    ) -> DBM:
        """A machine with given parameters, whose dtype is kept (float64 stays float64).

        ``weights`` are lower by upper layer, bottom first; ``biases`` are one for each layer, the visible one first.
        ``kinds`` names the units of each layer where they are not all Bernoulli. Raises `SettingError` for numbers of
        arrays or shapes that do not go together, and for a number that is not finite.
        """
        count = len(weights)
        if len(biases) != count + 1:
            raise SettingError(
                f"a DBM of {count} weight matrices has {count + 1} layers with a bias each, got {len(biases)} biases"
            )
        names = [Bernoulli.kind] * (count + 1) if kinds is None else list(kinds)
        if len(names) != count + 1:
            raise SettingError(f"kinds must name {count + 1} layers, got {len(names)}")
        units = tuple(
            unit_class(name)(bias=as_parameter(bias, f"biases[{layer}]", 1))
            for layer, (name, bias) in enumerate(zip(names, biases, strict=True))
        )
        couplings = []
        for level, (lower, upper) in enumerate(pairwise(units)):
            matrix = as_parameter(weights[level], f"weights[{level}]", 2)
            if matrix.shape != (lower.size, upper.size):
                raise SettingError(
                    f"weights[{level}] must be lower by upper layer, here {(lower.size, upper.size)} by the biases, "
                    f"got shape {matrix.shape}; pass weights[{level}].T if they are upper by lower"
                )
            couplings.append(Dense(np.ascontiguousarray(matrix.T)))  # pyright: ignore[reportArgumentType]
        fresh = cls(units[0], units[1:], weight_scale=0.0)
        return eqx.tree_at(lambda tree: tree.couplings, fresh, tuple(couplings))

    def given_label(self, label: SupportsIndex) -> DBM:
        r"""The machine without a label layer that class ``label`` (from 0) leaves: its top bias is shifted.

        .. math:: b_L \to b_L + W_{L+1}\, e_k, \qquad
            \log Z = \log \sum_k e^{b_{y,k}} Z_k, \quad p(v \mid y = k) = p_k(v)

        so that the laws of rows given a label, and :math:`\log Z` itself, are those of machines without labels. Raises
        `SettingError` for a machine without labels and a class that it does not have.

        >>> labelled = DBM(6, [4], labels=3, seed=0)
        >>> labelled.observed, labelled.given_label(2).observed
        ((0, 2), (0,))
        """
        units = check_labels(self, "the machine that a label leaves")
        number = whole_number(
            label,
            f"a label of this machine is a whole number from 0 to {units.states - 1}",
            least=0,
            most=units.states - 1,
        )
        below = self.units[-2].bias + self.couplings[-1].kernel[number]
        layers = (*self.units[:-2], eqx.tree_at(lambda tree: tree.bias, self.units[-2], below))
        fresh = DBM(layers[0], layers[1:], weight_scale=0.0)
        return eqx.tree_at(lambda tree: tree.couplings, fresh, self.couplings[:-1])

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`: numpy arrays, and the kinds of unit when not all are Bernoulli."""
        arguments: dict[str, Any] = {
            "weights": [np.asarray(coupling.kernel).T for coupling in self.couplings],
            "biases": [np.asarray(units.bias) for units in self.units],
        }
        kinds = [units.kind for units in self.units]
        if set(kinds) != {Bernoulli.kind}:
            arguments["kinds"] = kinds
        return arguments


def _label_layer(labels: SupportsIndex | Categorical | None) -> tuple[Categorical, ...]:
    """The label layer of so many classes, if any."""
    if labels is None:
        return ()
    if isinstance(labels, Categorical):
        return (labels,)
    classes = whole_number(
        labels, "labels must be a whole number of at least 2 classes", "pass e.g. 10", least=2
    )
    return (Categorical(classes),)
