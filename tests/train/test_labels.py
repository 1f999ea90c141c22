"""Training a machine with labels: what it learns, what it refuses, and that it resumes bit for bit."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.cli.labels import class_number
from harmonium.errors import DataError, SettingError
from harmonium.evaluate.likelihood import observed_rows
from harmonium.rules.base import AbstractRule
from harmonium.train.config import read_settings
from harmonium.train.feed import Feed
from tests.train.runs import interrupting_after


def stripes(names: bool = True, rows: int = 60) -> hm.DataSet:
    """Rows of six values, whose left or whose right half is on, with one value in ten turned, and which it is."""
    generator = np.random.default_rng(0)
    kind = generator.integers(0, 2, rows)
    clean = np.where(kind[:, None] == 1, np.arange(6) >= 3, np.arange(6) < 3)
    noisy = (clean ^ (generator.random((rows, 6)) < 0.1)).astype(np.uint8)
    labels = np.array(["left", "right"])[kind] if names else kind
    cut = rows - 20
    return hm.DataSet(
        "stripes", noisy[:cut], test=noisy[cut:], labels={"train": labels[:cut], "test": labels[cut:]}
    )


@pytest.mark.parametrize(
    ("hidden", "rule", "updates"),
    [([3], hm.PCD(inference="exact"), 400), ([3, 2], hm.CD(1, inference="mean-field"), 1500)],
)
def test_it_learns_to_classify_and_says_so_in_the_data_s_own_names(
    hidden: list[int], rule: AbstractRule, updates: int
) -> None:
    data = stripes()
    model = hm.DBM(6, hidden, labels=2, seed=0, weight_scale=0.5)
    run = hm.fit(model, data, rule, updates=updates, batch_size=10, seed=1)
    assert run.reliable
    assert run.config["model"]["labels"] == 2
    assert run.config["model"]["classes"] == ["left", "right"]
    found = hm.classify(run.model, data)
    assert found.error is not None
    assert found.error <= 0.15
    assert set(found.label) == {"left", "right"}
    # Reports are of rows with their labels.
    last = run.history[-1]
    expected = hm.log_likelihood(run.model, data).value
    assert last["log_likelihood_test"] == pytest.approx(expected, abs=1e-4)
    assert observed_rows(run.model, data).shape == (20, 8)


def test_label_biases_start_at_the_shares_of_the_classes() -> None:
    """Smoothed by one row of each class, as every bias that starts at the data."""
    data = stripes(names=False)
    weights = [np.zeros((6, 3), np.float32), np.zeros((3, 2), np.float32)]
    still = hm.DBM.from_arrays(
        weights, [np.zeros(n, np.float32) for n in (6, 3, 2)], [*["bernoulli"] * 2, "categorical:2"]
    )
    run = hm.fit(still, data, hm.PCD(inference="mean-field"), updates=1, learning_rate=0.0)
    counts = np.bincount(data.labels["train"], minlength=2)  # pyright: ignore[reportOptionalSubscript]
    share = np.asarray(jax.nn.softmax(np.asarray(run.model.units[-1].bias)))
    np.testing.assert_allclose(share, (counts + 1) / (counts.sum() + 2), rtol=1e-5)


def test_an_interrupted_run_of_members_resumes_bit_for_bit_with_the_labels_it_had(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "updates": 250,
        "batch_size": 16,
        "seed": 3,
        "checkpoint_seconds": 0.0,
        "members": 2,
    }
    start, rule = hm.DBM(6, [3], labels=2, seed=0), hm.PCD(chains=8, inference="mean-field")
    whole = hm.fit(start, stripes(), rule, **settings)
    with pytest.raises(KeyboardInterrupt):
        hm.fit(start, stripes(), rule, out=tmp_path / "run", reporter=interrupting_after(100), **settings)
    resumed = hm.resume(tmp_path / "run")
    for one, other in zip(jax.tree.leaves(whole.model), jax.tree.leaves(resumed.model), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    loaded = hm.load_run(tmp_path / "run").model
    one = loaded.member(1)
    assert one.observed == (0, 2)
    found = hm.classify(one, stripes(), classes=resumed.config["model"]["classes"])
    assert found.error == hm.classify(whole.model.member(1), stripes()).error
    config = read_settings(resumed.config)
    assert class_number(one, config.model.classes, "right") == 1
    with pytest.raises(SettingError, match="--label up is no class of this model; choose one of left, right"):
        class_number(one, config.model.classes, "up")


def test_labels_that_are_not_known_are_free_in_the_positive_phase() -> None:
    """Half the labels are hidden: mean field infers them, and what must know them refuses."""
    given = stripes(names=False)
    labels = {split: np.array(values) for split, values in (given.labels or {}).items()}
    labels["train"][::2] = -1
    data = hm.DataSet("half", given.train, test=given.test, labels=labels)
    model = hm.DBM(6, [3], labels=2, seed=0)
    run = hm.fit(model, data, hm.PCD(inference="mean-field"), updates=400, batch_size=10, seed=1)
    found = hm.classify(run.model, data)
    assert found.error is not None
    assert found.error <= 0.15
    assert observed_rows(run.model, data, "train").shape == (40, 6)
    with pytest.raises(SettingError, match=r"20 training rows of half have labels that are not known \(-1\)"):
        hm.fit(model, data, hm.PCD(), updates=1)
    with pytest.raises(SettingError, match="20 training rows of half"):
        hm.fit(model, data, hm.CD(1, inference="mean-field"), updates=1)


def test_labels_that_cannot_be_learned_are_refused() -> None:
    rows, model = stripes().train, hm.DBM(6, [3], labels=2)
    rule = hm.PCD(inference="mean-field")

    def fit(labels: dict[str, np.ndarray] | None, model: hm.DBM = model) -> None:
        hm.fit(model, hm.DataSet("rows", rows, labels=labels), rule, updates=1)

    with pytest.raises(
        DataError, match=r"the train rows of rows have no labels.*as train_labels beside train"
    ):
        fit(None)
    with pytest.raises(
        DataError, match=r"labels of 3 classes \(a, b, c\), but the model has 2; make it with labels=3"
    ):
        fit({"train": np.array(["a", "b", "c", "a"] * 10)})
    with pytest.raises(
        DataError, match="all labels of the training rows of rows are 7; a label layer tells at least"
    ):
        fit({"train": np.full(40, 7)})
    with pytest.raises(
        DataError, match="the train labels of rows are of type float64; give whole numbers or names"
    ):
        fit({"train": np.linspace(0, 1, 40)})
    for far in (np.full(40, np.inf), np.full(40, 1e300), np.full(40, 2**64 - 1, np.uint64)):
        with pytest.raises(DataError, match="whole numbers or names, none of the numbers beyond"):
            fit({"train": far})
    with pytest.raises(DataError, match=r"no label of the training rows of rows is known \(all are -1\)"):
        fit({"train": np.array(["-1"] * 40)})
    with pytest.raises(DataError, match="classes is a list of the names of all classes, got 'ab'"):
        hm.classify(model, rows, classes="ab")
    with pytest.raises(DataError, match=r"none of the 40 training labels of rows is known"):
        fit({"train": np.full(40, -1)})
    elsewhere = hm.DataSet(
        "rows", rows, test=rows, labels={"train": np.arange(40) % 2, "test": np.full(40, 2)}
    )
    with pytest.raises(
        DataError, match="row 0 of test of rows has the label 2, which is none of the 2 classes 0, 1"
    ):
        hm.classify(model, elsewhere)


def test_a_feed_without_labels_costs_nothing() -> None:
    feed = Feed(np.zeros((2, 3), np.uint8), None, None)  # pyright: ignore[reportArgumentType]
    assert len(jax.tree.leaves(feed)) == 1
