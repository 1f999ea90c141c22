"""The network that a labelled machine unrolls to: one pass of mean field before it is tuned, and how it is tuned."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.inference.mean_field import MeanField
from harmonium.numerics.random import Noise
from harmonium.train.unrolled import pass_upwards
from harmonium.typing import Batch

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
    """Two noisy prototypes for each of three classes."""
    draws = np.random.RandomState(3)
    labels = np.arange(90) % 3
    rows = (np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])[labels]).astype(np.uint8)
    rows = np.where(draws.uniform(size=rows.shape) < 0.1, 1 - rows, rows).astype(np.uint8)
    return hm.DataSet("blocks", rows, rows[:30], labels={"train": labels, "valid": labels[:30]})


def test_before_tuning_it_is_one_pass_of_mean_field_without_the_label() -> None:
    model = machine([4, 3])
    network = hm.Unrolled.of(model, sweeps=4)
    weights, biases = (model.parameters()[name] for name in ("weights", "biases"))
    with jax.enable_x64(True):
        (above,) = (np.asarray(means) for means in network.features(ROWS.astype(np.float64)))
        below = logistic(biases[1] + ROWS @ weights[0] + above @ weights[1].T)
        top = logistic(biases[2] + below @ weights[1])
        found = pass_upwards(network.machine, network.net, jnp.asarray(ROWS, float), (jnp.asarray(above),))
        # The features themselves: four sweeps of coordinate ascent from the doubled pass upwards.
        wanted = logistic(biases[2] + logistic(biases[1] + 2 * ROWS @ weights[0]) @ weights[1])
        for _ in range(4):
            wanted = logistic(
                biases[2] + logistic(biases[1] + ROWS @ weights[0] + wanted @ weights[1].T) @ weights[1]
            )
        np.testing.assert_allclose(above, wanted, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found, biases[3] + top @ weights[2], rtol=0, atol=1e-13)
        # And the library's own sweep of the machine without its label layer gives the same layers.
        below_labels = hm.DBM.from_arrays(weights[:2], biases[:3])
        batch = Batch(x=jnp.asarray(ROWS, float))
        again = MeanField(sweeps=5, tolerance=0).solve(below_labels, batch).means
        np.testing.assert_allclose(again[1], below, rtol=0, atol=1e-14)
        np.testing.assert_allclose(again[2], top, rtol=0, atol=1e-14)
    np.testing.assert_allclose(network.logits(ROWS), found, rtol=0, atol=3e-6)
    classes = network.classify(ROWS)
    assert classes.label.tolist() == np.argmax(found, axis=1).tolist()
    np.testing.assert_allclose(classes.probability.sum(axis=1), 1)


def test_deeper_machines_hear_the_features_of_every_layer_above() -> None:
    model = machine([4, 3, 2])
    network = hm.Unrolled.of(model)
    weights, biases = (model.parameters()[name] for name in ("weights", "biases"))
    second, third = (np.asarray(means) for means in network.features(ROWS.astype(np.float32)))
    one = logistic(biases[1] + ROWS @ weights[0] + second @ weights[1].T)
    two = logistic(biases[2] + one @ weights[1] + third @ weights[2].T)
    three = logistic(biases[3] + two @ weights[2])
    np.testing.assert_allclose(network.logits(ROWS), biases[4] + three @ weights[3], atol=3e-6)
    shallow = hm.Unrolled.of(machine([4]))
    assert shallow.features(ROWS.astype(np.float32)) == ()
    assert shallow.logits(ROWS).shape == (7, 3)


def test_dropping_keeps_the_mean_and_drops_at_its_rates() -> None:
    sizes = {"visible": 6, "first": 4, "second": 3}
    identity = [np.zeros((6, 4)), np.zeros((4, 3)), np.eye(3)]
    flat = hm.DBM.from_arrays(
        identity, [np.zeros(n) for n in (*sizes.values(), 3)], ["bernoulli"] * 3 + ["categorical:3"]
    )
    network = hm.Unrolled.of(flat)
    rows = jnp.ones((4000, 6), jnp.float32)
    noise = Noise.from_key(jax.random.key(0))
    # All hidden means are a half; the top layer shows through as it is after dropping.
    seen = np.asarray(
        pass_upwards(network.machine, network.net, rows, network.features(rows), noise, (0.0, 0.25))
    )
    assert np.unique(seen.round(5)).tolist() == [0.0, round(0.5 / 0.75, 5)]
    assert abs((seen == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / seen.size)
    # Rows pass through to the first hidden layer: with weights of one each unit shows how many pixels are left.
    counting = [np.ones((6, 1)), np.ones((1, 1)), np.ones((1, 2))]
    ones = hm.Unrolled.of(
        hm.DBM.from_arrays(
            counting, [np.zeros(n) for n in (6, 1, 1, 2)], ["bernoulli"] * 3 + ["categorical:2"]
        )
    )
    parts = (ones.weights[:1] + ones.weights[2:], (), ones.biases[1:])
    one_layer = hm.Unrolled.of(
        hm.DBM.from_arrays(
            [np.ones((6, 1)), np.ones((1, 2))],
            [np.zeros(6), np.zeros(1), np.zeros(2)],
            ["bernoulli"] * 2 + ["categorical:2"],
        )
    )
    assert len(parts[0]) == len(one_layer.weights)
    kept = np.asarray(pass_upwards(one_layer.machine, one_layer.net, rows, (), noise, (0.5, 0.0)))[:, 0]
    left = np.round(np.log(kept / (1 - kept)) / 2)
    assert abs(left.mean() - 3) < 5 * np.sqrt(6 / 4 / len(left))
    assert set(left) == set(range(7))


def test_a_network_comes_back_from_its_file(tmp_path: Path) -> None:
    network = hm.Unrolled.of(machine([4, 3]), sweeps=3)
    read = hm.load(hm.save(network, tmp_path / "network.safetensors"))
    assert isinstance(read, hm.Unrolled)
    assert read.sweeps == 3
    np.testing.assert_array_equal(read.logits(ROWS), network.logits(ROWS))


def test_tuning_learns_and_can_be_had_again(data: hm.DataSet) -> None:
    network = hm.Unrolled.of(hm.DBM(6, [5, 4], labels=3, seed=0, weight_scale=0.3))
    run = hm.fine_tune(network, data, epochs=40, batch_size=20, learning_rate=0.02, seed=1)
    assert [record["index"] for record in run.history[:2]] == [5, 10]  # the last batch is short
    assert run.history[-1]["cross_entropy_train"] < 0.7 * run.history[0]["cross_entropy_train"]
    found = run.model.classify(data, split="valid")
    assert found.error == run.history[-1]["error_valid"]
    assert found.error is not None
    assert found.error < 0.15
    assert (np.asarray(run.model.machine.couplings[0].kernel) == network.machine.couplings[0].kernel).all()
    again = hm.fine_tune(network, data, epochs=40, batch_size=20, learning_rate=0.02, seed=1)
    assert again.history == run.history
    other = hm.fine_tune(network, data, epochs=40, batch_size=20, learning_rate=0.02, seed=2)
    assert other.history != run.history


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
