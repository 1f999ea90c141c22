"""Ensembles: the one place that knows about members.

A run of members maps one update over what members have of their own: model, optimiser state, rule state with its
chains, key and order of rows. What time it is and the schedules stay outside the map, so that a branch on a shared
coin is taken once and not, as inside it, both ways.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import key_words
from harmonium.numerics.whole import seed_number, whole_number
from harmonium.rules.base import AbstractRule
from harmonium.train.feed import Feed, Order
from harmonium.train.loop import Trainer
from harmonium.train.schedules import AbstractSchedule
from harmonium.train.state import TrainState
from harmonium.typing import Batch

CURE = "the model of before is kept: train with a smaller learning rate or on_divergence='halve'"
"""What to do about a run that the divergence guard has stopped."""

_PARTS = ("model", "optimizer_state", "rule_state", "key", "rate_scale")
"""The parts of a `TrainState` that members have of their own."""

_SEED_STRIDE = 0x9E3779B1
"""Odd, so that no seed recurs within 2^32 members; the golden section of 2^32, so that ensembles of neighbouring seeds
share no member either."""


def member_seed(seed: SupportsIndex, member: SupportsIndex) -> int:
    """The seed of one member of an ensemble that was trained with ``seed``: alone with it, a run gives that member.

    Member 0 has the seed itself, member ``i`` the sum of the seed and ``2654435761 i``, its lower 32 bits modulo
    :math:`2^{32}`: no two members of an ensemble have the same, nor have those of two ensembles whose seeds are numbers
    such as 0, 1, 2. Compiled calls of a large ensemble may be shorter than those of a run alone, and centring starts
    anew with each: the two are then different runs of one kind.

    Raises `SettingError` for numbers that are not whole, or below 0.

    >>> [member_seed(0, member) for member in range(3)]
    [0, 2654435761, 1013904226]
    """
    seed, member = seed_number(seed), whole_number(member, "member must be a whole number", least=0)
    low = (seed + member * _SEED_STRIDE) % 2**32
    return seed - seed % 2**32 + low


def run_members(
    trainer: Trainer,
    state: TrainState,
    feed: Feed,
    order: Int[Array, "*members chunk batch"],
    real: Float[Array, "chunk batch"] | None,
    epochs: Int[Array, " chunk"],
    count: Int[Array, ""],
    unit: Float[Array, " members"],
) -> TrainState:
    """`Trainer.run_chunk` of every member in one loop; those that were stopped stay as they are."""
    schedule = trainer.schedule

    def one(
        own: dict[str, Any], words: Array | None, order: Array, unit: Array, schedule: AbstractSchedule
    ) -> tuple[dict[str, Any], Array]:
        trainer_of_it = Trainer(trainer.rule, trainer.optimizer, schedule)
        fed = eqx.tree_at(lambda tree: tree.binarize_words, feed, words, is_leaf=lambda leaf: leaf is None)
        after, _ = trainer_of_it.run_chunk(_with(state, own), fed, order, real, epochs, count, unit)
        return _own(after), after.index

    words, own_order = None if feed.binarize_words is None else 0, 0 if order.ndim == 3 else None
    rates = 0 if schedule.of_members else None
    mapped = jax.vmap(one, in_axes=(0, words, own_order, 0, rates), out_axes=(0, None))
    own, index = mapped(_own(state), feed.binarize_words, order, unit, schedule)
    return chosen(state.rate_scale > 0, _with(state, {**own, "index": index}), state)


def chosen(first: Bool[Array | np.ndarray, " members"], one: TrainState, other: TrainState) -> TrainState:
    """Members of ``one`` where ``first`` says so, else of ``other``; what they share is that of ``one``."""

    def pick(left: Array, right: Array) -> Array:
        if jnp.issubdtype(left.dtype, jax.dtypes.prng_key):
            return left  # no update changes a key
        return jnp.where(jnp.reshape(first, (-1,) + (1,) * (left.ndim - 1)), left, right)

    return _with(one, jax.tree.map(pick, _own(one), _own(other)))


def _own(state: TrainState) -> dict[str, Any]:
    """What members have of their own."""
    return {part: getattr(state, part) for part in _PARTS}


def _with(state: TrainState, changed: dict[str, Any]) -> TrainState:
    parts = {field.name: getattr(state, field.name) for field in fields(state)}
    return TrainState(**{**parts, **changed})


class Orders:
    """`Order` for every member: each has a permutation of its own in every epoch."""

    def __init__(self, keys: list[Array], count: int, batch_size: int):
        self.members = [Order(key, count, batch_size) for key in keys]
        self.batch_size = self.members[0].batch_size
        self.per_epoch = self.members[0].per_epoch

    def rows(self, first: int, updates: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Row numbers ``(members, updates, batch)``; padding and epochs, which are those of every member.

        Where a batch is the whole data, members have no order of their own: ``(updates, batch)``.
        """
        if self.per_epoch == 1:
            return self.members[0].rows(first, updates)
        found = [order.rows(first, updates) for order in self.members]
        return np.stack([order for order, _, _ in found]), found[0][1], found[0][2]


def first_member_states(
    rule: AbstractRule,
    optimizer: optax.GradientTransformation,
    keys: Array,
    model: AbstractEnergyModel,
    batch: Batch,
) -> tuple[Any, Any]:
    """The states of optimiser and rule before the first update, with a member axis, from one compiled call."""
    arrays, settings = eqx.partition(rule, eqx.is_array)
    return _init_program()(settings, optimizer, arrays, keys, model, batch)


@cache
def _init_program():
    def program(settings, optimizer, arrays, keys, model, batch):
        rule = eqx.combine(arrays, settings)

        def one(key, model):
            return optimizer.init(model), rule.init(key_words(key), model, batch)

        return jax.vmap(one)(keys, model)

    return compile_function(program, static_argnums=(0, 1))


def stopped_members(history: list[dict[str, Any]]) -> dict[int, str]:
    """The members that the guard has stopped, and why, as the last record of a run says."""
    stopped = history[-1].get("stopped", {}) if history else {}
    return {int(member): words for member, words in stopped.items()}


def reason_of(stopped: dict[int, str], members: int) -> str:
    """Why a run with stopped members is not to be trusted as a whole; "" when there are none."""
    if not stopped:
        return ""
    first, words = min(stopped.items())
    others = f" and {len(stopped) - 1} more" if len(stopped) > 1 else ""
    return f"{len(stopped)} of {members} members were stopped, member {first}{others}: {words}; {CURE}"
