"""Samples from a model in one call."""

from __future__ import annotations

from functools import cache
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from harmonium.energy.base import AbstractEnergyModel, check_finite, check_model
from harmonium.energy.guided import unguided
from harmonium.energy.labels import check_labels, label_units
from harmonium.energy.stack import AbstractStack
from harmonium.errors import DataError, SettingError
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise, key_words, seed_key
from harmonium.numerics.whole import seed_number, whole_number
from harmonium.samplers.ancestral import completed, descended
from harmonium.samplers.base import (
    AbstractAdaptiveSampler,
    AbstractPathSampler,
    AbstractSampler,
    resting_particles,
)
from harmonium.samplers.deep_tempering import DeepTempering
from harmonium.samplers.gibbs import Gibbs
from harmonium.typing import Configuration, Words

_START_STREAM = 1
_PILOT_STREAM = 3
_DESCENT_STREAM = 4
_PILOT_SWEEPS = 100
_MOST_STEPS = 1 << 31


def sample(
    model: AbstractEnergyModel,
    n: SupportsIndex = 64,
    steps: SupportsIndex = 1000,
    seed: SupportsIndex = 0,
    clamp: Any = None,
    sampler: AbstractSampler | None = None,
    label: Any = None,
) -> np.ndarray:
    """Rows drawn from a model by ``n`` independent chains of ``steps`` sweeps.

    Chains start from the biases alone. ``clamp`` holds visible values: an array of shape ``(visible,)`` or
    ``(n, visible)`` in which NaN marks what is free; the rest is then drawn conditionally on it. Of a machine with a
    label layer ``label`` holds the number of the class, from 0, or one for each of the ``n`` rows; without it the label
    is free, like the hidden units.

    Of a `GuidedDBM` the rows are those of its machine; with `DeepTempering` the guide proposes, and without it is left
    out. Of a `DBN` the sweeps are those of its top level, by any ``sampler`` but one, and one pass down draws what lies
    below; `DeepTempering` moves the RBMs of the stack side by side instead, and the rows are those of the *bottom RBM*,
    under the law that it has by itself (stacked tempering). With ``clamp`` every sweep goes through all layers of the
    network given the held values, one unit of an inner layer at a time: a chain that leaves that conditional law
    invariant, and reaches it as its steps grow.

    **Returns** an array of shape ``(n, visible)``: uint8 for 0/1 units, int8 for spins.

    **Raises** `SettingError` for counts below one, for a sampler of other models and for a label of a machine without
    labels, `DataError` for a clamp of another shape or with values that the units do not take, and for a class that
    there is not.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> free = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> sample(free, 2, steps=10, clamp=[1, np.nan, 0])[:, [0, 2]].tolist()
    [[1, 0], [1, 0]]
    """
    check_model(model)
    n = whole_number(n, "n must be a whole number of at least 1")
    steps = whole_number(steps, "steps must be a whole number of at least 1")
    seed = seed_number(seed)
    if sampler is not None and not isinstance(sampler, AbstractSampler):
        raise SettingError(
            f"a sampler such as Gibbs() is needed, got {sampler!r}; leave sampler out for Gibbs sampling"
        )
    if steps >= _MOST_STEPS:
        raise SettingError(
            f"steps must be below {_MOST_STEPS}, got {steps}; draw again from another seed instead"
        )
    check_finite(model)
    single = as_single(model)
    if not isinstance(sampler, DeepTempering):
        single = unguided(single)
    values, held = _clamped(model, clamp, n)
    number = _numbered(model, label, n)
    if (held is not None or number is not None) and sampler is not None and sampler != Gibbs():
        what = "label" if held is None else "clamp"
        raise SettingError(
            f"{what} works with the default sampler only, got {type(sampler).__name__}; drop sampler or {what}"
        )
    words = key_words(seed_key(seed))
    if isinstance(sampler, DeepTempering):
        rows = _program()(single, words, jnp.int32(steps), None, None, None, sampler, n)
    elif isinstance(single, AbstractStack) and single.depth > 1:
        rows = _draw_stack(single, words, steps, values, held, sampler or Gibbs(), n)
    else:
        alone = single.top if isinstance(single, AbstractStack) else single
        rows = _program()(alone, words, jnp.int32(steps), values, held, number, sampler or Gibbs(), n)
    low = model.units[0].support[0]
    return np.asarray(rows).astype(np.uint8 if low == 0 else np.int8)


def _draw_stack(
    stack: AbstractStack,
    words: Words,
    steps: int,
    values: Float[np.ndarray, "n visible"] | None,
    held: Bool[np.ndarray, "n visible"] | None,
    sampler: AbstractSampler,
    n: int,
) -> Array:
    """Visible rows of a deep belief network."""
    own = Noise.of(words).stream(_DESCENT_STREAM).fold(0).words
    if values is not None and held is not None:
        return completed(stack, own, steps, values, held)
    top = _program()(stack.top, words, jnp.int32(steps), None, None, None, sampler, n)
    return descended(stack, own, top)


