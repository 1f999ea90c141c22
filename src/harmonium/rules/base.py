"""What a training rule must be able to do."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.typing import Batch, Configuration, Step, Words

RuleInfo = dict[str, jax.Array]


class AbstractRule(eqx.Module):
    """A rule holds settings only; its state is a value that the trainer carries and checkpoints.

    Only the *gradient* of the surrogate has a meaning. To add a rule, implement the three methods in a file of its
    own and add one row to ``tests/contracts/cases.py``.
    """

    @abstractmethod
    def init(self, words: Words, model: AbstractEnergyModel, batch: Batch) -> Any:
        """The state before the first update, from a batch of representative rows."""

    @abstractmethod
    def loss(
        self, model: AbstractEnergyModel, step: Step, state: Any, batch: Batch
    ) -> tuple[Float[Array, ""], tuple[Any, RuleInfo]]:
        """The surrogate to differentiate, and the next state with numbers for people."""

    @abstractmethod
    def offsets(self, state: Any) -> Configuration | None:
        """Per-layer offsets of the centred coordinates the gradient is taken in; None for ordinary ones."""

    @abstractmethod
    def chains(self, state: Any) -> Configuration | None:
        """The persistent chains, rows first; None for a rule that keeps none."""


class Phases(NamedTuple):
    """The two means whose difference is a surrogate, and what goes on from one update to the next.

    - ``positive``: the mean energy with the data clamped, ``negative``: that of the model, in nats. Only their
      gradients have a meaning.
    - ``state``, ``info``: as `AbstractRule.loss` gives them.
    """

    positive: Float[Array, ""]
    negative: Float[Array, ""]
    state: Any
    info: RuleInfo


class AbstractPhasedRule(AbstractRule):
    """A rule whose surrogate is the mean energy of the data minus that of the model: another may take one of them."""

    @abstractmethod
    def phases(self, model: AbstractEnergyModel, step: Step, state: Any, batch: Batch) -> Phases:
        """Both means; the surrogate is their difference."""


class AbstractAdaptiveRule(AbstractRule):
    """A rule whose state may also be changed on the host, between the chunks of a run."""

    @property
    @abstractmethod
    def adapts(self) -> bool:
        """Whether there is anything that :meth:`between` does."""

    @property
    @abstractmethod
    def changes_shapes(self) -> bool:
        """Whether :meth:`between` may change the shapes of the state."""

    @abstractmethod
    def between(self, words: Words, model: AbstractEnergyModel, state: Any) -> Any:
        """The state with which the run goes on, at absolute multiples of its chunk."""
