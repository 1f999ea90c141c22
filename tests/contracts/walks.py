"""Exact laws of walks through temperatures, by tempered chains and by whole ways, and wrong twins of both."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm
from harmonium.inference.exact import Exact
from harmonium.numerics.precision import as_double, as_single
from harmonium.numerics.random import uniform
from harmonium.rules.contrastive import Contrastive
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.cast import CAST, CASTState, neighbour
from harmonium.samplers.transitions import TemperedTransitions, TransitionsState
from harmonium.samplers.walk import sweep_at
from tests.contracts.ladders import (
    Difference,
    WronglySwapped,
    at_their_laws,
    joint,
    law_of_wrong_swaps,
    marginal,
    opposite,
    rung_energies,
)
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import Table

Mistake = dict[str, Any]
"""What a twin does wrongly, by the names of its settings."""

# -------------------------------------------------------------------------------------------------------------- walks


class WronglyWalked(AbstractSampler):
    """CAST whose levels move by another difference, by weights of another ``sign``, or without ``factors``."""

    sampler: CAST
    difference: Difference = joint
    sign: float = 1.0
    factors: bool = True

    def init(self, words: Any, model: Any, particles: Any) -> CASTState:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: CASTState) -> Any:
        right, _ = self.sampler.step(noise, model, state)
        base, level = self.sampler.base_at(model, state), state.level
        difference = self.difference(model, base, right.replicas).reshape(level.shape)
        turns, coins = noise.stream(98).pair(level.shape)
        wanted, factor = neighbour(level, len(state.betas), turns & jnp.uint32(1) == 1)
        g = self.sign * state.weights.log_weights
        log_ratio = (state.betas[level] - state.betas[wanted]) * difference + g[level] - g[wanted]
        log_ratio = log_ratio + (factor if self.factors else 0)
        tempered = jnp.arange(len(level))[:, None] != state.target
        level = jnp.where(tempered & (jnp.log(uniform(coins)) < log_ratio), wanted, level)
        lots, _ = noise.stream(99).pair(level.shape)
        ready = jnp.where(tempered & (level == 0), uniform(lots), 0)
        target = jnp.where(jnp.any(ready > 0, axis=0), jnp.argmax(ready, axis=0), state.target)
        return eqx.tree_at(lambda tree: (tree.target, tree.level), right, (target, level)), {}

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


def weights_of(levels: int) -> np.ndarray:
    """Weights that are none of the levels' own: the law is kept whatever they are."""
    return 0.9 * np.cos(1.3 * np.arange(levels))


def law_of_walks(sampler: CAST, model: Any, table: Table) -> np.ndarray:
    """The exact law of one tempered chain: a row for each level, a column for each configuration."""
    base, energy = rung_energies(sampler, model, table)
    beta = _betas(sampler)[:, None]
    log_weight = -(1 - beta) * base - beta * energy - weights_of(len(beta))[:, None]
    law = np.exp(log_weight - log_weight.max())
    return law / law.sum()


def at_the_law_of_walks(sampler: CAST, model: Any, table: Table, state: CASTState, seed: int) -> CASTState:
    """The state with every tempered chain at an independent draw from the law of walks, and fixed weights."""
    law = law_of_walks(sampler, model, table)
    shape = state.level[1:].shape
    drawn = np.random.default_rng(1000 * seed + 1).choice(law.size, np.prod(shape), p=law.ravel())
    level, code = np.divmod(drawn, table.count)
    replicas = tuple(
        jnp.concatenate([first, jnp.asarray(layer[code], first.dtype)])
        for first, layer in zip(state.particles, table.layers, strict=True)
    )
    levels = state.level.at[1:].set(jnp.asarray(level.reshape(shape), state.level.dtype))
    weights = jnp.asarray(weights_of(len(law)), jnp.float32)
    return eqx.tree_at(
        lambda tree: (tree.replicas, tree.level, tree.weights.log_weights), state, (replicas, levels, weights)
    )


def walked(
    sampler: CAST,
    model: Any,
    table: Table,
    difference: Difference = joint,
    sign: float = 1.0,
    factors: bool = True,
) -> np.ndarray:
    """Law of one tempered chain after the levels moved once, from the law of walks."""
    law, g = law_of_walks(sampler, model, table), sign * weights_of(sampler.rungs)
    betas, last = _betas(sampler), sampler.rungs - 1
    values = _differences(sampler, model, table, difference)
    after = law.copy()
    for level in range(last + 1):
        ways = [near for near in (level - 1, level + 1) if 0 <= near <= last]
        for near in ways:
            back = 1 if near in (0, last) else 2
            ratio = (betas[level] - betas[near]) * values + g[level] - g[near]
            ratio = ratio + (np.log(len(ways) / back) if factors else 0)
            moved = law[level] / len(ways) * np.exp(np.minimum(ratio, 0))
            after[level] -= moved
            after[near] += moved
    return after


