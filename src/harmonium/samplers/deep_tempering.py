"""Deep tempering: the RBMs of a stack exchange codes, so that the upper ones mix for the lower."""

from __future__ import annotations

from typing import Literal, SupportsIndex, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.guided import AbstractGuided
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.numerics.named import is_name
from harmonium.numerics.random import Noise, uniform
from harmonium.numerics.whole import whole_number
from harmonium.samplers.base import AbstractSampler, AbstractSamplerState, SamplerInfo
from harmonium.samplers.ladder import exchanged, pairs_in_turn, swap_pairs, unit_updates
from harmonium.typing import Configuration, Words

Order = Literal["swap-first", "sample-first"]
"""Whether a step exchanges codes before its last sweep or after it."""

ORDERS: tuple[str, ...] = get_args(Order)

MOST_HOT = 100
"""Most hot replicas that a chain may have."""

_SWAP_STREAM = 99
_HOT_STREAM = 98
_LADDER_STREAM = 97
_AGAIN_STREAM = 96

_MEMORY = 1000
"""Rounds that the means of what swaps brought about reach back."""


def _checked_steps(steps: SupportsIndex) -> int:
    return whole_number(
        steps, "deep tempering needs a whole number of steps, at least one sweep", "pass 1", least=1
    )


def _checked_hot(hot: SupportsIndex) -> int:
    return whole_number(
        hot, "hot must be a whole number of replicas of at least 0", "pass e.g. 4", least=0, most=MOST_HOT
    )


class DeepTemperingState(AbstractSamplerState):
    r"""The chains of all levels, the hot replicas of each, and what swaps have brought about of late.

    - ``particles``: one array per layer of the stack, :math:`v_1, h_1, v_2, h_2, \dots`.
    - ``hot``: visible units of the hot replicas of the second level, ``(hot, chains, n)``; None where there are none.
    - ``rounds``: rounds of swaps made.
    - ``acceptance``, ``moved``: per pair of levels, means over chains and over the rounds in which it was in turn, all
      alike at first and then with a memory of a thousand: how likely the swap was, and how often one was made that
      changed something.
    """

    particles: Configuration
    hot: Float[Array, "hot chains n"] | None
    rounds: Int[Array, ""]
    acceptance: Float[Array, " pairs"]
    moved: Float[Array, " pairs"]


