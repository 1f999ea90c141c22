"""One update, and the compiled call that makes many."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, UInt32

from harmonium.energy.base import AbstractEnergyModel
from harmonium.numerics.random import update_words
from harmonium.rules.base import AbstractRule, RuleInfo
from harmonium.train.feed import Feed
from harmonium.train.schedules import AbstractSchedule
from harmonium.train.state import TrainState
from harmonium.typing import Batch, Configuration, Step


class Trainer(eqx.Module):
    """What turns a state into the next one: a rule, an optimiser at unit rate, and a schedule."""

    rule: AbstractRule
    optimizer: optax.GradientTransformation = eqx.field(static=True)
    schedule: AbstractSchedule

    def train_step(
        self,
        state: TrainState,
        step: Step,
        batch: Batch,
        offsets: Configuration | None = None,
        unit: Float[Array, ""] | None = None,
    ) -> tuple[TrainState, RuleInfo]:
        """One update, a pure function.

        With ``offsets`` the parameters of ``state.model`` are read in coordinates centred there: the gradient is that
        of the surrogate of the ordinary model, and the optimiser (momentum, decay) works in those coordinates.

        ``unit`` is the number 1 under the map over members of an ensemble. It multiplies the gradient there, so that
        the derivative of a mean over rows belongs to a member and not to all of them: as a constant of all it makes the
        compiler transpose every batch, which is three times slower.
        """

        def surrogate(parameters: AbstractEnergyModel) -> tuple[Float[Array, ""], tuple[Any, RuleInfo]]:
            model = parameters if offsets is None else parameters.from_centred(offsets)
            return self.rule.loss(model, step, state.rule_state, batch)

        if unit is None:
            gradient, (rule_state, info) = jax.grad(surrogate, has_aux=True)(state.model)
        else:
            _, pull_back, (rule_state, info) = jax.vjp(surrogate, state.model, has_aux=True)
            (gradient,) = pull_back(unit)
        parameters: Any = state.model
        updates, optimizer_state = self.optimizer.update(gradient, state.optimizer_state, parameters)
        rate = self.schedule.rate(state.index, state.start, state.horizon) * state.rate_scale
        model = jax.tree.map(
            lambda leaf, update: leaf + rate.astype(leaf.dtype) * update, state.model, updates
        )
        moved = TrainState(
            model=model,
            optimizer_state=optimizer_state,
            rule_state=rule_state,
            index=state.index + 1,
            start=state.start,
            horizon=state.horizon,
            chunk=state.chunk,
            key=state.key,
            shared_key=state.shared_key,
            rate_scale=state.rate_scale,
        )
        return moved, info

    def run_chunk(
        self,
        state: TrainState,
        feed: Feed,
        order: Int[Array, "chunk batch"],
        real: Float[Array, "chunk batch"] | None,
        epochs: Int[Array, " chunk"],
        count: Int[Array, ""],
        unit: Float[Array, ""] | None = None,
    ) -> tuple[TrainState, RuleInfo]:
        """The first ``count`` of a chunk of updates, in one loop on the device; the info is their mean.

        A rule's offsets move with every update, but the coordinates stay those of the chunk's start: the model is
        moved into them once and back once, and an update costs two matrix-vector products over an uncentred one.
        Arrays have the length of a whole chunk whatever ``count`` is, so that a short last call compiles nothing.
        """
        indices = state.index + jnp.arange(order.shape[0])
        words = update_words(state.key, indices)
        shared_words = update_words(state.shared_key, indices)
        dtype = jnp.result_type(*jax.tree.leaves(state.model))
        offsets = self.rule.offsets(state.rule_state)
        if offsets is not None:
            state = eqx.tree_at(lambda tree: tree.model, state, state.model.to_centred(offsets))

        def update(position: Array, state: TrainState) -> tuple[TrainState, RuleInfo]:
            step = Step(state.index, state.horizon, _at(shared_words, position), _at(words, position))
            shown = None if real is None else _at(real, position)
            batch = feed.batch(_at(order, position), shown, _at(epochs, position), dtype)
            return self.train_step(state, step, batch, offsets, unit)

        blank = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(update, jnp.int32(0), state)[1]
        )

        def body(position: Array, carry: tuple[TrainState, RuleInfo]) -> tuple[TrainState, RuleInfo]:
            state, total = carry
            state, info = update(position, state)
            return state, jax.tree.map(jnp.add, total, info)

        state, total = jax.lax.fori_loop(0, count, body, (state, blank))
        if offsets is not None:
            state = eqx.tree_at(lambda tree: tree.model, state, state.model.from_centred(offsets))
        return state, jax.tree.map(lambda leaf: leaf / count, total)


def _at(values: UInt32[Array, "chunk *rest"] | Array, position: Array) -> Array:
    return jax.lax.dynamic_index_in_dim(values, position, keepdims=False)