def law_of_wrong_walks(sampler: CAST, name: str, **mistake: Any) -> np.ndarray:
    """Law of the chains at the model after one step from the right laws."""
    model, table = model_of(name), table_of(name)
    at_model = walked(sampler, model, table, **mistake)[0]
    alone = (1 - at_model.sum()) ** sampler.ratio
    return alone * table.law() + (1 - alone) * at_model / at_model.sum()


def joint_law_of_walks(sampler: CAST, name: str, **mistake: Any) -> np.ndarray:
    """Law of chain, level and tempered chain (where there is one) after one step: the target, or of a mistake."""
    model, table = model_of(name), table_of(name)
    law = table.law()[:, None, None] * walked(sampler, model, table, **mistake)[None]
    law[:, 0, :] = law[:, 0, :].T.copy()
    return law


# --------------------------------------------------------------------------------------------------------------- ways


class WrongWay(AbstractSampler):
    """Tempered transitions whose way down is in the order of the way up, or whose last weight is ``omitted``."""

    sampler: TemperedTransitions
    backwards: bool = True
    omitted: bool = False

    def init(self, words: Any, model: Any, particles: Any) -> TransitionsState:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: TransitionsState) -> Any:
        base, betas, pairs = self.sampler.base_at(model, state), state.betas, len(state.betas) - 1
        gaps = betas[:-1] - betas[1:]
        rows = start = sweep_at(noise.at(0), model, base, state.particles, betas[0])
        log_ratio = jnp.zeros(len(rows[0]))
        for pair in range(pairs):
            log_ratio += gaps[pair] * joint(model, base, rows)
            rows = sweep_at(noise.at(1 + pair), model, base, rows, betas[pair + 1])
        for turn in range(pairs):
            pair, own = pairs - 1 - turn, noise.at(1 + pairs + turn)
            rows = sweep_at(own, model, base, rows, betas[pair + 1], backwards=self.backwards)
            if pair or not self.omitted:
                log_ratio -= gaps[pair] * joint(model, base, rows)
        accepted = (jnp.log(uniform(noise.stream(99).pair(log_ratio.shape)[0])) < log_ratio)[:, None]
        particles = tuple(jnp.where(accepted, new, old) for new, old in zip(rows, start, strict=True))
        return eqx.tree_at(lambda tree: tree.particles, state, particles), {}

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


def flow_of_ways(
    sampler: TemperedTransitions, name: str, backwards: bool = True, omitted: bool = False
) -> np.ndarray:
    """Probability to be at one configuration of the target and to be taken to another, for up to three rungs."""
    model, table, betas = model_of(name), table_of(name), _betas(sampler)
    base, energy = rung_energies(sampler, model, table)
    kernels = [
        [sweep_kernel(table, (1 - beta) * base + beta * energy, way) for beta in betas[1:]]
        for way in (False, backwards)
    ]
    gaps, values = betas[:-1] - betas[1:], energy - base
    outer = gaps[0] * (values[:, None] - (np.zeros_like(values) if omitted else values)[None, :])
    if len(betas) == 2:
        return table.law()[:, None] * (kernels[0][0] @ kernels[1][0]) * np.exp(np.minimum(outer, 0))
    middle = kernels[0][1] @ kernels[1][1]
    inner = gaps[1] * (values[:, None] - values[None, :])
    flow = np.zeros_like(outer)
    for start in range(table.count):
        ways = kernels[0][0][start][:, None] * middle
        for end in range(table.count):
            weight = ways * np.exp(np.minimum(outer[start, end] + inner, 0))
            flow[start, end] = weight.sum(axis=0) @ kernels[1][0][:, end]
    return table.law()[:, None] * flow


def law_of_wrong_ways(sampler: TemperedTransitions, name: str, **mistake: Any) -> np.ndarray:
    """Law of the chains after one step from the target."""
    flow = flow_of_ways(sampler, name, **mistake)
    return table_of(name).law() - flow.sum(axis=1) + flow.sum(axis=0)


def sweep_kernel(table: Table, energy: np.ndarray, backwards: bool) -> np.ndarray:
    """The kernel of one sweep, or of one backwards: the blocks in the opposite order."""
    kernel = np.eye(table.count)
    for block in table.blocks[::-1] if backwards else table.blocks:
        kernel = kernel @ table.unit_kernel(block, energy)
    return kernel


# ---------------------------------------------------------------------------------------------------------------- rows


