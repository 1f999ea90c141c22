"""What an inference must be able to do."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.random import Noise
from harmonium.typing import Batch, Configuration


class AbstractInference(eqx.Module):
    """The positive phase of a model on a batch of data."""

    @abstractmethod
    def energy(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Float[Array, " rows"]:
        """Per row, a number whose gradient is the expectation of the energy's gradient with the data clamped."""

    @abstractmethod
    def means(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Configuration:
        """Per layer, the expectation of its units with the data clamped; shape ``(rows, n)``."""
