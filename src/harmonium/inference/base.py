"""What an inference must be able to do."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.labels import label_units
from harmonium.numerics.random import Noise
from harmonium.typing import Batch, Clamp, Configuration


class Posterior(NamedTuple):
    """The positive phase of a batch.

    - ``energy``: per row, a number whose gradient is the expectation of the energy's gradient with the data clamped.
    - ``means``: per layer, the expectation of its units with the data clamped, shape ``(rows, n)``.
    - ``info``: for diagnostics.
    """

    energy: Float[Array, " rows"]
    means: Configuration
    info: dict[str, jax.Array]


class AbstractInference(eqx.Module):
    """How hidden layers are inferred once the data are clamped.

    An inference holds settings only. To add one, implement both methods in a file of its own, give it a name in
    ``inference/names.py`` and add a row to ``tests/contracts/cases.py``.
    """

    @abstractmethod
    def check(self, model: AbstractEnergyModel) -> None:
        """Raise an error that names the cure where this inference cannot serve the model."""

    @abstractmethod
    def posterior(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Posterior:
        """The positive phase of a model on a batch of data; only ``energy`` is differentiated."""


def clamped(model: AbstractEnergyModel, batch: Batch) -> Configuration:
    """The data, and hidden layers at rest: where an iteration with the data clamped begins.

    A label layer holds the labels of the batch; those that are not known (below 0, or none at all) are at rest too.
    """
    rows = batch.x.shape[0]
    layers = [
        batch.x,
        *(
            jnp.broadcast_to(units.mean(jnp.asarray(units.natural())), (rows, units.size))
            for units in model.units[1:]
        ),
    ]
    labels = label_units(model)
    if labels is not None and batch.label is not None:
        known = labels.one_hot(batch.label).astype(layers[-1].dtype)
        layers[-1] = jnp.where(batch.label[:, None] < 0, layers[-1], known)
    return tuple(layers)


def clamp_of(model: AbstractEnergyModel, batch: Batch) -> Clamp:
    """What a batch holds: its rows, and of a label layer the labels that are known."""
    if label_units(model) is None or batch.label is None:
        return (True, *(None for _ in model.units[1:]))
    known = jnp.broadcast_to(batch.label[:, None] >= 0, (batch.x.shape[0], model.units[-1].size))
    return (True, *(None for _ in model.units[1:-1]), known)
