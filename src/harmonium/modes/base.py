"""What a search for the state of lowest energy must be able to do, and what it may claim."""

# Annotations are evaluated here: equinox does not see an abstract attribute in the text of one.

from abc import abstractmethod
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.energy.guided import check_undirected
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.numerics.random import Noise
from harmonium.typing import Configuration, Layers, Words

AGREEMENT = 1e-9
"""Two states are of one energy when they differ by less than this part of it, or of one nat."""


class Findings(NamedTuple):
    """What a search found, on the host: numpy arrays and numbers, energies in nats and in double precision.

    - ``configuration``: the best state, one array per layer without a batch axis, and its ``energy``.
    - ``lower_bound``: what no state's energy lies below, by proof; None where nothing was proved. The state is the
      ground state where the two energies are the same.
    - ``runs``: how many searches were made, ``agreed`` how many of them ended at that energy.
    - ``unit_updates``: units that all of them updated, the cost at which solvers are compared.
    """

    configuration: Layers
    energy: float
    lower_bound: float | None
    runs: int
    agreed: int
    unit_updates: float


class AbstractModeSolver(eqx.Module):
    """A search for the configuration of lowest energy: the mode of the model's distribution.

    A solver holds settings only; what it does is a function of its words and the model. :meth:`search` is what training
    calls, inside its compiled loop and under a map over members where ``traceable``; :meth:`explore` is what
    `harmonium.modes.find` calls. To add a solver, implement the three methods in a file of its own (or those of
    `AbstractRestarts`) and add one row to ``tests/contracts/solver_cases.py``.
    """

    traceable: eqx.AbstractClassVar[bool]

    @abstractmethod
    def check(self, model: AbstractEnergyModel) -> None:
        """Raise `SettingError`, or `BudgetError`, for a machine that :meth:`search` cannot take."""

    @abstractmethod
    def search(self, words: Words, model: AbstractEnergyModel) -> tuple[Configuration, Float[Array, ""]]:
        """One configuration, its layers without a batch axis, and its energy in the model's dtype, in nats."""

    @abstractmethod
    def explore(self, words: Words, model: AbstractEnergyModel) -> Findings:
        """The best state found and what is known of it; on the host, with energies in double precision."""


class AbstractRestarts(AbstractModeSolver):
    """A search made of many runs side by side, the best of which counts. It proves nothing."""

    @abstractmethod
    def ends(self, words: Words, model: AbstractEnergyModel) -> Configuration:
        """The best configuration of every run, runs along the leading axis."""

    @abstractmethod
    def unit_updates(self, model: AbstractEnergyModel) -> float:
        """Units that all runs update at most."""

    def search(self, words: Words, model: AbstractEnergyModel) -> tuple[Configuration, Float[Array, ""]]:
        ends = self.ends(words, model)
        energies = model.energy(ends)
        best = jnp.argmin(energies)
        return tuple(layer[best] for layer in ends), energies[best]

    def explore(self, words: Words, model: AbstractEnergyModel) -> Findings:
        self.check(model)
        found = _ends_program()(self, words, model) if self.traceable else self.ends(words, model)
        ends = tuple(np.asarray(layer) for layer in found)
        energies = exact_energies(model, ends)
        best = int(np.argmin(energies))
        lowest = float(energies[best])
        agreed = np.count_nonzero(energies - lowest <= AGREEMENT * max(1.0, abs(lowest)))
        state = tuple(layer[best] for layer in ends)
        return Findings(state, lowest, None, len(energies), int(agreed), self.unit_updates(model))


@in_double_precision
def exact_energies(model: AbstractEnergyModel, configuration: Layers) -> Float[np.ndarray, "*batch"]:
    """Energies of configurations in double precision, in nats."""
    return np.asarray(_energy_program()(as_double(model), as_double(configuration)))


def check_searchable(model: AbstractEnergyModel) -> None:
    """Raise `SettingError` unless this is one undirected machine."""
    check_model(model)
    check_undirected(model, "a search for the state of lowest energy")


def random_starts(noise: Noise, model: AbstractEnergyModel, runs: int) -> Configuration:
    """``runs`` configurations in which every unit takes each of its values alike."""
    layers = []
    for index, units in enumerate(model.units):
        words, _ = noise.at(index).pair((runs, units.size))
        layers.append(units.sample(words, jnp.zeros((runs, units.size), jnp.result_type(units.bias))))
    return tuple(layers)


def count_units(model: AbstractEnergyModel) -> int:
    """Units of all layers."""
    return sum(units.size for units in model.units)


@cache
def _energy_program():
    return compile_function(lambda model, configuration: model.energy(configuration))


@cache
def _ends_program():
    return compile_function(_ends, static_argnums=(0,))


def _ends(solver: AbstractRestarts, words: Words, model: AbstractEnergyModel) -> Configuration:
    return solver.ends(words, jax.tree.map(jnp.asarray, model))
