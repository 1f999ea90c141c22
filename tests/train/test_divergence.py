"""The divergence guard: what it stops, what it keeps, and that its decisions are the same after any interruption."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.data.base import DataSet
from harmonium.train.checkpoint import Checkpoints
from tests.train.killing import remains
from tests.train.runs import UPDATES, assert_same, interrupted, interrupting_after, train

RISING: dict[str, Any] = {"learning_rate": 0.05, "final_rate": 1e7}
"""A rate that is fine at first and ruins any model before the end."""


def stopped(path: Path | None, **changes: Any) -> hm.Run:
    with pytest.warns(hm.HarmoniumWarning, match="training diverged between updates"):
        return train(path, **{**RISING, **changes})


def test_the_last_good_model_is_kept_and_the_run_says_why(tmp_path: Path):
    run = stopped(tmp_path / "run")
    assert not run.reliable
    assert run.state is not None
    index = int(run.state.index)
    assert index < UPDATES
    assert f"between updates {index} and {min(index + 100, UPDATES)} at learning rate" in run.reason
    assert "smaller learning rate or on_divergence='halve'" in run.reason
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(run.model))
    assert run.history[-1]["index"] == index
    again = hm.load_run(tmp_path / "run")
    assert (again.reliable, again.reason, again.finished) == (False, run.reason, True)
    assert "not to be trusted" in repr(again)


def test_a_rate_that_ruins_the_first_chunk_leaves_the_model_it_began_with(tmp_path: Path):
    run = stopped(tmp_path / "run", learning_rate=1e6, final_rate=1e6, model=hm.RBM(6, 4, seed=5))
    assert run.state is not None
    assert int(run.state.index) == 0
    assert [record["index"] for record in run.history] == [0]
    assert not hm.load_run(tmp_path / "run").reliable
    weights = run.model.parameters()["weights"]
    np.testing.assert_array_equal(weights, hm.RBM(6, 4, seed=5).parameters()["weights"])


def test_rows_that_hardly_count_make_no_run_diverge():
    """A model that gives up rows of next to no weight is a good one, wherever those rows stand."""
    rng = np.random.default_rng(0)
    kept, given_up = np.repeat([[1, 0], [0, 1]], 32, axis=1).astype(np.uint8)
    rows = np.repeat([given_up, kept], 200, axis=0) ^ (rng.random((400, 64)) < 0.02)
    weight = np.repeat([1e-6, 1.0], 200)
    run = hm.fit(hm.RBM(64, 8), DataSet("rows", rows.astype(np.uint8), weight=weight), updates=600, seed=0)
    assert run.reliable
    scores = hm.log_likelihood(run.model, rows, rows=True).value
    # Counted alike, the rows would have stopped the run.
    assert scores.mean() < -2 * 64 * np.log(2)
    last = run.history[-1]
    assert last["log_likelihood_train"] == pytest.approx(np.average(scores, weights=weight), abs=1e-9)
    assert abs(last["free_energy_gap"]) < 10
    assert last["proxy_reconstruction_error"] < 10


def test_going_on_with_a_stopped_run_changes_nothing(tmp_path: Path):
    run = stopped(tmp_path / "run")
    before = remains(tmp_path / "run")
    with pytest.warns(hm.HarmoniumWarning, match="training diverged"):
        again = hm.resume(tmp_path / "run")
    assert_same(again, run)
    assert remains(tmp_path / "run") == before


@pytest.mark.parametrize("when", [0, "verdict"])
def test_a_stopped_run_that_was_interrupted_stops_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int | str
):
    expected = stopped(tmp_path / "whole")
    if when == 0:
        interrupted(tmp_path / "run", 0, **RISING)
    else:  # as if killed before the verdict was written
        with monkeypatch.context() as patch:
            patch.setattr(
                "harmonium.train.drive.Drive._handle", lambda *_: interrupting_after(0)({"index": 0}, {})
            )
            with pytest.raises(KeyboardInterrupt):
                train(tmp_path / "run", **RISING)
        assert hm.load_run(tmp_path / "run").reliable
    with pytest.warns(hm.HarmoniumWarning, match="training diverged"):
        assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")


def test_halving_goes_on_to_the_end_and_is_no_fault(tmp_path: Path):
    run = train(tmp_path / "run", **RISING, on_divergence="halve")
    assert run.reliable
    assert run.state is not None
    assert int(run.state.index) == UPDATES
    assert float(run.state.rate_scale) < 0.1
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(run.model))
    assert hm.load_run(tmp_path / "run").reliable


@pytest.mark.parametrize("index", [0, 100, 200, 300, 400])
def test_a_halved_run_that_was_interrupted_ends_as_the_unbroken_one(tmp_path: Path, index: int):
    expected = train(tmp_path / "whole", **RISING, on_divergence="halve")
    interrupted(tmp_path / "run", index, **RISING, on_divergence="halve")
    assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")


def test_an_interrupt_right_after_a_halving_is_saved_with_the_rate_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = train(tmp_path / "whole", **RISING, on_divergence="halve")
    handle = "harmonium.train.drive.Drive._handle"
    with monkeypatch.context() as patch:
        from harmonium.train.drive import Drive

        def halve_and_interrupt(drive: Drive, *arguments: Any) -> None:
            original(drive, *arguments)
            raise KeyboardInterrupt

        original = Drive._handle
        patch.setattr(handle, halve_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", **RISING, on_divergence="halve")
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                hm.resume(tmp_path / "run")
    assert_same(hm.resume(tmp_path / "run"), expected)
    assert remains(tmp_path / "run") == remains(tmp_path / "whole")


def test_a_stopped_run_can_be_taken_further_and_is_then_no_longer_at_fault(tmp_path: Path):
    run = stopped(tmp_path / "run", final_rate=3e4)
    index = run.history[-1]["index"]
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.indices()[-1] == index
    with pytest.warns(hm.HarmoniumWarning, match="training diverged"):
        hm.resume(tmp_path / "run", updates=100)
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("final_rate = 30000.0", "final_rate = 0.0"))
    run = hm.resume(tmp_path / "run", updates=100)
    assert run.reliable
    assert hm.load_run(tmp_path / "run").reliable
    assert run.history[-1]["index"] > index
