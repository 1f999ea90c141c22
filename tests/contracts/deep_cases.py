"""Exact laws of deep tempering: hot replicas at their own laws, and twins that exchange codes by wrong rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.deep_tempering import (
    DeepTemperingState,
    hidden_energies,
    hidden_field,
    hot_betas,
    swap_log_ratio,
    visible_energies,
    visible_field,
)
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import Table, normalised

Ratio = Callable[[Any, Any, Any, Any], Any]
"""Of a stack, the code before any exchange, the code now, and the code offered: the log-ratio of an exchange."""


def printed(stack: Any, before: Any, code: Any, offered: Any) -> Any:
    """Algorithm 2 as it stands: one free energy for both sides, that of visible units."""
    lower = [visible_energies(stack, 0, state) for state in (code, offered)]
    upper = [visible_energies(stack, 1, state) for state in (code, offered)]
    return lower[0] + upper[1] - lower[1] - upper[0]


def opposite(stack: Any, before: Any, code: Any, offered: Any) -> Any:
    """Eq. 4 with its sign wrong."""
    return -swap_log_ratio(stack, 0, code, offered)


def right(stack: Any, before: Any, code: Any, offered: Any) -> Any:
    """Eq. 4."""
    return swap_log_ratio(stack, 0, code, offered)


def hot_ratio(stack: Any, before: Any, code: Any, offered: Any, beta: float) -> Any:
    """The right exchange with a hot replica."""
    lower = hidden_energies(stack, 0, code)[1] - hidden_energies(stack, 0, offered)[1]
    at = jnp.full(lower.shape, beta, lower.dtype)
    return lower + visible_energies(stack, 1, offered, at) - visible_energies(stack, 1, code, at)


def stale(stack: Any, before: Any, code: Any, offered: Any, beta: float) -> Any:
    """By the energies of the code that was there before the swap with the level above."""
    return hot_ratio(stack, before, before, offered, beta)


def scaled(stack: Any, before: Any, code: Any, offered: Any, beta: float) -> Any:
    """By beta F instead of F at beta."""
    lower = hidden_energies(stack, 0, code)[1] - hidden_energies(stack, 0, offered)[1]
    upper = visible_energies(stack, 1, offered) - visible_energies(stack, 1, code)
    return lower + beta * upper


class WronglyExchanged(AbstractSampler):
    """Exchanges codes of the two lowest levels, then with the coldest hot replica, by given rules, and sweeps.

    The sweep draws what has not been exchanged from what has: the visible units of the first level and the hidden ones
    of the second. All other layers stay.
    """

    sampler: hm.DeepTempering
    ratio: Ratio = right
    hot: Callable[..., Any] | None = None

    def init(self, words: Any, model: Any, particles: Any) -> DeepTemperingState:
        return self.sampler.init(words, model, particles)

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)

    def step(self, noise: Any, model: Any, state: DeepTemperingState) -> Any:
        _, code, above, _, *rest = state.particles
        coins = [
            jnp.log(jax.random.uniform(jax.random.wrap_key_data(noise.fold(i).words), code.shape[:1]))
            for i in (1, 2)
        ]
        before = code
        swap = (coins[0] < self.ratio(model, before, code, above))[:, None]
        code, above = jnp.where(swap, above, code), jnp.where(swap, code, above)
        hot = state.hot
        if hot is not None and self.hot is not None:
            beta = float(hot_betas(len(hot))[0])
            swap = (coins[1] < self.hot(model, before, code, hot[0], beta))[:, None]
            code, hot = jnp.where(swap, hot[0], code), hot.at[0].set(jnp.where(swap, code, hot[0]))
        one, other = noise.fold(3).pair((len(code), 64))
        visible = model.units[0].sample(one[:, : model.units[0].size], visible_field(model, 0, code))
        hidden = model.units[3].sample(other[:, : model.units[3].size], hidden_field(model, 1, above))
        layers = (visible, code, above, hidden, *rest)
        return eqx.tree_at(lambda tree: (tree.particles, tree.hot), state, (layers, hot)), {}


def hot_laws(model: Any, hot: int) -> list[np.ndarray]:
    """The exact law of every hot replica over the codes, in the order of `codes_of`."""
    with jax.enable_x64(True):
        codes = jnp.asarray(codes_of(model))
        return [
            normalised(-np.asarray(visible_energies(model, 1, codes, jnp.full(len(codes), beta))))
            for beta in hot_betas(hot)
        ]


def codes_of(model: Any) -> np.ndarray:
    units = model.units[1]
    return np.array(list(product(units.support, repeat=units.size)), np.float64)


def at_their_laws(
    sampler: hm.DeepTempering, model: Any, table: Table, state: DeepTemperingState, seed: int
) -> DeepTemperingState:
    """The state with every hot replica at independent draws from its own law."""
    assert state.hot is not None
    codes, chains = codes_of(model), state.hot.shape[1]
    generator = np.random.default_rng(1000 + seed)
    drawn = [codes[generator.choice(len(codes), chains, p=law)] for law in hot_laws(model, sampler.hot)]
    return eqx.tree_at(lambda tree: tree.hot, state, jnp.asarray(np.stack(drawn), state.hot.dtype))


def law_of_wrong_exchange(
    model: Any, table: Table, sampler: hm.DeepTempering, ratio: Ratio = right, hot: Any = None, steps: int = 1
) -> np.ndarray:
    """Law of all layers after steps of the twin from the right law: sums over codes, written out."""
    codes = codes_of(model)
    count = len(codes)
    lower, upper = (np.bincount(place_of(table.layers[i], codes), table.law(), count) for i in (1, 2))
    with jax.enable_x64(True):
        grid = [jnp.asarray(codes[i]) for i in np.indices((count, count)).reshape(2, -1)]
        accept = np.exp(np.minimum(np.asarray(ratio(model, grid[0], *grid)), 0)).reshape(count, count)
    pairs = np.outer(lower, upper)
    for step in range(steps):
        if hot is None:
            pairs = pairs * (1 - accept) + (pairs * accept).T
            continue
        assert step == 0, "hot replicas are followed for one step"
        beta = float(hot_betas(sampler.hot)[0])
        third = hot_laws(model, sampler.hot)[0]
        after = np.zeros((count, count))
        for (i, j), weight in np.ndenumerate(pairs):
            for taken, share in ((True, accept[i, j]), (False, 1 - accept[i, j])):
                now, above = (j, i) if taken else (i, j)
                for k in range(count):
                    with jax.enable_x64(True):
                        arguments = (jnp.asarray(codes[place][None]) for place in (i, now, k))
                        jump = min(1.0, float(np.exp(np.asarray(hot(model, *arguments, beta))[0])))
                    after[k, above] += weight * share * third[k] * jump
                    after[now, above] += weight * share * third[k] * (1 - jump)
        pairs = after
    # All that was not exchanged has its law given the codes.
    place = place_of(table.layers[1], codes), place_of(table.layers[2], codes)
    return table.law() / np.outer(lower, upper)[place] * pairs[place]


def place_of(layer: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.argmax((layer[:, None] == codes[None]).all(axis=-1), axis=1)


GUIDED_ROWS = ("guided, three layers", "guided, four layers")
"""Machines whose even layers are exchanged."""


class WronglyProposed(AbstractSampler):
    """`WronglyExchanged` on the even layers of a guided machine."""

    twin: WronglyExchanged

    def init(self, words: Any, model: Any, particles: Any) -> DeepTemperingState:
        return self.twin.init(words, model, particles)

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.twin.unit_updates(model, state)

    def step(self, noise: Any, model: Any, state: DeepTemperingState) -> Any:
        rearranged = eqx.tree_at(lambda tree: tree.particles, state, model.to_stack(state.particles))
        after, info = self.twin.step(noise, model.as_stack(), rearranged)
        return eqx.tree_at(lambda tree: tree.particles, after, model.from_stack(after.particles)), info


def law_of_wrong_proposals(
    name: str, table: Table, sampler: hm.DeepTempering, ratio: Ratio, hot: Any = None
) -> np.ndarray:
    """Law of all layers of a guided machine after a step of the twin: that of its stack, in the table's order."""
    model = model_of(name)
    with jax.enable_x64(True):
        stack = jax.tree.map(np.asarray, model.as_stack())
        rows = [np.asarray(layer) for layer in model.to_stack(tuple(map(jnp.asarray, table.layers)))]
    rearranged = Table.of(stack)
    np.testing.assert_allclose(rearranged.energy[rearranged.codes(rows)], table.energy, atol=1e-12)
    return law_of_wrong_exchange(stack, rearranged, sampler, ratio, hot)[rearranged.codes(rows)]