def _clamped(
    model: AbstractEnergyModel, clamp: Any, n: int
) -> tuple[Float[np.ndarray, "n visible"] | None, Bool[np.ndarray, "n visible"] | None]:
    if clamp is None:
        return None, None
    units = model.units[0]
    try:
        given = np.asarray(clamp, np.float64)
        values = np.broadcast_to(given, (n, units.size))
    except (TypeError, ValueError):
        shape = np.shape(clamp)
        raise DataError(
            f"clamp must be numbers of shape ({units.size},) or ({n}, {units.size}) with NaN for what is free, got "
            f"shape {shape}"
        ) from None
    held = ~np.isnan(values)
    wrong = held & ~np.isin(values, units.support)
    if wrong.any():
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        allowed = " or ".join(f"{value:g}" for value in units.support)
        raise DataError(
            f"clamp holds {values[row, column]:g} for visible unit {column}, but {units.kind} units are {allowed}; "
            "use NaN for what is free"
        )
    return np.where(held, values, units.support[0]).astype(np.float32), held


def _numbered(model: AbstractEnergyModel, label: Any, n: int) -> Int[np.ndarray, " n"] | None:
    """The class of every row, checked."""
    if label is None:
        return None
    states = check_labels(model, "sampling with label").states
    numbers = np.asarray(label)
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n,)):
        raise DataError(
            f"label must be a whole number, or one for each of the {n} rows, got {numbers.dtype} of shape "
            f"{numbers.shape}"
        )
    lowest, highest = int(numbers.min()), int(numbers.max())
    if lowest < 0 or highest >= states:
        raise DataError(
            f"label holds {lowest if lowest < 0 else highest}, but the classes of this model are numbered from 0 to "
            f"{states - 1}"
        )
    return np.broadcast_to(numbers, (n,)).astype(np.int32)


@cache
def _program():
    return compile_function(_draw, static_argnums=(6, 7))


def _draw(
    model: AbstractEnergyModel,
    words: Words,
    steps: Array,
    values: Float[Array, "n visible"] | None,
    held: Bool[Array, "n visible"] | None,
    label: Int[Array, " n"] | None,
    sampler: AbstractSampler,
    n: int,
) -> Float[Array, "n visible"]:
    noise = Noise.of(words)
    particles = resting_particles(noise.stream(_START_STREAM), model, n)
    if held is not None or label is not None:
        layers: list[Any] = list(particles)
        clamp: list[Any] = [None] * len(particles)
        first: list[Any] = [True, *clamp[1:]]
        if values is not None and held is not None:
            layers[0], clamp[0] = jnp.where(held, values, layers[0]), held
        labels = label_units(model)
        if label is not None and labels is not None:
            layers[-1], clamp[-1], first[-1] = labels.one_hot(label), True, True
        sampler = Gibbs(clamp=tuple(clamp))
        # Hidden layers must know of the held values before the first sweep draws the free ones from them.
        particles = model.sweep(noise.stream(_START_STREAM + 1), tuple(layers), clamp=tuple(first))
    state = sampler.init(words, model, particles)
    if isinstance(sampler, AbstractPathSampler):
        mean = _pilot_mean(noise.stream(_PILOT_STREAM), model, particles)
        state = sampler.rebased(state, model, mean)

    done = 0
    if isinstance(sampler, AbstractAdaptiveSampler):
        learner = sampler
        # What learns does so in the first half: the kernel of the second half is fixed.
        done = steps // 2
        state = jax.lax.fori_loop(
            0, done, lambda i, now: learner.adapt(*learner.step(noise.fold(i), model, now)), state
        )
    state = jax.lax.fori_loop(done, steps, lambda i, now: sampler.step(noise.fold(i), model, now)[0], state)
    return state.particles[0]


def _pilot_mean(noise: Noise, model: AbstractEnergyModel, particles: Configuration) -> Float[Array, " n"]:
    """Means of the visible units over chains and over the later half of a pilot's sweeps."""

    def sweep(index: Array, now: tuple[Configuration, Array]) -> tuple[Configuration, Array]:
        particles = model.sweep(noise.at(index), now[0])
        return particles, now[1] + (index >= _PILOT_SWEEPS // 2) * jnp.mean(particles[0], axis=0)

    nothing = jnp.zeros(particles[0].shape[1:], particles[0].dtype)
    _, total = jax.lax.fori_loop(0, _PILOT_SWEEPS, sweep, (particles, nothing))
    return total / (_PILOT_SWEEPS - _PILOT_SWEEPS // 2)
