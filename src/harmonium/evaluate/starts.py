"""States at equilibrium, or as near to it as can be had: where reversed chains start."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.errors import SettingError
from harmonium.evaluate.annealing import Annealed
from harmonium.evaluate.base_rate import chosen_rows
from harmonium.evaluate.exact import EnumerationPlan, plan_enumeration
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET, chunk_bits, chunk_of_states
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.numerics.random import Noise
from harmonium.samplers.base import resting_particles
from harmonium.typing import Configuration, Layers, Words
from harmonium.units.categorical import Categorical

MOST_OPERATIONS = 2e11
"""Most operations of an exact sum that is made without being asked for: some ten seconds. Counted, never timed."""

_HELD_SWEEPS = 10


class Start(NamedTuple):
    """Chains that reversed walks start from.

    ``origin`` says in words what they are. Of chains that are not exact draws the first ``first`` started from rows
    (or from the ends of a forward walk) and the others from rest; 0 for exact draws. ``blind``: they are neither exact
    draws nor were there rows.
    """

    particles: tuple[np.ndarray, ...]
    origin: str
    first: int
    blind: bool = False


def affordable_plan(
    model: AbstractEnergyModel, bits: int = BIT_BUDGET, operations: float = MOST_OPERATIONS
) -> EnumerationPlan | None:
    """How to enumerate a model, when that is possible within both budgets; else None."""
    try:
        plan = plan_enumeration(model)
    except SettingError:
        return None
    return plan if plan.bits <= bits and plan.operations <= operations else None


def equilibrium_starts(
    model: AbstractEnergyModel,
    side: int | None,
    rows: np.ndarray | None,
    walk: Annealed | None,
    chains: int,
    sweeps: int,
    words: tuple[Words, Words, Words],
) -> Start:
    """Starts of ``chains`` reversed walks on ``model``, which hold the states of ``side``.

    Exact draws when the side can be enumerated within the budgets. Else, and for a machine without sides, Gibbs runs
    of ``sweeps`` sweeps: half from ``rows`` (without rows, from the ends of the forward ``walk``, drawn by their
    weights) and half from rest, so that a mode that one half cannot reach shows as a disagreement of the two.
    """
    if isinstance(model, AbstractBipartite) and side is not None and _is_drawn_exactly(model, side):
        drawn = iter(exact_draws(model, side, chains, np.asarray(words[0])))
        particles = tuple(
            next(drawn) if index in model.sides[side] else np.zeros((chains, units.size), np.float32)
            for index, units in enumerate(model.units)
        )
        return Start(particles, "reversed from exact draws", 0)
    first = chains // 2
    if rows is not None:
        near, origin = from_rows(model, chosen_rows(rows, first), words[0]), "rows"
    elif walk is not None:
        generator = np.random.default_rng(np.asarray(words[0]))
        chosen = _draw_by_log_weight(generator, walk.log_weight, first)
        near, origin = tuple(layer[chosen] for layer in walk.particles), "the ends of the forward walk"
    else:
        raise SettingError("reversed walks without rows start from the ends of a forward walk; pass one")
    halves = (
        long_run(model, near, sweeps, words[1], first),
        long_run(model, None, sweeps, words[2], chains - first),
    )
    particles = tuple(np.concatenate(pair) for pair in zip(*halves, strict=True))
    return Start(
        particles,
        f"reversed from {sweeps} Gibbs sweeps, half from {origin}, half from rest: not exact",
        first,
        blind=rows is None,
    )


def _is_drawn_exactly(model: AbstractBipartite, side: int) -> bool:
    if any(isinstance(model.units[layer], Categorical) for layer in model.sides[side]):
        return False
    plan = affordable_plan(model)
    return plan is not None and plan.side == side and plan.walk_operations <= MOST_OPERATIONS


@in_double_precision
def exact_draws(model: AbstractBipartite, side: int, count: int, seed: int | np.ndarray) -> list[np.ndarray]:
    """``count`` independent exact draws of the layers of one side, by enumeration of its states.

    All chunks of states are summed once; then only the chunks that a draw fell into are walked again, so that no more
    than one chunk is ever held. In float64, from a numpy generator of the given seed.
    """
    double = as_double(model)
    bits = sum(model.units[index].size for index in model.sides[side])
    masses = np.asarray(_masses_program()(double, side))
    generator = np.random.default_rng(seed)
    states = _draw_by_log_weight(generator, masses, count)
    drawn = np.empty((count, bits), np.float32)
    for chunk in np.unique(states):
        weights, rows = _chunk_program()(double, side, jnp.int32(chunk))
        chosen = np.flatnonzero(states == chunk)
        drawn[chosen] = np.asarray(rows)[_draw_by_log_weight(generator, np.asarray(weights), len(chosen))]
    edges = np.cumsum([model.units[index].size for index in model.sides[side]])[:-1]
    layers = np.split(drawn, edges, axis=1)
    return [
        (low + (high - low) * layer).astype(np.float32)
        for layer, (low, high) in zip(
            layers, (model.units[index].support for index in model.sides[side]), strict=True
        )
    ]


def long_run(
    model: AbstractEnergyModel, particles: Layers | None, sweeps: int, words: Words, chains: int
) -> tuple[np.ndarray, ...]:
    """Chains after ``sweeps`` Gibbs sweeps from given configurations, or from rest."""
    ends = _run_program()(model, particles, words, jnp.int32(sweeps), chains)
    return tuple(np.asarray(layer) for layer in ends)


def from_rows(model: AbstractEnergyModel, rows: np.ndarray, words: Words) -> tuple[np.ndarray, ...]:
    """Chains that start at rows: a few sweeps with the rows held bring the other layers into line with them."""
    ends = _held_program()(model, rows.astype(np.float32), words)
    return tuple(np.asarray(layer) for layer in ends)


def _draw_by_log_weight(generator: np.random.Generator, log_weight: np.ndarray, count: int) -> np.ndarray:
    # Weights that are not finite are no weights; the verdict on them is given elsewhere.
    log_weight = np.where(np.isfinite(log_weight), log_weight, -1e300)
    weight = np.exp(log_weight - log_weight.max())
    return generator.choice(len(weight), count, p=weight / weight.sum())


@cache
def _masses_program():
    def masses(model: AbstractBipartite, side: int) -> Float[Array, " chunks"]:
        bits = sum(model.units[index].size for index in model.sides[side])
        numbers = jnp.arange(1 << (bits - chunk_bits(bits)), dtype=jnp.int32)
        return jax.lax.map(
            lambda number: jax.nn.logsumexp(_weights_of_chunk(model, side, number)[0]), numbers
        )

    return compile_function(masses, static_argnums=1)


@cache
def _chunk_program():
    return compile_function(_weights_of_chunk, static_argnums=1)


def _weights_of_chunk(
    model: AbstractBipartite, side: int, number: Array
) -> tuple[Float[Array, " states"], Float[Array, "states bits"]]:
    """Log-weights of the states of one chunk, and the states with 1 for the upper value of a unit."""
    layers = [model.units[index] for index in model.sides[side]]
    states = chunk_of_states(number, sum(units.size for units in layers), 0.0, 1.0, jnp.dtype(jnp.float64))
    configuration, start = [], 0
    for units in layers:
        low, high = units.support
        configuration.append(low + (high - low) * states[:, start : start + units.size])
        start += units.size
    return -model.marginal_energy(side, tuple(configuration)), states


@cache
def _run_program():
    def run(
        model: AbstractEnergyModel, particles: Configuration | None, words: Words, sweeps: Array, chains: int
    ):
        noise = Noise.of(words)
        if particles is None:
            particles = resting_particles(noise.stream(1), model, chains)
        return jax.lax.fori_loop(0, sweeps, lambda i, now: model.sweep(noise.at(i), now), particles)

    return compile_function(run, static_argnums=4)


@cache
def _held_program():
    def hold(model: AbstractEnergyModel, rows: Array, words: Words) -> Configuration:
        noise = Noise.of(words)
        particles = resting_particles(noise.stream(1), model, len(rows))
        clamp = (True, *[None] * (len(particles) - 1))
        start = (rows, *particles[1:])
        return jax.lax.fori_loop(
            0, _HELD_SWEEPS, lambda i, now: model.sweep(noise.at(i), now, clamp=clamp), start
        )

    return compile_function(hold)
