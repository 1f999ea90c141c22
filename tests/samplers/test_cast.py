"""CAST: its law over chains, levels and tempered chains together, what it learns, and how it is gone on with."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.rules.names import build_rule, describe_rule
from harmonium.samplers.cast import CAST, CASTState, neighbour
from harmonium.samplers.names import build_sampler, describe_sampler
from tests.contracts.ladders import marginal, opposite, rung_energies
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against
from tests.contracts.walks import (
    WronglyWalked,
    at_the_law_of_walks,
    joint_law_of_walks,
    law_of_walks,
)
from tests.samplers.jumps import count_jumps, gibbs_at_most
from tests.samplers.test_tempering import moved, two_modes
from tests.train.runs import assert_same, interrupted, train

CHAINS = 60_000

MISTAKES: dict[str, dict[str, Any]] = {
    "no Hastings factors": {"factors": False},
    "weights of the wrong sign": {"sign": -1.0},
    "differences of the wrong sign": {"difference": opposite},
    "beta F": {"difference": marginal},
}


def begun(sampler: CAST, name: str, chains: int = CHAINS, seed: int = 2) -> CASTState:
    """A state at the law of all that a state holds."""
    table, model = table_of(name), model_of(name)
    particles = tuple(map(jnp.asarray, table.draw(chains, table.law(), seed)))
    state = sampler.init(Noise.from_key(jax.random.key(0)).words, as_single(model), particles)
    return at_the_law_of_walks(sampler, model, table, state, seed)


def joint_codes(state: CASTState, name: str) -> np.ndarray:
    """One number per chain: its configuration, then level and configuration of its tempered chain."""
    table, (replicas, chains) = table_of(name), state.level.shape
    codes = table.codes(state.replicas).reshape(replicas, chains)
    target, each = np.asarray(state.target), np.arange(chains)
    levels = len(state.betas)
    parts = codes[target, each], np.asarray(state.level)[1 - target, each], codes[1 - target, each]
    return np.ravel_multi_index(parts, (table.count, levels, table.count))


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("base", ["data", "uniform"])
def test_chain_level_and_tempered_chain_keep_their_law_together(levels: int, base: str) -> None:
    """For weights that are none of the levels' own: the law is kept by a step whatever was learned."""
    name, sampler = "rbm of one by one", CAST(1, levels, base=base)
    start = begun(sampler, name)
    law = joint_law_of_walks(sampler, name).ravel()
    np.testing.assert_allclose(
        law.reshape(4, levels, 4),
        table_of(name).law()[:, None, None] * law_of_walks(sampler, model_of(name), table_of(name)),
        atol=1e-15,
    )
    for steps in (1, 7):
        end = moved(sampler, name, start, steps)
        assert agreement(np.bincount(joint_codes(end, name), minlength=len(law)), law) > FALSE_ALARM
    assert (np.asarray(end.target) != np.asarray(start.target)).any()
    assert (np.asarray(end.level)[np.asarray(end.target), np.arange(CHAINS)] == 0).all()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str) -> None:
    """Each by the law after one step, whose distance from the target is exact, and the power of the proof with it."""
    name, sampler, wrong = "rbm of one by one", CAST(1, 3, base="uniform"), MISTAKES[mistake]
    law, mistaken = (joint_law_of_walks(sampler, name, **kind).ravel() for kind in ({}, wrong))
    assert power_against(mistaken, law, CHAINS) >= POWER
    end = moved(WronglyWalked(sampler, **wrong), name, begun(sampler, name), 1)
    counts = np.bincount(joint_codes(end, name), minlength=len(law))
    assert agreement(counts, law) < FALSE_ALARM
    assert agreement(counts, mistaken) > FALSE_ALARM


def test_factors_of_two_levels_are_one() -> None:
    """With two levels each proposes the other always; with more, an end is left twice as often as it is proposed."""
    level, up = jnp.array([0, 1, 0, 1]), jnp.array([True, False, False, True])
    wanted, factors = neighbour(level, 2, up)
    np.testing.assert_array_equal(wanted, [1, 0, 1, 0])
    np.testing.assert_array_equal(factors, 0)
    wanted, factors = neighbour(
        jnp.array([0, 1, 1, 2, 3, 3]), 4, jnp.array([False, False, True, True, True, False])
    )
    np.testing.assert_array_equal(wanted, [1, 0, 2, 3, 2, 2])
    np.testing.assert_allclose(factors, np.log([0.5, 2, 1, 2, 0.5, 0.5]), rtol=1e-6)


