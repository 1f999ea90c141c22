"""Chains that walk along a path and gather importance weights: what every annealed estimate is made of."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.machine_path import AnyPath, MachinePath
from harmonium.errors import SettingError
from harmonium.numerics.compile import compile_function
from harmonium.numerics.logspace import two_sum
from harmonium.numerics.named import is_name
from harmonium.numerics.random import Noise
from harmonium.typing import Configuration, Layers, Words

OPERATIONS_PER_UNIT = 60
"""Operations counted for one draw of one unit and its share of a weight, beside two for each weight of a product."""


class Annealed(NamedTuple):
    """What chains bring home from a walk.

    ``log_weight``: per chain, :math:`\\sum_k F_{k-1}(x_{k-1}) - F_k(x_{k-1})` in float64 nats. ``particles``: where the
    chains ended. ``spread``: per step, the standard deviation of its share of the weight over the chains.
    """

    log_weight: Float[np.ndarray, " chains"]
    particles: tuple[np.ndarray, ...]
    spread: Float[np.ndarray, " steps"]


SIDES = ("even", "odd")
"""The sides of a machine by name: the layers of even number, with the visible one, and those of odd number."""


def check_side(side: Any, what: str) -> None:
    """Raise `SettingError` unless this is one of `SIDES` or None."""
    if side is not None and not is_name(side, SIDES):
        raise SettingError(
            f"no side of {what} is called {side!r}; choose one of {', '.join(SIDES)}, or None for the smaller"
        )


def walked_side(model: AbstractEnergyModel, side: str | None = None) -> int | None:
    """The side whose states a chain holds: the smaller one, so that the larger is summed out (a tie: the visible).

    ``side`` names another, one of `SIDES`. None for a machine without sides, of which chains hold all units; raises
    `SettingError` where a side of it is named.
    """
    if not isinstance(model, AbstractBipartite):
        if side is not None:
            raise SettingError(
                f"side={side!r} is of machines in layers, such as hm.DBM(64, [32, 16]), got {type(model).__name__}; "
                "leave it out"
            )
        return None
    if side is not None:
        return SIDES.index(side)
    sizes = [sum(model.units[index].size for index in side) for side in model.sides]
    return int(sizes[1] < sizes[0])


def sweep_operations(model: AbstractEnergyModel, chains: int) -> float:
    """Operations of one step of all chains: each weight is multiplied in two products, each unit drawn once."""
    pairs = sum(leaf.size for leaf in jax.tree.leaves(model.couplings))
    return chains * (4.0 * pairs + OPERATIONS_PER_UNIT * sum(units.size for units in model.units))


def log_weight_of(
    path: AnyPath, side: int | None, configuration: Configuration, beta: Float[Array, "*points"] | float
) -> Float[Array, "*batch"]:
    """Log importance weight, at the point ``beta``, of configurations that stand at the path's own point, in nats.

    By the marginal energies of ``side``; by joint energies where a machine has no sides.
    """
    if isinstance(path, MachinePath):
        return path.log_weight(configuration, beta)
    if side is None:
        raise SettingError("a path of layers weighs the states of a side; pass walked_side(model)")
    return path.log_weight(side, tuple(configuration[layer] for layer in path.sides[side]), beta)


def anneal(path: AnyPath, side: int | None, betas: np.ndarray, particles: Layers, words: Words) -> Annealed:
    """Walk chains from point ``betas[0]`` of a path, where they are, to ``betas[-1]``, gathering log-weights.

    Every step first weighs the states of ``side``, then draws the other side and the side itself at the new point;
    the product that the weight needs is the one that the draw needs. A machine without sides is weighed as a whole and
    then swept. Rising points give the log-weights of annealed
    importance sampling, falling ones those of its reverse. The loop runs in the precision of the model; the shares of
    the weights are gathered without rounding and returned in float64.
    """
    # An accelerator would else round the factors of its products to ten bits, which the weights would not survive.
    with jax.default_matmul_precision("highest"):
        total, lost, ends, spread = _anneal_program()(
            path, side, betas.astype(np.asarray(path.beta).dtype), particles, words
        )
    return Annealed(
        np.asarray(total, np.float64) + np.asarray(lost, np.float64),
        tuple(np.asarray(layer) for layer in ends),
        np.asarray(spread, np.float64),
    )


def effective_chains(log_weight: np.ndarray) -> float:
    r"""How many chains of equal weight these are worth: Kish's :math:`(\sum w)^2 / \sum w^2`; 0 if not finite."""
    if not np.all(np.isfinite(log_weight)):
        return 0.0
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight**2).sum())


def log_mean_weight(log_weight: np.ndarray) -> tuple[float, float]:
    """Logarithm of the mean weight, and its standard error on the log scale, the relative error of the mean.

    That error cannot exceed one, however few chains carry the weight: only `effective_chains` shows how few.
    """
    if not np.all(np.isfinite(log_weight)):
        return math.nan, math.nan
    count = len(log_weight)
    weight = np.exp(log_weight - log_weight.max())
    mean = weight.mean()
    stderr = weight.std(ddof=1) / (mean * math.sqrt(count)) if count > 1 else math.nan
    return float(log_weight.max() + np.log(mean)), float(stderr)


@cache
def _anneal_program():
    return compile_function(_walk, static_argnums=1)


def _walk(path: AnyPath, side: int | None, betas: Array, particles: Configuration, words: Words):
    noise = Noise.of(words)
    batch = particles[0].shape[:-1]

    def step(carry, now):
        configuration, total, lost = carry
        index, before, after = now
        share = log_weight_of(path.at(before), side, configuration, after)
        total, rest = two_sum(total, share)
        configuration = _moved(path.at(after), side, noise.at(index), configuration)
        return (configuration, total, lost + rest), jnp.std(share)

    nothing = jnp.zeros(batch, betas.dtype)
    steps = jnp.arange(len(betas) - 1, dtype=jnp.uint32)
    (configuration, total, lost), spread = jax.lax.scan(
        step, (particles, nothing, nothing), (steps, betas[:-1], betas[1:])
    )
    return total, lost, configuration, spread


def _moved(path: AnyPath, side: int | None, noise: Noise, configuration: Configuration) -> Configuration:
    """A sweep at the path's point that draws the walked side last."""
    if side is None or isinstance(path, MachinePath):
        return path.sweep(noise, configuration)
    words_of_side = path.words_of_sides(noise, configuration[0].shape[:-1])
    # The side that is walked reads the second word, whichever it is: the other one is drawn first.
    for drawn, its_words in zip((1 - side, side), words_of_side, strict=True):
        configuration = path.draw_side(drawn, its_words, configuration)
    return configuration
