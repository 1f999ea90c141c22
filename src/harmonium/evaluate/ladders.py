"""Independent ladders of replica exchange, and what their samples weigh at the neighbouring rungs."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.energy.machine_path import path_between
from harmonium.evaluate.annealing import log_weight_of
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import Noise
from harmonium.samplers.ladder import equalised
from harmonium.samplers.tempering import ParallelTempering, TemperingState
from harmonium.typing import Configuration, Words

_MOVES = 8
"""How often the schedule is moved while it is learned."""

_LEARNING = 2 / 3
"""The share of the burn-in in which it is; in the rest it is frozen already, and nothing is recorded yet."""

_MOST_NUMBERS = 1 << 22
"""Most log-weights that are recorded of either kind; longer runs record fewer rounds."""

SNAPSHOTS = 4
"""How often the chains at the model are kept, evenly spread: what walks back start from."""

_EVERY = 2
"""Rounds of each record at least: both the even and the odd pairs have tried to swap."""


class Climb(NamedTuple):
    """What ladders brought home. Chains are numbered through, those of one ladder one after the other.

    - ``hotter``: log-weights of draws at rung ``k`` at rung ``k + 1``; ``colder``: of draws at rung ``k + 1`` at rung
      ``k``; both ``(records, pairs, chains)``, float32 nats. Rung 0 is the model.
    - ``energy``: per record and chain, an energy of the chain at the model.
    - ``particles``: where the chains at the model were at each of `SNAPSHOTS` times, those of one time one after the
      other. ``betas``: the frozen schedule, falling from 1 to 0.
    - ``rejection``: per pair, how often a swap was refused. ``trips``: per chain, how many replicas came from the base
      to the model, both since the schedule was frozen.
    """

    hotter: Float[np.ndarray, "records pairs chains"]
    colder: Float[np.ndarray, "records pairs chains"]
    energy: Float[np.ndarray, "records chains"]
    particles: tuple[np.ndarray, ...]
    betas: Float[np.ndarray, " rungs"]
    rejection: Float[np.ndarray, " pairs"]
    trips: np.ndarray

    def by_ladder(
        self, ladders: int
    ) -> tuple[Float[np.ndarray, "ladders draws pairs"], Float[np.ndarray, "ladders draws pairs"]]:
        """The log-weights of either kind, those of the chains of one ladder together."""
        records, pairs, chains = self.hotter.shape
        hotter, colder = (
            part.reshape(records, pairs, ladders, chains // ladders)
            .transpose(2, 0, 3, 1)
            .reshape(ladders, -1, pairs)
            for part in (self.hotter, self.colder)
        )
        return hotter, colder


def records_of(sweeps: int, replicas: int) -> tuple[int, int]:
    """How many records are taken of so many sweeps of all replicas, and how many sweeps each is apart."""
    every = max(_EVERY, -(-sweeps * replicas // _MOST_NUMBERS))
    return SNAPSHOTS * max(1, sweeps // (SNAPSHOTS * every)), every


def climb(
    base: Independent,
    model: AbstractEnergyModel,
    side: int | None,
    particles: Configuration,
    words: Words,
    *,
    rungs: int,
    sweeps: int,
    burn_in: int,
) -> Climb:
    """Ladders from ``base`` to ``model``, one for each row of ``particles``, which all its rungs start from.

    In the first two thirds of the ``burn_in`` the schedule is learned, so that all pairs are refused alike; then it is
    frozen. Of ``sweeps`` more sweeps, every second or fewer are recorded. All in the precision of the model, float32.
    """
    records, every = records_of(sweeps, rungs * len(particles[0]))
    window = int(burn_in * _LEARNING) // _MOVES
    with jax.default_matmul_precision("highest"):
        shares, particles, state = _climb_program()(
            base,
            model,
            side,
            ParallelTempering(rungs, base="uniform"),
            particles,
            words,
            jnp.int32(window),
            jnp.int32(burn_in - window * _MOVES),
            records // SNAPSHOTS,
            jnp.int32(every),
        )
    hotter, colder, energy = (np.asarray(part).reshape(records, *part.shape[2:]) for part in shares)
    return Climb(
        hotter,
        colder,
        energy,
        tuple(np.asarray(layer).reshape(-1, layer.shape[-1]) for layer in particles),
        np.asarray(state.betas, np.float64),
        np.asarray(state.traffic.rejection, np.float64),
        np.asarray(state.traffic.trips),
    )


@cache
def _climb_program():
    return compile_function(_climb, static_argnums=(2, 3, 8))


def _climb(
    base: Independent,
    model: AbstractEnergyModel,
    side: int | None,
    tempering: ParallelTempering,
    particles: Configuration,
    words: Words,
    window: Array,
    settle: Array,
    records: int,
    every: Array,
) -> tuple[Any, Configuration, TemperingState]:
    noise = Noise.of(words)

    def moved(state: TemperingState, rounds: Array) -> TemperingState:
        # The rounds so far number the noise, so that none is used twice.
        def step(_: Array, now: TemperingState) -> TemperingState:
            return tempering.step_from(base, noise.fold(now.rounds), model, now)[0]

        return jax.lax.fori_loop(0, rounds, step, state)

    def learn(_: Array, now: TemperingState) -> TemperingState:
        now = moved(_counted_anew(now), window)
        betas = equalised(now.betas, now.traffic.rejection.astype(now.betas.dtype))
        return eqx.tree_at(lambda tree: tree.betas, now, jnp.where(window > 0, betas, now.betas))

    def record(now: TemperingState, _: None):
        now = moved(now, every)
        return now, (*_weighed(base, model, side, now), model.chain_energy(now.particles))

    state = jax.lax.fori_loop(0, _MOVES, learn, tempering.init(words, model, particles))
    state = moved(_counted_anew(state), settle)
    traffic = _counted_anew(state).traffic
    state = eqx.tree_at(
        lambda tree: tree.traffic,
        state,
        eqx.tree_at(lambda tree: tree.trips, traffic, jnp.zeros_like(traffic.trips)),
    )

    def part(now: TemperingState, _: None):
        now, shares = jax.lax.scan(record, now, None, length=records)
        return now, (shares, now.particles)

    state, (shares, kept) = jax.lax.scan(part, state, None, length=SNAPSHOTS)
    return shares, kept, state


def _counted_anew(state: TemperingState) -> TemperingState:
    return eqx.tree_at(lambda tree: tree.traffic, state, state.traffic.fresh())


def _weighed(
    base: Independent, model: AbstractEnergyModel, side: int | None, state: TemperingState
) -> tuple[Float[Array, "pairs chains"], Float[Array, "pairs chains"]]:
    """Log-weights of all rungs but the last at the next hotter one, and of all but the first at the next colder."""
    shape = state.holder.shape
    betas = jnp.broadcast_to(state.betas[:, None], shape)
    ladder = state.ladder
    shares = []
    for here, there in ((slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1))):
        path = path_between(base, model, betas[here])
        shares.append(log_weight_of(path, side, tuple(layer[here] for layer in ladder), betas[there]))
    return shares[0], shares[1]