DEEP: dict[str, tuple[Any, ...]] = {
    "two levels": ("square stack", hm.DeepTempering(), printed),
    "two levels, swaps after three sweeps": (
        "square stack",
        hm.DeepTempering(steps=3, order="sample-first"),
        opposite,
    ),
    "three levels": ("stack of three", hm.DeepTempering(), opposite, None, 2),
    "three levels, swaps last": (
        "stack of three",
        hm.DeepTempering(order="sample-first"),
        opposite,
        None,
        2,
    ),
    "hot replicas": ("square stack", hm.DeepTempering(hot=2), right, stale),
    "hot replicas by beta F": ("square stack", hm.DeepTempering(hot=2), right, scaled),
    "even layers of three": ("guided, three layers", hm.DeepTempering(), opposite),
    "even layers of four, swaps after two sweeps": (
        "guided, four layers",
        hm.DeepTempering(steps=2, order="sample-first"),
        opposite,
    ),
    "hot replicas under three levels": ("stack of three", hm.DeepTempering(hot=1), opposite, None, 2),
}
"""Stack, sampler, what its twin does wrongly in swaps and with hot replicas, and steps."""


def of_deep(
    name: str, sampler: hm.DeepTempering, ratio: Ratio, hot: Any = None, steps: int = 1
) -> dict[str, Any]:
    """A row of `SAMPLERS`."""
    twin: AbstractSampler = WronglyExchanged(sampler, ratio, hot)
    if name in GUIDED_ROWS:
        twin = WronglyProposed(twin)

    def mistaken(table: Table) -> np.ndarray:
        if name in GUIDED_ROWS:
            return law_of_wrong_proposals(name, table, sampler, ratio, hot)
        return law_of_wrong_exchange(model_of(name), table, sampler, ratio, hot, steps)

    return {
        "model": name,
        "sampler": sampler,
        "twin": twin,
        "mistaken": mistaken,
        "steps": steps,
        "chains": 80_000,
        "extended": at_their_laws if sampler.hot else None,
    }


def wrongly_exchanged_chains(kernel: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Law of the visible units under the twin of the rule, for every row of a batch."""
    table, sampler = table_of("stack on four"), hm.DeepTempering()
    moved = law_of_wrong_exchange(model_of("stack on four"), table, sampler, opposite)
    return np.broadcast_to(table.marginal(0, moved)[1], kernel.shape)


DEEP_RULE = hm.PCD(chains=60_000, sampler=hm.DeepTempering())

WRONG_DEEP_RULE = hm.PCD(chains=60_000, sampler=WronglyExchanged(hm.DeepTempering(), opposite))
