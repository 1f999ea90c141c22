"""Samples of a deep belief network: its top level is sampled, what lies below follows from the top down."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from harmonium.energy.stack import AbstractStack
from harmonium.numerics.compile import compile_function
from harmonium.numerics.logspace import logistic
from harmonium.numerics.random import Noise, uniform
from harmonium.typing import Configuration, Words

_DESCENT_STREAM = 10
_COMPLETION_STREAM = 20


def descend(noise: Noise, stack: AbstractStack, top: Float[Array, "n units"]) -> Configuration:
    """One draw of every layer below the visible layer of the top level, given it: from the visible layer up to it."""
    layers = [top]
    for index in range(stack.depth - 2, -1, -1):
        rbm = stack.level(index)
        field = rbm.units[0].natural() + rbm.couplings[0].backward(layers[0])
        layers.insert(0, rbm.units[0].sample(noise.at(index).pair(field.shape)[0], field))
    return tuple(layers)


def complete(
    noise: Noise, stack: AbstractStack, layers: Configuration, held: Bool[Array, "n visible"]
) -> Configuration:
    r"""One sweep of the network's law given the held visible units; ``layers`` are ``(v, h_1, ..., h_M)``.

    Free visible units are summed out while the layers above move, and drawn last, given :math:`h_1`. A unit of an inner
    layer is drawn alone, since the layer below makes the units of a layer depend on each other: the log-odds of its two
    values :math:`h^\pm` are

    .. math:: \Delta\big(h^\top f\big) + \Delta\big(x^\top (b + W h)\big) - \Delta A(b + W h)

    with the field ``f`` that the layer above gives it, and the last two terms over the units of the layer below that
    are held. The kernel leaves :math:`p(v_{free}, h \mid v_{held})` invariant.
    """
    now = list(layers)
    for index in range(stack.depth - 1):
        known = held if index == 0 else None
        now[index + 1] = _inner_layer(noise.stream(_COMPLETION_STREAM + index), stack, now, index, known)
    top = stack.top
    field = top.units[1].natural() + top.couplings[0].forward(now[-2])
    now[-1] = top.units[1].sample(noise.stream(_DESCENT_STREAM).pair(field.shape)[0], field)
    bottom = stack.level(0)
    down = bottom.units[0].natural() + bottom.couplings[0].backward(now[1])
    drawn = bottom.units[0].sample(noise.stream(_DESCENT_STREAM + 1).pair(down.shape)[0], down)
    now[0] = jnp.where(held, now[0], drawn)
    return tuple(now)


def _inner_layer(
    noise: Noise,
    stack: AbstractStack,
    layers: list[Array],
    index: int,
    known: Bool[Array, "n below"] | None,
) -> Float[Array, "n units"]:
    """The units of inner layer ``index + 1``, one after the other."""
    rbm, above = stack.level(index), stack.level(index + 1)
    below, layer = layers[index], layers[index + 1]
    prior = above.units[0].natural() + above.couplings[0].backward(layers[index + 2])
    weights = rbm.couplings[0].weights.T
    low, high = rbm.units[1].support
    counted = jnp.ones_like(below) if known is None else known.astype(below.dtype)
    start = rbm.units[0].natural() + rbm.couplings[0].backward(layer)
    words = noise.pair(layer.shape)[0]

    def move(unit: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        layer, field = carry
        # Of a unit that is not held the field is kept at zero, where its cumulant does not change.
        resting = field - (layer[:, unit, None] - low) * weights[unit]
        change = counted * (high - low) * weights[unit]
        odds = (high - low) * prior[:, unit] + jnp.sum(below * change, axis=-1)
        odds = odds - rbm.units[0].log_partition_change(counted * resting, change)
        value = jnp.where(uniform(words[:, unit], odds.dtype) < logistic(odds), high, low)
        return layer.at[:, unit].set(value), resting + (value[:, None] - low) * weights[unit]

    return jax.lax.fori_loop(0, layer.shape[1], move, (layer, start))[0]


def completed(
    stack: AbstractStack,
    words: Words,
    steps: int,
    values: Float[np.ndarray, "n visible"],
    held: Bool[np.ndarray, "n visible"],
) -> Array:
    """Visible rows after ``steps`` sweeps of `complete`, from the recognition of rows with free units at rest."""
    return _completion_program()(stack, words, jnp.int32(steps), values, held)


def descended(stack: AbstractStack, words: Words, top: Float[Array, "n units"]) -> Array:
    """Visible rows drawn below given states of the visible layer of the top level."""
    return _descent_program()(stack, words, top)


@cache
def _descent_program():
    return compile_function(
        lambda stack, words, top: descend(Noise.of(words).stream(_DESCENT_STREAM), stack, top)[0]
    )


@cache
def _completion_program():
    def run(stack: AbstractStack, words: Words, steps: Array, values: Array, held: Array) -> Array:
        noise = Noise.of(words)
        units = stack.units[0]
        free = units.sample(
            noise.stream(_DESCENT_STREAM).pair(values.shape)[0],
            jnp.broadcast_to(units.natural(), values.shape),
        )
        layers = [jnp.where(held, values, free)]
        for index, rbm in enumerate(stack.levels):
            field = rbm.units[1].natural() + rbm.couplings[0].forward(layers[-1])
            layers.append(
                rbm.units[1].sample(noise.stream(_COMPLETION_STREAM + index).pair(field.shape)[0], field)
            )
        # Noise of its own for every sweep, none of which the start has seen.
        sweeps = noise.stream(0)
        return jax.lax.fori_loop(
            0, steps, lambda i, now: complete(sweeps.fold(i), stack, now, held), tuple(layers)
        )[0]

    return compile_function(run)
