"""Rows in the file that the ending of its name asks for."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from harmonium.errors import FileError, SettingError

if TYPE_CHECKING:
    import numpy as np

ENDINGS = (".npz", ".npy", ".png", ".csv")


def check_output(path: Path, force: bool, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse, before any work, a file that could not be written: an unknown ending, or a name that is taken.

    **Raises** SettingError for the ending, FileError for the rest.
    """
    if path.suffix.lower() not in endings:
        what = f"one of {', '.join(endings)}" if len(endings) > 1 else endings[0]
        raise SettingError(f"--out {path} does not say what to write; end it in {what}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file in it")
    if path.exists() and not force:
        raise FileError(f"{path} exists already; choose another name, or pass --force")
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: the folder {path.parent} does not exist; make it first")


def write_rows(path: Path, rows: np.ndarray, shape: Sequence[int] | None, force: bool) -> None:
    """Write rows by the ending of ``path``, whole or not at all: npz (as ``samples``), npy, csv or a png picture.

    **Raises** FileError when the file is there and ``force`` is False, or cannot be written.
    """
    import numpy as np

    from harmonium.report.pictures import write_pictures
    from harmonium.train.atomic import write_atomically

    ending = path.suffix.lower()
    if ending == ".png":
        write_pictures(path, rows, shape, overwrite=force)
        return
    buffer = BytesIO()
    if ending == ".npz":
        np.savez_compressed(buffer, samples=rows)
    elif ending == ".npy":
        np.save(buffer, rows, allow_pickle=False)
    else:
        buffer.write(csv_text(rows).encode())
    write_atomically(path, buffer.getvalue(), overwrite=force, fault="samples")


def csv_text(rows: np.ndarray) -> str:
    """Rows as lines of whole numbers with commas between them.

    >>> import numpy as np
    >>> csv_text(np.array([[0, 1], [1, 1]], np.uint8))
    '0,1\\n1,1\\n'
    """
    import numpy as np

    buffer = StringIO()
    np.savetxt(buffer, rows, fmt="%d" if rows.dtype.kind in "iu" else "%.9g", delimiter=",")
    return buffer.getvalue()
