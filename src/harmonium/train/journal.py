"""Logs that grow by one JSON object a line, and that can be cut back to a point in time.

A line is written in one piece and flushed to the disk before the run goes on, so that a log never lacks a line that a
later checkpoint counts on. What a kill can leave behind is a last line without its end; readers pass over it, and
``cut_back`` removes it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harmonium.errors import FileError, HarmoniumWarning, SettingError
from harmonium.train.atomic import sync_folder, write_all, write_atomically
from harmonium.train.faults import die, fault_due, fault_point
from harmonium.train.plain import plain

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def append_line(path: Path, record: Mapping[str, Any], *, fault: str) -> None:
    """Appends a record with sorted keys; NaN and infinities become null, other floats keep every bit.

    ``record["index"]`` is the number of updates done. ``fault`` is the kind of log (``faults.LOGS``). Raises
    SettingError for a record without an index or with something that JSON cannot hold, FileError when the line cannot
    be written (the log then ends with the line before).
    """
    values = plain(record, f"the record for {path.name}", not_finite="null")
    if type(values.get("index")) is not int:
        raise SettingError(
            f"a record of {path.name} needs the update count as its whole number 'index', got "
            f"{values.get('index')!r}; add it"
        )
    line = json.dumps(values, sort_keys=True, allow_nan=False).encode() + b"\n"
    try:
        new = not path.exists()
        descriptor = os.open(path, _OPEN_FLAGS | os.O_CREAT, 0o666)
        try:
            if fault_due(f"{fault}.mid-line"):
                write_all(descriptor, line[: len(line) // 2])
                die()
            length = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, line)
            except OSError:
                os.ftruncate(descriptor, length)
                raise
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fault_point(f"{fault}.after-line")
        if new:
            sync_folder(path.parent)
    except OSError as error:
        raise FileError(
            f"cannot write {path}: {error.strerror or error}; free some space, then resume the run"
        ) from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the records of a log in their order; empty when the log does not exist.

    A last line without its end is passed over in silence, a damaged line elsewhere with a HarmoniumWarning.
    """
    return [record for _, record in _records(path)]


def cut_back(path: Path, index: int) -> None:
    """Drops every record beyond ``index`` updates, a last line without its end, and damaged lines, in one piece.

    The lines that stay keep their bytes, and a log with nothing to drop is not touched.
    """
    kept = b"".join(line for line, record in _records(path) if record["index"] <= index)
    if path.exists() and kept != path.read_bytes():
        write_atomically(path, kept, overwrite=True, fault="cut")


def _records(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}; check its permissions") from error
    found: list[tuple[bytes, dict[str, Any]]] = []
    *lines, _torn = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if type(record["index"]) is not int:
                raise TypeError("no index")
        except (ValueError, KeyError, TypeError, RecursionError):
            warnings.warn(
                f"line {number} of {path} is damaged and was left out", HarmoniumWarning, stacklevel=4
            )
        else:
            found.append((line + b"\n", record))
    return found
