"""Tables of numbers from files: npy, npz, scipy's sparse npz, csv and tsv. Nothing is ever unpickled."""

from __future__ import annotations

import difflib
import gzip
import zipfile
import zlib
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from harmonium.errors import DataError, FileError

MAP_FROM_BYTES = 1 << 28
"""Files of plain npy arrays from this size on are mapped, not read: only the rows in use take up memory."""

_SPLIT_KEYS = {
    "train": ("train", "x_train", "train_x", "data", "x"),
    "valid": ("valid", "validation", "val", "x_valid", "valid_x", "x_val"),
    "test": ("test", "x_test", "test_x"),
}
_LABEL_KEYS = {
    "train": ("train_labels", "y_train", "train_y", "labels", "y", "target"),
    "valid": ("valid_labels", "y_valid", "valid_y", "y_val"),
    "test": ("test_labels", "y_test", "test_y"),
}
_WEIGHT_KEYS = ("weight", "weights", "sample_weight")
_NPY_MAGIC = b"\x93NUMPY"
_SPARSE_KEYS = {"format", "shape", "data"}


class Table(NamedTuple):
    """What a file or a mapping held: arrays (or sparse matrices) by split, labels by split, weights, column names."""

    splits: dict[str, Any]
    labels: dict[str, np.ndarray] | None = None
    weight: np.ndarray | None = None
    columns: tuple[str, ...] | None = None


def read_file(path: Path) -> Table:
    """Read a table by the ending of its name.

    **Raises** FileError for a file that is missing, a folder, damaged, or of an ending that is not known; DataError for
    contents that are no table of numbers.
    """
    if not path.exists():
        place = "" if path.is_absolute() else f" (it is looked up from {Path.cwd()})"
        raise FileError(f"there is no file {path}; check the path{place}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; name a data file in it ({', '.join(known_endings())})")
    name = path.name.lower()
    reader = next((reader for ending, reader in _READERS.items() if name.endswith(ending)), None)
    if reader is None:
        if name.endswith((".pkl", ".pickle", ".joblib", ".pt", ".pth")):
            raise FileError(
                f"{path} is a pickle, which harmonium never loads; save the rows with numpy.save as numbers"
            )
        raise FileError(
            f"{path} has an ending that is not known; save the rows as one of {', '.join(known_endings())}"
        )
    return reader(path)


def read_partial_rows(path: Path) -> np.ndarray:
    """Rows of which some entries are not given: NaN in the result, written as nan or as an empty cell in text files.

    Shape (rows, width), float64. **Raises** as `read_file`.
    """
    if not path.is_file() or not path.name.lower().endswith(_DELIMITED):
        table = read_file(path).splits["train"]
        try:
            return np.atleast_2d(np.asarray(table, dtype=np.float64))
        except (TypeError, ValueError) as fault:
            raise DataError(f"{path} cannot be read as a table of numbers ({fault})") from None
    lines = _text_lines(path)
    delimiter = _delimiter(path, lines[0][1])
    table = [(number, [cell or "nan" for cell in _cells(line, delimiter)]) for number, line in lines]
    header = not any(_is_number(cell) for cell in table[0][1])
    body = table[1:] if header else table
    if not body:
        raise DataError(f"{path} holds only a header; at least one row is needed")
    lines = [(number, delimiter.join(cells)) for number, cells in body]
    if any(len(cells) != len(body[0][1]) or not all(map(_is_number, cells)) for _, cells in body):
        _refuse_cell(path, delimiter, lines, table[0][1] if header else None, ValueError())
    return np.array([[float(cell) for cell in cells] for _, cells in body])


def known_endings() -> tuple[str, ...]:
    """The endings of file names that `read_file` reads."""
    return tuple(_READERS)