class DeepTempering(AbstractSampler):
    r"""Every level of a stack is sampled by itself, and neighbours exchange codes: hidden units against visible ones.

    .. math:: \log r = F^h_i(h_i) + F^v_{i+1}(v_{i+1}) - F^h_i(v_{i+1}) - F^v_{i+1}(h_i)

    with :math:`F^h_i` the free energy of the hidden units of level :math:`i` and :math:`F^v_{i+1}` that of the visible
    units above, in nats. :math:`h_i` has the law that level :math:`i` gives its codes and :math:`v_{i+1}` that of the
    level above, which learned them and mixes faster; the swap is accepted if :math:`\log u < \log r`, and the product
    of the levels stays invariant. Two levels swap at every step, pairs of more levels in turn.

    A step goes from the bottom to the top. The lowest level swaps the code it has, draws :math:`v_1` from what it got,
    and :math:`h_1` from that; every level above draws its code first, swaps it with the one above, and then draws its
    visible units. Each :math:`v_i` is drawn whether the swap was accepted or not: that is the Gibbs step, and no second
    one is needed. ``state.particles`` are :math:`(v_1, h_1, v_2, h_2, \dots)`, those of the model as an energy model.

    **Arguments:**

    - ``steps``: sweeps of every level per step, the swaps before the last.
    - ``hot``: so many further replicas of the second level for every chain, at :math:`\beta_r = 1 - r/K`, the last one
      uniform. They are swept by a tempered Gibbs step, exchange with each other and with :math:`v_2` in turn, and one
      of them, drawn anew for every chain, is offered to :math:`h_1` as it then is, with
      :math:`\log r = F^h_1(h_1) - F^h_1(z) + F^v_{2,\beta}(z) - F^v_{2,\beta}(h_1)`. They reach codes that the upper
      level does not know of, and cost little: they have the size of a code.
    - ``order``: "swap-first", the authors' (swap, sample, learn). "sample-first" swaps after the last sweep, so that
      what is learned from are the exchanged codes; :math:`v_i` is then drawn twice, the second time where the swap was
      accepted.

    Raises `SettingError` for settings out of range, and for a model that is no stack. Source: Desjardins, Luo,
    Courville and Bengio, "Deep Tempering" (2014), Eq. 4; the third term of its printed Algorithm 2 and its use of one
    free energy for both sides are wrong, see the tests. Hot replicas are ours. Fernandez-de-Cossio-Diaz, Roussel,
    Cocco and Monasson, "Accelerated sampling with stacked restricted Boltzmann machines" (2024), use the same swap on
    a stack trained beforehand, which is ``hm.sample(stack, sampler=DeepTempering())``.

    >>> DeepTempering(hot=4).steps
    1
    """

    steps: int = eqx.field(default=1, converter=_checked_steps)
    hot: int = eqx.field(default=0, converter=_checked_hot)
    order: str = "swap-first"

    def __check_init__(self):
        if not is_name(self.order, ORDERS):
            raise SettingError(
                f"order must be one of {', '.join(ORDERS)}, got {self.order!r}; pass 'swap-first'"
            )

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> DeepTemperingState:
        """Hot replicas begin as copies of the visible units of the second level."""
        stack = _stack(model)
        first = particles[model.height if isinstance(model, AbstractGuided) else 2]
        hot = jnp.broadcast_to(first, (self.hot, *first.shape)) if self.hot else None
        still = jnp.zeros(stack.depth - 1, jnp.float32)
        return DeepTemperingState(particles, hot, jnp.int32(0), still, still)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: DeepTemperingState
    ) -> tuple[DeepTemperingState, SamplerInfo]:
        if isinstance(model, AbstractGuided):
            layers = model.to_stack(state.particles)
            whole = eqx.tree_at(lambda tree: tree.particles, state, layers)
            whole, info = self._step_of_stack(noise, _stack(model), whole)
            layers = model.from_stack(whole.particles)
            return eqx.tree_at(lambda tree: tree.particles, whole, layers), info
        return self._step_of_stack(noise, _stack(model), state)

    def _step_of_stack(
        self, noise: Noise, stack: AbstractStack, state: DeepTemperingState
    ) -> tuple[DeepTemperingState, SamplerInfo]:
        swaps_last = self.order == "sample-first"
        plain = self.steps if swaps_last else self.steps - 1
        layers = state.particles
        if plain:
            layers = jax.lax.fori_loop(0, plain, lambda i, now: stack.sweep(noise.at(i), now), layers)
        layers, hot = list(layers), state.hot
        chains = layers[0].shape[0]
        coins, picks = noise.stream(_SWAP_STREAM).pair((stack.depth, chains))
        words = _words_of_layers(
            noise.stream(_AGAIN_STREAM) if swaps_last else noise.at(plain), stack, chains
        )
        place = None
        if hot is not None:
            layers[2], hot = _hot_round(noise, stack, layers[2], hot, state.rounds)
            place = picks[0] % jnp.uint32(self.hot)
        turns = pairs_in_turn("even-odd", state.rounds, coins[:-1])
        turns = turns | (stack.depth == 2)
        acceptance, moved = [], []
        for level in range(stack.depth):
            below, above = 2 * level, 2 * level + 1
            if level:
                field = hidden_field(stack, level, layers[below])
                layers[above] = _drawn(stack, above, words, field)
            if level == stack.depth - 1:
                if not swaps_last:
                    field = visible_field(stack, level, layers[above])
                    layers[below] = _drawn(stack, below, words, field)
                break
            codes = [layers[above], layers[below + 2]]
            if hot is not None and place is not None and level == 0:
                codes.append(_rung(place, hot))
            field, lower = hidden_energies(stack, level, jnp.concatenate(codes))
            fields, energies = jnp.split(field, len(codes)), jnp.split(lower, len(codes))
            upper = jnp.split(visible_energies(stack, level + 1, jnp.concatenate(codes[:2])), 2)
            swap = swap_pairs(
                coins[level][None],
                (energies[0] + upper[1] - energies[1] - upper[0])[None],
                turns[level][None],
            )
            taken = swap.source[0] == 1
            changed = taken & jnp.any(codes[0] != codes[1], axis=-1)
            acceptance.append(jnp.mean(swap.acceptance))
            moved.append(jnp.mean(changed.astype(jnp.float32)))
            layers[above] = _chosen(taken, codes[1], codes[0])
            layers[below + 2] = _chosen(taken, codes[0], codes[1])
            field = _chosen(taken, fields[1], fields[0])
            if hot is not None and place is not None and level == 0:
                beta = 1 - (place + 1).astype(field.dtype) / self.hot
                own = jnp.where(taken, energies[1], energies[0])
                there = visible_energies(stack, 1, codes[2], beta) - visible_energies(
                    stack, 1, layers[above], beta
                )
                jump = jnp.log(uniform(coins[-1])) < own - energies[2] + there
                hot = _with_rung(place, jump, hot, layers[above])
                layers[above] = _chosen(jump, codes[2], layers[above])
                field, taken = _chosen(jump, fields[2], field), taken | jump
            drawn = _drawn(stack, below, words, field)
            layers[below] = _chosen(taken, drawn, layers[below]) if swaps_last else drawn
            if level == 0 and not swaps_last:
                layers[above] = _drawn(stack, above, words, hidden_field(stack, level, layers[below]))
        weight = turns[:, 0] / jnp.minimum(_rounds_in_turn(state.rounds, stack.depth) + 1, _MEMORY)
        after = DeepTemperingState(
            particles=tuple(layers),
            hot=hot,
            rounds=state.rounds + 1,
            acceptance=state.acceptance + weight * (jnp.stack(acceptance) - state.acceptance),
            moved=state.moved + weight * (jnp.stack(moved) - state.moved),
        )
        return after, {"swap_acceptance": jnp.mean(jnp.stack(acceptance))}

    def unit_updates(self, model: AbstractEnergyModel, state: DeepTemperingState) -> int:
        """Units that one step draws, those of hot replicas counted."""
        stack = _stack(model)
        chains = state.particles[0].shape[0]
        cost = unit_updates(stack, chains, self.steps)
        if self.order == "sample-first":
            # After the swaps every layer is drawn again but the lowest code and the visible units of the top.
            cost += unit_updates(stack, chains) - chains * (stack.units[1].size + stack.units[-2].size)
        return cost + (unit_updates(stack.level(1), self.hot * chains) if self.hot else 0)