def test_several_tempered_chains_keep_their_law() -> None:
    name, sampler = "rbm", CAST(3, 4)
    table = table_of(name)
    law = law_of_walks(sampler, model_of(name), table)
    end = moved(sampler, name, begun(sampler, name, 20_000), 5)
    codes, level = table.codes(end.replicas), np.asarray(end.level).ravel()
    tempered = (np.arange(4)[:, None] != np.asarray(end.target)).ravel()
    counts = np.bincount(level[tempered] * table.count + codes[tempered], minlength=law.size)
    assert agreement(counts, law.ravel()) > FALSE_ALARM
    assert agreement(table.counts(end.particles), table.law()) > FALSE_ALARM


# ------------------------------------------------------------------------------------------------------------ learning


def adapted(sampler: CAST, model: hm.RBM, steps: int, chains: int = 20) -> CASTState:
    noise, model = Noise.from_key(jax.random.key(4)), as_single(model)
    start = sampler.init(noise.words, model, tuple(jnp.zeros((chains, units.size)) for units in model.units))

    def one(index: jax.Array, now: CASTState) -> CASTState:
        return sampler.adapt(*sampler.step(noise.fold(index), model, now))

    return jax.jit(lambda state: jax.lax.fori_loop(0, steps, one, state))(start)


def test_weights_tend_to_the_partition_functions() -> None:
    sampler = CAST(4, 8)
    state = adapted(sampler, model_of("strong rbm"), 20_000)
    base, energy = rung_energies(sampler, model_of("strong rbm"), table_of("strong rbm"))
    exact = [np.logaddexp.reduce(-(1 - beta) * base - beta * energy) for beta in np.linspace(1, 0, 8)]
    np.testing.assert_allclose(state.weights.log_weights, np.array(exact) - min(exact), atol=0.05)
    assert float(state.weights.gain) < 1e-3
    assert int(jnp.min(state.weights.log_weights)) == 0
    # The constant gain of the authors goes on for ever.
    rough = adapted(CAST(4, 8, gain=10), model_of("strong rbm"), 20_000)
    assert np.abs(np.asarray(rough.weights.log_weights) - exact + min(exact)).max() > 0.2


