"""The 8 x 8 handwritten digits that scikit-learn ships: the embedded real data of this project."""

from __future__ import annotations

import numpy as np

from harmonium.data.base import DataSet
from harmonium.errors import MissingExtraError

FULL_SCALE = 16
"""The grey levels are the whole numbers 0 to 16: each counts the dark pixels of a 4 x 4 block."""

_SIZES = {"train": 1400, "valid": 198, "test": 199}


def digits(grey: bool = False) -> DataSet:
    """The 1797 digits, 64 values each, shuffled once and for all into 1400 train, 198 valid and 199 test rows.

    A pixel is 1 where it is above half of full scale (``x > 8``), uint8. ``grey=True`` keeps ``x / 16`` as float32 in
    [0, 1]. Labels 0 to 9 are kept for every split. The shuffle is the permutation of 1797 by
    ``numpy.random.RandomState(0)``, a stream that numpy keeps frozen.

    **Raises** MissingExtraError where scikit-learn is not installed.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI (1998), its test part.

    **Example**

    >>> data = digits()
    >>> data.train.shape, data.train.dtype.name, data.labels["train"][:5].tolist()
    ((1400, 64), 'uint8', [2, 8, 2, 6, 6])
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError(
            "the digits come with scikit-learn, which is missing: pip install scikit-learn"
        ) from None
    levels, kinds = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(levels))
    levels = np.asarray(levels)[order]
    kinds = np.asarray(kinds, dtype=np.int64)[order]
    rows = (levels / FULL_SCALE).astype(np.float32) if grey else (levels > FULL_SCALE / 2).astype(np.uint8)
    ends = np.cumsum([0, *_SIZES.values()])
    parts = {split: slice(ends[i], ends[i + 1]) for i, split in enumerate(_SIZES)}
    name = "digits:grey=true" if grey else "digits"
    return DataSet(
        name,
        rows[parts["train"]],
        rows[parts["valid"]],
        rows[parts["test"]],
        shape=(8, 8),
        labels={split: kinds[part] for split, part in parts.items()},
        binarization="none" if grey else "threshold 0.5",
        source={"name": name},
    )