def table_of_mapping(parts: Mapping[str, Any], what: str) -> Table:
    """Sort named arrays into splits, labels and weights.

    Splits are called train, valid and test (``x_train`` and its like, ``validation`` and ``val`` are understood, in any
    case), labels ``train_labels`` or ``y_train`` and so on, row weights ``weight``. A single array of another name is
    train. Other arrays beside known ones are left alone, but for those whose name is nearly that of a split.

    **Raises** DataError where no array can be taken for train, two names mean the same split, or one is misspelt.
    """
    lowered: dict[str, str] = {}
    for key in parts:
        lowered.setdefault(str(key).lower(), key)
    splits = _pick(_SPLIT_KEYS, lowered, parts, what)
    if "train" not in splits:
        if len(parts) != 1 or splits:
            raise DataError(
                f"{what} holds no array called train, only {', '.join(map(str, parts)) or 'nothing'}; "
                "name the arrays train, valid and test"
            )
        splits = {"train": next(iter(parts.values()))}
        return Table(splits)
    _refuse_misspelt(lowered, what)
    labels = {split: np.ravel(values) for split, values in _pick(_LABEL_KEYS, lowered, parts, what).items()}
    weight = _pick({"weight": _WEIGHT_KEYS}, lowered, parts, what).get("weight")
    weight = None if weight is None else np.ravel(weight)
    labels = {split: values for split, values in labels.items() if split in splits}
    return Table({split: splits[split] for split in _SPLIT_KEYS if split in splits}, labels or None, weight)


def _refuse_misspelt(lowered: Mapping[str, str], what: str) -> None:
    """A split whose name is mistyped must not be left out in silence."""
    names = [name for group in (*_SPLIT_KEYS.values(), *_LABEL_KEYS.values(), _WEIGHT_KEYS) for name in group]
    for name, key in lowered.items():
        if name in names:
            continue
        # Letters left out, doubled or exchanged, and nothing looser: test_ids or trained are other things.
        near = difflib.get_close_matches(name, ("train", "valid", "test", "validation"), 1, 0.75)
        if near and sorted(set(name)) == sorted(set(near[0])):
            raise DataError(
                f"{what} holds an array called {key}; did you mean {near[0]}? rename it, or leave it out if it is no "
                "split"
            )


