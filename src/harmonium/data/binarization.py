"""From grey levels to bits: a fixed cut, or fresh draws that keep the grey level as a probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from harmonium.data.noise import host_noise, words
from harmonium.data.scan import Scan, compact, row_blocks, scan
from harmonium.errors import DataError, SettingError

WAYS = ("threshold", "stochastic")
Scale = int | float | Sequence[int | float]
"""The full scale of grey levels: its upper end, from 0, or both ends."""


class Binarized(NamedTuple):
    """Splits after binarisation, the words that record it, and the full scale that was used (None: already binary)."""

    splits: dict[str, np.ndarray]
    record: str
    scale: tuple[float, float] | None


def full_scale(found: Scan, dtype: np.dtype) -> tuple[float, float]:
    """The lowest and highest grey level that data of this range and type are taken to have.

    Values in [0, 1] have the scale 0 to 1; integers whose largest value is in the upper half of a byte are bytes, 0 to
    255; other data from 0 on reach from 0 to their largest value, and data with negative values over their range. (A
    table of small integers, such as grey levels 0 to 16 stored as bytes, must not be cut at 127.5: all would be 0.)

    **Example**

    >>> full_scale(scan(np.array([[0, 254]], np.uint8)), np.dtype(np.uint8))
    (0.0, 255.0)
    """
    if found.low < 0.0:
        return found.low, found.high
    if found.high <= 1.0:
        return 0.0, 1.0
    if dtype.kind in "iu" and 127.0 < found.high <= 255.0:
        return 0.0, 255.0
    return 0.0, found.high


def binarize(
    splits: Mapping[str, np.ndarray],
    how: str,
    scale: Scale | None = None,
    what: str = "the data",
) -> Binarized:
    """Make two-valued rows, or probabilities of them, of grey ones.

    ``how`` is "threshold": ``x > low + (high - low) / 2`` as uint8, fixed once and for all; or "stochastic":
    ``(x - low) / (high - low)`` as float32 in [0, 1], of which bits are drawn afresh in every epoch of training and
    once, by `draw_binary`, at evaluation. ``scale`` is the full scale, a number (from 0) or a pair; None chooses by
    `full_scale` from all splits together. Data that are 0/1 or -1/+1 already are left as they are, with the record
    "none", except under a scale that says otherwise.

    **Raises** SettingError for another way or a scale that is not two rising numbers; DataError for NaN, infinite or
    constant data, and for values outside a given scale.

    **Example**

    >>> binarize({"train": np.array([[0, 200], [127, 128]], np.uint8)}, "threshold")
    Binarized(splits={'train': array([[0, 1],
           [0, 1]], dtype=uint8)}, record='threshold 0.5 of 255', scale=(0.0, 255.0))
    """
    if how not in WAYS:
        raise SettingError(f'binarize must be None, "threshold" or "stochastic", got {how!r}')
    scans = {split: scan(rows) for split, rows in splits.items()}
    found = reduce(Scan.joined, scans.values())
    for split, one in scans.items():
        if not one.finite:
            raise DataError(
                f"the {split} rows of {what} cannot be binarised: {one.nans} NaN and {one.infinities} "
                f"infinite entries, the first at row, column {one.first_bad}; drop those rows or fill them in"
            )
    if scale is None and (found.zero_one or found.spin):
        return Binarized({split: compact(rows, found) for split, rows in splits.items()}, "none", None)
    dtype = np.result_type(*(rows.dtype for rows in splits.values()))
    low, high = full_scale(found, dtype) if scale is None else _checked_scale(scale)
    if high <= low:
        raise DataError(f"{what} cannot be binarised: every value is {low:g}")
    if found.low < low or found.high > high:
        raise DataError(
            f"the values of {what} run from {found.low:g} to {found.high:g}, outside the full scale "
            f"{low:g} to {high:g}; give the scale the data have"
        )
    span = "" if (low, high) == (0.0, 1.0) else f" of {high:g}" if low == 0.0 else f" of {low:g} to {high:g}"
    if how == "threshold":
        cut = {split: _above(rows, low + 0.5 * (high - low)) for split, rows in splits.items()}
        return Binarized(cut, f"threshold 0.5{span}", (low, high))
    grey = {split: _grey(rows, low, high) for split, rows in splits.items()}
    return Binarized(grey, "stochastic", (low, high))


def draw_binary(rows: np.ndarray, seed: int, support: Sequence[int | float] = (0.0, 1.0)) -> np.ndarray:
    """The one fixed binarisation of grey rows that evaluation uses: each entry is 1 with its own probability.

    Row ``i`` depends only on ``seed``, ``i`` and the width, so the first rows of a set come out as they do in the whole
    set. Entries 0 and 1 are certain. Shapes: (rows, width) float in [0, 1] to the same shape, uint8 0/1, or int8 -1/+1
    where ``support`` is (-1, 1).

    **Raises** DataError for entries outside [0, 1], SettingError for a seed that is no whole number from 0.

    **Example**

    >>> draw_binary(np.array([[0.0, 1.0, 0.5]]), seed=0)[:, :2]
    array([[0, 1]], dtype=uint8)
    """
    if rows.ndim != 2:
        raise DataError(
            f"rows to binarise have shape {rows.shape}; a table of rows is needed: x.reshape(len(x), -1)"
        )
    noise = host_noise(seed, "binarization")
    bits = np.empty(rows.shape, np.uint8)
    for block in row_blocks(rows):
        grey = np.asarray(rows[block], np.float64)
        if not ((grey >= 0.0) & (grey <= 1.0)).all():
            raise DataError(
                'probabilities of bits must lie in [0, 1]; load the data with binarize="stochastic"'
            )
        # An even number of words per row keeps rows apart from each other's width and from the size of a block.
        width = rows.shape[1] + rows.shape[1] % 2
        drawn = words(noise, len(grey) * width).reshape(len(grey), width)[:, : rows.shape[1]]
        bits[block] = drawn < grey * 2.0**32
    return bits if float(min(support)) == 0.0 else 2 * bits.view(np.int8) - 1


def _above(rows: np.ndarray, cut: float) -> np.ndarray:
    result = np.empty(rows.shape, np.uint8)
    for block in row_blocks(rows):
        result[block] = rows[block] > cut
    return result


def _grey(rows: np.ndarray, low: float, high: float) -> np.ndarray:
    if rows.dtype == np.float32 and (low, high) == (0.0, 1.0):
        return rows
    result = np.empty(rows.shape, np.float32)
    for block in row_blocks(rows):
        result[block] = (rows[block].astype(np.float64) - low) / (high - low)
    return result


def _checked_scale(scale: Scale) -> tuple[float, float]:
    try:
        ends = tuple(float(end) for end in np.ravel(np.asarray(scale, dtype=np.float64)))
    except (TypeError, ValueError):
        ends = ()
    ends = (0.0, *ends) if len(ends) == 1 else ends
    if len(ends) != 2 or not np.isfinite(ends).all() or ends[1] <= ends[0]:
        raise SettingError(
            f"scale must be the full scale, such as 255, or a rising pair, such as (-1, 1); got {scale!r}"
        )
    return ends[0], ends[1]