def swap_log_ratio(
    stack: AbstractStack,
    level: int,
    hidden: Float[Array, "*batch n"],
    visible: Float[Array, "*batch n"],
) -> Float[Array, "*batch"]:
    r"""Of the swap of a level's code ``hidden`` with the visible units above, :math:`\log r` of Eq. 4, in nats."""
    below, above = (hidden_energies(stack, level, code)[1] for code in (hidden, visible))
    there, here = (visible_energies(stack, level + 1, code) for code in (hidden, visible))
    return below + here - above - there


def hidden_field(
    stack: AbstractStack, level: int, visible: Float[Array, "*batch visible"]
) -> Float[Array, "*batch n"]:
    """Field of the hidden units of a level."""
    return stack.units[2 * level + 1].natural() + stack.couplings[2 * level].forward(visible)


def visible_field(
    stack: AbstractStack, level: int, hidden: Float[Array, "*batch n"]
) -> Float[Array, "*batch visible"]:
    """Field of the visible units of a level."""
    return stack.units[2 * level].natural() + stack.couplings[2 * level].backward(hidden)


def hidden_energies(
    stack: AbstractStack, level: int, hidden: Float[Array, "*batch n"]
) -> tuple[Float[Array, "*batch visible"], Float[Array, "*batch"]]:
    """Field of the visible units of a level given codes, and the free energy of the codes, in nats."""
    field = visible_field(stack, level, hidden)
    below, above = stack.units[2 * level : 2 * level + 2]
    return field, above.base_energy(hidden) - below.log_partition(field)


def visible_energies(
    stack: AbstractStack,
    level: int,
    visible: Float[Array, "*batch n"],
    beta: Float[Array, "*betas"] | None = None,
) -> Float[Array, "*rows"]:
    """Free energy of the visible units of a level, in nats, at an inverse temperature (None is 1)."""
    below, above = stack.units[2 * level : 2 * level + 2]
    field, energy = hidden_field(stack, level, visible), below.base_energy(visible)
    if beta is None:
        return energy - above.log_partition(field)
    return beta * energy - above.log_partition(beta[..., None] * field)


def hot_betas(hot: int) -> np.ndarray:
    r"""Inverse temperatures of the hot replicas, :math:`1 - r/K`, the coldest first.

    >>> hot_betas(4).tolist()
    [0.75, 0.5, 0.25, 0.0]
    """
    return 1 - np.arange(1, hot + 1) / hot


def _rounds_in_turn(rounds: Int[Array, ""], depth: int) -> Int[Array, " pairs"]:
    """Of so many rounds, those in which each pair of levels was in turn: all where there is one pair, else half."""
    pair = jnp.arange(depth - 1)
    return jnp.broadcast_to(rounds, pair.shape) if depth == 2 else (rounds + 1 - pair % 2) // 2


