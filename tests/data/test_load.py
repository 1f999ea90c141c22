"""One door: arrays, sparse matrices, frames, dicts and data sets come out as the same rows."""

import numpy as np
import pytest
from scipy import sparse

from harmonium.data import DataSet, as_dataset, check_support, from_source, load_data
from harmonium.errors import DataError, HarmoniumWarning
from tests.conftest import need

BITS = np.array([[0, 1, 1], [1, 0, 0]], np.uint8)


def test_every_form_of_the_same_bits_is_the_same_data():
    import jax.numpy as jnp

    forms = [
        BITS,
        BITS.tolist(),
        BITS.astype(bool),
        BITS.astype(np.float64),
        np.asfortranarray(BITS),
        jnp.asarray(BITS, jnp.float32),
        sparse.csr_matrix(BITS),
        sparse.coo_array(BITS.astype(float)),
        {"train": BITS},
        {"X": BITS},
        DataSet("x", BITS),
    ]
    for form in forms:
        data = as_dataset(form)
        assert (data.train.dtype, data.train.tolist()) == (np.uint8, BITS.tolist())
        assert data.fingerprint == load_data(BITS).fingerprint


def test_a_data_set_and_compact_rows_are_not_copied():
    data = load_data(BITS)
    assert as_dataset(data) is data
    assert np.shares_memory(data.train, BITS)
    real = np.linspace(0, 9, 6).reshape(2, 3)
    assert np.shares_memory(load_data(real).train, real)
    assert np.shares_memory(load_data(BITS.astype(bool)[:]).train, load_data(BITS).train) is False
    # The caller's array stays writable, the data set's view of it is not.
    assert BITS.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.train[0, 0] = 1


def test_splits_are_made_compact_together():
    data = load_data({"train": [[0.0, 1.0]], "test": [[0.5, 1.0]]})
    assert data.train.dtype == np.float64
    assert data.test is not None
    assert data.test.dtype == np.float64
    assert load_data({"train": [[-1, 1]], "test": [[1, 1]]}).train.dtype == np.int8


def test_sparse_duplicates_are_added_and_other_values_kept():
    twice = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [1, 1, 2])), shape=(2, 3))
    assert load_data(twice).train.tolist() == [[0, 2, 0], [0, 0, 1]]
    grey = sparse.csr_array(np.array([[0.0, 0.25], [0.5, 0.0]], np.float32))
    assert load_data(grey).train.tolist() == [[0.0, 0.25], [0.5, 0.0]]
    assert load_data(grey).train.dtype == np.float32
    gap = sparse.csr_array(np.array([[0.0, np.nan]]))
    with pytest.raises(DataError, match="hold 1 NaN of 2 entries"):
        check_support(load_data(gap).train, (0.0, 1.0))


def test_a_wide_sparse_matrix_becomes_bytes():
    wide = sparse.random_array((1000, 2000), density=0.001, format="csr", rng=0)
    wide.data[:] = 1.0
    data = load_data(wide)
    assert data.train.nbytes == 2_000_000
    assert int(data.train.sum()) == wide.nnz


def test_a_large_sparse_matrix_is_announced(monkeypatch):
    monkeypatch.setattr("harmonium.data.frames.LARGE_BYTES", 5)
    with pytest.warns(HarmoniumWarning, match="take 0.0 GiB as a dense array of 2 x 3 uint8"):
        load_data(sparse.csr_array(BITS))


def test_sparse_refusals():
    with pytest.raises(DataError, match="hold complex128 entries"):
        load_data(sparse.csr_array(np.array([[1j]])))
    with pytest.raises(DataError, match=r"have shape \(3,\)"):
        load_data(sparse.coo_array(np.array([0, 1, 1])))


def test_frames():
    pandas = need("pandas", "test")
    frame = pandas.DataFrame({"a": [0, 1], "b": [True, False], "c": [1.0, 0.0]})
    data = load_data(frame)
    assert (data.train.dtype, data.train.tolist()) == (np.uint8, BITS.tolist())
    assert data.columns == ("a", "b", "c")
    assert load_data({"train": frame, "test": frame[:1]}).columns == ("a", "b", "c")
    with pytest.raises(
        DataError, match="the test rows of array have other columns than train, or in another order"
    ):
        load_data({"train": frame, "test": frame[["b", "a", "c"]]})
    gap = pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": [0, 1]})
    with pytest.raises(DataError, match=r"hold 1 NaN of 4 entries, the first in row 1, column 0 \('a'\)"):
        check_support(load_data(gap).train, (0.0, 1.0), columns=load_data(gap).columns)
    with pytest.raises(
        DataError, match=r"column 1 \('colour'\) is of type .*, not numbers; encode it as numbers"
    ):
        load_data(pandas.DataFrame({"a": [0, 1], "colour": ["red", "blue"]}))
    with pytest.raises(DataError, match=r"have shape \(2,\)"):
        load_data(frame["a"])


def test_options_are_kept_and_remembered(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[0, 100, 200, 255]] * 3, np.uint8))
    data = load_data(tmp_path / "x.npy", "threshold", shape=(2, 2), name="squares", scale=300)
    assert (data.name, data.shape, data.binarization) == ("squares", (2, 2), "threshold 0.5 of 300")
    again = from_source(data.source)
    assert (again.name, again.shape, again.binarization) == (data.name, data.shape, data.binarization)
    assert again.fingerprint == data.fingerprint
    weighted = load_data(tmp_path / "x.npy", weight=[1, 0, 2])
    assert weighted.source == {"array": True}
    assert weighted.fingerprint != load_data(tmp_path / "x.npy").fingerprint


@pytest.mark.parametrize(
    "name", ["digits", "digits:grey=true", "bars-and-stripes:side=2,repeat=true", "shifting-bars"]
)
def test_names_load_again(name):
    data = load_data(name)
    again = from_source(data.source)
    assert (again.name, again.fingerprint) == (data.name, data.fingerprint)


def test_stochastic_digits_load_again():
    data = load_data("digits", binarize="stochastic")
    assert from_source(data.source).fingerprint == data.fingerprint


def test_an_array_in_memory_cannot_be_loaded_again():
    with pytest.raises(
        DataError, match="were an array in memory and cannot be loaded again; pass the same array"
    ):
        from_source(load_data(BITS).source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "data must be a name, a path, an array or a data set, got NoneType"),
        (b"\x00\x01", "got bytes"),
        (3, r"have shape \(\)"),
        ([], r"have shape \(0,\)"),
        ([[]], r"are empty \(shape \(1, 0\)\)"),
        ({}, "holds no array called train, only nothing"),
        (["digits"], "hold text, for example digits"),
        (np.zeros((2, 3, 3)), r"x\.reshape\(len\(x\), -1\)"),
        (object(), "hold object entries"),
    ],
)
def test_what_is_no_data_is_refused(source, said):
    with pytest.raises(DataError, match=said):
        load_data(source)
