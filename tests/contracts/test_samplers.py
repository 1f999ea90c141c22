"""Proofs that every sampler inherits: no drift from the exact target, with a sabotaged twin that must be caught."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.samplers.base import AbstractSampler, resting_particles
from harmonium.samplers.gibbs import Gibbs
from harmonium.typing import Configuration
from tests.contracts.cases import SAMPLERS, SamplerCase
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, Table, agreement, power_against

samplers = pytest.mark.parametrize("name", SAMPLERS)


@cache
def program(name: str, twin: bool) -> Callable[..., Configuration]:
    """The steps of a row's sampler, or of its twin, compiled once."""
    case = SAMPLERS[name]
    sampler = case.twin if twin else case.sampler

    def run(noise: Noise, model: Any, state: Any, steps: jax.Array) -> Configuration:
        state = jax.lax.fori_loop(0, steps, lambda i, now: sampler.step(noise.fold(i), model, now)[0], state)
        return state.particles

    return jax.jit(run)


def advanced(
    name: str, particles: Any, seed: int, *, steps: int | None = None, twin: bool = False
) -> tuple[np.ndarray, ...]:
    """Particles after some steps (those of the row, if not told), each with noise of its own.

    What else a state holds is at its target when the number of steps is that of the row.
    """
    case = SAMPLERS[name]
    noise = Noise.from_key(jax.random.key(seed))
    model = as_single(model_of(case.model))
    state = case.sampler.init(noise.words, model, tuple(map(jnp.asarray, particles)))
    if case.extended is not None and steps is None:
        state = case.extended(case.sampler, model_of(case.model), table_of(case.model), state, seed)
    ends = program(name, twin)(noise, model, state, steps or case.steps)
    return tuple(np.asarray(layer) for layer in ends)


def started(case: SamplerCase, seed: int) -> tuple[Table, np.ndarray, tuple[np.ndarray, ...]]:
    table = table_of(case.model)
    law = case.start(table)
    return table, law, table.draw(case.chains, law, seed)


@samplers
def test_chains_at_the_target_do_not_drift(name: str) -> None:
    case = SAMPLERS[name]
    table, law, particles = started(case, seed=0)
    after = advanced(name, particles, seed=1)
    assert any((before != now).any() for before, now in zip(particles, after, strict=True))
    assert agreement(table.counts(after), law) > FALSE_ALARM


@samplers
def test_the_sabotaged_twin_is_caught(name: str) -> None:
    """The proof above, on a sampler whose mistake is known exactly; its power is computed, not hoped for."""
    case = SAMPLERS[name]
    table, law, particles = started(case, seed=0)
    mistaken = case.mistaken(table)
    assert mistaken.sum() == pytest.approx(1)
    assert power_against(mistaken, law, case.chains) >= POWER
    after = advanced(name, particles, seed=1, twin=True)
    counts = table.counts(after)
    assert agreement(counts, law) < FALSE_ALARM
    # And the mistake is the one whose power was computed.
    assert agreement(counts, mistaken) > FALSE_ALARM


@samplers
def test_chains_from_anywhere_reach_the_target(name: str) -> None:
    """A kernel that never moves also never drifts: from a single configuration the law must become the target."""
    case = SAMPLERS[name]
    table, law, _ = started(case, seed=0)
    worst = int(np.argmin(law))
    kernel = table.sweep_kernel(clamp=case.clamp)
    settled = np.linalg.matrix_power(kernel, 4096)[worst]
    alone = np.eye(table.count)[worst]
    assert power_against(alone, settled, case.chains) >= POWER
    particles = table.draw(case.chains, alone, seed=0)
    after = advanced(name, particles, seed=2, steps=case.settled)
    assert agreement(table.counts(after), settled) > FALSE_ALARM