def _hot_round(
    noise: Noise,
    stack: AbstractStack,
    visible: Float[Array, "chains n"],
    hot: Float[Array, "hot chains n"],
    rounds: Int[Array, ""],
) -> tuple[Float[Array, "chains n"], Float[Array, "hot chains n"]]:
    """A tempered sweep of the hot replicas, and a round of swaps in the ladder of which ``visible`` is the cold end."""
    count, chains, size = hot.shape
    betas = jnp.asarray(hot_betas(count), hot.dtype)[:, None]
    below, above = stack.units[2:4]
    one, other = noise.stream(_HOT_STREAM).pair((count, chains, max(size, above.size)))
    code = above.sample(one[..., : above.size], betas[..., None] * hidden_field(stack, 1, hot))
    hot = below.sample(other[..., :size], betas[..., None] * visible_field(stack, 1, code))
    rows = jax.lax.optimization_barrier(jnp.concatenate([visible[None], hot]))
    cold, warm = jnp.concatenate([jnp.ones_like(betas[:1]), betas[:-1]]), betas
    log_ratio = (
        visible_energies(stack, 1, rows[:-1], cold)
        + visible_energies(stack, 1, rows[1:], warm)
        - visible_energies(stack, 1, rows[1:], cold)
        - visible_energies(stack, 1, rows[:-1], warm)
    )
    coins, turns = noise.stream(_LADDER_STREAM).pair(log_ratio.shape)
    swaps = swap_pairs(coins, log_ratio, pairs_in_turn("even-odd", rounds, turns))
    rows = exchanged(rows, swaps.source)
    return rows[0], rows[1:]


def _rung(place: UInt32[Array, " chains"], hot: Float[Array, "hot chains n"]) -> Float[Array, "chains n"]:
    """Of every chain the hot replica at its place: a sum over rungs, which costs less than an index."""
    return jnp.sum(jnp.where(_at_rung(place, hot)[..., None], hot, 0), axis=0)


def _with_rung(
    place: UInt32[Array, " chains"],
    given: Bool[Array, " chains"],
    hot: Float[Array, "hot chains n"],
    code: Float[Array, "chains n"],
) -> Float[Array, "hot chains n"]:
    """The hot replicas with ``code`` at the place of every chain that is given one."""
    return jnp.where((_at_rung(place, hot) & given)[..., None], code, hot)


def _at_rung(place: UInt32[Array, " chains"], hot: Float[Array, "hot chains n"]) -> Bool[Array, "hot chains"]:
    return jnp.arange(hot.shape[0], dtype=place.dtype)[:, None] == place


def _chosen(
    taken: Bool[Array, " chains"], other: Float[Array, "chains n"], own: Float[Array, "chains n"]
) -> Float[Array, "chains n"]:
    return jnp.where(taken[:, None], other, own)


def _words_of_layers(noise: Noise, stack: AbstractStack, chains: int) -> list[UInt32[Array, "chains _"]]:
    """Random words for one draw of every layer."""
    words = [jnp.zeros((), jnp.uint32)] * len(stack.units)
    for side, of_side in zip(stack.sides, stack.words_of_sides(noise, (chains,)), strict=True):
        start = 0
        for layer in side:
            words[layer] = of_side[..., start : start + stack.units[layer].size]
            start += stack.units[layer].size
    return words


def _drawn(
    stack: AbstractStack,
    layer: int,
    words: list[UInt32[Array, "chains _"]],
    field: Float[Array, "chains n"],
) -> Float[Array, "chains n"]:
    # The barrier keeps a compiler from recomputing noise and sigmoid in every consumer of the draw.
    return jax.lax.optimization_barrier(stack.units[layer].sample(words[layer], field))


def _stack(model: AbstractEnergyModel) -> AbstractStack:
    if isinstance(model, AbstractGuided):
        return model.as_stack()
    if not isinstance(model, AbstractStack):
        raise SettingError(
            "deep tempering needs a stack of RBMs such as hm.DBN(784, [10, 10]), or a guided machine such as "
            f"hm.GuidedDBM(dbm, [16]), got {type(model).__name__}; use hm.ParallelTempering() for it (--sampler pt)"
        )
    if model.depth < 2:
        raise SettingError(
            "deep tempering needs a stack of at least two RBMs, got one; use hm.DBN(784, [10, 10]) or "
            "hm.ParallelTempering()"
        )
    return cast(AbstractStack, model)
