"""Single updates of a trainer in float64, for proofs that compare them with formulas."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from harmonium.energy.rbm import RBM
from harmonium.numerics.random import key_words, update_words
from harmonium.rules.base import AbstractRule, RuleInfo
from harmonium.train.feed import Feed
from harmonium.train.loop import Trainer
from harmonium.train.optimizers import build_optimizer
from harmonium.train.schedules import Linear
from harmonium.train.state import TrainState
from harmonium.typing import Batch, Step

RATE = 0.25
"""A learning rate that float32 holds exactly."""

KEY = 5


class Parameters(NamedTuple):
    """An RBM's parameters, or a gradient of them; weights visible by hidden."""

    weights: np.ndarray
    visible: np.ndarray
    hidden: np.ndarray

    @classmethod
    def of(cls, model: Any) -> Parameters:
        return cls(
            np.asarray(model.couplings[0].weights),
            np.asarray(model.units[0].bias),
            np.asarray(model.units[1].bias),
        )

    def model(self, like: RBM) -> RBM:
        kinds = {key: value for key, value in like.parameters().items() if key in ("visible", "hidden")}
        return RBM.from_arrays(*self, **kinds)


def trainer_of(rule: AbstractRule, *, momentum: float = 0.0, weight_decay: float = 0.0) -> Trainer:
    return Trainer(
        rule, build_optimizer("sgd", momentum=momentum, weight_decay=weight_decay), Linear(RATE, RATE)
    )


def first_state(trainer: Trainer, model: RBM, rows: np.ndarray) -> TrainState:
    """The state before the first update, all in float64; call it inside ``jax.enable_x64``."""
    parameters: Any = jax.tree.map(jnp.asarray, model)
    key = jax.random.key(KEY)
    batch = Batch(x=jnp.asarray(rows.mean(axis=0, keepdims=True)))
    return TrainState(
        model=parameters,
        optimizer_state=trainer.optimizer.init(parameters),
        rule_state=jax.jit(trainer.rule.init)(key_words(key), parameters, batch),
        index=jnp.int32(0),
        start=jnp.int32(0),
        horizon=jnp.int32(100),
        chunk=jnp.int32(100),
        key=key,
        shared_key=jax.random.key(KEY + 1),
        rate_scale=jnp.float32(1.0),
    )


def chunk_of(
    trainer: Trainer, state: TrainState, rows: np.ndarray, updates: int, length: int
) -> tuple[TrainState, RuleInfo]:
    """Some updates on all rows, as one compiled call of a given length; inside ``jax.enable_x64``."""
    feed = Feed(jnp.asarray(rows), None, None)
    order = jnp.broadcast_to(jnp.arange(len(rows), dtype=jnp.int32), (length, len(rows)))
    return _program(trainer)(state, feed, order, None, jnp.zeros(length, jnp.int32), jnp.int32(updates))


def step_of(state: TrainState, index: int) -> Step:
    """The step that the trainer makes at an index, with its noise."""
    words = update_words(state.key, jnp.array([index]))[0]
    shared = update_words(state.shared_key, jnp.array([index]))[0]
    return Step(jnp.int32(index), state.horizon, shared, words)


def gradient_of(
    rule: AbstractRule, parameters: Parameters, like: RBM, step: Step, rule_state: Any, rows: np.ndarray
) -> tuple[Parameters, Any]:
    """Gradient of a rule's surrogate in ordinary coordinates, and the next state of the rule."""
    gradient, (after, _) = _gradient_program(rule)(
        parameters.model(like), step, rule_state, Batch(x=jnp.asarray(rows))
    )
    return Parameters.of(gradient), after


@cache
def _program(trainer: Trainer) -> Any:
    return jax.jit(trainer.run_chunk)


@cache
def _gradient_program(rule: AbstractRule) -> Any:
    return jax.jit(jax.grad(rule.loss, has_aux=True))