@samplers
def test_a_step_is_a_function_of_its_noise_and_leaves_its_arguments_alone(name: str) -> None:
    """The same noise gives the same step; a state is a value, neither aliased nor overwritten."""
    case = SAMPLERS[name]
    table = table_of(case.model)
    particles = table.draw(50, table.law(), seed=5)
    copies = [layer.copy() for layer in particles]
    model = as_single(model_of(case.model))
    noise = Noise.from_key(jax.random.key(6))
    first = case.sampler.init(noise.words, model, tuple(map(jnp.asarray, particles)))
    step = jax.jit(lambda noise, state: case.sampler.step(noise, model, state)[0])
    second, again, third = step(noise, first), step(noise, first), step(noise.fold(1), first)
    for before, given in zip(copies, first.particles, strict=True):
        np.testing.assert_array_equal(before, given)
    for left, right in zip(second.particles, again.particles, strict=True):
        np.testing.assert_array_equal(left, right)
    assert any(
        (np.asarray(a) != np.asarray(b)).any() for a, b in zip(second.particles, third.particles, strict=True)
    )
    assert jax.tree.structure(first) == jax.tree.structure(second)


@samplers
def test_rows_are_chains_and_do_not_know_of_one_another(name: str) -> None:
    """Other rows with the same noise leave a row's chain as it was: nothing in a step looks across rows."""
    case = SAMPLERS[name]
    table = table_of(case.model)
    here, there = (table.draw(case.chains, table.law(), seed) for seed in (7, 8))
    mixed = tuple(np.concatenate([left[:20], right[20:]]) for left, right in zip(here, there, strict=True))
    ends = [advanced(name, rows, seed=8) for rows in (here, mixed)]
    for left, right in zip(*ends, strict=True):
        np.testing.assert_array_equal(left[:20], right[:20])
    assert any((left != right).any() for left, right in zip(*ends, strict=True))


@pytest.mark.parametrize(("sampler", "steps"), [(None, 25), (Gibbs(3), 10)])
def test_samples_follow_the_model(sampler: AbstractSampler | None, steps: int) -> None:
    """``hm.sample`` from the biases to the target, with steps of one and of three sweeps.

    Steps must not share noise: were the three sweeps of a step to use the noise of the next steps' sweeps, p would be
    about 1e-29 here.
    """
    table, rows = table_of("strong rbm"), 100_000
    states, law = table.marginal(0, table.law())
    drawn = hm.sample(model_of("strong rbm"), n=rows, steps=steps, seed=3, sampler=sampler)
    assert drawn.dtype == np.uint8
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert agreement(counts, law) > FALSE_ALARM
    assert power_against(table.marginal(0, table.law(beta=0.95))[1], law, rows) >= POWER


def test_held_values_are_kept_and_the_rest_is_conditional() -> None:
    table = table_of("rbm of spins")
    states, law = table.marginal(0, table.law())
    drawn = hm.sample(model_of("rbm of spins"), n=20_000, steps=25, seed=4, clamp=[np.nan, 1, np.nan, -1])
    assert drawn.dtype == np.int8
    conditional = np.where((states[:, 1] == 1) & (states[:, 3] == -1), law, 0.0)
    conditional /= conditional.sum()
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert agreement(counts, conditional) > FALSE_ALARM
    # Had the held values not been seen by the hidden layer, the rest would follow the unconditional law.
    unseen = np.zeros(len(states))
    for state, weight in zip(states, law, strict=True):
        held = (states[:, [0, 2]] == state[[0, 2]]).all(axis=1) & (conditional > 0)
        unseen[held] += weight
    assert power_against(unseen, conditional, 20_000) >= POWER


def test_resting_particles_have_the_law_of_the_biases_and_one_sweep() -> None:
    model, table = model_of("rbm"), table_of("rbm")
    with jax.enable_x64(True):
        energies = [
            units.base_energy(jnp.asarray(x)) for units, x in zip(model.units, table.layers, strict=True)
        ]
        biases = -np.sum(energies, axis=0)
    rest = np.exp(biases - np.logaddexp.reduce(biases))
    drawn = jax.jit(resting_particles, static_argnums=2)(
        Noise.from_key(jax.random.key(9)), as_single(model), 50_000
    )
    assert agreement(table.counts(drawn), rest @ table.sweep_kernel()) > FALSE_ALARM


@pytest.mark.parametrize("steps", [0, -1, True])
def test_a_step_has_at_least_one_sweep(steps: int) -> None:
    with pytest.raises(SettingError, match="at least one sweep"):
        Gibbs(steps)
