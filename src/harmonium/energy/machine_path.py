"""The straight line from independent units to a general machine."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num
from numpy.typing import ArrayLike

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.boltzmann import BoltzmannMachine, Tilt
from harmonium.energy.cumulant import Split
from harmonium.energy.enumeration import free_energy_of
from harmonium.energy.independent import Independent
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.path import Path
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.typing import Clamp, Configuration, Layers
from harmonium.units.base import AbstractUnits


class MachinePath(AbstractEnergyModel):
    r"""The model a fraction ``beta`` of the way from independent units to a general machine.

    .. math:: E_\beta(x) = (1 - \beta)\, E_0(x) + \beta\, E_1(x)
        = -\tfrac\beta2 x^\top C x - \big((1 - \beta)\, b_0 + \beta\, b\big)^\top x

    in nats: at 0 it *is* the base, at 1 the machine. It is to `harmonium.energy.boltzmann.BoltzmannMachine` what
    `harmonium.energy.path.Path` is to layers; ``beta`` is one number for all rows or one per row. A sweep is that of
    the machine at ``beta`` with ``(1 - beta)`` of the base's biases added to its fields.

    Raises `SettingError` when the two ends have not the same layers. Source: as for `Path`.

    >>> import numpy as np
    >>> machine = BoltzmannMachine.from_arrays([[0.0, 2.0], [2.0, 0.0]], np.zeros(2))
    >>> path = MachinePath(Independent(machine.units), machine)
    >>> float(path.at(0.25).energy((np.ones(2),)))  # a quarter of -2
    -0.5
    """

    base: Independent
    model: BoltzmannMachine
    beta: Float[Array, "*batch"]

    def __init__(self, base: Independent, model: BoltzmannMachine, beta: ArrayLike = 1.0):
        ends = [[(units.kind, units.size) for units in end.units] for end in (base, model)]
        if ends[0] != ends[1]:
            raise SettingError(
                f"a path runs between two machines of the same layers, got {ends[0]} and {ends[1]}; pass a base of the "
                "machine's shape, e.g. Independent(machine.units)"
            )
        self.base, self.model = base, model
        self.beta = beta if hasattr(beta, "dtype") else np.asarray(beta, model.units[0].bias.dtype)  # pyright: ignore[reportAttributeAccessIssue]

    @classmethod
    def from_arrays(cls, base: Independent, model: BoltzmannMachine, beta: ArrayLike = 1.0) -> MachinePath:
        """The path itself: its parameters are its two ends and the point between them."""
        return cls(base, model, beta)

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`."""
        return {"base": self.base, "model": self.model, "beta": self.beta}

    def at(self, beta: ArrayLike) -> MachinePath:
        """This path at another point, one for all rows or one per row."""
        return MachinePath(self.base, self.model, beta)

    @property
    def units(self) -> tuple[AbstractUnits, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The layers of the machine; what they feel at this point of the path is :meth:`field`."""
        return self.model.units

    @property
    def couplings(self) -> tuple[eqx.Module, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The couplings of the machine."""
        return self.model.couplings

    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        model = self.model.energy(configuration)
        return (1 - self.beta) * self.base.energy(configuration) + self.beta * model

    def field(self, layer: int, configuration: Configuration) -> Float[Array, "*batch n"]:
        beta = jnp.expand_dims(jnp.asarray(self.beta), -1)
        base, model = (end.field(layer, configuration) for end in (self.base, self.model))
        return (1 - beta) * base + beta * model

    def sweep(
        self,
        noise: Noise,
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
        *,
        backwards: bool = False,
    ) -> Configuration:
        """A sweep of the machine, each unit drawn exactly from its field at this point, times ``beta``."""
        heat = 1.0 if beta is None else jnp.asarray(beta)
        bias = jnp.concatenate([units.bias for units in self.base.units])
        tilt = Tilt(bias, jnp.asarray(heat * (1 - self.beta)))
        return self.model.sweep(
            noise, configuration, jnp.asarray(heat * self.beta), clamp, backwards=backwards, tilt=tilt
        )

    def log_weight(
        self, configuration: Layers, beta: Float[Array, "*points"] | float
    ) -> Float[Array, "*batch"]:
        r"""Log importance weight of configurations, drawn at this point, at another point ``beta``, in nats.

        .. math:: E_{\beta_0}(x) - E_{\beta_1}(x) = (\beta_1 - \beta_0)\, \big(E_0(x) - E_1(x)\big)

        with the difference of the ends as one energy of other biases, which loses nothing to rounding.
        """
        pairs = zip(self.model.units, self.base.units, strict=True)
        biases = [units.bias - start.bias for units, start in pairs]
        difference = eqx.tree_at(lambda tree: [units.bias for units in tree.units], self.model, biases)
        return jnp.asarray((self.beta - beta) * difference.energy(configuration))

    def free_energy(self, visible: Num[Array | np.ndarray, "*batch visible"]) -> Float[Array, "*batch"]:
        return free_energy_of(self, visible)

    def chain_energy(self, configuration: Configuration) -> Float[Array, "*batch"]:
        return self.energy(configuration)

    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        if np.ndim(self.beta):
            raise SettingError(
                f"a path at one point for each of {np.shape(self.beta)} rows is many machines; use path.at(beta) with "
                "one number"
            )
        coupling, bias = self.model.pairwise()
        start = jnp.concatenate([units.bias for units in self.base.units])
        return self.beta * coupling, (1 - self.beta) * start + self.beta * bias

    def split(self, held: bool) -> Split:
        return self.model.split(held)

    def from_centred(self, offsets: Configuration) -> MachinePath:
        return MachinePath(self.base.from_centred(offsets), self.model.from_centred(offsets), self.beta)

    def to_centred(self, offsets: Configuration) -> MachinePath:
        return MachinePath(self.base.to_centred(offsets), self.model.to_centred(offsets), self.beta)


AnyPath = Path | MachinePath
"""A path of layers or of a general machine."""


def path_between(base: Independent, model: AbstractEnergyModel, beta: ArrayLike = 1.0) -> AnyPath:
    """The path from independent units to a model, whichever kind of machine that is.

    Raises `SettingError` for a model that is neither one of layers nor a general machine.
    """
    if isinstance(model, BoltzmannMachine):
        return MachinePath(base, model, beta)
    if not isinstance(model, AbstractLayered):
        raise SettingError(
            f"a path leads to a machine such as hm.RBM(64, 16) or hm.BoltzmannMachine(64, 16), got a "
            f"{type(model).__name__}"
        )
    return Path(base, model, beta)
