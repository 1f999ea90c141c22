import errno
import json
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harmonium.errors import FileError, SettingError
from harmonium.train import storage
from harmonium.train.atomic import PART_SUFFIX
from harmonium.train.storage import DamagedFileError, read_tensors, write_tensors

DTYPES = [
    np.dtype(kind)
    for kind in (
        "bool",
        "u1",
        "i1",
        "u2",
        "i2",
        "u4",
        "i4",
        "u8",
        "i8",
        "f2",
        "f4",
        "f8",
        "c8",
        ml_dtypes.bfloat16,
    )
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    raw = draw(st.binary(min_size=0, max_size=64)) or b"\x00"
    size = int(np.prod(shape)) * dtype.itemsize
    if dtype.kind == "b":
        raw = bytes(byte & 1 for byte in raw)
    # Any bytes at all: NaN payloads, infinities and negative zeros must come back as they were.
    return np.frombuffer(np.resize(np.frombuffer(raw, np.uint8), size).tobytes(), dtype).reshape(shape)


def same(left: np.ndarray, right: np.ndarray) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    arrays=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), tensors(), max_size=4),
    metadata=st.dictionaries(st.text(), JSON, max_size=4),
)
def test_everything_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("round") / "x.safetensors"
    write_tensors(path, arrays, metadata)
    first = path.read_bytes()
    read, document = read_tensors(path)
    assert read.keys() == arrays.keys()
    assert all(same(read[name], arrays[name]) for name in arrays)
    assert document == metadata
    write_tensors(path, dict(reversed(arrays.items())), metadata, overwrite=True)
    assert path.read_bytes() == first


def test_layout_and_byte_order_are_no_matter(tmp_path: Path) -> None:
    grid = np.arange(12.0).reshape(3, 4)
    write_tensors(tmp_path / "x", {"t": grid.T, "big": grid.astype(">f8"), "step": grid[:, ::2]}, {})
    read, _ = read_tensors(tmp_path / "x")
    assert same(read["t"], np.ascontiguousarray(grid.T))
    assert same(read["big"], grid)
    assert same(read["step"], np.ascontiguousarray(grid[:, ::2]))
    read["t"][0, 0] = 7.0  # what was read may be changed


def test_it_is_an_ordinary_safetensors_file(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", {"w": np.ones((2, 3), np.float32)}, {"kind": "example"})
    assert safetensors.numpy.load_file(tmp_path / "x")["w"].shape == (2, 3)
    with safetensors.safe_open(tmp_path / "x", "np") as file:
        document = json.loads(file.metadata()["harmonium"])
    assert document["format"] == "harmonium"
    assert document["format_version"] == 1


@pytest.mark.parametrize(
    "array", [np.array([None]), np.zeros(2, "c16"), np.array(["a"]), np.zeros(2, "M8[s]")]
)
def test_a_dtype_that_cannot_be_kept_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(SettingError, match=r"tensor 'w' has the dtype"):
        write_tensors(tmp_path / "x", {"w": array}, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, object(), {"deep": [float("inf")]}])
def test_a_description_that_cannot_be_kept_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SettingError, match=r"the metadata\['x'\]"):
        write_tensors(tmp_path / "x", {}, {"x": value})


# ------------------------------------------------------------------------------------------------------- writing


def test_an_existing_file_is_kept_unless_asked(tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "x", {"w": np.zeros(2)}, {})
    with pytest.raises(FileError, match="exists already"):
        write_tensors(path, {"w": np.ones(2)}, {})
    assert read_tensors(path)[0]["w"].sum() == 0
    write_tensors(path, {"w": np.ones(2)}, {}, overwrite=True)
    assert read_tensors(path)[0]["w"].sum() == 2


def test_a_folder_is_no_file_and_a_missing_one_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder"):
        write_tensors(tmp_path, {}, {}, overwrite=True)
    with pytest.raises(FileError, match="the folder 'nowhere' does not exist"):
        write_tensors(tmp_path / "nowhere" / "x", {}, {})


def test_a_link_is_followed_and_permissions_follow_the_mask(tmp_path: Path) -> None:
    real = write_tensors(tmp_path / "real", {}, {"n": 1})
    (tmp_path / "link").symlink_to("real")
    write_tensors(tmp_path / "link", {}, {"n": 2}, overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert read_tensors(real)[1] == {"n": 2}
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
def test_a_refused_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = write_tensors(tmp_path / "x", {"w": np.zeros(2)}, {})
    before = path.read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(FileError, match="No space left on device; any older file is untouched"):
            write_tensors(path, {"w": np.ones(2)}, {}, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def test_an_interrupted_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tensors(tmp_path / "x", {"w": np.zeros(2)}, {})

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_tensors(path, {"w": np.ones(2)}, {}, overwrite=True)
    assert read_tensors(path)[0]["w"].sum() == 0
    assert os.listdir(tmp_path) == ["x"]


def test_the_system_may_take_a_few_bytes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:100]))
    write_tensors(tmp_path / "x", {"w": np.arange(500)}, {})
    assert same(read_tensors(tmp_path / "x")[0]["w"], np.arange(500))


# ------------------------------------------------------------------------------------------------- killed writers

WRITER = """
    import sys
    import numpy as np
    from harmonium.train.storage import write_tensors
    for n in range(1, 4):
        write_tensors("x", {"w": np.full(1000, n)}, {"n": n}, overwrite=True)
    assert "jax" not in sys.modules
    """


