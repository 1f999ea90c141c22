"""Data sets that are not part of the package, from the folder that ``HARMONIUM_DATA`` names."""

from __future__ import annotations

import os
from pathlib import Path

from harmonium.data.base import DataSet
from harmonium.data.load import load_data

FOLDER = "HARMONIUM_DATA"


def benchmark_data(name: str) -> DataSet | None:
    """The rows of ``name.npz`` (arrays train, valid and test) in the folder; None where there is no such file.

    Raises `DataError` or `FileError` for a file that is there and is not that.
    """
    folder = os.environ.get(FOLDER, "")
    path = Path(folder) / f"{name}.npz"
    return load_data(path) if folder and path.is_file() else None
