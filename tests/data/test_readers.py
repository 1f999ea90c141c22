"""Files: what was written is what is read, and a damaged or dangerous file gets one clear sentence."""

import gzip
import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from harmonium.data import load_data
from harmonium.data.readers import read_partial_rows
from harmonium.errors import DataError, FileError

BITS = np.array([[0, 1, 1], [1, 0, 0]])


class Trap:
    """Unpickling this is remembered: it must never happen."""

    sprung = False

    def __reduce__(self):
        return (spring, ())


def spring():
    Trap.sprung = True


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, ">i4"])
def test_npy(tmp_path, dtype):
    np.save(tmp_path / "x.npy", BITS.astype(dtype))
    data = load_data(tmp_path / "x.npy")
    assert (data.train.dtype, data.train.tolist()) == (np.uint8, BITS.tolist())
    assert data.valid is None
    assert data.name == "x.npy"
    assert data.source == {"path": str((tmp_path / "x.npy").resolve())}
    assert data.fingerprint == load_data(str(tmp_path / "x.npy")).fingerprint == load_data(BITS).fingerprint


def lies_in_a_file(rows) -> bool:
    """Whether the memory of an array is a file mapped from disk."""
    while rows is not None and not isinstance(rows, np.memmap):
        rows = rows.base
    return rows is not None


def test_large_npy_is_mapped_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("harmonium.data.readers.MAP_FROM_BYTES", 1)
    np.save(tmp_path / "x.npy", BITS.astype(np.uint8))
    np.save(tmp_path / "real.npy", np.array([[0.25, 9.0]]))
    for name, rows in (("x.npy", BITS.tolist()), ("real.npy", [[0.25, 9.0]])):
        data = load_data(tmp_path / name)
        assert lies_in_a_file(data.train)
        assert data.train.tolist() == rows


def test_npz_splits_labels_and_weights(tmp_path):
    np.savez(
        tmp_path / "x.npz",
        x_train=BITS,
        val=BITS[:1],
        Test=BITS[1:],
        y_train=[3, 4],
        test_labels=[9],
        weight=[1, 2],
        note=np.array("by hand"),
    )
    data = load_data(tmp_path / "x.npz")
    assert {split: rows.tolist() for split, rows in data.splits().items()} == {
        "train": BITS.tolist(),
        "valid": BITS[:1].tolist(),
        "test": BITS[1:].tolist(),
    }
    assert data.labels is not None
    assert {split: labels.tolist() for split, labels in data.labels.items()} == {"train": [3, 4], "test": [9]}
    assert data.weight is not None
    assert data.weight.tolist() == [1.0, 2.0]


def test_npz_with_one_array_of_any_name(tmp_path):
    np.savez(tmp_path / "x.npz", samples=BITS)
    assert load_data(tmp_path / "x.npz").train.tolist() == BITS.tolist()


def test_npz_refusals(tmp_path):
    np.savez(tmp_path / "x.npz", a=BITS, b=BITS)
    with pytest.raises(
        DataError, match="holds no array called train, only a, b; name the arrays train, valid"
    ):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", test=BITS)
    with pytest.raises(DataError, match="holds no array called train, only test"):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", train=BITS, data=BITS)
    with pytest.raises(DataError, match=r"holds both train and data, which mean the same \(train\)"):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", train=BITS, test=BITS[:, :2])
    with pytest.raises(DataError, match=r"test of x\.npz has 2 columns but train has 3"):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", train=np.zeros((4, 2, 2)))
    with pytest.raises(
        DataError, match=r"the train rows of x.npz have shape \(4, 2, 2\).*x\.reshape\(len\(x\), -1\)"
    ):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz")
    with pytest.raises(DataError, match="holds no array called train, only nothing"):
        load_data(tmp_path / "x.npz")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_npz(tmp_path, form):
    sparse.save_npz(tmp_path / "x.npz", sparse.random_array((9, 7), density=0.3, format=form, rng=0) != 0)
    data = load_data(tmp_path / "x.npz")
    expected = sparse.random_array((9, 7), density=0.3, format=form, rng=0).toarray() != 0
    assert data.train.dtype == np.uint8
    assert (data.train == expected).all()


