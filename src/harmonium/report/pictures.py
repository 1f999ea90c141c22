"""Rows as pictures: a grid of them in one PNG file."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from harmonium.errors import DataError
from harmonium.train.atomic import write_atomically

_CELL = 56
"""Pixels that the longer side of one row's picture has at least."""

_BORDER = 2
_BORDER_GREY = 96
_MISSING_GREY = 160
_WIDEST = 4
"""Most that one side of a rectangle may exceed the other before a padded square is shown instead."""


def picture_shape(width: int, shape: Sequence[int] | None = None) -> tuple[int, int]:
    """Height and width of the picture of one row: ``shape`` where that has two axes, else the nearest rectangle.

    The nearest rectangle has ``width`` cells and sides as alike as can be, the longer one lying; where one side would
    be more than four times the other (a prime number of values, say), it is the smallest square that holds them.

    >>> picture_shape(784), picture_shape(24), picture_shape(17), picture_shape(12, (6, 2, 1))
    ((28, 28), (4, 6), (5, 5), (6, 2))
    """
    sides = [] if shape is None else [side for side in shape if side != 1]
    if len(sides) == 2:
        return sides[0], sides[1]
    height = next(side for side in range(math.isqrt(width), 0, -1) if width % side == 0)
    if width <= _WIDEST * height * height:
        return height, width // height
    return math.isqrt(width - 1) + 1, math.isqrt(width - 1) + 1


def grid_of_pictures(rows: np.ndarray, shape: Sequence[int] | None = None) -> np.ndarray:
    """A grey picture of all rows, nearly square, with a border around each; shape (height, width), uint8.

    The lowest value of all rows is black and the highest white (0/1 and -1/+1 rows are black and white whatever values
    occur); NaN and padding are grey. Every value becomes a square of several pixels, so that people can see it.

    **Raises** `DataError` for rows that are no table.

    >>> grid_of_pictures(np.eye(4, dtype=np.uint8), (2, 2)).shape
    (118, 118)
    """
    if rows.ndim != 2 or rows.size == 0:
        raise DataError(f"rows of shape {rows.shape} make no picture; a table of rows is needed")
    height, width = picture_shape(rows.shape[1], shape)
    scale = max(1, math.ceil(_CELL / max(height, width)))
    cells = np.full((len(rows), height * width), _MISSING_GREY, np.uint8)
    cells[:, : rows.shape[1]] = _grey(rows)
    pictures = cells.reshape(-1, height, width).repeat(scale, axis=1).repeat(scale, axis=2)
    columns = max(1, round(math.sqrt(len(rows) * height / width)))
    lines = -(-len(rows) // columns)
    step_down, step_across = height * scale + _BORDER, width * scale + _BORDER
    canvas = np.full((lines * step_down + _BORDER, columns * step_across + _BORDER), _BORDER_GREY, np.uint8)
    for index, picture in enumerate(pictures):
        top = _BORDER + index // columns * step_down
        left = _BORDER + index % columns * step_across
        canvas[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    return canvas


def write_pictures(
    path: str | os.PathLike[str],
    rows: np.ndarray,
    shape: Sequence[int] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write `grid_of_pictures` as a PNG file, whole or not at all; returns the path written.

    **Raises** `FileError` when the file exists and ``overwrite`` is False, or cannot be written.
    """
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(grid_of_pictures(rows, shape)).save(buffer, format="PNG", optimize=True)
    return write_atomically(path, buffer.getvalue(), overwrite=overwrite, fault="samples")


def _grey(rows: np.ndarray) -> np.ndarray:
    values = np.asarray(rows, np.float64)
    known = np.isfinite(values)
    if not known.any():
        return np.full(values.shape, _MISSING_GREY, np.uint8)
    low, high = float(values[known].min()), float(values[known].max())
    # Rows that happen to hold ones only are still white, and constant rows are no reason to divide by zero.
    low, high = min(low, -1.0 if low < 0 else 0.0), max(high, 1.0)
    levels = np.rint(255.0 * (np.where(known, values, low) - low) / (high - low))
    return np.where(known, levels, _MISSING_GREY).astype(np.uint8)
