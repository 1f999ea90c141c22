"""Tempered transitions: ways in balance by enumeration, jumps, and how they train and are gone on with."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.rules.names import build_rule, describe_rule
from harmonium.samplers.names import build_sampler, describe_sampler
from harmonium.samplers.transitions import TemperedTransitions
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, agreement
from tests.contracts.walks import flow_of_ways
from tests.samplers.jumps import count_jumps, gibbs_at_most
from tests.samplers.test_tempering import moved, two_modes
from tests.train.runs import assert_same, interrupted, train

APART = [0.2, 0.8, 1]


@pytest.mark.parametrize(
    ("name", "sampler"),
    [
        ("strong rbm", TemperedTransitions(2)),
        ("strong rbm", TemperedTransitions(schedule=APART)),
        ("three layers", TemperedTransitions(schedule=APART)),
        ("machine", TemperedTransitions(schedule=APART, base="uniform")),
    ],
)
def test_ways_are_in_detailed_balance(name: str, sampler: TemperedTransitions) -> None:
    """By enumeration of all ways: as often taken one way as the other, and not so with either mistake."""
    flow = flow_of_ways(sampler, name)
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    assert 0.1 < flow.sum() < 0.95
    for mistake in ({"omitted": True}, {"backwards": False}) if sampler.rungs > 2 else ({"omitted": True},):
        wrong = flow_of_ways(sampler, name, **mistake)
        assert np.abs(wrong - wrong.T).max() > 1e-5


def test_the_step_takes_the_ways_that_were_enumerated() -> None:
    """From one configuration, the law after a step is a plain sweep and then the flow of ways."""
    name, sampler, chains = "strong rbm", TemperedTransitions(schedule=APART), 50_000
    table, model = table_of(name), as_single(model_of(name))
    worst = int(np.argmin(table.law()))
    particles = tuple(jnp.asarray(np.ones((chains, 1)) * layer[worst], jnp.float32) for layer in table.layers)
    ways = flow_of_ways(sampler, name) / table.law()[:, None]
    ways += np.diag(1 - ways.sum(axis=1))
    law = table.sweep_kernel()[worst] @ ways
    end = moved(sampler, name, sampler.init(jnp.zeros(2, jnp.uint32), model, particles), 1)
    assert agreement(table.counts(end.particles), law) > FALSE_ALARM
    assert agreement(table.counts(end.particles), table.sweep_kernel()[worst]) < FALSE_ALARM


def test_chains_cross_where_gibbs_sampling_does_not() -> None:
    model, sampler = as_single(two_modes()), TemperedTransitions(100, base="uniform")
    noise = Noise.from_key(jax.random.key(6))
    state = sampler.init(noise.words, model, (jnp.zeros((100, 20)), jnp.zeros((100, 4))))
    end = jax.jit(
        lambda state: jax.lax.fori_loop(
            0, 100, lambda i, now: sampler.step(noise.fold(i), model, now)[0], state
        )
    )(state)
    assert 20 <= (np.asarray(end.particles[0]).mean(axis=1) > 0.5).sum() <= 80


def test_jumps_between_planted_clusters_at_equal_unit_updates() -> None:
    """At least five times as many as block Gibbs sampling makes, by the upper end of its 95 % interval.

    From 1 to 0.45 and no further: from the base nearly no way is taken. Ladders jump the gap of this machine and make
    hundreds of times more; see "How it fails" on the page about mixing.
    """
    sampler = TemperedTransitions(schedule=np.linspace(0.45, 1, 60), base="uniform")
    jumps, sweeps = count_jumps(sampler, 420)
    assert jumps >= 30
    assert jumps / sweeps >= 5 * gibbs_at_most(8_000_000)


def test_samples_follow_the_model() -> None:
    name, rows = "strong rbm", 20_000
    table = table_of(name)
    states, law = table.marginal(0, table.law())
    for sampler in (TemperedTransitions(4), TemperedTransitions(schedule=APART, steps=3, base="uniform")):
        drawn = hm.sample(model_of(name), n=rows, steps=30, seed=3, sampler=sampler)
        counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
        assert agreement(counts, law) > FALSE_ALARM


# ------------------------------------------------------------------------------------------------------------ training


@pytest.mark.parametrize("sampler", [TemperedTransitions(4), TemperedTransitions(3, 2, base="uniform")])
def test_a_run_is_gone_on_with_bit_for_bit(tmp_path: Path, sampler: TemperedTransitions) -> None:
    changes = {"rule": hm.PCD(chains=6, sampler=sampler)}
    whole = train(tmp_path / "whole", **changes)
    interrupted(tmp_path / "run", 300, **changes)
    assert_same(hm.resume(tmp_path / "run", model=hm.RBM(6, 4, seed=1)), whole)


def test_members_are_the_runs_alone() -> None:
    changes = {"rule": hm.PCD(chains=6, sampler=TemperedTransitions(4)), "updates": 200}
    together = train(None, members=2, **changes)
    alone = train(None, seed=hm.member_seed(3, 0), **changes)
    for one, other in zip(
        jax.tree.leaves(together.model.member(0)), jax.tree.leaves(alone.model), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-4)


# --------------------------------------------------------------------------------------------------- names and settings


def test_settings_name_the_sampler_and_back() -> None:
    for sampler in (TemperedTransitions(), TemperedTransitions(schedule=APART, steps=2, base="uniform")):
        name, settings = describe_sampler(sampler) or ("", {})
        assert name == "transitions"
        assert build_sampler(name, settings) == sampler
        described = describe_rule(hm.PCD(chains=7, sampler=sampler))
        assert described is not None
        assert build_rule(described.pop("name"), described) == hm.PCD(chains=7, sampler=sampler)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rungs": 1}, "at least 2, got 1"),
        ({"steps": 0}, "at least one sweep"),
        ({"base": "model"}, "no base is called 'model'"),
        ({"schedule": "learned"}, "no schedule is called 'learned'; choose one of uniform, or pass betas"),
        ({"schedule": [1, 0.5]}, r"pass betas\[::-1\]"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        TemperedTransitions(**settings)


def test_every_sweep_is_counted() -> None:
    sampler, model = TemperedTransitions(7, 3), hm.RBM(6, 4)
    state = sampler.init(jnp.zeros(2, jnp.uint32), model, tuple(jnp.zeros((5, u.size)) for u in model.units))
    assert sampler.unit_updates(model, state) == 13 * 5 * 3 * 10
