"""Where annealing starts: independent units at the marginals of the data, of the model, or of nothing."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent, field_of_marginals
from harmonium.errors import SettingError
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.samplers.base import resting_particles
from harmonium.typing import Configuration, Words
from harmonium.units.base import AbstractUnits

BASES = ("data", "model", "uniform")


def base_of(
    model: AbstractEnergyModel, base: str, rows: np.ndarray | None, chains: int, sweeps: int, words: Words
) -> Independent:
    """The independent model that chains are first drawn from.

    "data": every layer at its marginals, smoothed by one row of each value: the visible layer at those of ``rows``, the
    others at those of ``chains`` chains held at rows and swept ``sweeps`` times. Without rows, all layers are at
    the marginals of a pilot run of the model, as many chains and sweeps from rest, whose states are used for nothing
    else. "model": the layers of the model as they are, without their couplings. "uniform": every value alike.
    """
    if base == "model":
        return as_single(Independent(model.units))
    if base == "uniform":
        return as_single(
            Independent([units.with_bias(np.zeros(units.size, np.float32)) for units in model.units])
        )
    if base != "data":
        raise SettingError(f"no base is called {base!r}; choose one of {', '.join(BASES)}")
    start = None if rows is None else chosen_rows(rows, chains)
    means = _marginals_program()(as_single(model), start, words, jnp.int32(max(2, sweeps)), chains)
    counts = [float(chains)] * len(model.units)
    means = [np.asarray(mean, np.float64) for mean in means]
    if rows is not None:
        means[0], counts[0] = np.asarray(np.mean(rows, axis=0, dtype=np.float64)), float(len(rows))
    layers = [
        _at_marginals(units, mean, count)
        for units, mean, count in zip(model.units, means, counts, strict=True)
    ]
    return Independent(layers)


def chosen_rows(rows: np.ndarray, count: int) -> np.ndarray:
    """``count`` rows spread evenly over all of them, in float32; over again where there are fewer."""
    return rows[np.arange(count) * len(rows) // count].astype(np.float32)


def independent_draws(base: Independent, chains: int, words: Words) -> Configuration:
    """``chains`` configurations drawn from an independent model, exactly."""
    return _draw_program()(base, words, chains)


def _at_marginals(units: AbstractUnits, mean: np.ndarray, count: float) -> AbstractUnits:
    return units.with_bias(field_of_marginals(units, mean, count).astype(np.float32))


@cache
def _marginals_program():
    return compile_function(_marginals, static_argnums=4)


def _marginals(
    model: AbstractEnergyModel, rows: Array | None, words: Words, sweeps: Array, chains: int
) -> list[Array]:
    """Conditional means of every layer, averaged over chains and over the later half of the sweeps."""
    noise = Noise.of(words)
    particles = resting_particles(noise.stream(1), model, chains)
    clamp = None
    if rows is not None:
        particles, clamp = (rows, *particles[1:]), (True, *[None] * (len(particles) - 1))
    totals = [jnp.zeros(units.size, jnp.float32) for units in model.units]

    def sweep(index: Array, now: tuple[Configuration, list[Array]]) -> tuple[Configuration, list[Array]]:
        configuration, totals = now
        configuration = model.sweep(noise.at(index), configuration, clamp=clamp)
        means = [
            units.mean(model.field(layer, configuration)).mean(axis=0)
            for layer, units in enumerate(model.units)
        ]
        late = (index >= sweeps // 2).astype(jnp.float32)
        return configuration, [total + late * mean for total, mean in zip(totals, means, strict=True)]

    _, totals = jax.lax.fori_loop(0, sweeps, sweep, (particles, totals))
    return [total / (sweeps - sweeps // 2) for total in totals]


@cache
def _draw_program():
    def draw(base: Independent, words: Words, chains: int) -> Configuration:
        empty = tuple(jnp.zeros((chains, units.size), jnp.float32) for units in base.units)
        return base.sweep(Noise.of(words), empty)

    return compile_function(draw, static_argnums=2)