def test_a_step_alone_learns_nothing() -> None:
    sampler = CAST(2, 5)
    state = begun(sampler, "rbm", 50)
    noise, model = Noise.from_key(jax.random.key(5)), as_single(model_of("rbm"))
    after, info = sampler.step(noise, model, state)
    for one, other in zip(jax.tree.leaves(state.weights), jax.tree.leaves(after.weights), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (sampler.adapt(after, info).weights.log_weights != after.weights.log_weights).any()
    assert sampler.between(noise.words, model, after) is after
    assert not sampler.changes_shapes


def test_learning_begins_again_where_walks_come_apart() -> None:
    """Weights of another machine hold every walk at one end: the gain that had decayed comes back."""
    sampler = CAST(2, 6)
    learned = adapted(sampler, model_of("rbm"), 3000)
    assert float(learned.weights.gain) < 0.01
    away = jnp.asarray([0.0, 300, 300, 300, 300, 300])
    now = eqx.tree_at(lambda tree: tree.weights.log_weights, learned, away)
    noise, model = Noise.from_key(jax.random.key(9)), as_single(model_of("rbm"))
    step = jax.jit(
        lambda state: jax.lax.fori_loop(
            0, 200, lambda i, now: sampler.adapt(*sampler.step(noise.fold(i), model, now)), state
        )
    )
    gains = []
    for _ in range(40):
        now = step(now)
        gains.append(float(now.weights.gain))
    assert gains[0] < 0.01
    assert max(gains) > 0.05
    assert gains[-1] < 0.01
    np.testing.assert_allclose(now.weights.log_weights, learned.weights.log_weights, atol=0.2)


def test_chains_cross_where_gibbs_sampling_does_not() -> None:
    state = adapted(CAST(5, 20, base="uniform"), two_modes(), 1000, chains=100)
    assert 20 <= (np.asarray(state.particles[0]).mean(axis=1) > 0.5).sum() <= 80


def test_jumps_between_planted_clusters_at_equal_unit_updates() -> None:
    """At least a hundred times as many as block Gibbs sampling makes, by the upper end of its 95 % interval."""
    jumps, sweeps = count_jumps(CAST(1, 20, base="uniform"), 16_000, learning=4000)
    assert jumps >= 30
    assert jumps / sweeps >= 100 * gibbs_at_most(2_000_000)


def test_samples_follow_the_model() -> None:
    name, rows = "strong rbm", 20_000
    table = table_of(name)
    states, law = table.marginal(0, table.law())
    for sampler in (CAST(2, 4), CAST(1, 3, steps=2, gain=10, base="uniform")):
        drawn = hm.sample(model_of(name), n=rows, steps=40, seed=3, sampler=sampler)
        counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
        assert agreement(counts, law) > FALSE_ALARM


# ------------------------------------------------------------------------------------------------------------ training


@pytest.mark.parametrize("sampler", [CAST(2, 5), CAST(1, 4, gain=10, base="uniform", steps=2)])
def test_a_run_is_gone_on_with_bit_for_bit(tmp_path: Path, sampler: CAST) -> None:
    """With the weights that were learned, and where every chain is."""
    changes = {"rule": hm.PCD(chains=6, sampler=sampler)}
    whole = train(tmp_path / "whole", **changes)
    assert whole.state is not None
    assert float(np.ptp(whole.state.rule_state.sampler.weights.log_weights)) > 0.01
    interrupted(tmp_path / "run", 300, **changes)
    assert_same(hm.resume(tmp_path / "run", model=hm.RBM(6, 4, seed=1)), whole)


def test_members_are_the_runs_alone() -> None:
    changes = {"rule": hm.PCD(chains=6, sampler=CAST(2, 5)), "updates": 200}
    together = train(None, members=2, **changes)
    alone = train(None, seed=hm.member_seed(3, 0), **changes)
    for one, other in zip(
        jax.tree.leaves(together.model.member(0)), jax.tree.leaves(alone.model), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert together.state is not None
    first, second = np.asarray(together.state.rule_state.sampler.weights.log_weights)
    assert (first != second).any()


# --------------------------------------------------------------------------------------------------- names and settings


def test_settings_name_the_sampler_and_back() -> None:
    for sampler in (CAST(), CAST(3, schedule=[0, 0.25, 1], steps=2, gain=10, base="uniform")):
        name, settings = describe_sampler(sampler) or ("", {})
        assert name == "cast"
        assert build_sampler(name, settings) == sampler
        described = describe_rule(hm.PCD(chains=7, sampler=sampler))
        assert described is not None
        assert build_rule(described.pop("name"), described) == hm.PCD(chains=7, sampler=sampler)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ratio": 0}, "tempered chains for each chain, at least 1, got 0"),
        ({"rungs": 1}, "at least 2, got 1"),
        ({"steps": 0}, "at least one sweep"),
        ({"gain": 0}, "gain must be 'decaying' or a number above 0, got 0.0"),
        ({"gain": "constant"}, "gain must be 'decaying' or a number above 0, got 'constant'"),
        ({"gain": float("nan")}, "gain must be 'decaying' or a number above 0, got nan"),
        ({"base": "model"}, "no base is called 'model'"),
        ({"schedule": "learned"}, "no schedule is called 'learned'; choose one of uniform, or pass betas"),
        ({"schedule": [0, 1], "rungs": 3}, "rungs=3, but the schedule has 2 betas"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        CAST(**settings)


def test_every_replica_is_counted() -> None:
    sampler, model = CAST(10, steps=2), hm.RBM(6, 4)
    state = sampler.init(jnp.zeros(2, jnp.uint32), model, tuple(jnp.zeros((5, u.size)) for u in model.units))
    assert sampler.unit_updates(model, state) == 11 * 5 * 2 * 10
