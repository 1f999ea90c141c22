"""Rows against units: every hostile input gets one sentence that names it and its cure; the rest is encoded exactly."""

import numpy as np
import pytest

from harmonium.data import check_support, encode
from harmonium.errors import DataError, SettingError

BITS, SPINS = (0.0, 1.0), (-1.0, 1.0)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, ">f8", np.longdouble])
def test_bits_are_kept_as_bytes_whatever_their_type(dtype):
    rows, mapping = encode(np.array([[0, 1], [1, 1]], dtype), BITS)
    assert rows.dtype == np.uint8
    assert rows.tolist() == [[0, 1], [1, 1]]
    assert mapping == "as given"


def test_bits_and_spins_are_mapped_to_each_other():
    bits, spins = [[0, 1], [1, 1]], [[-1, 1], [1, 1]]
    to_spins, to_bits = encode(bits, SPINS), encode(spins, BITS)
    assert to_spins.rows.tolist() == spins
    assert (to_spins.rows.dtype, to_spins.mapping) == (np.int8, "0/1 to -1/+1 (2x - 1)")
    assert to_bits.rows.tolist() == bits
    assert (to_bits.rows.dtype, to_bits.mapping) == (np.uint8, "-1/+1 to 0/1 ((x + 1) / 2)")
    assert encode(np.array(spins, float), SPINS).rows.dtype == np.int8
    # A constant column or a whole of ones means the same in both codes.
    assert encode([[1, 1]], SPINS).rows.tolist() == encode([[1, 1]], BITS).rows.tolist() == [[1, 1]]
    assert encode([[0, 0]], SPINS).rows.tolist() == [[-1, -1]]
    assert encode([[-1, -1]], BITS).rows.tolist() == [[0, 0]]


def test_compact_rows_are_not_copied():
    bits, spins = np.eye(3, dtype=np.uint8), 2 * np.eye(3, dtype=np.int8) - 1
    real = np.linspace(0, 9, 12).reshape(4, 3)
    assert encode(bits, BITS).rows is bits
    assert encode(spins, SPINS).rows is spins
    assert encode(real, "real").rows is real
    assert np.shares_memory(encode(bits.view(bool), BITS).rows, bits)


def test_real_units_take_anything_finite():
    assert encode([[1, -300]], "real").rows.dtype == np.float32
    assert encode([[1, -300]], "real").mapping == "int64 to float32"
    assert encode(np.array([[1.5, -300.25]]), "real").rows.tolist() == [[1.5, -300.25]]
    assert encode(np.array([[1.5]], np.float32), "real").rows.dtype == np.float32


def test_probabilities_are_kept_under_stochastic_binarisation():
    grey = np.array([[0.0, 0.25], [1.0, 0.5]])
    for support in (BITS, SPINS):
        rows, mapping = encode(grey, support, binarization="stochastic")
        assert rows.dtype == np.float32
        assert (rows == grey).all()
        assert mapping == "probabilities, bits drawn afresh"
    # Rows that happen to be certain are probabilities all the same.
    assert encode([[0, 1]], SPINS, binarization="stochastic").rows.tolist() == [[0.0, 1.0]]
    with pytest.raises(DataError, match=r"run from -1 to 1, but bits are drawn of probabilities in \[0, 1\]"):
        encode([[-1, 1]], SPINS, binarization="stochastic")


def test_other_lists_of_values():
    rows, mapping = encode([[0.0, 2.0], [1.0, 0.0]], (0.0, 1.0, 2.0))
    assert (rows.dtype, rows.tolist(), mapping) == (np.int8, [[0, 2], [1, 0]], "as given")
    with pytest.raises(DataError, match=r"value 3 of row 1, column 0, is none of .* \(0, 1, 2\)"):
        check_support([[0, 2], [3, 0]], (0.0, 1.0, 2.0))


