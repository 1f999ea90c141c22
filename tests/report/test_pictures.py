from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harmonium.errors import DataError, FileError
from harmonium.report.pictures import grid_of_pictures, picture_shape, write_pictures


@pytest.mark.parametrize(
    ("width", "shape", "expected"),
    [
        (64, (8, 8), (8, 8)),
        (64, None, (8, 8)),
        (12, (2, 6), (2, 6)),
        (784, (28, 28, 1), (28, 28)),
        (12, (12,), (3, 4)),
        (12, (1, 12), (3, 4)),
        (1, None, (1, 1)),
        (2, None, (1, 2)),
        (4, None, (2, 2)),
        (5, None, (3, 3)),
        (17, None, (5, 5)),
        (34, None, (6, 6)),
        (36, None, (6, 6)),
    ],
)
def test_the_picture_of_a_row(width: int, shape: tuple[int, ...] | None, expected: tuple[int, int]) -> None:
    assert picture_shape(width, shape) == expected
    assert expected[0] * expected[1] >= width


def cells(image: np.ndarray, height: int, width: int, row: int, column: int) -> np.ndarray:
    """The values of one picture, one pixel of each."""
    scale = (image.shape[1] - 2) // ((image.shape[1] - 2) // (56 // max(height, width) * width + 2)) - 2
    scale //= width
    top, left = 2 + row * (height * scale + 2), 2 + column * (width * scale + 2)
    block = image[top : top + height * scale, left : left + width * scale]
    return block[scale // 2 :: scale, scale // 2 :: scale]


def test_every_value_lies_where_it_belongs() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (9, 16)).astype(np.uint8)
    image = grid_of_pictures(rows, (4, 4))
    for index in range(9):
        found = cells(image, 4, 4, index // 3, index % 3)
        np.testing.assert_array_equal(found, 255 * rows[index].reshape(4, 4))
    assert (image[:2] == 96).all()
    assert (image[:, -2:] == 96).all()


@pytest.mark.parametrize(
    ("rows", "levels"),
    [
        (np.array([[0, 1, 1, 0]], np.uint8), [0, 255, 255, 0]),
        (np.array([[1, 1, 1, 1]], np.uint8), [255, 255, 255, 255]),
        (np.array([[0, 0, 0, 0]], np.uint8), [0, 0, 0, 0]),
        (np.array([[-1, 1, 1, -1]], np.int8), [0, 255, 255, 0]),
        (np.array([[0.0, 0.5, 1.0, 0.2]]), [0, 128, 255, 51]),
        (np.array([[0.0, 4.0, 2.0, np.nan]]), [0, 255, 128, 160]),
        (np.full((1, 4), np.nan), [160, 160, 160, 160]),
    ],
)
def test_levels(rows: np.ndarray, levels: list[int]) -> None:
    assert cells(grid_of_pictures(rows), 2, 2, 0, 0).ravel().tolist() == levels


def test_a_small_picture_is_large_enough_to_see() -> None:
    assert min(grid_of_pictures(np.zeros((64, 64))).shape) >= 400
    assert grid_of_pictures(np.zeros((1, 1))).shape == (60, 60)
    assert grid_of_pictures(np.zeros((2, 100_000))).shape[1] < 1000


def test_what_makes_no_picture_is_refused() -> None:
    with pytest.raises(DataError, match="make no picture"):
        grid_of_pictures(np.zeros((0, 4)))
    with pytest.raises(DataError, match="make no picture"):
        grid_of_pictures(np.zeros(4))


def test_a_file_is_png_and_never_overwritten_unasked(tmp_path: Path) -> None:
    path = write_pictures(tmp_path / "x.png", np.eye(4), (2, 2))
    with Image.open(path) as picture:
        assert (picture.format, picture.mode) == ("PNG", "L")
        np.testing.assert_array_equal(np.asarray(picture), grid_of_pictures(np.eye(4), (2, 2)))
    with pytest.raises(FileError, match="exists already"):
        write_pictures(path, np.eye(4))
    assert write_pictures(path, np.eye(4), overwrite=True) == path
