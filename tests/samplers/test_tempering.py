"""Parallel tempering: its law over all rungs, what it learns, and how it trains and is gone on with."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import harmonium as hm
from harmonium.data.modes import planted, planted_machine
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.rules.names import build_rule, describe_rule
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.names import build_sampler, describe_sampler
from harmonium.samplers.tempering import ParallelTempering, TemperingState
from harmonium.samplers.walk import base_of
from tests.contracts.ladders import WronglySwapped, at_their_laws, opposite, rung_laws
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, agreement
from tests.train.runs import ROWS, assert_same, bits, interrupted, train


def moved(sampler: AbstractSampler, name: str, state: Any, steps: int, seed: int = 1) -> Any:
    noise, model = Noise.from_key(jax.random.key(seed)), as_single(model_of(name))
    return jax.jit(
        lambda state: jax.lax.fori_loop(
            0, steps, lambda i, now: sampler.step(noise.fold(i), model, now)[0], state
        )
    )(state)


def begun(tempering: ParallelTempering, name: str, chains: int) -> TemperingState:
    table = table_of(name)
    particles = tuple(map(jnp.asarray, table.draw(chains, table.law(), 0)))
    return tempering.init(Noise.from_key(jax.random.key(0)).words, as_single(model_of(name)), particles)


def joint_codes(state: TemperingState, name: str) -> np.ndarray:
    """One number per chain for what all its rungs hold."""
    table = table_of(name)
    codes = [table.codes([layer[rung] for layer in state.ladder]) for rung in range(state.holder.shape[0])]
    return np.ravel_multi_index(codes, [table.count] * len(codes))


@pytest.mark.parametrize("swaps", ["even-odd", "random"])
@pytest.mark.parametrize("base", ["data", "uniform"])
def test_all_rungs_together_keep_the_product_of_their_laws(swaps: str, base: str) -> None:
    """Not only the chains at the model: no rung leans on another after many rounds of swaps."""
    name, chains = "rbm of one by one", 40_000
    tempering = ParallelTempering(3, swaps=swaps, base=base)
    start = at_their_laws(tempering, model_of(name), table_of(name), begun(tempering, name, chains), seed=2)
    laws = rung_laws(tempering, model_of(name), table_of(name))
    product = np.einsum("i,j,k->ijk", *laws).ravel()
    counts = np.bincount(joint_codes(moved(tempering, name, start, 7), name), minlength=len(product))
    assert agreement(counts, product) > FALSE_ALARM
    wrong = moved(WronglySwapped(tempering, opposite), name, start, 7)
    assert agreement(np.bincount(joint_codes(wrong, name), minlength=len(product)), product) < FALSE_ALARM


def test_every_rung_keeps_its_own_law() -> None:
    name, chains = "three layers", 20_000
    tempering = ParallelTempering(schedule=[0, 0.3, 0.7, 1])
    table = table_of(name)
    start = at_their_laws(tempering, model_of(name), table, begun(tempering, name, chains), seed=3)
    end = moved(tempering, name, start, 6)
    for rung, law in enumerate(rung_laws(tempering, model_of(name), table)):
        assert agreement(table.counts([layer[rung] for layer in end.ladder]), law) > FALSE_ALARM
    assert (np.asarray(end.holder) != np.asarray(start.holder)).any()
    np.testing.assert_array_equal(np.sort(np.asarray(end.holder), axis=0)[:, 0], np.arange(4))


def test_the_far_end_forgets_at_once() -> None:
    """At beta 0 a sweep is a fresh draw of the base, whatever stood there."""
    name = "strong rbm"
    model = as_single(model_of(name))
    tempering = ParallelTempering(2)
    state = tempering.rebased(begun(tempering, name, 20_000), model, jnp.asarray([0.2, 0.5, 0.9, 1.0]))
    drawn = np.asarray(moved(tempering, name, state, 1).replicas[0][20_000:]).mean(axis=0)
    np.testing.assert_allclose(drawn, [0.2, 0.5, 0.9, 0.99], atol=5 * 0.5 / np.sqrt(20_000))
    assert state.base_bias is not None
    base = base_of(model, state.base_bias)
    mean = np.asarray(base.units[0].mean(base.units[0].bias))
    weights = np.asarray(model.couplings[0].weights)
    np.testing.assert_allclose(
        base.units[1].bias, mean @ weights + np.asarray(model.units[1].bias), rtol=1e-5
    )


def adapted(tempering: ParallelTempering, model: hm.RBM, steps: int) -> TemperingState:
    noise, model = Noise.from_key(jax.random.key(4)), as_single(model)
    start = tempering.init(noise.words, model, tuple(jnp.zeros((200, units.size)) for units in model.units))

    def one(index: jax.Array, now: TemperingState) -> TemperingState:
        return tempering.adapt(*tempering.step(noise.fold(index), model, now))

    return jax.jit(lambda state: jax.lax.fori_loop(0, steps, one, state))(start)


def test_a_learned_schedule_is_refused_alike_everywhere() -> None:
    uniform = adapted(ParallelTempering(8, base="uniform"), two_modes(), 999)
    np.testing.assert_allclose(uniform.betas, np.linspace(1, 0, 8))
    tempering = ParallelTempering(8, base="uniform", schedule="learned")
    learned = adapted(tempering, two_modes(), 2099)
    before, after = (np.ptp(np.asarray(state.traffic.rejection)) for state in (uniform, learned))
    assert before > 0.3
    assert after < 0.05
    betas = np.asarray(learned.betas)
    assert betas[0] == 1
    assert betas[-1] == 0
    assert (np.diff(betas) < 0).all()
    # A step alone is a fixed kernel: only adapt moves the schedule.
    noise = Noise.from_key(jax.random.key(5))
    held, _ = tempering.step(noise, as_single(two_modes()), learned)
    np.testing.assert_array_equal(held.betas, betas)


def test_an_adaptive_ladder_grows_where_the_flow_drops() -> None:
    tempering = ParallelTempering(schedule="adaptive", rungs=2, base="uniform")
    model = as_single(hm.RBM(30, 20, seed=0, weight_scale=1.0))
    noise = Noise.from_key(jax.random.key(5))
    particles = tuple(jnp.zeros((10, units.size)) for units in model.units)
    state = tempering.init(noise.words, model, particles)

    @jax.jit
    def chunk(state: TemperingState, first: jax.Array) -> TemperingState:
        return jax.lax.fori_loop(
            first,
            first + 100,
            lambda i, now: tempering.adapt(*tempering.step(noise.fold(i), model, now)),
            state,
        )

    rungs = []
    for index in range(6):
        state = chunk(state, jnp.int32(100 * index))
        before, flow = state.ladder, np.asarray(state.traffic.upward)
        state = tempering.between(noise.words, model, state)
        rungs.append(len(state.betas))
        pair = int(np.argmax(-np.diff(flow)))
        kept = np.delete(np.arange(rungs[-1]), pair + 1)
        for old, new in zip(before, state.ladder, strict=True):
            np.testing.assert_array_equal(old, new[kept])
        assert (np.diff(np.asarray(state.betas)) < 0).all()
        assert [layer.shape for layer in state.particles] == [(10, 30), (10, 20)]
    assert rungs == [3, 4, 5, 6, 7, 8]
    # Where swaps are frequent nothing grows.
    easy = adapted(ParallelTempering(schedule="adaptive", rungs=4), model_of("rbm"), 100)
    assert len(tempering.between(noise.words, as_single(model_of("rbm")), easy).betas) == 4


def two_modes() -> hm.RBM:
    """All on or all off, with a hundred nats between: what block Gibbs sampling never crosses."""
    weights = np.full((20, 4), 2.0)
    return hm.RBM.from_arrays(weights, np.full(20, -4.0), np.full(4, -20.0))


def test_chains_cross_where_gibbs_sampling_does_not() -> None:
    model = two_modes()
    ends = []
    for sampler in (Gibbs(), ParallelTempering(12, base="uniform")):
        noise = Noise.from_key(jax.random.key(6))
        particles = (jnp.zeros((100, 20)), jnp.zeros((100, 4)))
        state = sampler.init(noise.words, as_single(model), particles)
        run = jax.jit(
            lambda state, sampler=sampler, noise=noise: jax.lax.fori_loop(
                0, 300, lambda i, now: sampler.step(noise.fold(i), as_single(model), now)[0], state
            )
        )
        ends.append(np.asarray(run(state).particles[0]).mean(axis=1) > 0.5)
    assert ends[0].sum() == 0
    assert 20 <= ends[1].sum() <= 80


def test_jumps_between_planted_clusters_at_equal_unit_updates() -> None:
    """At least a hundred times as many as block Gibbs sampling makes, by the upper end of its 95 % interval."""
    machine, chains, rungs, steps = planted_machine(), 40, 8, 2000
    data = planted(rows=chains)
    assert data.labels is not None
    model = as_single(hm.RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias))
    hidden = jnp.asarray(np.eye(8)[np.maximum(data.labels["train"], 0)], jnp.float32)
    noise = Noise.from_key(jax.random.key(8))
    centres = jnp.asarray(machine.centres, jnp.float32)

    def jumps(sampler: Any, steps: int) -> int:
        def cluster(state: Any) -> jax.Array:
            return jnp.argmin(jnp.abs(state.particles[0][:, None] - centres).sum(axis=2), axis=1)

        def one(index: jax.Array, now: Any) -> Any:
            state, last, count = now
            state, info = sampler.step(noise.fold(index), model, state)
            if isinstance(sampler, ParallelTempering):
                state = sampler.adapt(state, info)
            here = cluster(state)
            return state, here, count + jnp.sum(here != last)

        state = sampler.init(noise.words, model, (jnp.asarray(data.train, jnp.float32), hidden))
        start = (state, cluster(state), jnp.int32(0))
        return int(jax.jit(lambda start: jax.lax.fori_loop(0, steps, one, start))(start)[2])

    tempered = jumps(ParallelTempering(rungs, schedule="learned"), steps)
    plain = jumps(Gibbs(), rungs * steps)
    assert tempered >= 30
    assert tempered >= 100 * scipy.stats.chi2.isf(0.025, 2 * plain + 2) / 2


def test_samples_follow_the_model_also_where_the_ladder_learns() -> None:
    name, rows = "strong rbm", 20_000
    table = table_of(name)
    states, law = table.marginal(0, table.law())
    for sampler in (ParallelTempering(4, schedule="learned"), ParallelTempering(3, steps=2, swaps="random")):
        drawn = hm.sample(model_of(name), n=rows, steps=40, seed=3, sampler=sampler)
        counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
        assert agreement(counts, law) > FALSE_ALARM


# ------------------------------------------------------------------------------------------------------------ training


def betas_of(run: hm.Run) -> np.ndarray:
    assert run.state is not None
    return np.asarray(run.state.rule_state.sampler.betas)


def strong_start() -> hm.RBM:
    """A machine whose rungs hardly swap, so that an adaptive ladder grows."""
    model = hm.RBM(6, 4, seed=1, weight_scale=4.0)
    return hm.RBM.from_arrays(*(np.asarray(part, np.float32) for part in model.parameters().values()))


@pytest.mark.parametrize(
    "sampler",
    [
        ParallelTempering(3, schedule="learned"),
        ParallelTempering(2, schedule="adaptive", swaps="random", base="uniform"),
    ],
)
def test_a_run_is_gone_on_with_bit_for_bit(tmp_path: Path, sampler: ParallelTempering) -> None:
    """With what was learned, and also where rungs were spawned before the interruption."""
    changes = {
        "rule": hm.PCD(chains=6, sampler=sampler),
        "model": strong_start(),
        "data": hm.sample(strong_start(), 37, steps=20),
        "initialize": False,
        "learning_rate": 0.001,
    }
    whole = train(tmp_path / "whole", **changes)
    betas = betas_of(whole)
    if sampler.changes_shapes:
        assert len(betas) > 2
    else:
        assert np.abs(betas - np.linspace(1, 0, 3)).max() > 0.01
    interrupted(tmp_path / "run", 300, **changes)
    assert_same(hm.resume(tmp_path / "run", model=changes["model"]), whole)


def test_members_are_the_runs_alone() -> None:
    changes = {
        "rule": hm.PCD(chains=6, sampler=ParallelTempering(3, schedule="learned", swaps="random")),
        "updates": 200,
    }
    together = train(None, members=2, **changes)
    alone = train(None, seed=hm.member_seed(3, 0), **changes)
    for one, other in zip(
        jax.tree.leaves(together.model.member(0)), jax.tree.leaves(alone.model), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)
    first, second = betas_of(together)
    assert (first != second).any()
    with pytest.raises(SettingError, match="members of an ensemble have arrays of one shape"):
        train(None, members=2, rule=ParallelTempering(3, schedule="adaptive"))


def test_a_sampler_stands_for_persistent_training_with_it() -> None:
    sampler = ParallelTempering(3)
    by_name, by_rule = (
        hm.fit(hm.RBM(6, 4, seed=1), ROWS, rule, updates=100, batch_size=8, seed=3)
        for rule in (sampler, hm.PCD(sampler=sampler))
    )
    assert bits(by_name.model) == bits(by_rule.model)
    assert by_name.config["sampler"]["name"] == "pt"
    # The base is at the marginals of the data.
    assert by_name.state is not None
    state = by_name.state.rule_state.sampler
    mean = 1 / (1 + np.exp(-np.asarray(state.base_bias)))
    np.testing.assert_allclose(mean, ROWS.mean(axis=0), atol=1e-5)


# --------------------------------------------------------------------------------------------------- names and settings


def test_settings_name_the_sampler_and_back() -> None:
    for sampler in (ParallelTempering(5, swaps="random"), ParallelTempering(schedule=[0, 0.25, 1], steps=2)):
        name, settings = describe_sampler(sampler) or ("", {})
        assert build_sampler(name, settings) == sampler
        described = describe_rule(hm.PCD(chains=7, sampler=sampler))
        assert described is not None
        assert build_rule(described.pop("name"), described) == hm.PCD(chains=7, sampler=sampler)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rungs": 1}, "at least 2, got 1"),
        ({"swaps": "odd"}, "swaps must be one of"),
        ({"base": "model"}, "no base is called 'model'; choose one of data, uniform"),
        ({"schedule": "geometric"}, "no schedule is called 'geometric'"),
        ({"schedule": [1, 0.5, 0]}, r"betas must rise to 1, .* pass betas\[::-1\]"),
        ({"schedule": [0, 0.5]}, "betas must rise to 1"),
        ({"schedule": [0.0, float("nan"), 1.0]}, "betas must rise to 1"),
        ({"schedule": [1]}, "at least two betas"),
        ({"schedule": [0, 1], "rungs": 3}, "rungs=3, but the schedule has 2 betas"),
        ({"steps": 0}, "at least one sweep"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ParallelTempering(**settings)


def test_what_belongs_to_another_sampler_is_refused() -> None:
    with pytest.raises(
        SettingError,
        match="rungs=4 is a setting of pt, cast and transitions, which pcd does not have; leave it out",
    ):
        build_rule("pcd", {"rungs": 4})
    with pytest.raises(SettingError, match="rungs=4 is no setting of gibbs; it has steps"):
        build_sampler("gibbs", {"rungs": 4})
    with pytest.raises(SettingError, match="no sampler is called 'cold'"):
        build_sampler("cold", {})
    with pytest.raises(SettingError, match="steps=2 belongs to Gibbs sampling"):
        hm.PCD(2, sampler=ParallelTempering(3))


@pytest.mark.parametrize("base", ["data", "uniform"])
def test_general_machines_have_either_base(base: str) -> None:
    """Samples after the pilot, the learning and the ladder follow the exact law."""
    name, rows = "machine", 20_000
    states, law = table_of(name).marginal(0, table_of(name).law())
    tempering = ParallelTempering(3, schedule="learned", base=base)
    drawn = hm.sample(model_of(name), rows, steps=60, seed=5, sampler=tempering)
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert agreement(counts, law) > FALSE_ALARM
