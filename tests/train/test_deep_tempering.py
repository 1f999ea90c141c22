"""Runs by deep tempering: gone on with bit for bit, members as alone, what metrics say, and the alarm."""

import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.evaluate.codes import code_distances
from harmonium.train.codes import alarm_of, swap_signs
from tests.train.runs import ROWS, UPDATES, assert_same, bits, interrupted, train

RULE = hm.PCD(chains=6, sampler=hm.DeepTempering(hot=2))


def stack() -> hm.DBN:
    return hm.DBN(6, [4, 3, 2], seed=1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> hm.Run:
    """The unbroken run."""
    return train(tmp_path_factory.mktemp("whole") / "run", model=stack(), rule=RULE)


@pytest.mark.parametrize("index", [0, 200])
def test_an_interrupted_run_ends_as_the_unbroken_one(tmp_path: Path, whole: hm.Run, index: int) -> None:
    """Chains of all levels, hot replicas, the parity of rounds and what is known of swaps included."""
    interrupted(tmp_path / "run", index, model=stack(), rule=RULE, checkpoint_seconds=1e9)
    run = hm.resume(tmp_path / "run", model=stack())
    assert_same(run, whole)
    assert run.state is not None
    sampler = run.state.rule_state.sampler
    assert sampler.hot.shape == (2, 6, 4)
    assert int(sampler.rounds) == UPDATES


def test_settings_of_a_run_name_the_sampler(whole: hm.Run) -> None:
    settings: Any = whole.config
    assert settings["sampler"]["name"] == "deep"
    assert (settings["sampler"]["hot"], settings["sampler"]["order"]) == (2, "swap-first")


def test_metrics_have_swaps_and_the_distance_of_codes(whole: hm.Run) -> None:
    for record in whole.history[1:]:
        assert 0 < record["swap_rate"] < 1
        assert 0 < record["swap_acceptance"] <= 1
        assert 0 < record["code_distance"] < 1
    assert whole.history[-1]["code_distance"] == max(code_distances(whole.model))


def test_other_runs_have_none_of_it() -> None:
    run = hm.fit(hm.DBN(6, [4, 3]), ROWS, hm.PCD(chains=6), updates=100, batch_size=8)
    assert not {key for record in run.history for key in record if "swap" in key or "code" in key}


def test_members_are_runs_alone_with_their_seeds() -> None:
    """A swap is each chain's own, the pairs in turn are the same for all: a member is the run with its seed."""
    both = hm.Ensemble.of([stack(), hm.DBN(6, [4, 3, 2], seed=2)])
    together = train(None, model=both, rule=RULE, updates=200)
    assert isinstance(together.model, hm.Ensemble)
    alone = train(None, model=stack(), rule=RULE, updates=200, seed=hm.member_seed(3, 0))
    for one, other in zip(
        jax.tree.leaves(together.model.member(0)), jax.tree.leaves(alone.model), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=2e-5)
    assert bits(together.model.member(0)) != bits(together.model.member(1))
    record = together.history[-1]
    assert record["swap_rate_low"] <= record["swap_rate"] <= record["swap_rate_high"]
    assert {"code_distance", "code_distance_low", "swap_acceptance_high"} <= record.keys()


def parted() -> hm.DBN:
    """The lower level has nearly all its mass on the code (1, 1); the upper one knows (1, 0) and (0, 1) only."""
    lower = hm.RBM.from_arrays(np.zeros((6, 2)), np.zeros(6), np.array([6.0, 6.0]))
    upper = hm.RBM.from_arrays(np.array([[-30.0], [30.0]]), np.array([15.0, -15.0]), np.zeros(1))
    return hm.DBN.of([lower, upper])


def test_the_alarm_is_raised_where_swaps_look_well_and_codes_have_parted() -> None:
    """Where swaps are rare, as they are for this stack in equilibrium, nobody is deceived by them."""
    settings: dict[str, Any] = {"updates": 100, "batch_size": 8, "learning_rate": 0.0, "final_rate": 0.0}
    rule = hm.PCD(chains=400, sampler=hm.DeepTempering(), centred=False, burn_in=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", hm.HarmoniumWarning)
        run = hm.fit(parted(), ROWS, rule, **settings)
    assert "codes_parted" not in run.history[-1]
    assert alarm_of(run.history[-1]) is None
    assert run.history[-1]["code_distance"] > 0.99
    state = run.state
    assert state is not None
    swapping = eqx.tree_at(lambda tree: tree.rule_state.sampler.moved, state, jnp.full(1, 0.3))
    signs = swap_signs(swapping)
    assert signs["codes_parted"] is True
    assert str(alarm_of(signs)).startswith("swaps look well (rate 0.30), but the levels have parted")
    assert str(alarm_of(signs | {"codes_parted": [1, 4]})).startswith("in members 1, 4 swaps look well")
