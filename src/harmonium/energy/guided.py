"""A machine of layers beside a stack of RBMs over its even layers, which proposes configurations of them."""

# Annotations are evaluated here: equinox does not see an abstract attribute in the text of one.

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.couplings.absent import Absent
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.typing import Configuration, Layers
from harmonium.units.base import AbstractUnits


class AbstractGuided(AbstractLayered):
    r"""A machine of layers :math:`x^0, \dots, x^L` and its *guide*: RBMs over all its even layers together.

    Even layers are independent given the odd ones and the other way round, so that any such machine is an RBM with its
    odd layers on one side and its even layers :math:`x_e = (x^0, x^2, \dots)` on the other. A stack of RBMs whose
    visible layer has the units of :math:`x_e` can therefore exchange configurations with it, as levels of a stack
    exchange codes. As an energy model it is the *product* of the two,

    .. math:: E(x) + E_g(z, g_1, \dots), \qquad z \text{ of the units of } x_e,

    in nats: machine and guide are independent, and log partition functions add up. In that law the whole is sampled and
    learned. Whatever speaks of probabilities, `harmonium.log_likelihood`, `harmonium.log_partition` and
    `harmonium.sample`, speaks of :attr:`machine`: a guide says nothing about data.

    Source: "Deep Tempering" (2014), section 5, which proposes "a latent variable model over all the even layers" and
    says no more of it.
    """

    machine: eqx.AbstractVar[AbstractLayered]
    guide: eqx.AbstractVar[AbstractStack]
    apart: eqx.AbstractVar[Absent]

    @property
    def units(self) -> tuple[AbstractUnits, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The layers of the machine, then those of the guide."""
        return (*self.machine.units, *self.guide.units)

    @property
    def couplings(self) -> tuple[Dense | Absent, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The couplings of the machine, none between it and the guide, and those of the guide."""
        return (*self.machine.couplings, self.apart, *self.guide.couplings)

    @property
    def observed(self) -> tuple[int, ...]:
        return self.machine.observed

    @abstractmethod
    def as_stack(self) -> AbstractStack:
        """The same law as a stack: odd layers below even ones as the bottom RBM, the guide above it."""

    @property
    def height(self) -> int:
        """How many layers the machine has; those of the guide follow."""
        return len(self.machine.units)

    def proposal(self, layers: Layers) -> Float[Array, "*batch n"]:
        """The even layers of a configuration of the machine, one after the other: what is exchanged."""
        return jnp.concatenate([jnp.asarray(layers[index]) for index in range(0, self.height, 2)], axis=-1)

    def to_stack(self, configuration: Configuration) -> Configuration:
        """A configuration as one of :meth:`as_stack`."""
        odd = [configuration[index] for index in range(1, self.height, 2)]
        return (jnp.concatenate(odd, axis=-1), self.proposal(configuration), *configuration[self.height :])

    def from_stack(self, configuration: Configuration) -> Configuration:
        """The inverse of :meth:`to_stack`."""
        layers: list[Array] = [jnp.zeros(0)] * self.height
        for side, joined in zip((1, 0), configuration[:2], strict=True):
            start = 0
            for index in range(side, self.height, 2):
                size = self.units[index].size
                layers[index] = joined[..., start : start + size]
                start += size
        return (*layers, *configuration[2:])


def joined_units(layers: tuple[AbstractUnits, ...], what: str) -> AbstractUnits:
    """Layers of one kind as one layer. Raises `SettingError` for layers of several kinds, which ``what`` names."""
    kinds = sorted({units.kind for units in layers})
    if len(kinds) > 1:
        raise SettingError(
            f"a guide takes {what} of a machine as one layer of one kind, got {' and '.join(kinds)} units; give them "
            "the same kind, or temper with hm.ParallelTempering() (--sampler pt)"
        )
    return type(layers[0])(bias=jnp.concatenate([jnp.asarray(units.bias) for units in layers], axis=-1))


def joined_kernel(machine: AbstractLayered) -> Float[Array, "even odd"]:
    """The couplings of a machine as one kernel, even layers by odd ones, zero where layers are not neighbours."""
    sides = machine.sides
    rows = []
    for even in sides[0]:
        row = []
        for odd in sides[1]:
            if odd == even - 1:
                row.append(jnp.asarray(machine.couplings[odd].kernel))
            elif odd == even + 1:
                row.append(jnp.asarray(machine.couplings[even].kernel).T)
            else:
                shape = (machine.units[even].size, machine.units[odd].size)
                row.append(jnp.zeros(shape, jnp.result_type(machine.couplings[0].kernel)))
        rows.append(jnp.concatenate(row, axis=1))
    return jnp.concatenate(rows, axis=0)


def unguided(model: AbstractEnergyModel) -> AbstractEnergyModel:
    """The machine that a model is about: that of a guided one without its guide, any other as it is."""
    return model.machine if isinstance(model, AbstractGuided) else model


def check_undirected(model: object, what: str) -> None:
    """Raise `SettingError` for a stack, whose two laws ``what`` would mix up, and for a guided machine."""
    if isinstance(model, AbstractGuided):
        raise SettingError(f"{what} is of a machine without its guide; pass guided.machine")
    if isinstance(model, AbstractStack):
        raise SettingError(
            f"{what} takes an undirected machine, got {type(model).__name__}, which is read from the top as a "
            "directed density; use hm.log_likelihood on it, or pass one of its RBMs, such as dbn.levels[0]"
        )
