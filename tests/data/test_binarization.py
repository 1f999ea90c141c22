"""Grey levels to bits: the full scale chosen, the cut, the probabilities, and the one fixed draw."""

import numpy as np
import pytest

from harmonium.data import draw_binary, load_data
from harmonium.data.binarization import binarize, full_scale
from harmonium.data.scan import scan
from harmonium.errors import DataError, SettingError


@pytest.mark.parametrize(
    ("rows", "scale", "record"),
    [
        (np.array([[0.0, 0.5, 0.6]]), (0, 1), "threshold 0.5"),
        (np.array([[0, 127, 128, 255]], np.uint8), (0, 255), "threshold 0.5 of 255"),
        (np.array([[0, 127, 128, 254]], np.int64), (0, 255), "threshold 0.5 of 255"),
        (np.array([[0.0, 127.0, 128.0, 255.0]]), (0, 255), "threshold 0.5 of 255"),
        # Small integers stored as bytes must not be cut at 127.5.
        (np.array([[0, 8, 9, 16]], np.uint8), (0, 16), "threshold 0.5 of 16"),
        (np.array([[0, 1023]], np.uint16), (0, 1023), "threshold 0.5 of 1023"),
        (np.array([[-1.0, 3.0]]), (-1, 3), "threshold 0.5 of -1 to 3"),
    ],
)
def test_full_scale_and_cut(rows, scale, record):
    assert full_scale(scan(rows), rows.dtype) == scale
    result = binarize({"train": rows}, "threshold")
    assert result.record == record
    assert result.splits["train"].dtype == np.uint8
    assert (result.splits["train"] == (rows > scale[0] + (scale[1] - scale[0]) / 2)).all()
    grey = binarize({"train": rows}, "stochastic")
    assert grey.record == "stochastic"
    assert grey.splits["train"].dtype == np.float32
    exact = (rows.astype(np.float64) - scale[0]) / (scale[1] - scale[0])
    assert (grey.splits["train"] == exact.astype(np.float32)).all()


def test_the_scale_is_that_of_all_splits_together():
    data = load_data({"train": [[0.0, 4.0]], "test": [[8.0, 1.0]]}, binarize="threshold")
    assert data.binarization == "threshold 0.5 of 8"
    assert data.train.tolist() == [[0, 0]]
    assert data.test is not None
    assert data.test.tolist() == [[1, 0]]
    assert data.source == {"array": True, "binarize": "threshold", "scale": [0.0, 8.0]}


def test_a_given_scale_wins():
    rows = np.array([[0, 100, 140]], np.uint8)
    assert load_data(rows, binarize="threshold", scale=255).train.tolist() == [[0, 0, 1]]
    assert load_data(rows, binarize="threshold", scale=(-60, 240)).train.tolist() == [[0, 1, 1]]
    with pytest.raises(DataError, match="run from 0 to 140, outside the full scale 0 to 100"):
        load_data(rows, binarize="threshold", scale=100)
    for wrong in (0, (3, 1), (1, 2, 3), float("nan")):
        with pytest.raises(SettingError, match="scale must be the full scale"):
            load_data(rows, binarize="threshold", scale=wrong)
    with pytest.raises(SettingError, match="scale=255 is only used with binarize"):
        load_data(rows, scale=255)


def test_two_valued_data_stay_as_they_are():
    for rows, dtype in (([[0.0, 1.0]], np.uint8), ([[-1.0, 1.0]], np.int8)):
        for how in ("threshold", "stochastic"):
            data = load_data(rows, binarize=how)
            assert (data.binarization, data.train.dtype, data.train.tolist()) == ("none", dtype, rows)
            assert data.fingerprint == load_data(rows).fingerprint


def test_refusals():
    with pytest.raises(
        SettingError, match='binarize must be None, "threshold" or "stochastic", got \'half\''
    ):
        load_data([[0.5]], binarize="half")
    with pytest.raises(DataError, match=r"1 NaN and 0 infinite entries, the first at row, column \(0, 1\)"):
        load_data([[0.5, np.nan]], binarize="threshold")
    with pytest.raises(DataError, match="every value is -3"):
        load_data([[-3.0, -3.0]], binarize="threshold")
    with pytest.raises(SettingError, match="was binarised already"):
        load_data(load_data([[0.2, 0.7]], binarize="threshold"), binarize="stochastic")


def test_the_fixed_draw_has_the_right_frequencies():
    levels = np.array([0.0, 0.1, 0.25, 0.5, 0.9, 1.0], np.float32)
    n = 40_000
    bits = draw_binary(np.tile(levels, (n, 1)), seed=0)
    assert bits.dtype == np.uint8
    counts = np.asarray(bits.sum(axis=0, dtype=np.int64))
    assert counts[0] == 0
    assert counts[-1] == n
    middle = levels[1:-1].astype(np.float64)
    assert (np.abs(counts[1:-1] - n * middle) < 4.5 * np.sqrt(n * middle * (1 - middle))).all()
    # Different columns and rows share no noise: the correlation of two columns of one level vanishes.
    pair = draw_binary(np.full((n, 2), 0.5), seed=1).astype(np.float64)
    assert abs(float(np.asarray(np.corrcoef(pair.T))[0, 1])) < 4.5 / np.sqrt(n)


def test_the_fixed_draw_is_frozen_and_independent_of_blocks(monkeypatch):
    grey = np.full((6, 5), 0.5)
    bits = draw_binary(grey, seed=0)
    assert ["".join(map(str, row)) for row in bits.tolist()] == [
        "00011",
        "00000",
        "11011",
        "01010",
        "10110",
        "01101",
    ]
    assert (draw_binary(grey[:4], seed=0) == bits[:4]).all()
    assert (draw_binary(grey, seed=1) != bits).any()
    monkeypatch.setattr("harmonium.data.scan.BLOCK_ENTRIES", 5)
    assert (draw_binary(grey, seed=0) == bits).all()
    spins = draw_binary(grey, seed=0, support=(-1.0, 1.0))
    assert spins.dtype == np.int8
    assert (spins == 2 * bits.astype(int) - 1).all()


@pytest.mark.parametrize("rows", [[[0.5, 1.5]], [[-0.1, 0.5]], [[np.nan, 0.5]]])
def test_the_fixed_draw_refuses_what_is_no_probability(rows):
    with pytest.raises(DataError, match=r"must lie in \[0, 1\]"):
        draw_binary(np.array(rows), seed=0)
    with pytest.raises(DataError, match=r"have shape \(2,\)"):
        draw_binary(np.array([0.5, 0.5]), seed=0)