def test_a_damaged_archive_is_not_taken_for_a_pickle(tmp_path):
    path = tmp_path / "rows.npz"
    path.write_bytes(b"PK and no more")
    with pytest.raises(FileError, match=r"is damaged or not what its ending says \(it begins as an archive"):
        load_data(path)


@pytest.mark.parametrize(("key", "split"), [("tset", "test"), ("vaild", "valid"), ("testt", "test")])
def test_a_misspelt_split_is_not_left_out_in_silence(tmp_path, key, split):
    parts: dict[str, Any] = {"train": BITS, key: BITS}
    np.savez(tmp_path / "rows.npz", **parts)
    for source in (tmp_path / "rows.npz", parts):
        with pytest.raises(DataError, match=f"holds an array called {key}; did you mean {split}"):
            load_data(source)
    assert list(load_data({"train": BITS, "test_ids": [1, 2], "tests_of": BITS}).splits()) == ["train"]


def test_objects_are_never_unpickled(tmp_path):
    trapped = np.empty((1, 1), object)
    trapped[0, 0] = Trap()
    np.save(tmp_path / "x.npy", trapped, allow_pickle=True)
    np.savez(tmp_path / "x.npz", train=trapped)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(
            DataError, match=r"holds Python objects, which harmonium never loads .* save numbers instead"
        ):
            load_data(tmp_path / name)
    with pytest.raises(FileError, match="is a pickle, which harmonium never loads"):
        load_data(tmp_path / "x.pkl")
    with pytest.raises(FileError, match="is damaged or not what its ending says"):
        load_data(tmp_path / "bare.npy")
    assert not Trap.sprung


def test_large_objects_are_never_unpickled(tmp_path, monkeypatch):
    monkeypatch.setattr("harmonium.data.readers.MAP_FROM_BYTES", 1)
    np.save(tmp_path / "x.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(DataError, match="holds Python objects"):
        load_data(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
@pytest.mark.parametrize("keep", [0, 4, 60, -30])
def test_cut_files(tmp_path, name, keep):
    save = np.save if name.endswith("npy") else np.savez
    save(tmp_path / name, np.zeros((50, 50)))
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileError, match="is damaged or not what its ending says"):
        load_data(path)


def test_swapped_endings(tmp_path):
    np.save(tmp_path / "x.npy", BITS)
    (tmp_path / "x.npy").rename(tmp_path / "y.npz")
    with pytest.raises(FileError, match=r"not an npz archive but one array; rename it to \.npy"):
        load_data(tmp_path / "y.npz")
    np.savez(tmp_path / "x.npz", BITS)
    (tmp_path / "x.npz").rename(tmp_path / "z.npy")
    with pytest.raises(FileError, match=r"is not an npy file but an archive; rename it to \.npz"):
        load_data(tmp_path / "z.npy")


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.csv", "0,1,1\n1,0,0\n", None),
        ("x.csv", "\ufeffa,b,c\r\n0,1,1\r\n\r\n1,0,0", ("a", "b", "c")),
        ("x.csv", '"a";"b";"c"\n0;1.0;1\n1;0;"0"\n', ("a", "b", "c")),
        ("x.csv", "0,1,2\n0,1,1\n1,0,0\n", None),
        ("x.tsv", "a\tb c\td,e\n0\t1\t1\n1\t0\t0\n", ("a", "b c", "d,e")),
        ("X.CSV", "0, 1, 1\n1, 0, 0\n", None),
    ],
)
def test_delimited(tmp_path, name, text, columns):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    data = load_data(tmp_path / name)
    assert (data.train.dtype, data.train.tolist(), data.columns) == (np.uint8, BITS.tolist(), columns)
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / (name + ".gz")).write_bytes(gzip.compress(text.encode()))
    assert load_data(tmp_path / "again" / (name + ".gz")).train.tolist() == BITS.tolist()


def test_delimited_keeps_every_digit(tmp_path):
    rows = np.random.RandomState(0).randn(40, 3)
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",", fmt="%.17g")
    assert (load_data(tmp_path / "x.csv").train == rows).all()