def _pick(
    wanted: Mapping[str, tuple[str, ...]], lowered: Mapping[str, str], parts: Mapping[str, Any], what: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part, names in wanted.items():
        present = [lowered[name] for name in names if name in lowered]
        if len(present) > 1:
            raise DataError(
                f"{what} holds both {present[0]} and {present[1]}, which mean the same ({part}); keep one"
            )
        if present:
            found[part] = parts[present[0]]
    return found


def _read_npy(path: Path) -> Table:
    start = _first_bytes(path)
    if start.startswith(b"PK"):
        raise FileError(f"{path} is not an npy file but an archive; rename it to .npz")
    large = path.stat().st_size >= MAP_FROM_BYTES
    try:
        rows = np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as fault:
        _refuse(path, fault, start.startswith(_NPY_MAGIC))
    return Table({"train": rows})


def _read_npz(path: Path) -> Table:
    start = _first_bytes(path)
    if start.startswith(b"PK") and not zipfile.is_zipfile(path):
        # numpy would take it for a pickle.
        raise FileError(
            f"{path} is damaged or not what its ending says (it begins as an archive but does not end as one); "
            "write it again"
        )
    if start.startswith(_NPY_MAGIC):
        raise FileError(f"{path} is not an npz archive but one array; rename it to .npy")
    if not start.startswith(b"PK"):
        raise FileError(f"{path} is damaged or not what its ending says; write it again")
    try:
        # Opened here: numpy leaves the file open where the archive in it is damaged.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if set(archive.files) >= _SPARSE_KEYS:
                return Table({"train": _read_sparse(path)})
            parts = {key: archive[key] for key in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError, zlib.error) as fault:
        _refuse(path, fault, True)
    return table_of_mapping(parts, str(path))


def _first_bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(len(_NPY_MAGIC))


def _read_sparse(path: Path) -> Any:
    from scipy import sparse

    return sparse.load_npz(path)


def _refuse(path: Path, fault: Exception, is_numpy: bool) -> NoReturn:
    """One clear sentence for whatever numpy said about a file."""
    if is_numpy and ("allow_pickle" in str(fault) or "Python objects" in str(fault)):
        raise DataError(
            f"{path} holds Python objects, which harmonium never loads (unpickling runs code); "
            "save numbers instead: numpy.save(path, numpy.asarray(rows, dtype=float))"
        ) from None
    # Of a file that is no npy at all, numpy only says that it may be a pickle and how to open it unsafely.
    said = fault if is_numpy else "it does not begin as such a file does"
    raise FileError(f"{path} is damaged or not what its ending says ({said}); write it again") from None


def _read_delimited(path: Path) -> Table:
    lines = _text_lines(path)
    delimiter = _delimiter(path, lines[0][1])
    first = _cells(lines[0][1], delimiter)
    # A header is a line in which no cell is a number (one bad cell among numbers is a fault of the data), or the line
    # 0, 1, 2, ... that programs write when columns have no names.
    counted = len(first) > 2 and first == [str(index) for index in range(len(first))]
    header = counted or not any(_is_number(cell) for cell in first)
    if header and first[0] == "":
        raise DataError(
            f"{path} column 0 has no name in the header: it looks like row numbers; write the file without"
        )
    body = lines[1:] if header else lines
    if not body:
        raise DataError(f"{path} holds only a header; at least one row is needed")
    try:
        text = (line for _, line in body)
        rows = np.loadtxt(text, dtype=np.float64, delimiter=delimiter, comments=None, ndmin=2, quotechar='"')
    except ValueError as fault:
        _refuse_cell(path, delimiter, body, first if header else None, fault)
    if header and len(first) != rows.shape[1]:
        raise DataError(
            f"{path} names {len(first)} columns in its header but its rows have {rows.shape[1]} cells"
        )
    return Table({"train": rows}, columns=tuple(first) if header and not counted else None)


def _text_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file that hold anything, with their numbers."""
    try:
        with _open_text(path) as file:
            lines = [
                (number, line.strip("\r\n")) for number, line in enumerate(file, start=1) if line.strip()
            ]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as fault:
        raise FileError(f"{path} is not a readable text file ({fault}); write it again as UTF-8") from None
    if not lines:
        raise DataError(f"{path} is empty; at least one row is needed")
    return lines


def _refuse_cell(
    path: Path, delimiter: str, body: list[tuple[int, str]], names: list[str] | None, fault: Exception
) -> NoReturn:
    """Name the line and the column of the first cell that is no number."""
    width = len(_cells(body[0][1], delimiter))
    for number, line in body:
        cells = _cells(line, delimiter)
        if len(cells) != width:
            raise DataError(
                f"{path} line {number} has {len(cells)} cells but line {body[0][0]} has {width}; "
                "give every row the same number"
            ) from None
        for index, cell in enumerate(cells):
            if not _is_number(cell):
                name = f" ({names[index]!r})" if names is not None and index < len(names) else ""
                said = (
                    f"{cell!r} is not a number; encode it as one"
                    if cell
                    else "empty cell; fill it in or drop the row"
                )
                raise DataError(f"{path} line {number}, column {index}{name}: {said}") from None
    raise DataError(f"{path} cannot be read as a table of numbers ({fault})") from None


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _delimiter(path: Path, first: str) -> str:
    if ".tsv" in path.name.lower():
        return "\t"
    return next((mark for mark in (",", ";", "\t") if mark in first), ",")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _open_text(path: Path) -> TextIOWrapper:
    # utf-8-sig: spreadsheets write a byte order mark, which would otherwise be taken for part of the first cell.
    if path.name.lower().endswith(".gz"):
        return TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8-sig")
    return open(path, encoding="utf-8-sig")


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_delimited,
    ".csv.gz": _read_delimited,
    ".tsv": _read_delimited,
    ".tsv.gz": _read_delimited,
}
_DELIMITED = tuple(ending for ending, reader in _READERS.items() if reader is _read_delimited)
