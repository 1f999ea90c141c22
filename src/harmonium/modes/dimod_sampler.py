"""Any dimod sampler as a mode solver, and how one is asked: by its interface alone, without importing dimod."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.cumulant import ends_of
from harmonium.energy.quadratic import SPIN, Quadratic, pairs_of, quadratic_of
from harmonium.energy.variables import configuration_of, states_of
from harmonium.errors import SettingError
from harmonium.modes.base import (
    AGREEMENT,
    AbstractModeSolver,
    Findings,
    check_searchable,
    exact_energies,
)
from harmonium.typing import Configuration, Words

Options = tuple[tuple[str, Any], ...]


class DimodSolver(AbstractModeSolver):
    """The best of the samples that a dimod sampler gives: simulated annealing, tabu search, hardware, or all states.

    The machine is written in spins and handed to ``sampler.sample_ising(h, J, ...)``, with ``options`` of its own, such
    as ``num_reads=100``, and with a ``seed`` where it takes one. Nothing is proved, whatever the sampler is: also of
    ``dimod.ExactSolver`` the certificate is "best found", and ``solver="exact"`` is what proves. Of its updates one per
    unit of every sample is counted, times ``num_sweeps`` where that is among the options: a sampler tells no more.

    `harmonium.modes.find` makes one of any dimod sampler. Within a compiled program the sampler is called outside of
    it, once for each member of an ensemble; without a seed of its own a run that uses it does not repeat.

    Raises `SettingError` for what is no dimod sampler and for options that it does not take.

    >>> import dimod
    >>> from harmonium.energy.rbm import RBM
    >>> rbm = RBM.from_arrays([[4.0]], [-1.0], [-2.0])
    >>> DimodSolver(dimod.ExactSolver()).explore(np.zeros(2, np.uint32), rbm).energy
    -1.0
    """

    sampler: Any = eqx.field(static=True)
    options: Options = eqx.field(static=True)

    traceable: ClassVar[bool] = True

    def __init__(self, sampler: Any, **options: Any):
        self.sampler = sampler
        self.options = checked_options(sampler, options, ("seed",))

    def check(self, model: AbstractEnergyModel) -> None:
        check_searchable(model)
        pairs_of(model)

    def search(self, words: Words, model: AbstractEnergyModel) -> tuple[Configuration, Float[Array, ""]]:
        coupling, bias = model.pairwise()
        pairs, ends = pairs_of(model), ends_of(model.units)
        first, second = pairs.T

        def best(words: Array, coupling: Array, bias: Array) -> np.ndarray:
            matrix, field = np.asarray(coupling, np.float64), np.asarray(bias, np.float64)
            problem = Quadratic(-field, -matrix[first, second], pairs, 0.0, ends).written_in(SPIN)
            states = self._states(np.asarray(words), problem)
            lowest = states[np.argmin(problem.energy(states))]
            return np.where(lowest > 0, ends[1], ends[0]).astype(coupling.dtype)

        shape = jax.ShapeDtypeStruct(bias.shape, bias.dtype)
        state = jax.pure_callback(best, shape, words, coupling, bias, vmap_method="sequential")
        edges = np.cumsum([units.size for units in model.units])[:-1]
        layers = tuple(jnp.split(state, edges))
        return layers, model.energy(layers)

    def explore(self, words: Words, model: AbstractEnergyModel) -> Findings:
        states = self._states(np.asarray(words), quadratic_of(model).written_in(SPIN))
        ends = configuration_of(model, states, "SPIN")
        energies = exact_energies(model, ends)
        best = int(np.argmin(energies))
        lowest = float(energies[best])
        agreed = np.count_nonzero(energies - lowest <= AGREEMENT * max(1.0, abs(lowest)))
        state = tuple(layer[best] for layer in ends)
        sweeps = int(dict(self.options).get("num_sweeps", 1))
        return Findings(state, lowest, None, len(energies), int(agreed), float(states.size * sweeps))

    def _states(self, words: np.ndarray, problem: Quadratic) -> Float[np.ndarray, "rows n"]:
        return answers(self.sampler, problem, self.options, seed=int(words[0]))


def is_dimod_sampler(value: Any) -> bool:
    """Whether this has the interface of a dimod sampler."""
    return not isinstance(value, type) and callable(getattr(value, "sample_ising", None))


def checked_options(sampler: Any, options: Mapping[str, Any], ours: tuple[str, ...]) -> Options:
    """The options of a dimod sampler as a value that hashes.

    Raises `SettingError` for what is no dimod sampler, for options that are ``ours``, and for those it does not take.
    """
    if not is_dimod_sampler(sampler):
        what = sampler.__name__ if isinstance(sampler, type) else repr(sampler)
        raise SettingError(
            f"a dimod sampler is needed, with sample_ising, got {what}; pass e.g. "
            "dwave.samplers.SimulatedAnnealingSampler() (pip install 'harmonium[anneal]')"
        )
    taken = options_of(sampler)
    for name, value in options.items():
        if name in ours:
            raise SettingError(
                f"{name}={value!r} is not for you to set: it follows from the run; leave it out"
            )
        if taken is not None and name not in taken:
            raise SettingError(
                f"{type(sampler).__name__} has no option {name!r}; it takes {', '.join(sorted(taken)) or 'none'}"
            )
    return tuple((name, _hashable(value)) for name, value in sorted(options.items()))


def options_of(sampler: Any) -> frozenset[str] | None:
    """The options that a dimod sampler takes; None where it takes any."""
    named = getattr(sampler, "parameters", None)
    if named is not None:
        return frozenset(named)
    kinds = inspect.signature(sampler.sample_ising).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in kinds):
        return None
    return frozenset(one.name for one in kinds) - {"h", "J"}


def answers(
    sampler: Any,
    problem: Quadratic,
    options: Options,
    *,
    seed: int,
    reads: int | None = None,
    start: Float[np.ndarray, "rows n"] | None = None,
) -> Float[np.ndarray, "rows n"]:
    """Spins that a dimod sampler gives for an energy that is written in spins, one row per sample.

    Of ``seed`` (its lower 31 bits) and ``reads`` it is told where it takes them, and of ``start``, its initial states.
    """
    fields = dict(enumerate(problem.linear.tolist()))
    pairs = map(tuple, problem.pairs.tolist())
    told, taken = dict(options), options_of(sampler) or ()
    if "seed" in taken:
        told["seed"] = seed & 0x7FFFFFFF
    if reads is not None and "num_reads" in taken:
        told["num_reads"] = reads
    if start is not None:
        told["initial_states"] = start.astype(np.int8), list(fields)
        if "initial_states_generator" in taken:
            told["initial_states_generator"] = "none"
    found = sampler.sample_ising(fields, dict(zip(pairs, problem.strengths.tolist(), strict=True)), **told)
    return states_of(found, list(fields), "SPIN")


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value
