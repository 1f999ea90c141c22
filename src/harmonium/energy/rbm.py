"""The restricted Boltzmann machine."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from harmonium.energy.couplings.dense import Dense
from harmonium.energy.labels import check_softmax_layers
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.parameters import INITIAL_WEIGHT_SCALE, as_parameter, starting_weights
from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits, check_size
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.kinds import unit_class


class RBM(AbstractLayered):
    r"""A restricted Boltzmann machine: one visible and one hidden layer.

    .. math:: E(v, h) = -b^\top v - c^\top h - v^\top W h

    in nats, with ``W`` visible by hidden. For hidden units that are 0 or 1 the free energy is
    :math:`F(v) = -b^\top v - \sum_j \log(1 + e^{c_j + v^\top W_{:j}})`.

    **Arguments:** ``visible`` and ``hidden`` are sizes (Bernoulli units) or layers such as ``Spin(64)``; weights
    are those given (visible by hidden) or ``weight_scale`` times standard normal numbers of ``seed``; biases are as
    the layers have them (zero for sizes).

    Raises `SettingError` for sizes below one and for a seed or ``weight_scale`` out of range. Source: the chapter, RBM
    energy and conditionals; the printed conditional :math:`\prod_j \sigma(c_j + v^\top W_{:j})` holds for all-ones
    only, the right form carries :math:`2h_j - 1`.

    >>> rbm = RBM(4, 3, seed=0)
    >>> rbm.parameters()["weights"].shape
    (4, 3)
    """

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Dense, ...]

    def __init__(
        self,
        visible: SupportsIndex | AbstractUnits,
        hidden: SupportsIndex | AbstractUnits,
        *,
        weights: Array | np.ndarray | None = None,
        seed: SupportsIndex = 0,
        weight_scale: float = INITIAL_WEIGHT_SCALE,
    ):
        layers = tuple(
            layer if isinstance(layer, AbstractUnits) else Bernoulli(check_size(layer, "RBM"))
            for layer in (visible, hidden)
        )
        check_softmax_layers(layers, "an RBM")
        shape = (layers[1].size, layers[0].size)
        if weights is None:
            kernel = starting_weights(shape, seed, weight_scale)
        else:
            kernel = np.ascontiguousarray(weights.T) if isinstance(weights, np.ndarray) else weights.T
        if kernel.shape != shape:
            raise SettingError(
                f"weights must be visible by hidden, here {shape[::-1]} by the layers, got shape {kernel.T.shape}; "
                "pass weights.T if they are hidden by visible"
            )
        self.units = layers
        self.couplings = (Dense(kernel),)  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_arrays(
        cls,
        weights: ArrayLike,
        visible_bias: ArrayLike,
        hidden_bias: ArrayLike,
        *,
        visible: str = Bernoulli.kind,
        hidden: str = Bernoulli.kind,
    ) -> RBM:
        """A machine with given parameters, whose dtype is kept (float64 stays float64).

        ``weights`` is visible by hidden; ``visible`` and ``hidden`` name the kinds of unit. Raises `SettingError`
        when shapes do not fit together or a number is not finite.
        """
        layers = (
            unit_class(visible)(bias=as_parameter(visible_bias, "visible_bias", 1)),
            unit_class(hidden)(bias=as_parameter(hidden_bias, "hidden_bias", 1)),
        )
        return cls(*layers, weights=as_parameter(weights, "weights", 2))

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`: numpy arrays, and the kinds of unit that are not Bernoulli."""
        arguments: dict[str, Any] = {
            "weights": np.asarray(self.couplings[0].kernel).T,
            "visible_bias": np.asarray(self.units[0].bias),
            "hidden_bias": np.asarray(self.units[1].bias),
        }
        for name, units in zip(("visible", "hidden"), self.units, strict=True):
            if units.kind != Bernoulli.kind:
                arguments[name] = units.kind
        return arguments
