"""Other people's tables as arrays: scipy sparse matrices and data frames, known by what they can do.

Neither scipy nor pandas is imported to find out: a value of theirs can only be here if they are loaded already.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from harmonium.errors import DataError, HarmoniumWarning

LARGE_BYTES = 2 << 30
"""Dense size above which turning a sparse matrix into an array is announced."""


def is_sparse(values: Any) -> bool:
    """Whether this is a scipy sparse matrix or array."""
    return hasattr(values, "tocsr") and hasattr(values, "nnz")


def is_frame(values: Any) -> bool:
    """Whether this is a pandas data frame: columns with names, each of its own type."""
    return hasattr(values, "to_numpy") and hasattr(values, "columns") and hasattr(values, "iloc")


def dense(matrix: Any, what: str) -> np.ndarray:
    """A sparse matrix as an array: uint8 where every value is 0 or 1, else its own type.

    Entries given twice are added, as scipy defines it. A warning gives the size where it is above 2 GiB.

    **Raises** DataError for a sparse array of other than two axes, or of complex numbers or objects.
    """
    if len(matrix.shape) != 2:
        raise DataError(f"{what} have shape {matrix.shape}; a sparse table of rows and columns is needed")
    rows = matrix.tocsr()
    if rows.dtype.kind not in "biuf":
        raise DataError(f"{what} hold {rows.dtype} entries, which are not real numbers")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    binary = bool(((rows.data == 0) | (rows.data == 1)).all())
    dtype = np.dtype(np.uint8) if binary else rows.dtype
    size = rows.shape[0] * rows.shape[1] * dtype.itemsize
    if size > LARGE_BYTES:
        warnings.warn(
            f"{what} take {size / 2**30:.1f} GiB as a dense array of {rows.shape[0]} x {rows.shape[1]} {dtype}; "
            "use fewer rows or columns if that is too much",
            HarmoniumWarning,
            stacklevel=2,
        )
    return rows.astype(dtype, copy=False).toarray()


def frame_rows(frame: Any, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The values of a data frame as one array, and the names of its columns.

    Missing entries become NaN, to be counted and placed by the checks of the data.

    **Raises** DataError, naming the column, where one holds text, categories, dates or objects.
    """
    names = tuple(str(name) for name in frame.columns)
    kinds = list(frame.dtypes)
    for index, (name, dtype) in enumerate(zip(names, kinds, strict=True)):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise DataError(
                f"{what}: column {index} ({name!r}) is of type {dtype}, not numbers; encode it as numbers or drop it"
            )
    if all(isinstance(dtype, np.dtype) for dtype in kinds):
        common = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        return np.asarray(frame.to_numpy(dtype=common)), names
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan)), names
