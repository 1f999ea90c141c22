"""The embedded digits against the file that scikit-learn ships, read here by hand."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from harmonium.data import load_data
from harmonium.data.digits import digits
from harmonium.errors import MissingExtraError, SettingError

# The frozen identity of the two forms: a change here makes every published number incomparable.
BINARY, GREY = "42ac4b1fdde7ab09", "ecaa9f52462562b9"


@pytest.fixture(scope="module")
def by_hand():
    """Grey levels and labels in the fixed order."""
    spec = importlib.util.find_spec("sklearn")
    assert spec is not None
    assert spec.origin is not None
    table = np.loadtxt(Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    table = table[np.random.RandomState(0).permutation(1797)]
    return table[:, :64], table[:, 64].astype(int)


def test_binary_digits_are_above_half_of_full_scale(by_hand):
    levels, kinds = by_hand
    data = load_data("digits")
    assert [len(rows) for rows in data.splits().values()] == [1400, 198, 199]
    assert data.train.dtype == np.uint8
    assert (np.concatenate(list(data.splits().values())) == (levels > 8)).all()
    assert data.labels is not None
    assert (np.concatenate([data.labels[split] for split in ("train", "valid", "test")]) == kinds).all()
    assert data.shape == (8, 8)
    assert data.binarization == "threshold 0.5"
    assert data.fingerprint == BINARY


def test_grey_digits_keep_their_levels(by_hand):
    levels, _ = by_hand
    data = load_data("digits:grey=true")
    assert data.train.dtype == np.float32
    # Sixteenths are exact in single precision.
    assert (np.concatenate(list(data.splits().values())) * 16 == levels).all()
    assert data.binarization == "none"
    assert data.name == "digits:grey=true"
    assert data.fingerprint == GREY


def test_thresholding_the_grey_digits_gives_the_binary_ones():
    data = load_data("digits:grey=true", binarize="threshold")
    assert data.fingerprint == BINARY
    assert load_data("digits", binarize="threshold").fingerprint == BINARY


def test_stochastic_digits_start_from_grey():
    data = load_data("digits", binarize="stochastic")
    assert data.binarization == "stochastic"
    assert data.train.dtype == np.float32
    assert (data.train == load_data("digits:grey=true").train).all()
    assert data.fingerprint != GREY
    with pytest.raises(SettingError, match="no grey levels left"):
        load_data("digits:grey=false", binarize="stochastic")


def test_missing_scikit_learn_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match="pip install scikit-learn"):
        digits()
