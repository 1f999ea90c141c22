"""Tensor files: named arrays and a description, checksummed, versioned, without pickles.

A file is one safetensors file. Its metadata header has the single entry ``harmonium`` with a JSON document::

    {"format": "harmonium", "format_version": 1, "harmonium": "0.1.0", "metadata": {...}, "sha256": "..."}

The digest covers the rest of the document and, in the order of their names, the name, dtype, shape and bytes of each
tensor. This envelope stays as it is in every later format version, so that a damaged file and a file from the future
can be told apart. The same tensors and metadata always give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as serialize

from harmonium.errors import FileError, SettingError
from harmonium.train.atomic import write_atomically
from harmonium.train.plain import plain

FORMAT = "harmonium"
FORMAT_VERSION = 1
_ENTRY = "harmonium"

_CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_NAMES = {code: name for name, code in _CODES.items()}

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive (npz, or PyTorch's format)"),
    (b"\x93NUMPY", "a numpy array (npy)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
)


class DamagedFileError(FileError):
    """A file whose bytes are not those that harmonium wrote: cut short, altered, or of another program."""


@cache
def harmonium_version() -> str:
    """The version of the installed package, ``unknown`` when it runs from a bare source folder."""
    try:
        return version("harmonium")
    except PackageNotFoundError:
        return "unknown"


def write_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    overwrite: bool = False,
    *,
    fault: str = "model",
) -> Path:
    """Writes named arrays and a JSON description as one file, whole or not at all.

    Shapes and dtypes are kept exactly (bool, integers of 8 to 64 bits, float16, bfloat16, float32, float64,
    complex64). ``fault`` is the kind of file for the kill tests (``faults.WRITERS``). Returns the path written.

    Raises FileError when the file exists and ``overwrite`` is False, or cannot be written; SettingError for a dtype
    or a description that cannot be stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_tensors(f"{folder}/x.safetensors", {"w": np.ones((2, 3))}, {"kind": "example"})
    ...     tensors, metadata = read_tensors(path)
    >>> tensors["w"].shape, metadata
    ((2, 3), {'kind': 'example'})
    """
    arrays = {name: _storable(name, tensor) for name, tensor in sorted(tensors.items())}
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "harmonium": harmonium_version(),
        "metadata": plain(metadata, "the metadata"),
    }
    document["sha256"] = _digest(document, arrays)
    data = serialize(arrays, metadata={_ENTRY: _canonical(document)})
    return write_atomically(path, data, overwrite=overwrite, fault=fault)


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns the arrays (by name, in sorted order) and the description of a file that ``write_tensors`` wrote.

    Raises FileError when the file is missing, unreadable or of a newer format, and its kind DamagedFileError when it
    is cut short, fails its checksum, or was not written by harmonium.
    """
    data = _read_bytes(path)
    document = _document(path, data)
    try:
        found = sorted(deserialize(data))
    except SafetensorError as error:
        raise DamagedFileError(_damage(path, f"{error}")) from error
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in found:
        if tensor["dtype"] not in _NAMES:
            raise DamagedFileError(
                _damage(path, f"tensor {name!r} has the unknown dtype {tensor['dtype']!r}")
            )
        arrays[name] = np.frombuffer(tensor["data"], dtype=_dtype(tensor["dtype"])).reshape(tensor["shape"])
    if document.get("sha256") != _digest(document, arrays):
        raise DamagedFileError(_damage(path, "its checksum does not match its content"))
    if document["format_version"] > FORMAT_VERSION:
        raise FileError(
            f"{path} was written by harmonium {document.get('harmonium')} in format {document['format_version']}, "
            f"but this harmonium ({harmonium_version()}) reads formats up to {FORMAT_VERSION}; install a newer one"
        )
    return arrays, document["metadata"]


def _storable(name: str, tensor: np.ndarray) -> np.ndarray:
    array = np.asarray(tensor, order="C")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.name not in _CODES:
        raise SettingError(
            f"tensor {name!r} has the dtype {array.dtype}, which a file cannot hold; convert it to one of "
            f"{', '.join(_CODES)}"
        )
    if name == "__metadata__":
        raise SettingError("a tensor cannot be called '__metadata__', the format keeps that name; rename it")
    return array


def _dtype(code: str) -> np.dtype:
    if code == "BF16":
        import ml_dtypes  # numpy learns the name by this import

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_NAMES[code])


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    covered = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(_canonical(covered).encode())
    for name, array in sorted(arrays.items()):
        digest.update(_canonical([name, _CODES[array.dtype.name], list(array.shape)]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _read_bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path} does not exist; check the spelling and the folder you are in") from None
    except IsADirectoryError:
        raise FileError(f"{path} is a folder, not a file; name a file in it") from None
    except OSError as error:
        raise FileError(
            f"cannot read {path}: {error.strerror or error}; check its permissions and the disk"
        ) from error


def _document(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The JSON document of the header, read before the tensors so that a foreign file is called by its name."""
    # A safetensors file begins with the length of its header in eight bytes, and a header of 640 bytes therefore begins
    # like a pickle (80 02). The brace that opens the header tells them apart, so it is asked for first.
    if data[8:9] != b"{":
        for magic, kind in _FOREIGN:
            if data.startswith(magic):
                raise DamagedFileError(
                    f"{path} is {kind}, not a harmonium file, and harmonium opens no pickles; read it with the program "
                    "that wrote it and pass the arrays on (hm.RBM.from_arrays for a model, hm.load_data for data)"
                )
        if len(data) <= 8:
            raise DamagedFileError(_damage(path, f"it is cut short at {len(data)} bytes"))
        raise DamagedFileError(f"{path} is not a safetensors file; name a file that harmonium wrote")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise DamagedFileError(_damage(path, f"its header of {length} bytes is cut short"))
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(_damage(path, "its header is no JSON")) from error
    try:
        document = json.loads(header["__metadata__"][_ENTRY])
        known = (
            document["format"] == FORMAT
            and type(document["format_version"]) is int
            and isinstance(document["metadata"], dict)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        document, known = {}, False
    if not known:
        raise DamagedFileError(
            f"{path} is a safetensors file without harmonium's own entry in its header; if another program wrote it, "
            "pass its arrays to hm.RBM.from_arrays, otherwise restore the file from a copy"
        )
    return document


def _damage(path: str | os.PathLike[str], what: str) -> str:
    return f"{path} is damaged: {what}; restore it from a copy, or write it again"
