"""Samplers on one machine at equal unit updates: what their chains did, and what that says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.energy.rbm import RBM
from harmonium.evaluate.valleys import Valleys, hidden_of
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import BEYOND_UPDATES, Noise, key_words, seed_key
from harmonium.samplers.base import AbstractAdaptiveSampler, AbstractPathSampler, AbstractSampler
from harmonium.samplers.diagnostics import autocorrelation_time, split_rhat
from harmonium.samplers.jumps import mode_jumps, poisson_interval
from harmonium.samplers.names import build_sampler
from harmonium.typing import Configuration, Words

_CHUNK = 200
"""Steps of one compiled call."""

_CHUNKS_BETWEEN = 5
"""Calls after which what learns between steps may act; another number of rungs is another program to compile."""

_PURPOSES = BEYOND_UPDATES | 0x5ACE00


class Racer(NamedTuple):
    """A sampler under the name that tables show, as `harmonium.samplers.names.build_sampler` takes it."""

    label: str
    name: str
    settings: Mapping[str, Any] = MappingProxyType({})


class Track(NamedTuple):
    """A machine, rows whose marginals are the base of tempering, and what enumeration says of it."""

    name: str
    model: RBM
    rows: np.ndarray
    valleys: Valleys
    barrier: float
    log_partition: float


class Lengths(NamedTuple):
    """How long a race is.

    ``learning`` and ``racing`` unit updates, those of every replica counted: samplers learn in the first stretch only.
    ``chains``: at the model, each with whatever replicas its sampler gives it.
    """

    learning: int
    racing: int
    chains: int


class Record(NamedTuple):
    """Hidden codes of the chains at the model after every step, and the unit updates spent until then.

    ``learned``: how many of the steps were made while the sampler learned. ``step_cost``: unit updates of a later one.
    """

    codes: Int[np.ndarray, "chains steps"]
    spent: Float[np.ndarray, " steps"]
    learned: int
    step_cost: int


def race(racer: Racer, track: Track, lengths: Lengths, seed: int) -> dict[str, Any]:
    """One row of the table: what a sampler did on a machine in two runs.

    The first starts from exact draws of the model: jumps between valleys, effective draws and R-hat of being in the
    heaviest valley. The second starts with all chains in the heaviest valley: when all valleys were seen first and, of
    the last half of its draws, how far the shares of valleys are from the exact weights (total variation), and the
    error of log Z as that of the exact sum over the heaviest valley less the logarithm of its share, with a standard
    error over chains. (Annealing back from the draws would hide what they miss: where its walks end is its own affair.)
    """
    sampler = build_sampler(racer.name, racer.settings)
    generator = np.random.default_rng([seed, 1])
    everywhere, one_valley = (
        _drawn_codes(generator, track.valleys, lengths.chains, valley) for valley in (None, 0)
    )
    row: dict[str, Any] = {"machine": track.name, "sampler": racer.label}
    row.update(_equilibrium(run_chains(sampler, track, everywhere, lengths, seed, 0), track))
    row.update(_discovery(run_chains(sampler, track, one_valley, lengths, seed, 1), track))
    return row


def run_chains(
    sampler: AbstractSampler, track: Track, codes: np.ndarray, lengths: Lengths, seed: int, run: int
) -> Record:
    """Chains from these hidden codes on, for the unit updates of both stretches; visible units are drawn first."""
    model, particles = as_single(track.model), _particles(track, codes)
    key = jax.random.fold_in(seed_key(seed), np.uint32(_PURPOSES | run))
    state = sampler.init(key_words(key), model, particles)
    if isinstance(sampler, AbstractPathSampler):
        state = sampler.rebased(state, model, jnp.asarray(track.rows.mean(axis=0), jnp.float32))
    parts: list[np.ndarray] = []
    costs: list[np.ndarray] = []
    step, learned, spent = 0, 0, 0
    for learns, until in ((True, lengths.learning), (False, lengths.learning + lengths.racing)):
        while True:
            cost = sampler.unit_updates(model, state)
            steps = min(_CHUNK, (until - spent) // cost)
            if steps <= 0:
                break
            words = key_words(jax.random.fold_in(key, np.uint32(step)))
            state, part = _chunk_program()(sampler, model, state, words, jnp.int32(steps), jnp.bool_(learns))
            parts.append(np.asarray(part)[:, :steps])
            costs.append(np.full(steps, cost, np.float64))
            step, spent = step + steps, spent + steps * cost
            if learns and isinstance(sampler, AbstractAdaptiveSampler) and len(parts) % _CHUNKS_BETWEEN == 0:
                state = sampler.between(words, model, state)
        if learns:
            learned = step
    return Record(
        np.concatenate(parts, axis=1),
        np.cumsum(np.concatenate(costs)),
        learned,
        sampler.unit_updates(model, state),
    )


def _particles(track: Track, codes: np.ndarray) -> Configuration:
    """Chains with these hidden codes, whose visible units the first sweep draws."""
    units = track.model.units[0]
    hidden = jnp.asarray(hidden_of(track.model, codes), jnp.float32)
    return jnp.full((len(codes), units.size), units.support[0], jnp.float32), hidden


def _drawn_codes(
    generator: np.random.Generator, valleys: Valleys, count: int, valley: int | None
) -> np.ndarray:
    """Exact draws of hidden codes, of one valley or of all."""
    weight = valleys.code_weights * (1.0 if valley is None else valleys.labels == valley)
    return generator.choice(len(weight), count, p=weight / weight.sum())


def _equilibrium(record: Record, track: Track) -> dict[str, Any]:
    labels = track.valleys.labels[record.codes[:, record.learned :]]
    found = mode_jumps(labels, len(track.valleys.weights))
    before = record.spent[record.learned - 1] if record.learned else 0.0
    exposure = float(record.spent[-1] - before) / 1e6
    low, high = poisson_interval(found.total, exposure)
    inside = (labels == 0).astype(np.float64)
    moves = bool(inside.any() and not inside.all())
    time = autocorrelation_time(inside) if moves else None
    return {
        "step_cost": record.step_cost,
        "unit_updates": exposure * 1e6,
        "jumps": found.total,
        "jump_rate": found.total / exposure,
        "jump_rate_low": low,
        "jump_rate_high": high,
        "effective_rate": None if time is None else labels.size / time / exposure,
        "split_rhat": split_rhat(inside, ranked=False) if moves else None,
    }


def _discovery(record: Record, track: Track) -> dict[str, Any]:
    valleys = track.valleys
    found = mode_jumps(valleys.labels[record.codes], len(valleys.weights))
    half = record.learned + (record.codes.shape[1] - record.learned) // 2
    labels = valleys.labels[record.codes[:, half:]]
    shares = np.bincount(labels[labels >= 0], minlength=len(valleys.weights)) / labels.size
    apart = np.abs(shares - valleys.weights).sum() + abs(1 - shares.sum() - valleys.elsewhere)
    of_chains = (labels == 0).mean(axis=1)
    share = of_chains.mean()
    return {
        "missed": found.missed,
        "all_seen": None if found.missed else float(record.spent[int(found.last_visit)]),
        "share_error": float(apart / 2),
        "log_partition_error": float(np.log(valleys.weights[0] / share)) if share else None,
        "log_partition_stderr": float(of_chains.std(ddof=1) / np.sqrt(len(labels)) / share)
        if share
        else None,
    }


@cache
def _chunk_program():
    return compile_function(_chunk, static_argnums=0)


def _chunk(
    sampler: AbstractSampler, model: RBM, state: Any, words: Words, steps: Int[Array, ""], learns: Array
) -> tuple[Any, Int[Array, "chains steps"]]:
    """Some steps, each with the hidden codes that it leaves the chains with."""
    noise = Noise.of(words)

    def code(particles: Configuration) -> Int[Array, " chains"]:
        return jnp.sum((particles[1] > 0) * (1 << jnp.arange(particles[1].shape[1])), axis=1).astype(
            jnp.int32
        )

    def one(index: Array, now: tuple[Any, Array]) -> tuple[Any, Array]:
        after, info = sampler.step(noise.fold(index), model, now[0])
        if isinstance(sampler, AbstractAdaptiveSampler):
            adapted = sampler.adapt(after, info)
            after = jax.tree.map(
                lambda new, old: old if new is old else jnp.where(learns, new, old), adapted, after
            )
        return after, now[1].at[:, index].set(code(after.particles))

    chains = state.particles[0].shape[0]
    return jax.lax.fori_loop(0, steps, one, (state, jnp.zeros((chains, _CHUNK), jnp.int32)))
