"""One look at an array, block by block: its range, its gaps, and whether it holds only two values.

Every question the data room asks of large arrays is answered in one pass over blocks of rows, so that a file mapped
from disk is never copied whole and no temporary array is larger than one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from harmonium.errors import DataError

BLOCK_ENTRIES = 1 << 22
"""How many entries are looked at together (32 MiB of float64)."""


@dataclass(frozen=True)
class Scan:
    """What one pass over an array found; ``low`` and ``high`` are over the finite entries (nan where there are none).

    ``first_bad`` is the (row, column) of the first entry that is not finite. ``zero_one`` and ``spin`` say that every
    entry is 0 or 1, or is -1 or +1; an array of ones is both.
    """

    low: float
    high: float
    nans: int
    infinities: int
    first_bad: tuple[int, int] | None
    zero_one: bool
    spin: bool

    @property
    def finite(self) -> bool:
        """Whether there is neither NaN nor infinity."""
        return self.first_bad is None

    def joined(self, other: Scan) -> Scan:
        """The scan of both arrays together, ``first_bad`` being the first array's where it has one."""
        return Scan(
            low=float(np.fmin(self.low, other.low)),
            high=float(np.fmax(self.high, other.high)),
            nans=self.nans + other.nans,
            infinities=self.infinities + other.infinities,
            first_bad=self.first_bad if self.first_bad is not None else other.first_bad,
            zero_one=self.zero_one and other.zero_one,
            spin=self.spin and other.spin,
        )


def row_blocks(rows: np.ndarray) -> Iterator[slice]:
    """Slices of whole rows, each of about ``BLOCK_ENTRIES`` entries, that cover the array in order."""
    step = max(1, BLOCK_ENTRIES // max(1, rows.shape[1]))
    for start in range(0, len(rows), step):
        yield slice(start, min(start + step, len(rows)))


def scan(rows: np.ndarray) -> Scan:
    """Look once at every entry of a two-dimensional array of numbers.

    **Example**

    >>> scan(np.array([[0.0, 1.0], [1.0, 0.0]])).zero_one
    True
    """
    low, high = np.nan, np.nan
    nans = infinities = 0
    first_bad: tuple[int, int] | None = None
    zero_one = spin = rows.size > 0
    can_be_non_finite = rows.dtype.kind == "f"
    for block_rows in row_blocks(rows):
        block = rows[block_rows]
        finite = block
        if can_be_non_finite and not np.isfinite(block).all():
            good = np.isfinite(block)
            finite = block[good]
            gaps = int(np.isnan(block).sum())
            nans += gaps
            infinities += int((~good).sum()) - gaps
            if first_bad is None:
                row, column = np.argwhere(~good)[0]
                first_bad = (block_rows.start + int(row), int(column))
            zero_one = spin = False
        if finite.size:
            block_low, block_high = float(finite.min()), float(finite.max())
            low, high = float(np.fmin(low, block_low)), float(np.fmax(high, block_high))
            zero_one = zero_one and low >= 0.0 and high <= 1.0 and _only(finite, 0, 1)
            spin = spin and low >= -1.0 and high <= 1.0 and _only(finite, -1, 1)
    return Scan(low, high, nans, infinities, first_bad, bool(zero_one), bool(spin))


def joint_scan(tables: Sequence[np.ndarray]) -> Scan:
    """The scan of several tables together."""
    return reduce(Scan.joined, map(scan, tables))


def _only(values: np.ndarray, first: int, second: int) -> bool:
    """Whether every value, already known to lie in the closed range, is one of its two ends."""
    if values.dtype.kind == "b" or (values.dtype.kind in "iu" and second - first == 1):
        return True
    return bool(((values == first) | (values == second)).all())


def as_matrix(values: Any, what: str) -> np.ndarray:
    """The values as a two-dimensional array of real numbers, not copied where they are one already.

    Masked entries become NaN, so that they are found and named later instead of read as numbers. A byte order that is
    not the machine's is changed, half precision becomes single and extended precision becomes double.

    **Raises** DataError for text, Python objects, complex numbers, a ragged list, one axis, or three and more.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        rows = np.asarray(values)
    except (ValueError, TypeError) as fault:
        raise DataError(
            f"{what} cannot be read as a table of numbers: give every row the same length ({fault})"
        ) from None
    kind = rows.dtype.kind
    if kind in "US":
        first = f", for example {rows.flat[0]!s:.40}" if rows.size else ""
        raise DataError(f"{what} hold text{first}; encode it as numbers, one column per value")
    if kind not in "biuf":
        raise DataError(
            f"{what} hold {rows.dtype} entries, which are not real numbers; convert with numpy.asarray(x, dtype=float)"
        )
    if rows.ndim != 2:
        raise DataError(
            f"{what} have shape {rows.shape}; rows of one table are needed: pass {_reshape_cure(rows.ndim)}"
        )
    if rows.dtype == np.float16:
        return rows.astype(np.float32)
    if rows.dtype.itemsize > 8:
        return rows.astype(np.float64)
    return rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))


def _reshape_cure(axes: int) -> str:
    if axes == 0:
        return "an array with one row per case"
    if axes == 1:
        return "x[None, :] for one row, or x[:, None] for one column"
    return "x.reshape(len(x), -1)"


def compact(rows: np.ndarray, found: Scan) -> np.ndarray:
    """The same values in the smallest type that holds them: uint8 for 0/1, int8 for -1/+1, else as they are."""
    if found.zero_one:
        return rows.view(np.uint8) if rows.dtype == np.bool_ else convert(rows, np.uint8)
    if found.spin:
        return convert(rows, np.int8)
    return rows


def convert(rows: np.ndarray, dtype: Any) -> np.ndarray:
    """The rows as ``dtype``, block by block; the array itself where it has that type already."""
    if rows.dtype == np.dtype(dtype):
        return rows
    result = np.empty(rows.shape, dtype)
    for block in row_blocks(rows):
        result[block] = rows[block]
    return result
