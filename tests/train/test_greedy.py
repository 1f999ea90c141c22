"""Greedy training: every level starts where it should, learns from what lies below, and survives being killed."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.dbn import DBN
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.numerics.enumerate import all_states
from harmonium.numerics.precision import as_single
from harmonium.train.config import read_settings
from harmonium.train.levels import next_level, passed_up
from tests.contracts.machines import wave_rbm
from tests.train.killing import Blow, remains, run_under, unbroken
from tests.train.runs import bits

BARS = "bars-and-stripes:side=3"


def trained(**changes: Any) -> hm.Run:
    arguments: dict[str, Any] = {
        "updates": 2000,
        "batch_size": 14,
        "seed": 1,
        "learning_rate": 1.0,
        **changes,
    }
    model = arguments.pop("model", hm.DBN(9, [4, 9], seed=0))
    return hm.fit_greedy(
        model, arguments.pop("data", BARS), arguments.pop("rule", hm.PCD(chains=100)), **arguments
    )


@pytest.mark.parametrize("kinds", [("bernoulli", "bernoulli"), ("spin", "bernoulli"), ("bernoulli", "spin")])
def test_a_level_that_is_added_leaves_the_density_as_it_is(kinds: tuple[str, str]) -> None:
    below = wave_rbm(*kinds, sizes=(4, 3), gain=3.0)
    fresh = RBM(type(below.units[1])(3), type(below.units[0])(4), seed=0)
    rows = np.asarray(all_states(4) if kinds[0] == "bernoulli" else 2 * all_states(4) - 1)
    before = hm.log_likelihood(below, rows, rows=True).value
    added = DBN.of([below, next_level(below, fresh)])
    np.testing.assert_allclose(hm.log_likelihood(added, rows, rows=True).value, before, atol=1e-12)
    plain = DBN.of([below, next_level(below, fresh, transposed=False)])
    assert np.abs(hm.log_likelihood(plain, rows, rows=True).value - before).max() > 0.1
    other = RBM(type(below.units[1])(3), type(below.units[0])(5), seed=0)
    assert next_level(below, other) is other


def test_what_is_passed_up_are_probabilities_of_the_hidden_units() -> None:
    rbm = as_single(wave_rbm(sizes=(4, 3), gain=2.0))
    given = rbm.parameters()
    data = hm.load_data({"train": all_states(4)[:9], "test": all_states(4)[9:]}, weight=np.arange(9.0))
    above = passed_up(rbm, data, 0)
    assert (above.binarization, above.width) == ("stochastic", 3)
    for split, rows in data.splits().items():
        expected = 1 / (1 + np.exp(-(given["hidden_bias"] + rows @ given["weights"])))
        np.testing.assert_allclose(above.split(split), expected, rtol=1e-5)
    assert above.weight is not None
    np.testing.assert_array_equal(above.weight, data.weight)
    # Of probabilities one draw is passed further: each row of a level sees whole states of the one below.
    third = passed_up(as_single(wave_rbm("bernoulli", "spin", sizes=(3, 2), gain=2.0)), above, 1)
    assert third.width == 2
    assert len(np.unique(third.train, axis=0)) <= 8


def test_every_level_raises_the_bound() -> None:
    """What a level learns, it learns of the bound; at the moment it is added nothing has changed."""
    run = trained()
    assert isinstance(run.model, DBN)
    assert [record["level"] for record in run.history] == [0, 1]
    assert [record["index"] for record in run.history] == [2000, 4000]
    bottom, top = run.model.levels
    patterns = hm.load_data(BARS).train
    start = DBN.of([bottom, next_level(bottom, top)])
    first = hm.log_likelihood(bottom, patterns).value
    assert hm.log_likelihood(start, patterns).value == pytest.approx(first, abs=1e-5)
    before, after = (hm.log_likelihood(model, patterns, "bound").value for model in (start, run.model))
    # The recognition of transposed weights is the true posterior, so that the bound is the likelihood there.
    assert before == pytest.approx(first, abs=1e-5)
    assert after > before + 0.03
    last = run.history[-1]
    assert last["log_likelihood_train"] == pytest.approx(
        hm.log_likelihood(run.model, patterns).value, rel=1e-6
    )
    assert last["log_likelihood_kind"] == "exact"
    assert last["log_likelihood_train_of_level_0"] == pytest.approx(first, rel=1e-6)
    assert run.history[0]["log_likelihood_train"] == run.history[0]["log_likelihood_train_of_level_0"]


def test_only_so_many_levels(tmp_path: Path) -> None:
    run = trained(levels=1, updates=100, out=tmp_path / "run")
    whole = trained(updates=100)
    assert bits(run.model.levels[0]) == bits(whole.model.levels[0])
    assert bits(run.model.levels[1]) == bits(as_single(next_level(run.model.levels[0], hm.RBM(4, 9))))
    assert len(run.history) == 1
    again = hm.load_run(tmp_path / "run")
    assert again.finished
    assert bits(again.model) == bits(run.model)
    alone = hm.load_run(tmp_path / "run" / "level-0")
    assert alone.history[-1]["index"] == 100
    assert bits(alone.model) == bits(run.model.levels[0])
    # A folder is emptied of its levels, and of nothing else, when another run replaces the one in it.
    (tmp_path / "run" / "level-0" / "notes.txt").write_text("mine")
    trained(updates=100, out=tmp_path / "run", force=True, model=hm.DBN(9, [2], seed=0))
    assert (tmp_path / "run" / "level-0" / "notes.txt").read_text() == "mine"
    assert hm.load_run(tmp_path / "run").model.depth == 1


def test_a_level_that_diverges_ends_the_run(tmp_path: Path) -> None:
    with pytest.warns(hm.HarmoniumWarning, match="training diverged"):
        run = trained(updates=300, learning_rate=1e4, final_rate=1e4, out=tmp_path / "run")
    assert not run.reliable
    assert run.reason.startswith("of level 0 diverged between updates")
    again = hm.load_run(tmp_path / "run")
    assert (again.finished, again.reliable, again.reason) == (True, False, run.reason)
    assert not (tmp_path / "run" / "level-1").exists()


def test_a_run_ends_before_its_likelihood_falls(tmp_path: Path) -> None:
    settings = {"updates": 3000, "learning_rate": 0.1, "final_rate": 0.1, "seed": 2, "batch_size": 14}
    model, rule = hm.RBM(9, 6, seed=0), hm.PCD(chains=8)
    run = hm.fit(model, BARS, rule, stop_on_decrease=True, out=tmp_path / "run", **settings)
    told = [record["log_likelihood_train"] for record in run.history]
    risen = next(place for place, value in enumerate(told) if value > told[0])
    assert told[risen:] == sorted(told[risen:])
    # The first fall, from a start at the marginals of the data, is no reason to end.
    assert told[1] < told[0]
    whole = hm.fit(model, BARS, rule, **settings)
    unwatched = [record["log_likelihood_train"] for record in whole.history]
    count = len(told)
    assert unwatched[:count] == told
    assert count < len(unwatched)
    assert unwatched[count] < told[-1]
    assert run.state is not None
    assert int(run.state.index) == int(run.state.horizon) == run.history[-1]["index"] < 3000
    assert hm.log_likelihood(run.model, BARS).value == pytest.approx(told[-1], rel=1e-6)
    assert hm.load_run(tmp_path / "run").finished
    assert bits(hm.resume(tmp_path / "run").state) == bits(run.state)
    greedy = hm.fit_greedy(
        DBN.of([model, hm.RBM(6, 4, seed=1)]), BARS, rule, stop_on_decrease=True, **settings
    )
    assert greedy.history[0]["index"] == run.history[-1]["index"]


BLOWS = {
    "greedy": [
        Blow("environment.after-temp"),
        Blow("model.after-rename"),
        Blow("config.mid-temp"),
        Blow("checkpoint.after-temp"),
        Blow("config.after-rename:2"),
        Blow("metrics.after-line:2"),
        Blow("checkpoint.after-rename:1"),
        Blow("timing.mid-line:2"),
        Blow("data.mid-temp"),
        Blow("model.after-temp:2"),
        Blow("metrics.mid-line:3"),
    ],
    # After the last report that the run keeps, which the next process has to read back; then while it ends there.
    "watched": [
        Blow("checkpoint.after-rename:15"),
        Blow("model.after-temp"),
        Blow("checkpoint.after-temp"),
    ],
}


@pytest.mark.parametrize("name", BLOWS)
def test_a_run_that_is_killed_again_and_again_ends_bit_for_bit_as_the_unbroken_one(
    name: str, tmp_path: Path
) -> None:
    expected = unbroken(name, tmp_path / "unbroken")
    landed = run_under(name, tmp_path / "killed", BLOWS[name])
    assert landed == BLOWS[name]
    found = remains(tmp_path / "killed")
    assert sorted(found) == sorted(expected)
    assert [file for file in expected if found[file] != expected[file]] == []
    if name == "watched":
        assert hm.load_run(tmp_path / "killed").history[-1]["index"] < 3000
    if name == "greedy":
        assert {f"level-{level}/model.safetensors" for level in range(3)} <= set(found)


def test_what_settings_mean() -> None:
    assert read_settings({"model": {"kind": "dbn"}}).is_greedy
    assert not read_settings({"model": {"kind": "dbn"}, "sampler": {"name": "deep"}}).is_greedy
    assert not read_settings({"model": {"kind": "dbn"}, "train": {"greedy": False}}).is_greedy
    assert not read_settings({}).is_greedy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": 3}, "levels=3 are asked for, but the network has 2"),
        (
            {"model": hm.DBN(9, [40, 9]), "stop_on_decrease": True, "data": np.zeros((4, 30), int)},
            "width|columns",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(hm.HarmoniumError, match=message):
        trained(updates=100, **changes)


def test_a_likelihood_that_cannot_be_watched_is_refused() -> None:
    with pytest.raises(SettingError, match="stop_on_decrease watches the exact log-likelihood"):
        hm.fit(hm.RBM(40, 40, seed=0), np.eye(40, dtype=int), updates=100, stop_on_decrease=True)
    with pytest.raises(SettingError, match="stop_on_decrease is of a single model, got members=2"):
        hm.fit(hm.RBM(9, 4, seed=0), BARS, updates=100, stop_on_decrease=True, members=2)


def test_a_finished_greedy_run_goes_no_further(tmp_path: Path) -> None:
    """Nor does one of its levels, which the network in the folder above would then not be made of any more."""
    run = trained(updates=100, out=tmp_path / "run")
    with pytest.raises(SettingError, match="goes no further; train the network on in a new run"):
        hm.resume(tmp_path / "run", updates=100)
    level = tmp_path / "run" / "level-1"
    with pytest.raises(
        SettingError, match=r"is a level of the network in .*run, which would no longer hold it"
    ):
        hm.resume(level, updates=5)
    assert hm.resume(level).history[-1]["index"] == 100
    assert hm.resume(tmp_path / "run").history == run.history
    shutil.copytree(level, tmp_path / "level-1")
    assert hm.resume(tmp_path / "level-1", updates=5).history[-1]["index"] == 105