@pytest.mark.parametrize(
    ("moment", "found"), [("before-temp", 1), ("mid-temp", 1), ("after-temp", 1), ("after-rename", 2)]
)
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, killed: Callable[..., int], moment: str, found: int
) -> None:
    killed(f"model.{moment}:2", WRITER)
    arrays, metadata = read_tensors(tmp_path / "x")
    assert metadata == {"n": found}
    assert (arrays["w"] == found).all()
    left = [entry for entry in os.listdir(tmp_path) if entry.endswith(PART_SUFFIX)]
    assert len(left) == (moment in ("mid-temp", "after-temp"))
    if moment == "mid-temp":
        assert 0 < (tmp_path / left[0]).stat().st_size < (tmp_path / "x").stat().st_size
    write_tensors(tmp_path / "x", {}, {"n": 9}, overwrite=True)
    assert os.listdir(tmp_path) == ["x"]


def test_a_writer_that_lives_keeps_its_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace
    seen: list[list[str]] = []

    def another_writer_first(part: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        write_tensors(tmp_path / "x", {}, {"writer": "second"})
        seen.append(sorted(os.listdir(tmp_path)))
        replace(part, target)

    monkeypatch.setattr(os, "replace", another_writer_first)
    write_tensors(tmp_path / "x", {}, {"writer": "first"}, overwrite=True)
    assert [len(entries) for entries in seen] == [2]
    assert read_tensors(tmp_path / "x")[1] == {"writer": "first"}
    assert os.listdir(tmp_path) == ["x"]


# -------------------------------------------------------------------------------------------------- damaged files


@pytest.fixture
def small(tmp_path: Path) -> Path:
    arrays = {
        "w": np.arange(60.0).reshape(6, 10),
        "b": np.arange(10, dtype=np.uint8),
        "n": np.array(3, np.int32),
    }
    return write_tensors(tmp_path / "small.safetensors", arrays, {"kind": "example", "rate": 0.5})


def test_a_file_cut_short_anywhere_is_refused(small: Path) -> None:
    whole = small.read_bytes()
    lengths = [*range(0, len(whole), 97), *range(12), len(whole) - 1]
    assert len(lengths) > 20
    for length in lengths:
        small.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError, match=r"small\.safetensors is damaged: .*; restore it"):
            read_tensors(small)
    small.write_bytes(whole + b"\0")
    with pytest.raises(DamagedFileError):
        read_tensors(small)


@pytest.mark.parametrize("change", [0xFF, 0x01, 0x80])
def test_a_changed_byte_anywhere_is_noticed(small: Path, change: int) -> None:
    whole = small.read_bytes()
    for place in range(len(whole)):
        altered = bytearray(whole)
        altered[place] ^= change
        small.write_bytes(altered)
        with pytest.raises(DamagedFileError, match=r"small\.safetensors"):
            read_tensors(small)


def test_a_newer_format_is_named_as_such(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(storage, "FORMAT_VERSION", 2)
        newer.setattr(storage, "harmonium_version", lambda: "7.0.0")
        write_tensors(small, {}, {}, overwrite=True)
    with pytest.raises(
        FileError, match=r"written by harmonium 7\.0\.0 in format 2.*install a newer"
    ) as caught:
        read_tensors(small)
    assert not isinstance(caught.value, DamagedFileError)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.safetensors does not exist; check"):
        read_tensors(tmp_path / "gone.safetensors")
    with pytest.raises(FileError, match="is a folder, not a file; name"):
        read_tensors(tmp_path)


def test_a_file_without_permission_is_named(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(
        FileError, match=r"cannot read .*: Permission denied; check its permissions"
    ) as caught:
        read_tensors(small)
    assert not isinstance(caught.value, DamagedFileError)


def test_foreign_safetensors_are_named(tmp_path: Path) -> None:
    for metadata in (
        None,
        {"format": "pt"},
        {"harmonium": "[]"},
        {"harmonium": "{"},
        {"harmonium": '{"format": 1}'},
    ):
        safetensors.numpy.save_file({"w": np.ones(3)}, tmp_path / "x", metadata=metadata)
        with pytest.raises(
            FileError, match="without harmonium's own entry in its header; if another program"
        ):
            read_tensors(tmp_path / "x")


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_are_named_and_not_opened(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(_Trap(), protocol=protocol))
    with pytest.raises(FileError, match=r"is a Python pickle, not a harmonium file.*from_arrays"):
        read_tensors(tmp_path / "x.pkl")


def test_other_formats_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    np.savez(tmp_path / "x.npz", w=np.ones(3))
    (tmp_path / "x.txt").write_text("# not a tensor in sight")
    for name, kind in [
        ("x.npy", "a numpy array"),
        ("x.npz", "a zip archive"),
        ("x.txt", "not a safetensors file"),
    ]:
        with pytest.raises(FileError, match=kind):
            read_tensors(tmp_path / name)


def test_headers_whose_length_looks_like_a_pickle_are_read(tmp_path: Path) -> None:
    lengths: set[int] = set()
    for n in range(300, 900):
        write_tensors(tmp_path / "x", {}, {"padding": "." * n}, overwrite=True)
        start = (tmp_path / "x").read_bytes()[:2]
        if start[:1] == b"\x80":
            lengths.add(start[1])
            assert read_tensors(tmp_path / "x")[1] == {"padding": "." * n}
    assert lengths >= {2, 3}