def test_delimited_with_one_column_or_row(tmp_path):
    (tmp_path / "x.csv").write_text("a\n0\n1\n")
    assert load_data(tmp_path / "x.csv").train.tolist() == [[0], [1]]
    (tmp_path / "x.csv").write_text("0,1\n")
    assert load_data(tmp_path / "x.csv").train.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n0,1\n1,red\n", r"line 3, column 1 \('b'\): 'red' is not a number"),
        ("0,1\n\n1,red\n", "line 3, column 1: 'red' is not a number"),
        ("0,1\n1,\n", "line 2, column 1: empty cell; fill it in or drop the row"),
        ("0,1\n1\n", "line 2 has 1 cells but line 1 has 2"),
        ("a,b,c\n0,1\n1,1\n", "names 3 columns in its header but its rows have 2 cells"),
        (",a,b\n0,1,1\n1,0,0\n", "column 0 has no name in the header: it looks like row numbers"),
        ("a,b\n", "holds only a header"),
        ("\n \n", "is empty; at least one row is needed"),
        ("", "is empty; at least one row is needed"),
    ],
)
def test_delimited_refusals(tmp_path, text, said):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        load_data(tmp_path / "x.csv")


def test_unreadable_text(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileError, match="is not a readable text file"):
        load_data(tmp_path / "x.csv")
    for content in (b"0,1\n", gzip.compress(b"0,1\n" * 9999)[:-12]):
        (tmp_path / "x.csv.gz").write_bytes(content)
        with pytest.raises(FileError, match="is not a readable text file"):
            load_data(tmp_path / "x.csv.gz")


def test_paths_that_are_no_data(tmp_path):
    with pytest.raises(FileError, match=f"there is no file {re.escape(str(tmp_path))}/none.npy"):
        load_data(tmp_path / "none.npy")
    with pytest.raises(FileError, match=r"there is no file none\.npz; check the path"):
        load_data("none.npz")
    with pytest.raises(FileError, match="is a folder; name a data file in it"):
        load_data(tmp_path)
    (tmp_path / "x.doc").write_text("0")
    with pytest.raises(
        FileError, match=r"an ending that is not known; save the rows as one of \.npy, \.npz, \.csv"
    ):
        load_data(tmp_path / "x.doc")


def test_a_file_called_like_a_name_is_reached_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").write_text("0")
    assert load_data("digits").width == 64
    with pytest.raises(FileError, match="digits has an ending that is not known"):
        load_data("./digits")


@pytest.mark.parametrize(
    ("name", "width", "rows"),
    [
        ("nltcs", 16, (16181, 2157, 3236)),
        ("mushrooms", 112, (2000, 500, 5624)),
        ("nips", 500, (400, 100, 1240)),
    ],
)
def test_benchmark_files(real_data, name, width, rows):
    data = load_data(real_data / f"{name}.npz")
    with np.load(real_data / f"{name}.npz", allow_pickle=False) as archive:
        for split, count in zip(("train", "valid", "test"), rows, strict=True):
            assert data.split(split).shape == (count, width)
            assert data.split(split).dtype == np.uint8
            assert (data.split(split) == archive[split]).all()


# ------------------------------------------------------------------------------------------------- rows with free cells


@pytest.mark.parametrize(
    "text", ["1,,0\n,nan,1\n", "a,b,c\n1,,0\n,NaN,1\n", "1; ;0\n\n;nan;1", "\ufeff1,,0\n,,1\n"]
)
def test_empty_cells_are_free(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_partial_rows(path), [[1, np.nan, 0], [np.nan, np.nan, 1]])


def test_a_row_of_free_cells_is_no_header(tmp_path):
    (tmp_path / "rows.csv").write_text(",,\n1,,\n")
    assert np.isnan(read_partial_rows(tmp_path / "rows.csv")).sum() == 5


def test_arrays_with_nan_are_rows_with_free_cells(tmp_path):
    rows = np.array([[1, np.nan, 0]])
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "row.npy", rows[0])
    np.savez(tmp_path / "rows.npz", rows)
    for name in ("rows.npy", "row.npy", "rows.npz"):
        np.testing.assert_array_equal(read_partial_rows(tmp_path / name), rows)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv", "1,,x\n", "'x' is not a number"),
        ("rows.csv", "1,,\n1,\n", "line 2 has 2 cells but line 1 has 3"),
        ("rows.csv", "a,b\n", "holds only a header"),
        ("rows.csv", "", "is empty"),
        ("rows.npy", "text", "does not begin as such a file does"),
        ("rows.txt", "1,0", "an ending that is not known"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises((DataError, FileError), match=re.escape(message)):
        read_partial_rows(tmp_path / name)
