"""What an undirected model must be able to do."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from harmonium.energy.cumulant import Split
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.typing import Clamp, Configuration, Layers
from harmonium.units.base import AbstractTwoValuedUnits, AbstractUnits

Model = TypeVar("Model", bound="AbstractEnergyModel")


class AbstractEnergyModel(eqx.Module):
    r"""A density :math:`p(x) = e^{-E(x)}/Z` over a configuration: one array per layer of units.

    Methods broadcast over leading axes. ``observed`` holds the indices of the layers that data are given for.
    """

    units: eqx.AbstractVar[tuple[AbstractUnits, ...]]
    couplings: eqx.AbstractVar[tuple[eqx.Module, ...]]

    @property
    def observed(self) -> tuple[int, ...]:
        """Indices of the layers that data are given for."""
        return (0,)

    @abstractmethod
    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        """Energy of a complete configuration, in nats."""

    @abstractmethod
    def field(self, layer: int, configuration: Configuration) -> Float[Array, "*batch n"]:
        """Natural parameter of one layer given all the others."""

    @abstractmethod
    def sweep(
        self,
        noise: Noise,
        configuration: Configuration,
        beta: Float[Array, "*batch"] | float | None = None,
        clamp: Clamp | None = None,
        *,
        backwards: bool = False,
    ) -> Configuration:
        r"""One block Gibbs sweep at inverse temperature ``beta`` (None is 1), holding what ``clamp`` holds.

        ``backwards`` draws the same blocks in the opposite order. Each draw alone is reversible and a sweep is not:
        what undoes a sweep is the sweep backwards, :math:`p(x) S(x, y) = p(y) \overleftarrow{S}(y, x)`.
        """

    @abstractmethod
    def free_energy(self, visible: Num[Array | np.ndarray, "*batch visible"]) -> Float[Array, "*batch"]:
        """Free energy of visible rows, in nats: the negative log-probability up to ``log Z``.

        Of a machine with a label layer a row may have its label behind it (one-hot), and is then scored with it;
        without, the label is summed out like the hidden units.
        Raises `BudgetError` where too many hidden units would have to be enumerated.
        """

    @abstractmethod
    def chain_energy(self, configuration: Configuration) -> Float[Array, "*batch"]:
        """Per chain, an energy whose gradient has the expectation of the energy's under the model.

        Layers that can be summed out in closed form are: their means are less noisy than their draws.
        """

    @abstractmethod
    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        r"""Coupling and bias of the same energy as :math:`-\frac12 x^\top C x - b^\top x`, layer after layer in ``x``.

        ``C`` is symmetric with a zero diagonal. Raises `SettingError` for units with other energies of their own.
        """

    @abstractmethod
    def split(self, held: bool) -> Split:
        """Units that an exact sum enumerates and those it sums out, of all layers or, ``held``, of the hidden ones.

        Numbers count the units of all layers one after the other, those of a label layer left out: an exact sum is made
        once for each class. Raises `SettingError` for other units that are not two-valued.
        """

    @abstractmethod
    def from_centred(self, offsets: Configuration) -> Self:
        """Read this model's arrays as parameters in centred coordinates and return the ordinary ones (linear)."""

    @abstractmethod
    def to_centred(self, offsets: Configuration) -> Self:
        """The inverse of :meth:`from_centred`."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The arguments of ``from_arrays`` that rebuild this model; those at their default are left out."""


def as_layer(model: AbstractEnergyModel, index: int, layer: Array | np.ndarray) -> Float[Array, "*batch n"]:
    """One layer as an array of the model's dtype. Raises `SettingError` for another number of units."""
    size = model.units[index].size
    if np.shape(layer)[-1:] != (size,):
        raise SettingError(
            f"layer {index} has {size} units, got an array of shape {np.shape(layer)}; its last axis must be {size}"
        )
    return jnp.asarray(layer).astype(jnp.result_type(model.units[index].bias))


def as_layers(model: AbstractEnergyModel, configuration: Layers) -> Configuration:
    """A complete configuration, every layer as `as_layer` gives it.

    Raises `SettingError` for another number of layers and for layers whose leading shapes do not go together.
    """
    if len(configuration) != len(model.units):
        raise SettingError(
            f"a configuration of this {type(model).__name__} has {len(model.units)} layers, got "
            f"{len(configuration)}; pass a tuple with one array per layer"
        )
    layers = tuple(as_layer(model, index, layer) for index, layer in enumerate(configuration))
    shapes = [layer.shape[:-1] for layer in layers]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise SettingError(
            f"the layers of one configuration have the leading shapes {', '.join(map(str, shapes))}, which do not "
            "go together; pass as many rows in each layer"
        ) from None
    return layers


def with_shifted_biases(model: Model, offsets: Configuration, sign: int) -> Model:
    """Move a model of couplings in pairs between coordinates: out of centred ones with ``sign`` -1, into them with 1.

    ``-(x-m)'W(y-n) - b'x`` is ``-x'Wy - (b - Wn)'x`` up to a constant, and the same for units of one population.
    """
    biases = []
    for index, units in enumerate(model.units):
        shift = model.field(index, offsets) - units.natural()
        biases.append(units.bias + sign * shift)
    return eqx.tree_at(lambda tree: [units.bias for units in tree.units], model, biases)


def check_two_valued(model: AbstractEnergyModel, what: str, but: AbstractUnits | None = None) -> None:
    """Raise `SettingError` unless every unit has two values and a linear energy of its own, ``but`` for one layer."""
    for index, units in enumerate(model.units):
        if not isinstance(units, AbstractTwoValuedUnits) and units is not but:
            cure = "use Bernoulli or Spin units"
            if index > 0 and index in model.observed:
                cure = "pass model.given_label(k), the machine without labels that class k leaves"
            raise SettingError(f"layer {index} has {units.kind} units, which {what} cannot take; {cure}")


def check_model(model: Any) -> None:
    """Raise `SettingError` unless this is a model; a trained run is told to pass the model in it."""
    if isinstance(model, type) or not isinstance(model, AbstractEnergyModel):
        cure = (
            "pass run.model"
            if hasattr(model, "model")
            else "take a member out of it, such as ensemble.member(0)"
            if hasattr(model, "member")
            else "pass the model first, then what it is to work on"
        )
        what = model.__name__ if isinstance(model, type) else type(model).__name__
        raise SettingError(f"a model such as hm.RBM(64, 16) is needed, got {what}; {cure}")


def check_finite(model: Any) -> None:
    """Raise `SettingError` unless every parameter of this model or ensemble is a finite number in float32."""
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(as_single(model))):
        raise SettingError(
            "the model holds a parameter that is not finite in float32, in which sampling computes; clean its arrays "
            "first"
        )
