"""The network that a labelled machine unrolls to: one pass of mean field before it is tuned, and how it is tuned."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.cli.inspect import _model as summary_of
from harmonium.cli.sources import open_model
from harmonium.numerics.random import Noise
from harmonium.train.unrolled import pass_upwards

HOW = {"epochs": 40, "batch_size": 20, "learning_rate": 0.02, "hidden_dropout": 0.1}
ROWS = np.random.RandomState(0).randint(0, 2, (7, 6))


def logistic(field: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-field))


def machine(hidden: list[int]) -> hm.DBM:
    drawn = hm.DBM(6, hidden, labels=3, seed=1, weight_scale=0.8).parameters()
    biases = [np.random.RandomState(5).normal(size=bias.shape) for bias in drawn["biases"]]
    return hm.DBM.from_arrays(
        [matrix.astype(np.float64) for matrix in drawn["weights"]], biases, drawn["kinds"]
    )


@pytest.fixture
def data() -> hm.DataSet:
    """A noisy prototype for each of three classes; two of the validation labels are not known."""
    draws = np.random.RandomState(3)
    labels = np.arange(90) % 3
    rows = (np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])[labels]).astype(np.uint8)
    rows = np.where(draws.uniform(size=rows.shape) < 0.1, 1 - rows, rows).astype(np.uint8)
    return hm.DataSet(
        "blocks", rows, rows[:30], labels={"train": labels, "valid": np.r_[-1, -1, labels[2:30]]}
    )


def test_before_tuning_it_is_one_pass_of_mean_field_without_the_label() -> None:
    model = machine([4, 3, 2])
    network = hm.Unrolled.of(model, sweeps=4)
    weights, biases = (model.parameters()[name] for name in ("weights", "biases"))

    def upwards(second: np.ndarray, third: np.ndarray, doubled: float = 1) -> list[np.ndarray]:
        """Every layer by the one below, and by the means above; without these, what comes from below counts twice."""
        one = logistic(biases[1] + doubled * ROWS @ weights[0] + second @ weights[1].T)
        two = logistic(biases[2] + doubled * one @ weights[1] + third @ weights[2].T)
        return [one, two, logistic(biases[3] + two @ weights[2])]

    none = np.zeros((7, 3)), np.zeros((7, 2))
    first, second, third = upwards(*none, doubled=2)
    for _ in range(4):  # coordinate ascent: odd layers, then the even one
        first = logistic(biases[1] + ROWS @ weights[0] + second @ weights[1].T)
        third = logistic(biases[3] + second @ weights[2])
        second = logistic(biases[2] + first @ weights[1] + third @ weights[2].T)
    wanted = biases[4] + upwards(second, third)[-1] @ weights[3]
    with jax.enable_x64(True):
        features = network.features(ROWS.astype(np.float64))
        for means, right in zip(features, (second, third), strict=True):
            np.testing.assert_allclose(means, right, rtol=0, atol=1e-14)
        found = pass_upwards(network.machine, network.net, jnp.asarray(ROWS, float), features)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)
    np.testing.assert_allclose(network.logits(ROWS), wanted, rtol=0, atol=3e-6)
    classes = network.classify(ROWS)
    assert classes.label.tolist() == np.argmax(wanted, axis=1).tolist()
    np.testing.assert_allclose(classes.probability.sum(axis=1), 1)


def test_dropping_keeps_the_mean_and_drops_at_its_rates() -> None:
    ones, zeros = [np.ones((6, 1)), np.ones((1, 2))], [np.zeros(6), np.zeros(1), np.zeros(2)]
    network = hm.Unrolled.of(hm.DBM.from_arrays(ones, zeros, ["bernoulli", "bernoulli", "categorical:2"]))
    rows = jnp.ones((4000, 6), jnp.float32)
    noise = Noise.from_key(jax.random.key(0))
    assert network.features(rows) == ()
    # With weights of one the hidden unit tells how many pixels are left, each as two; a third of it is dropped.
    seen = np.asarray(pass_upwards(network.machine, network.net, rows, (), noise, (0.5, 1 / 3)))[:, 0]
    dropped, kept = seen == 0, seen[seen != 0] * 2 / 3
    assert abs(dropped.mean() - 1 / 3) < 5 * np.sqrt(2 / 9 / len(seen))
    left = np.round(np.log(kept / (1 - kept)) / 2)
    assert set(left) == set(range(7))
    assert abs(left.mean() - 3) < 5 * np.sqrt(6 / 4 / len(left))


def test_a_network_comes_back_from_its_file(tmp_path: Path) -> None:
    network = hm.Unrolled.of(machine([4, 3]), sweeps=3)
    read = hm.load(hm.save(network, tmp_path / "network.safetensors"))
    assert isinstance(read, hm.Unrolled)
    assert read.sweeps == 3
    np.testing.assert_array_equal(read.logits(ROWS), network.logits(ROWS))
    for verb in (summary_of, open_model):
        with pytest.raises(hm.HarmoniumError, match="holds an Unrolled network"):
            verb(tmp_path / "network.safetensors")


def test_tuning_learns_and_can_be_had_again(data: hm.DataSet) -> None:
    network = hm.Unrolled.of(hm.DBM(6, [12, 8], labels=3, seed=0, weight_scale=0.3))
    run = hm.fine_tune(network, data, **HOW, seed=1)
    assert [record["index"] for record in run.history[:2]] == [5, 10]  # the last batch is short
    assert run.history[-1]["cross_entropy_train"] < 0.7 * run.history[0]["cross_entropy_train"]
    found = run.model.classify(data, split="valid")
    assert found.error == run.history[-1]["error_valid"]
    assert found.error is not None
    assert found.error < 0.15
    assert (np.asarray(run.model.machine.couplings[0].kernel) == network.machine.couplings[0].kernel).all()
    again = hm.fine_tune(network, data, **HOW, seed=1)
    assert again.history == run.history
    other = hm.fine_tune(network, data, **HOW, seed=2)
    assert other.history != run.history


def test_the_cross_entropy_is_the_mean_over_rows_though_the_last_batch_is_short(data: hm.DataSet) -> None:
    network = hm.Unrolled.of(machine([4, 3]))
    run = hm.fine_tune(
        network, data, epochs=1, batch_size=40, learning_rate=1e-9, visible_dropout=0, hidden_dropout=0
    )
    right = network.classify(data.train).probability[np.arange(90), np.arange(90) % 3]
    assert run.history[0]["cross_entropy_train"] == pytest.approx(-np.mean(np.log(right)), abs=1e-5)


def test_what_cannot_be_unrolled_or_tuned_is_refused(data: hm.DataSet) -> None:
    with pytest.raises(hm.HarmoniumError, match="needs a machine with a label layer"):
        hm.Unrolled.of(hm.DBM(6, [4]))
    network = hm.Unrolled.of(machine([4, 3]))
    with pytest.raises(hm.HarmoniumError, match="hidden_dropout is a fraction"):
        hm.fine_tune(network, data, hidden_dropout=1.0)
    with pytest.raises(hm.HarmoniumError, match="have no labels"):
        hm.fine_tune(network, ROWS)
    given = network.parameters()
    given["feedback"] = [given["feedback"][0].T]
    with pytest.raises(hm.HarmoniumError, match=r"feedback of this network have shapes \[\(4, 3\)\]"):
        hm.Unrolled.from_arrays(**given)
