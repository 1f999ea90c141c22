"""Generators with modes, against the reference numbers and against sums over all hidden codes."""

import itertools

import numpy as np
import pytest
import scipy.stats

import harmonium as hm
from harmonium.data import load_data
from harmonium.data.modes import artificial_modes, planted, planted_machine
from harmonium.errors import DataError, SettingError


@pytest.fixture(scope="module")
def modes() -> hm.DataSet:
    return artificial_modes(rows=2000)


def test_artificial_modes_have_the_numbers_of_the_reference_programs(modes: hm.DataSet) -> None:
    """Entropy, the best mean on the first pictures of the authors' stream, that of independent pixels, distances."""
    assert modes.entropy == pytest.approx(78.826, abs=1e-3)
    test = modes.split("test")
    best = modes.log_probability(test)
    assert best.mean() == pytest.approx(-79.3976, abs=1e-4)
    assert best[:5000].mean() == pytest.approx(-78.33, abs=5e-3)
    assert test.shape == (10_000, 784)
    weights = np.array([0.3314, 0.2262, 0.0812, 0.0254, 0.3358])
    flips = np.array([0.0001, 0.0137, 0.0215, 0.0223, 0.0544])
    centres = np.random.RandomState(238904).randint(0, 2, size=(5, 784))
    mean = weights @ np.where(centres == 1, 1 - flips[:, None], flips[:, None])
    alone = np.sum(mean * np.log(mean) + (1 - mean) * np.log(1 - mean))
    assert alone == pytest.approx(-427.24, abs=1e-2)
    apart = sorted(int((a != b).sum()) for a, b in itertools.combinations(centres, 2))
    assert apart == [364, 384, 391, 392, 392, 394, 397, 399, 400, 403]


def test_rows_of_artificial_modes_follow_their_law(modes: hm.DataSet) -> None:
    """Modes as often as their weights say, pixels flipped as often as their mode says, in the stream as in train."""
    centres = np.random.RandomState(238904).randint(0, 2, size=(5, 784))
    weights, flips = [0.3314, 0.2262, 0.0812, 0.0254, 0.3358], [0.0001, 0.0137, 0.0215, 0.0223, 0.0544]
    assert modes.labels is not None
    labels = np.asarray(modes.labels["train"])
    for rows in (modes.train, modes.stream(5, 2000)):
        nearest = np.argmin((rows[:, None] != centres).sum(axis=2), axis=1)
        counts = np.bincount(nearest, minlength=5)
        assert scipy.stats.chisquare(counts, 2000 * np.array(weights)).pvalue > 1e-5
        for mode, flip in enumerate(flips):
            mine = rows[nearest == mode]
            flipped = int((mine != centres[mode]).sum())
            assert scipy.stats.binomtest(flipped, mine.size, flip).pvalue > 1e-6
    np.testing.assert_array_equal(np.argmin((modes.train[:, None] != centres).sum(axis=2), axis=1), labels)
    np.testing.assert_array_equal(modes.stream(5, 3), modes.stream(5, 3))
    assert (modes.stream(5, 3) != modes.stream(6, 3)).any()


def test_a_planted_machine_is_the_machine_it_says() -> None:
    machine = planted_machine(clusters=4, visible=40)
    rbm = hm.RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias)
    assert hm.log_partition(rbm).value == pytest.approx(machine.log_partition, abs=1e-9)
    data = planted(clusters=4, visible=40, rows=50)
    found = hm.log_likelihood(rbm, data.train, rows=True).value
    np.testing.assert_allclose(data.log_probability(data.train), found, atol=1e-9)
    np.testing.assert_allclose(machine.mode_weights[1:] / machine.mode_weights[0], [2, 3, 4], rtol=1e-9)
    assert machine.mode_weights.sum() + machine.elsewhere == pytest.approx(1, abs=1e-12)


def test_rows_of_a_planted_machine_are_exact() -> None:
    """Hidden codes as often as their weights say, pixels as their fields say; deep clusters are told from rows."""
    machine = planted_machine()
    assert machine.elsewhere < 1e-3
    data = load_data("planted:rows=20000")
    assert data.labels is not None
    labels = np.asarray(data.labels["train"])
    kept = labels >= 0
    weights = machine.mode_weights / machine.mode_weights.sum()
    assert scipy.stats.chisquare(np.bincount(labels[kept]), kept.sum() * weights).pvalue > 1e-5
    assert (machine.cluster(data.train)[kept] != labels[kept]).mean() < 1e-3
    for cluster in range(8):
        mine = data.train[labels == cluster]
        on = 1 / (1 + np.exp(-machine.weights[:, cluster]))
        apart = (mine.mean(axis=0) - on) / np.sqrt(on * (1 - on) / len(mine))
        assert np.abs(apart).max() < 5.5
    rows = data.stream(3, 20_000)
    counts = np.bincount(machine.cluster(rows), minlength=8)
    assert scipy.stats.chisquare(counts, len(rows) * weights).pvalue > 1e-5


def test_names_build_them_and_list_their_parameters() -> None:
    assert load_data("planted:clusters=3,visible=30,strength=2.5,seed=4,rows=7").name == (
        "planted:clusters=3,visible=30,strength=2.5,seed=4,rows=7"
    )
    again = hm.load_data("planted:clusters=3,visible=30,rows=7")
    assert again.fingerprint == planted(3, 30, rows=7).fingerprint
    assert again.fingerprint != planted(3, 30, rows=7, seed=1).fingerprint
    assert load_data("artificial-modes:rows=3").train.shape == (3, 784)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("planted:clusters=1", "planted needs clusters to be a whole number from 2 to 16, got 1"),
        ("planted:strength=0", "planted needs a positive strength, got 0.0"),
        ("planted:strength=x", "planted: strength must be a number, got 'x'"),
        ("planted:visible=4", "from 8 to 100000, got 4"),
        ("artificial-modes:rows=0", "artificial-modes needs rows to be a whole number from 1"),
    ],
)
def test_what_plants_nothing_is_refused(name: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        load_data(name)


def test_other_data_do_not_know_the_probability_of_a_row() -> None:
    with pytest.raises(DataError, match="digits does not know the probability of a row"):
        load_data("digits").log_probability(np.zeros((1, 64)))