HOSTILE = [
    # A time series with negative values: the column, its range and the cure.
    (
        [[-1.2, 3], [0.4, 7]],
        r"column 0 runs from -1.2 to 0.4, but these units take only the values 0 and 1 "
        r"\(1 other column is out of range too\); "
        r'scale the columns to \[0, 1\] and pass binarize="threshold" .* or binarize="stochastic"',
    ),
    ([[0.2, 5.0], [0.9, 1.0]], r"column 1 runs from 1 to 5"),
    (np.full((3, 4), 0.5), r'grey values, such as 0.5 in row 0, column 0, .* pass binarize="threshold"'),
    ([[0.0, 1 + 1e-9]], r"column 1 runs from 1.000000001 to 1.000000001"),
    ([[0, 255], [16, 7]], r"column 0 runs from 0 to 16.*if these are grey levels, pass binarize"),
    (
        60.0 * np.random.RandomState(0).randn(200, 5),
        r"column 0 runs from -.* \(4 other columns are out of range too\)",
    ),
    (
        [[-1, 0, 1]],
        r"run from -1 to 1 with values such as 0 in row 0, column 1, .* recode the data as two values",
    ),
    ([[0.0, -0.5]], r"run from -0.5 to 0 with values such as 0 in row 0, column 0"),
    (
        [[0.0, np.nan], [np.nan, 1.0]],
        r"hold 2 NaN of 4 entries, the first in row 0, column 1; .*drop the rows with NaN",
    ),
    ([[0.0, 1.0], [-np.inf, 1.0]], r"hold 1 infinite entries, the first in row 1, column 0"),
    ([[np.inf, np.nan]], r"hold 1 infinite entries and 1 NaN"),
    (np.zeros((0, 3)), r"are empty \(shape \(0, 3\)\)"),
    (np.zeros((3, 0)), r"are empty \(shape \(3, 0\)\)"),
    ([0, 1, 1], r"have shape \(3,\).*x\[None, :\] for one row"),
    (np.zeros((5, 8, 8)), r"have shape \(5, 8, 8\).*x\.reshape\(len\(x\), -1\)"),
    (1.0, r"have shape \(\).*one row per case"),
    ([["a", "b"]], r"hold text, for example a; encode it as numbers"),
    ([["0", "1"]], r"hold text"),
    (np.array([[None, 1]]), r"hold object entries, which are not real numbers"),
    ([[1j, 0]], r"hold complex128 entries"),
    ([[0, 1], [1]], r"give every row the same length"),
    (np.ma.masked_equal([[0, 1, 9]], 9), r"hold 1 NaN of 3 entries, the first in row 0, column 2"),
    (np.array([["2020-01-01"]], "datetime64[D]"), r"hold datetime64\[D\] entries"),
]


@pytest.mark.parametrize(("rows", "said"), HOSTILE, ids=lambda value: "" if isinstance(value, str) else None)
def test_hostile_rows_are_refused_with_the_cure(rows, said):
    with pytest.raises(DataError, match=said) as caught:
        check_support(rows, BITS, "the training rows")
    assert str(caught.value).startswith("the training rows")
    assert "\n" not in str(caught.value)


def test_width_names_both_numbers():
    with pytest.raises(DataError, match="have 3 columns but the model has 4 visible units"):
        check_support([[0, 1, 1]], BITS, width=4)
    check_support([[0, 1, 1]], BITS, width=3)


def test_columns_are_named_where_they_have_names():
    with pytest.raises(DataError, match=r"column 1 \('age'\) runs from 3 to 70"):
        check_support([[0, 3], [1, 70]], BITS, columns=("smoker", "age"))


def test_gaps_beyond_the_first_block_are_placed(monkeypatch):
    monkeypatch.setattr("harmonium.data.scan.BLOCK_ENTRIES", 6)
    rows = np.zeros((7, 3))
    rows[5, 2] = np.nan
    with pytest.raises(DataError, match="hold 1 NaN of 21 entries, the first in row 5, column 2"):
        check_support(rows, BITS)
    rows[5, 2] = 0.5
    with pytest.raises(DataError, match=r"such as 0\.5 in row 5, column 2"):
        check_support(rows, BITS)
    rows[5, 2] = 1.0
    assert encode(rows, BITS).rows.sum() == 1
    assert encode(rows, SPINS).rows.sum() == 1 - 20


def test_unknown_supports_are_refused():
    with pytest.raises(SettingError, match="a list of values or \"real\", got 'positive'"):
        check_support([[0, 1]], "positive")
