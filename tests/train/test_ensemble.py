"""Ensembles: every member is the run alone with its seed, and what happens to one happens to no other."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.evaluate.exact import plan_enumeration
from harmonium.rules.base import AbstractRule
from harmonium.train import drive
from harmonium.train.config import TrainConfig
from harmonium.train.ensemble import run_members
from harmonium.train.setup import prepare
from harmonium.typing import Step
from tests.train.killing import remains
from tests.train.runs import (
    ROWS,
    UPDATES,
    assert_same,
    bits,
    interrupted,
    interrupting_after,
    of_seeds,
    train,
)

RULES = {"pcd": hm.PCD(chains=16), "cd": hm.CD(2), "plain": hm.PCD(steps=2, chains=9, centred=False)}
GREY = hm.load_data(np.random.default_rng(1).random((37, 6)), binarize="stochastic")
WEIGHTED = hm.load_data(ROWS, weight=np.arange(37.0))


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("pcd", {}),
        ("cd", {"momentum": 0.5, "weight_decay": 1e-3}),
        ("plain", {"optimizer": "adam", "learning_rate": 0.01}),
        ("pcd", {"data": GREY}),
        ("cd", {"data": WEIGHTED, "batch_size": 100}),
    ],
    ids=["ragged", "momentum", "adam", "stochastic", "weights"],
)
def test_every_member_is_the_run_alone_with_its_seed(rule: str, settings: dict[str, Any]):
    """Model, chains and offsets, and nothing of one member is that of another.

    The sums of a mapped program may be taken in another order, so that numbers agree to rounding; over these few
    updates no draw is near enough to its threshold to fall otherwise.
    """
    start, shared = of_seeds(1, 2, 5), {"rule": RULES[rule], "updates": 60, **settings}
    run = train(None, model=start, **shared)
    assert isinstance(run.model, hm.Ensemble)
    for number in range(3):
        alone = train(None, model=start.member(number), **{**shared, "seed": hm.member_seed(3, number)})
        assert run.state is not None
        assert alone.state is not None
        for found, wanted in zip(
            jax.tree.leaves((run.state.model, run.state.rule_state)),
            jax.tree.leaves((alone.state.model, alone.state.rule_state)),
            strict=True,
        ):
            np.testing.assert_allclose(found[number], wanted, atol=2e-6)
    weights = [member.parameters()["weights"] for member in run.model]
    assert all(np.abs(weights[one] - weights[other]).max() > 1e-3 for one, other in ((0, 1), (0, 2), (1, 2)))


# --------------------------------------------------------------------------------------------- how members begin


def test_members_of_a_fresh_model_have_weights_of_their_own():
    """Member 0 is the given model; the others have its law: same size on average, unlike each other."""
    model = hm.RBM(40, 30, seed=1, weight_scale=0.05)
    data = np.random.default_rng(0).integers(0, 2, (20, 40))
    settings: dict[str, Any] = {"updates": 1, "learning_rate": 0.0, "initialize": False, "seed": 3}
    run = hm.fit(model, data, hm.PCD(chains=4, centred=False), members=4, **settings)
    weights = [member.parameters()["weights"] for member in run.model]
    np.testing.assert_array_equal(weights[0], model.parameters()["weights"])
    scale = float(np.sqrt(np.mean(np.square(weights[0], dtype=np.float64))))
    for number in (1, 2, 3):
        drawn = hm.RBM(40, 30, seed=hm.member_seed(3, number), weight_scale=scale)
        np.testing.assert_array_equal(weights[number], drawn.parameters()["weights"])
    correlation = np.corrcoef([weight.ravel() for weight in weights])
    # 1200 weights: six correlations of a standard deviation of 0.029 each.
    assert np.abs(correlation - np.eye(4)).max() < 6 * 0.029


def test_members_of_a_trained_model_start_equal():
    trained = train(None, updates=1).model
    settings: dict[str, Any] = {"rule": hm.PCD(chains=4, centred=False), "members": 3, "updates": 1}
    run = train(None, model=trained, learning_rate=0.0, **settings)
    for member in run.model:
        for found, wanted in zip(jax.tree.leaves(member), jax.tree.leaves(trained), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert run.state is not None
    chains = np.asarray(run.state.rule_state.sampler.particles[0])
    assert (chains[0] != chains[1]).any()
    assert (chains[1] != chains[2]).any()


def test_one_member_is_a_model_and_no_ensemble():
    """Bit for bit the run without members, and the same compiled program."""
    alone, one = train(None), train(None, members=1)
    assert isinstance(one.model, hm.RBM)
    assert_same(one, alone)
    assert one.state is not None
    assert one.state.key.ndim == 0


def test_no_two_members_have_the_same_seed():
    seeds = {hm.member_seed(seed, member) for seed in range(20) for member in range(500)}
    assert len(seeds) == 20 * 500
    assert hm.member_seed(7, 0) == 7
    assert hm.member_seed(2**62, 0) == 2**62


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 0}, "members=0"),
        ({"model": of_seeds(1, 2), "members": 3}, "members=3 .* ensemble given has 2"),
        ({"model": of_seeds(1)}, "one member is trained as a model"),
    ],
)
def test_what_is_no_ensemble_is_refused(changes: dict[str, Any], message: str):
    with pytest.raises(SettingError, match=message):
        train(None, **changes)


# ------------------------------------------------------------------------------------------ what a run of them says


def test_reports_hold_the_median_and_the_band_of_the_members():
    run = train(None, model=of_seeds(*range(21)), learning_rate=0.3)
    last = run.history[-1]
    scores = sorted(hm.log_likelihood(member, ROWS).value for member in run.model)
    # Of 21 members one lies beyond either end of the band.
    wanted = {"": scores[10], "_low": scores[1], "_high": scores[-2]}
    for ending, value in wanted.items():
        assert last[f"log_likelihood_train{ending}"] == pytest.approx(value, abs=1e-12)
    assert (last["members"], last["index"], last["log_likelihood_kind"]) == (21, UPDATES, "exact")
    assert last["weight_rms_low"] < last["weight_rms"] < last["weight_rms_high"]
    assert "log_likelihood_train_row_stderr_low" not in last


# ----------------------------------------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("index", [0, 200, 400])
def test_interrupted_and_gone_on_with_it_is_the_unbroken_run(tmp_path: Path, index: int):
    expected = train(tmp_path / "whole", members=3, momentum=0.5)
    interrupted(tmp_path / "run", index, members=3, momentum=0.5)
    assert not hm.load_run(tmp_path / "run").finished
    assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")
    again = hm.load_run(tmp_path / "run")
    assert again.finished
    assert bits(again.model) == bits(expected.model)
    assert again.history == expected.history


def test_a_finished_run_goes_further_with_all_its_members(tmp_path: Path):
    train(tmp_path / "whole", members=3)
    expected = hm.resume(tmp_path / "whole", updates=250)
    train(tmp_path / "run", members=3)
    with pytest.raises(KeyboardInterrupt):
        hm.resume(tmp_path / "run", updates=250, reporter=interrupting_after(600))
    assert_same(hm.resume(tmp_path / "run"), expected)
    assert expected.history[-1]["index"] == UPDATES + 250


def test_members_given_in_python_are_gone_on_with_from_the_checkpoint(tmp_path: Path):
    start = of_seeds(5, 6, 7)
    expected = train(None, model=start)
    interrupted(tmp_path / "run", 200, model=start)
    assert_same(hm.resume(tmp_path / "run"), expected)


# ------------------------------------------------------------------------------------------------------ divergence

FRAGILE = 1
"""The member whose weights are so large that it diverges at a rate which does the others no harm."""


def one_fragile() -> hm.Ensemble:
    models = [hm.RBM(6, 4, seed=seed) for seed in (1, 2, 3)]
    arrays = models[FRAGILE].parameters()
    models[FRAGILE] = hm.RBM.from_arrays(**{**arrays, "visible_bias": np.full(6, -60.0, np.float32)})
    return hm.Ensemble.of(models)


def test_a_member_that_diverges_is_stopped_and_the_others_go_on(tmp_path: Path):
    """The others end where they end alone, bit for bit; the stopped one is what it was, and everything says so."""
    start, settings = one_fragile(), {"learning_rate": 0.3}
    with pytest.warns(hm.HarmoniumWarning, match="1 of 3 members were stopped, member 1: diverged between"):
        run = train(tmp_path / "run", model=start, **settings)
    assert (run.reliable, run.finished) == (False, True)
    assert run.model.sound == (0, 2)
    assert "diverged between updates 0 and 100" in run.model.faults[FRAGILE]
    for number in (0, 2):
        alone = train(None, model=start.member(number), **settings, seed=hm.member_seed(3, number))
        assert bits(run.model.member(number)) == bits(alone.model)
    assert bits(run.model.member(FRAGILE)) == bits(start.member(FRAGILE))
    assert run.state is not None
    np.testing.assert_array_equal(run.state.rate_scale, [1, 0, 1])
    assert [record["index"] for record in run.history] == [0, 100, 200, 300, 400, 450]
    assert [record["members"] for record in run.history] == [3, 2, 2, 2, 2, 2]
    assert run.history[-1]["stopped"].keys() == {str(FRAGILE)}
    worst = min(hm.log_likelihood(run.model.member(number), ROWS).value for number in (0, 2))
    assert run.history[-1]["log_likelihood_train_low"] == pytest.approx(worst, abs=1e-12)
    again = hm.load_run(tmp_path / "run")
    assert (again.reliable, again.reason, again.finished) == (False, run.reason, True)
    assert again.model.faults == run.model.faults
    before = remains(tmp_path / "run")
    with pytest.warns(hm.HarmoniumWarning, match="1 of 3 members were stopped"):
        assert_same(hm.resume(tmp_path / "run"), run)
    assert remains(tmp_path / "run") == before


@pytest.mark.parametrize("index", [0, 100, 300])
def test_a_run_with_a_stopped_member_survives_an_interruption(tmp_path: Path, index: int):
    with pytest.warns(hm.HarmoniumWarning, match="were stopped"):
        expected = train(tmp_path / "whole", model=one_fragile(), learning_rate=0.3)
    interrupted(tmp_path / "run", index, model=one_fragile(), learning_rate=0.3)
    assert not hm.load_run(tmp_path / "run").finished
    with pytest.warns(hm.HarmoniumWarning, match="were stopped"):
        assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")


RISING: dict[str, Any] = {"learning_rate": 0.05, "final_rate": 40.0}
"""A rate that ruins every member, not all of them in the same chunk."""


def test_a_run_ends_when_its_last_member_is_stopped(tmp_path: Path):
    start = of_seeds(1, 2, 5)
    with pytest.warns(hm.HarmoniumWarning, match="3 of 3 members were stopped"):
        run = train(tmp_path / "run", model=start, **RISING)
    assert run.state is not None
    ends = []
    for number in range(3):
        with pytest.warns(hm.HarmoniumWarning, match="training diverged"):
            alone = train(None, model=start.member(number), **RISING, seed=hm.member_seed(3, number))
        assert bits(run.model.member(number)) == bits(alone.model)
        assert run.model.faults[number] == alone.reason.partition("; the model")[0]
        assert alone.state is not None
        ends.append(int(alone.state.index))
    assert len(set(ends)) > 1
    assert int(run.state.index) == max(ends) < UPDATES
    assert run.model.sound == ()
    with pytest.warns(hm.HarmoniumWarning, match="3 of 3 members were stopped"):
        assert_same(hm.resume(tmp_path / "run"), run)


def test_stopped_members_stay_stopped_when_all_are(tmp_path: Path):
    """Asked to go further, the run trains nothing and says so; nothing of it changes, to the byte."""
    with pytest.warns(hm.HarmoniumWarning, match="3 of 3 members were stopped"):
        run = train(tmp_path / "run", model=of_seeds(1, 2, 5), **RISING)
    assert run.state is not None
    np.testing.assert_array_equal(run.state.rate_scale, [0, 0, 0])
    assert run.history[-1]["stopped"].keys() == {"0", "1", "2"}
    before = remains(tmp_path / "run")
    with pytest.warns(hm.HarmoniumWarning) as told:
        further = hm.resume(tmp_path / "run", updates=200)
    assert any(
        "all 3 members" in str(one.message) and "nothing is trained" in str(one.message) for one in told
    )
    assert_same(further, run)
    assert (further.reliable, further.reason) == (False, run.reason)
    assert remains(tmp_path / "run") == before


def test_a_run_killed_before_its_last_verdict_was_kept_ends_the_same(tmp_path: Path):
    with pytest.warns(hm.HarmoniumWarning, match="3 of 3 members were stopped"):
        expected = train(tmp_path / "whole", model=of_seeds(1, 2, 5), **RISING)

    def at_the_verdict(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if len(record.get("stopped", {})) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", model=of_seeds(1, 2, 5), **RISING, reporter=at_the_verdict)
    with pytest.warns(hm.HarmoniumWarning, match="3 of 3 members were stopped"):
        assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")


def test_more_members_than_memory_holds_are_refused_before_any_is_made(monkeypatch: pytest.MonkeyPatch):
    def made(*_: Any) -> None:
        raise AssertionError("a member was made")

    monkeypatch.setattr("harmonium.train.rebuild.members_like", made)
    with pytest.raises(SettingError, match=r"members=1000000000 .*2\*\*31; pass at most \d+"):
        train(None, members=10**9)


def test_every_member_halves_its_own_rate():
    start = of_seeds(1, 2, 5)
    run = train(None, model=start, **RISING, on_divergence="halve")
    assert run.reliable
    assert run.state is not None
    scales = np.asarray(run.state.rate_scale)
    assert len(set(scales.tolist())) > 1
    assert scales.max() < 1
    for number in range(3):
        seed = hm.member_seed(3, number)
        alone = train(None, model=start.member(number), **RISING, on_divergence="halve", seed=seed)
        assert alone.state is not None
        assert float(alone.state.rate_scale) == scales[number]
        assert bits(run.model.member(number)) == bits(alone.model)


# -------------------------------------------------------------------------------------------- one map, one program


class Recording(AbstractRule):
    """A rule that branches on a shared coin, and notes how many members a branch is traced for."""

    @classmethod
    def coin(cls, step: Step) -> jax.Array:
        return step.shared_key[0] < jnp.uint32(1 << 31)

    def init(self, words: Any, model: Any, batch: Any) -> Any:
        return {"heads": jnp.float32(0), "own": words[0]}

    def loss(self, model: Any, step: Step, state: Any, batch: Any) -> Any:
        heads = jax.lax.cond(self.coin(step), lambda: state["heads"] + 1, lambda: state["heads"])
        energy = jnp.mean(model.free_energy(batch.x))
        return energy, ({"heads": heads, "own": step.key[0]}, {})

    def offsets(self, state: Any) -> None:
        return None

    def chains(self, state: Any) -> None:
        return None


def test_shared_coins_stay_outside_the_map():
    """All members see the same coin, noise of their own, and the program branches on it: no branch both ways."""
    run = train(None, model=of_seeds(1, 2, 5), rule=Recording(), learning_rate=1e-4, updates=100)
    assert run.state is not None
    heads = np.asarray(run.state.rule_state["heads"])
    assert 30 < heads[0] < 70
    assert (heads == heads[0]).all()
    assert len(set(np.asarray(run.state.rule_state["own"]).tolist())) == 3
    setup = prepare(of_seeds(1, 2, 5), hm.load_data(ROWS), Recording(), TrainConfig(batch_size=8), "sgd")
    order, real, epochs = setup.order.rows(0, 4)
    traced = jax.make_jaxpr(
        lambda state: run_members(
            setup.trainer,
            state,
            setup.feed,
            jnp.asarray(order),
            jnp.asarray(real),
            jnp.asarray(epochs),
            jnp.int32(4),
            jnp.ones(3),
        )
    )(setup.state)
    assert " cond[" in str(traced)


def test_a_second_ensemble_of_the_same_shapes_compiles_nothing():
    train(None, members=3)
    program: Any = drive._chunk_program()
    compiled = program._cache_size()
    train(None, members=3, seed=8, learning_rate=0.01)
    assert program._cache_size() == compiled
    train(None, members=4)
    assert program._cache_size() == compiled + 1


def test_exact_likelihoods_of_many_members_cost_a_report_no_more_than_those_of_one(
    monkeypatch: pytest.MonkeyPatch,
):
    """Where all members together cost ten times too much, every tenth report has them, and the last."""
    operations = plan_enumeration(hm.RBM(6, 4)).operations
    monkeypatch.setattr("harmonium.train.ensemble_monitor.EXACT_OPERATIONS", 3 * operations / 2)
    run = train(None, members=3)
    scored = [record["index"] for record in run.history if "log_likelihood_train" in record]
    assert scored == [0, 200, 400, 450]
