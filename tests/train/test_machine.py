"""General machines in training: to the known maximum on real data, to the maximum by sampling, and through a folder."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from harmonium.data.base import DataSet
from harmonium.energy.couplings.graph import grid
from harmonium.errors import BudgetError
from tests.contracts.machines import wave_machine


def test_a_fully_visible_machine_on_nltcs_reaches_its_maximum(real_data: Path) -> None:
    """The problem is convex: the maximum, found by Newton's method outside this library, is the only one."""
    arrays = np.load(real_data / "nltcs.npz", allow_pickle=False)
    data = DataSet("nltcs", train=arrays["train"], valid=arrays["valid"], test=arrays["test"])
    run = hm.fit(
        hm.BoltzmannMachine(16, seed=0),
        data,
        hm.ExactGradient(),
        updates=600,
        batch_size=len(data.train),
        learning_rate=0.5,
        final_rate=0.5,
        momentum=0.95,
    )
    assert hm.log_likelihood(run.model, data.train).value == pytest.approx(-6.025468, abs=1e-5)
    assert hm.log_likelihood(run.model, data.test).value == pytest.approx(-6.028409, abs=5e-4)
    assert hm.log_partition(run.model).value == pytest.approx(1.940137, abs=1e-3)
    # At the maximum the model has the pair moments of the data.
    slopes = hm.exact_gradient(run.model, data.train)
    assert max(np.abs(slope).max() for slope in slopes.values()) < 5e-5


@cache
def rows_of_a_machine() -> np.ndarray:
    """Draws from a machine whose hidden units are coupled to each other as strongly as to the visible ones."""
    return hm.sample(wave_machine(6, 3, gain=1.5), 1000, steps=100, seed=1)


def start() -> hm.BoltzmannMachine:
    return hm.BoltzmannMachine(6, 3, seed=3, weight_scale=0.3)


@cache
def maximum() -> float:
    """The likelihood that the exact gradient comes to; of the machine that drew the rows it is above."""
    run = hm.fit(
        start(),
        rows_of_a_machine(),
        hm.ExactGradient(),
        updates=1500,
        batch_size=1000,
        learning_rate=0.05,
        optimizer="adam",
    )
    value = hm.log_likelihood(run.model, rows_of_a_machine()).value
    assert value > hm.log_likelihood(wave_machine(6, 3, gain=1.5), rows_of_a_machine()).value
    return value


@pytest.mark.parametrize("inference", ["exact", "gibbs", "mean-field"])
def test_sampling_comes_near_the_maximum_likelihood(inference: str) -> None:
    rule = hm.PCD(steps=2, chains=200, inference=inference)
    settings = {"updates": 1500, "batch_size": 200, "learning_rate": 0.02, "optimizer": "adam"}
    run = hm.fit(start(), rows_of_a_machine(), rule, **settings)
    value = hm.log_likelihood(run.model, rows_of_a_machine()).value
    assert maximum() - 0.02 < value
    # The columns by themselves are far below: it is the couplings that were learnt.
    mean = rows_of_a_machine().mean(axis=0)
    assert value > np.sum(mean * np.log(mean) + (1 - mean) * np.log(1 - mean)) + 0.2


@pytest.mark.parametrize("rule", ["exact", "pcd"])
def test_a_machine_goes_through_its_folder_and_on(rule: str, tmp_path: Path) -> None:
    """Trained further from its folder it is the same, bit for bit, as one that was never put down."""
    rules = {"exact": hm.ExactGradient(), "pcd": hm.PCD(chains=20, inference="gibbs", inference_sweeps=3)}
    settings = {"batch_size": 50, "learning_rate": 0.1, "seed": 2}
    first = hm.fit(start(), rows_of_a_machine(), rules[rule], updates=200, out=tmp_path / "a", **settings)
    hm.fit(start(), rows_of_a_machine(), rules[rule], updates=200, out=tmp_path / "b", **settings)
    ends = [hm.resume(tmp_path / name, updates=100) for name in ("a", "b")]
    loaded = hm.load_run(tmp_path / "a").model
    for name in ("coupling", "bias"):
        np.testing.assert_array_equal(ends[0].model.parameters()[name], ends[1].model.parameters()[name])
        np.testing.assert_array_equal(loaded.parameters()[name], ends[0].model.parameters()[name])
        assert np.abs(first.model.parameters()[name] - loaded.parameters()[name]).max() > 1e-4
    assert ends[0].config["model"]["kind"] == "bm"
    assert ends[0].config["sampler"]["name"] == rule
    assert [record["index"] for record in ends[0].history][-1] == 300


def test_a_lattice_of_spins_is_trained_and_saved(tmp_path: Path) -> None:
    """Only what is coupled is learnt; without hidden units a report says nothing of them."""
    lattice = hm.BoltzmannMachine(hm.Spin(9), pairs=grid(3, 3), seed=0)
    source = wave_machine(9, pairs=grid(3, 3), visible="spin", gain=0.4)
    rows = hm.sample(source, 1500, steps=50, seed=4)
    run = hm.fit(lattice, rows, hm.PCD(chains=100), updates=600, learning_rate=0.1)
    assert "hidden_mean" not in run.history[-1]
    score = hm.log_likelihood(run.model, rows).value
    assert score > hm.log_likelihood(source, rows).value - 0.02
    found = run.model.parameters()
    assert np.count_nonzero(found["coupling"]) == 2 * len(grid(3, 3))
    again = hm.load(hm.save(run.model, tmp_path / "lattice.safetensors"))
    assert isinstance(run.model, hm.BoltzmannMachine)
    assert again.couplings[0].graph == run.model.couplings[0].graph
    np.testing.assert_array_equal(again.parameters()["coupling"], found["coupling"])
    assert hm.log_likelihood(again, rows).value == score
    drawn = hm.sample(again, 4, steps=5, clamp=[1, *[np.nan] * 8])
    assert (drawn[:, 0] == 1).all()
    assert drawn.dtype == np.int8


def test_what_is_too_large_says_so_before_a_run_begins(tmp_path: Path) -> None:
    rows = np.eye(30, dtype=np.uint8)
    with pytest.raises(BudgetError, match=r"exact gradient of this BoltzmannMachine .* hm.PCD\(\)"):
        hm.fit(hm.BoltzmannMachine(30), rows, hm.ExactGradient(), updates=1, out=tmp_path / "a")
    with pytest.raises(BudgetError, match=r"2\*\*19 states of the hidden units.*mean-field"):
        hm.fit(hm.BoltzmannMachine(30, 20), rows, updates=1, out=tmp_path / "b")
    assert not list(tmp_path.iterdir())
    run = hm.fit(hm.BoltzmannMachine(30, 20), rows, hm.PCD(inference="mean-field"), updates=3)
    proxy = hm.pseudo_likelihood(run.model, rows)
    assert "hidden units by mean field" in proxy.reason
    assert np.isfinite(proxy.value)


def test_the_weights_of_a_machine_without_pairs_are_reported_as_zero() -> None:
    machine = hm.BoltzmannMachine(4, pairs=np.zeros((0, 2), int), seed=0)
    run = hm.fit(machine, np.eye(4, dtype=np.uint8), hm.ExactGradient(), updates=3, batch_size=4)
    assert run.history
    assert all(record["weight_rms"] == 0 for record in run.history)