def _betas(sampler: Any) -> np.ndarray:
    schedule = sampler.schedule
    return np.linspace(1, 0, sampler.rungs) if isinstance(schedule, str) else np.array(schedule[::-1])


def _differences(sampler: Any, model: Any, table: Table, difference: Difference) -> np.ndarray:
    particles = tuple(jnp.zeros((1, units.size), jnp.float32) for units in model.units)
    state = sampler.init(jnp.zeros(2, jnp.uint32), as_single(model), particles)
    with jax.enable_x64(True):
        base = sampler.base_at(as_single(model), state)
        return np.asarray(difference(model, None if base is None else as_double(base), table.layers))


def _walk(name: str, sampler: CAST, **mistake: Any) -> dict[str, Any]:
    return {
        "model": name,
        "sampler": sampler,
        "twin": WronglyWalked(sampler, **mistake),
        "mistaken": lambda table: law_of_wrong_walks(sampler, name, **mistake),
        "chains": 50_000,
        "settled": 60,
        "extended": at_the_law_of_walks,
    }


def _way(name: str, sampler: TemperedTransitions, chains: int = 50_000, **mistake: Any) -> dict[str, Any]:
    return {
        "model": name,
        "sampler": sampler,
        "twin": WrongWay(sampler, **mistake),
        "mistaken": lambda table: law_of_wrong_ways(sampler, name, **mistake),
        "chains": chains,
    }


_APART = [0.2, 0.8, 1]
"""Betas at which the order of a sweep matters: at 0, or between betas that are close, it hardly does."""

WALKING: dict[str, dict[str, Any]] = {
    "cast, levels of the wrong sign": _walk("strong rbm", CAST(2, schedule=[0, 0.3, 1]), difference=opposite),
    "cast, levels by beta F": _walk("rbm of spins", CAST(1, 2, base="uniform"), difference=marginal),
    "cast, a general machine": _walk(
        "machine", CAST(1, schedule=[0, 0.5, 1], base="uniform"), difference=opposite
    ),
    "cast, three layers": _walk("three layers", CAST(3, 3), difference=opposite),
    "cast, four layers": _walk("four layers", CAST(1, schedule=[0, 0.4, 1]), difference=opposite),
    "tempered transitions, four layers": _way(
        "four layers", TemperedTransitions(schedule=[0.3, 1], base="uniform"), omitted=True
    ),
    "tempered transitions, one order on both ways": _way(
        "strong rbm", TemperedTransitions(schedule=_APART), chains=80_000, backwards=False
    ),
    "tempered transitions, a weight left out": _way(
        "three layers", TemperedTransitions(schedule=[0.3, 1]), omitted=True
    ),
    "tempered transitions, a general machine": _way(
        "machine", TemperedTransitions(schedule=_APART, base="uniform"), chains=120_000, backwards=False
    ),
}
"""Rows of samplers that walk, as the arguments of a `SamplerCase`."""


def _rule(sampler: Any, twin: Any, mistaken: Any, extended: Any = None) -> dict[str, Any]:
    """Persistent chains of a sampler against those of its twin, whose law after a step is ``mistaken``."""

    def wrong_chains(kernel: np.ndarray, law: np.ndarray) -> np.ndarray:
        return np.broadcast_to(table_of("strong rbm").marginal(0, mistaken())[1], kernel.shape)

    return {
        "model": "strong rbm",
        "rule": hm.PCD(chains=60_000, sampler=sampler),
        "negative": lambda kernel, law: np.broadcast_to(law, kernel.shape),
        "twin": Contrastive(twin, Exact(), persistent=True, chains_count=60_000),
        "mistaken": wrong_chains,
        "rows": 30_000,
        "extended": extended,
    }


_PT, _CAST, _WAY = hm.ParallelTempering(3), CAST(2, schedule=[0, 0.3, 1]), TemperedTransitions(2)

WALKING_RULES: dict[str, dict[str, Any]] = {
    "pt": _rule(
        _PT,
        WronglySwapped(_PT, opposite),
        lambda: law_of_wrong_swaps(_PT, model_of("strong rbm"), table_of("strong rbm"), opposite),
        at_their_laws,
    ),
    "cast": _rule(
        _CAST,
        WronglyWalked(_CAST, opposite),
        lambda: law_of_wrong_walks(_CAST, "strong rbm", difference=opposite),
        at_the_law_of_walks,
    ),
    "transitions": _rule(
        _WAY, WrongWay(_WAY, omitted=True), lambda: law_of_wrong_ways(_WAY, "strong rbm", omitted=True)
    ),
}
"""Rows of rules whose chains a ladder moves, as the arguments of a `RuleCase`."""
