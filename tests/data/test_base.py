"""The data set itself: splits, fingerprint, description, and parts that do not fit each other."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from harmonium.data import DataSet, load_data
from harmonium.errors import DataError, SettingError

BITS = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)


def test_splits():
    data = DataSet("x", BITS, test=BITS[:1])
    assert data.width == 3
    assert list(data.splits()) == ["train", "test"]
    assert data.split("test").tolist() == BITS[:1].tolist()
    with pytest.raises(
        DataError, match="x has no valid split, only train, test; choose one of these, or give arrays"
    ):
        data.split("valid")
    with pytest.raises(SettingError, match="no split 'dev'; choose one of train, valid, test"):
        data.split("dev")
    assert repr(data) == "DataSet('x', train 2, test 1, width 3, uint8, none)"


def test_fingerprint_is_the_documented_hash():
    digest = hashlib.sha256(b"train (2, 3) |u1 " + bytes([0, 1, 1, 1, 0, 0]) + b"none").hexdigest()
    assert DataSet("x", BITS).fingerprint == digest[:16]


def test_fingerprint_tells_data_apart_and_nothing_else(monkeypatch):
    data = DataSet("x", BITS, test=BITS[:1])
    same = DataSet("y", np.asfortranarray(BITS), test=BITS[:1].copy(), labels={"train": np.array([0, 1])})
    assert same.fingerprint == data.fingerprint
    others = [
        DataSet("x", BITS),
        DataSet("x", BITS[::-1], test=BITS[:1]),
        DataSet("x", BITS, valid=BITS[:1]),
        DataSet("x", BITS, test=BITS[:1], binarization="threshold 0.5"),
        DataSet("x", BITS, test=BITS[:1], weight=np.array([1.0, 2.0])),
        DataSet("x", BITS.astype(np.float32), test=BITS[:1].astype(np.float32)),
    ]
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 1 + len(others)
    big_endian = DataSet("x", np.array([[1.5, 2.0]], ">f8"))
    assert big_endian.fingerprint == DataSet("x", np.array([[1.5, 2.0]])).fingerprint
    real = np.random.RandomState(0).randn(11, 3)
    whole = DataSet("x", real).fingerprint
    monkeypatch.setattr("harmonium.data.scan.BLOCK_ENTRIES", 7)
    assert DataSet("x", real).fingerprint == whole


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"test": BITS[:, :2]}, "test of x has 2 columns but train has 3"),
        ({"valid": BITS[:0]}, r"valid of x has shape \(0, 3\)"),
        ({"shape": (2, 2)}, r"shape \(2, 2\) has 4 entries but rows have 3"),
        ({"columns": ("a", "b")}, "2 column names were given for 3 columns"),
        ({"weight": np.array([1.0])}, r"row weights have shape \(1,\) but train has 2 rows"),
        ({"weight": np.array([1.0, -0.5])}, "row weight -0.5 of row 1 is not a finite number of at least 0"),
        ({"weight": np.array([np.nan, 1.0])}, "row weight nan of row 0 is not a finite number"),
        ({"weight": np.array([0.0, 0.0])}, "every row weight is 0"),
        ({"weight": np.array(["a", "b"])}, "row weights must be numbers"),
        ({"labels": {"train": np.array([1])}}, "1 labels were given for 2 rows of train"),
        ({"labels": {"test": np.array([1])}}, "x has no test split"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, said):
    with pytest.raises(DataError, match=said):
        DataSet("x", BITS, **parts)


def test_describe_says_what_a_user_must_know():
    told = load_data("digits").describe()
    assert "digits: 1400 train, 198 valid, 199 test rows of 64 values (pictures of 8 x 8)" in told
    assert "values 0/1" in told
    assert "binarisation: threshold 0.5; constant columns: 13" in told
    assert "labels: 10 kinds" in told
    grey = load_data([[0.2, 0.9]]).describe()
    assert (
        "values grey, from 0.2 to 0.9, mean 0.55, stored as float64; two-valued units need binarize=" in grey
    )
    gaps = load_data([[0.2, np.nan], [np.inf, 1.0]])
    assert (
        "not fit to train on: 1 NaN and 1 infinite entries, the first at row, column (0, 1)"
        in gaps.describe()
    )
    weighted = DataSet("x", BITS, weight=np.array([3.0, 1.0]))
    # Effective rows: (3 + 1)^2 / (9 + 1).
    assert "row weights: total 4, effective rows 1.6" in weighted.describe()


def test_summary_is_json():
    facts = json.loads(json.dumps(load_data("bars-and-stripes:side=2").summary()))
    assert facts["rows"] == {"train": 6, "valid": 6, "test": 6}
    assert (facts["width"], facts["shape"], facts["values"]) == (4, [2, 2], "0/1")
    assert facts["best_mean_log_likelihood"] == pytest.approx(-np.log(6), abs=1e-15)
    assert facts["problems"] == []
    assert facts["mean"] == 0.5


def test_the_data_room_imports_nothing_heavy():
    check = (
        "import sys, harmonium.data; harmonium.data.load_data('bars-and-stripes').fingerprint;"
        "print([m for m in ('jax', 'equinox', 'sklearn', 'scipy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
