"""What a sampler must be able to do, and where its chains start."""

# Annotations are evaluated here: equinox does not see an abstract attribute in the text of one.

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.random import Noise
from harmonium.typing import Configuration, Words

SamplerInfo = dict[str, jax.Array]


class AbstractSamplerState(eqx.Module):
    """What a sampler needs for its next step, and nothing else: a value."""

    particles: eqx.AbstractVar[Configuration]


class AbstractReportingState(AbstractSamplerState):
    """A state of which a run's metrics say something."""

    @abstractmethod
    def metrics(self) -> dict[str, float | None]:
        """Numbers of the last step, by the names that they have in the metrics; None for one that is not finite."""


class AbstractSampler(eqx.Module):
    """A Markov kernel over many chains at once.

    A sampler holds settings only. With the model fixed, :meth:`step` is a fixed kernel that leaves the model's
    distribution invariant; ``state.particles`` are the chains at that target, rows first. To add one, implement the
    three methods in a file of its own and add one row to ``tests/contracts/cases.py``: it inherits the no-drift proof.
    """

    traceable: ClassVar[bool] = True

    @abstractmethod
    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> Any:
        """A state whose chains are ``particles``."""

    @abstractmethod
    def step(self, noise: Noise, model: AbstractEnergyModel, state: Any) -> tuple[Any, SamplerInfo]:
        """Advance every chain; the info is for diagnostics and is not needed again.

        ``noise`` is this step's own: any draw of its streams 0 to 99 may be used (rules use the upper ones).
        """

    @abstractmethod
    def unit_updates(self, model: AbstractEnergyModel, state: Any) -> int:
        """Units that one step draws, those of every replica counted: the cost at which samplers are compared."""


class AbstractAdaptiveSampler(AbstractSampler):
    """A sampler that also learns, apart from its kernel: schedules, weights, rungs.

    A step stays a fixed kernel: what it may change is called by whoever trains, and by nobody who proves, evaluates, or
    samples after the burn-in. What is learned lies in the state, so that a resumed run goes on learning where it was.
    """

    @property
    @abstractmethod
    def changes_shapes(self) -> bool:
        """Whether :meth:`between` may change the shapes of a state, such as by another rung."""

    @abstractmethod
    def adapt(self, state: Any, info: SamplerInfo) -> Any:
        """The state after a step, having learned from its info: pure, and of the same shapes."""

    @abstractmethod
    def between(self, words: Words, model: AbstractEnergyModel, state: Any) -> Any:
        """The state with which chains go on, on the host, at absolute multiples of a run's chunk."""


class AbstractPathSampler(AbstractSampler):
    """A sampler that walks between its model and a base, which had best be at the marginals of the data."""

    @abstractmethod
    def rebased(self, state: Any, model: AbstractEnergyModel, mean: Float[Array, " visible"]) -> Any:
        """The state with the same chains, whose base has the visible units at these means."""


def resting_particles(noise: Noise, model: AbstractEnergyModel, chains: int) -> Configuration:
    """Independent chains drawn from the biases alone, then one sweep: where persistent chains start."""
    particles = []
    for index, units in enumerate(model.units):
        words, _ = noise.at(index + 1).pair((chains, units.size))
        field = jnp.broadcast_to(units.natural(), (chains, units.size))
        particles.append(units.sample(words, jnp.asarray(field)))
    return model.sweep(noise, tuple(particles))
