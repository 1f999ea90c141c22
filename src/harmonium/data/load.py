"""One door for all data: a name, a path, an array, a sparse matrix, a data frame, a dict of splits, or a data set."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harmonium.data.base import SPLITS, DataSet
from harmonium.data.binarization import WAYS, Scale
from harmonium.data.binarization import binarize as binarize_splits
from harmonium.data.frames import dense, frame_rows, is_frame, is_sparse
from harmonium.data.names import (
    build_named,
    data_names,
    data_parameters,
    given_parameters,
    is_data_name,
    nearest,
)
from harmonium.data.readers import Table, known_endings, read_file, table_of_mapping
from harmonium.data.scan import as_matrix, compact, joint_scan
from harmonium.errors import DataError, FileError, SettingError


def load_data(
    source: Any,
    binarize: str | None = None,
    *,
    scale: Scale | None = None,
    weight: Any = None,
    shape: Sequence[int] | None = None,
    name: str | None = None,
) -> DataSet:
    """Rows to train on, from wherever they are.

    ``source`` is a data name ("digits", "bars-and-stripes:side=4"; see `harmonium.data.data_names`), a path (.npy,
    .npz, .csv, .tsv, scipy's sparse .npz), an array, a scipy sparse matrix, a pandas data frame, a dict of splits, or a
    DataSet. A word that is both a data name and a file means the name; write ``./digits`` for the file.

    - ``binarize``: None (as they are), "threshold" (1 above half of full scale, fixed) or "stochastic" (keep the grey
      level as a probability: bits are drawn afresh in every epoch, and once with a fixed seed at evaluation).
    - ``scale``: the full scale of the grey levels, a number or a pair, where what the data show would mislead.
    - ``weight``: how much each row of train counts, shape (rows,).
    - ``shape``: the picture shape of one row.
    - ``name``: what to call the data in results.

    0/1 rows become uint8 and -1/+1 rows int8; everything else stays as it is, and large .npy files stay on disk.
    Whether rows fit a model is decided where they meet it; `DataSet.describe` tells beforehand.

    **Raises** FileError (missing, damaged or unknown file), DataError (no table of numbers), SettingError (unknown name
    or parameter).

    **Example**

    >>> load_data("bars-and-stripes:side=2").train.tolist()
    [[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]]
    >>> load_data([[0.0, 0.7]], binarize="threshold").binarization
    'threshold 0.5'
    """
    if binarize is not None and binarize not in WAYS:
        raise SettingError(f'binarize must be None, "threshold" or "stochastic", got {binarize!r}')
    if scale is not None and binarize is None:
        raise SettingError(
            f'scale={scale!r} is only used with binarize="threshold" or binarize="stochastic"; give one'
        )
    data = _load(source, binarize)
    if weight is not None:
        # Weights live in the caller's memory, so the whole can no longer be loaded again from its name or path.
        data = replace(data, weight=np.asarray(weight), source={"array": True})
    if shape is not None:
        picture = tuple(int(side) for side in shape)
        data = replace(data, shape=picture, source={**data.source, "shape": list(picture)})
    if name is not None:
        data = replace(data, name=name, source={**data.source, "called": name})
    return data if binarize is None else _binarized(data, binarize, scale)


def as_dataset(data: Any) -> DataSet:
    """The data set itself, or `load_data` of anything else that is data.

    **Raises** as `load_data`.

    **Example**

    >>> as_dataset([[0, 1], [1, 1]]).train.dtype.name
    'uint8'
    """
    return data if isinstance(data, DataSet) else load_data(data)


def from_source(source: Mapping[str, Any]) -> DataSet:
    """The data set that a `DataSet.source` tells of, loaded again.

    **Raises** DataError where the data were an array in memory; else as `load_data`.

    **Example**

    >>> from_source(load_data("shifting-bars:length=6").source).name
    'shifting-bars:length=6,bar=3'
    """
    place = source.get("name", source.get("path"))
    if place is None:
        raise DataError(
            "the data were an array in memory and cannot be loaded again; pass the same array as data"
        )
    given = Path(place) if "path" in source else place
    return load_data(
        given,
        source.get("binarize"),
        scale=source.get("scale"),
        shape=source.get("shape"),
        name=source.get("called"),
    )


def _load(source: Any, binarize: str | None) -> DataSet:
    if isinstance(source, DataSet):
        return source
    if isinstance(source, str) and is_data_name(source):
        return _load_named(source, binarize)
    if isinstance(source, str | os.PathLike):
        return _load_path(source)
    if source is None or isinstance(source, bytes | bytearray):
        raise DataError(f"data must be a name, a path, an array or a data set, got {type(source).__name__}")
    if isinstance(source, Mapping):
        return _of_table(table_of_mapping(source, "the dict of data"), "array", {"array": True})
    return _of_table(Table({"train": source}), "array", {"array": True})


def _load_named(text: str, binarize: str | None) -> DataSet:
    given = given_parameters(text)
    can_be_grey = any(parameter.name == "grey" for parameter in data_parameters(text))
    if can_be_grey and binarize == "stochastic" and not given.get("grey"):
        if "grey" in given:
            raise SettingError(
                f'{text} has no grey levels left to draw from; leave out grey=false or binarize="stochastic"'
            )
        return build_named(text, grey=True)
    return build_named(text)


def _load_path(source: str | os.PathLike[Any]) -> DataSet:
    text = os.fspath(source)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    path = Path(text).expanduser()
    if isinstance(source, str) and not (text and path.exists()) and not _looks_like_path(text):
        head = text.partition(":")[0]
        raise SettingError(
            f"there is no data name or file {text!r}{nearest(head, data_names())}; "
            f"the names are {', '.join(data_names())}, and a path ends in one of {', '.join(known_endings())}"
        )
    try:
        table = read_file(path)
    except OSError as fault:
        if isinstance(fault, FileError):
            raise
        raise FileError(f"{path} cannot be read ({fault.strerror or fault})") from None
    return _of_table(table, path.name, {"path": str(path.resolve())})


def _looks_like_path(text: str) -> bool:
    return any(mark in text for mark in ("/", "\\")) or Path(text).suffix != ""


def _of_table(table: Table, name: str, source: dict[str, Any]) -> DataSet:
    columns = table.columns
    splits: dict[str, np.ndarray] = {}
    for split, values in table.splits.items():
        what = "the data" if len(table.splits) == 1 and name == "array" else f"the {split} rows of {name}"
        if is_sparse(values):
            values = dense(values, what)
        elif is_frame(values):
            values, named = frame_rows(values, what)
            if split != "train" and named != columns:
                raise DataError(
                    f"{what} have other columns than train, or in another order; pass test[train.columns]"
                )
            columns = named
        rows = as_matrix(values, what)
        if rows.size == 0:
            raise DataError(
                f"{what} are empty (shape {rows.shape}); at least one row and one column are needed"
            )
        splits[split] = rows
    # Together, so that one split does not become bits whose other rows are real numbers.
    found = joint_scan(list(splits.values()))
    compacted = {split: compact(rows, found) for split, rows in splits.items()}
    return DataSet(
        name,
        compacted["train"],
        compacted.get("valid"),
        compacted.get("test"),
        weight=table.weight,
        labels=table.labels,
        source=source,
        columns=columns,
    )


def _binarized(data: DataSet, how: str, scale: Scale | None) -> DataSet:
    if data.binarization != "none":
        # Bits cannot be cut again, and probabilities can: what was done first stays what is recorded.
        if how == "threshold" and data.binarization.startswith("threshold"):
            return data
        if how == "stochastic" and data.binarization == "stochastic":
            return data
        raise SettingError(
            f"{data.name} was binarised already ({data.binarization}); load it without, then choose {how!r}"
        )
    result = binarize_splits(data.splits(), how, scale, data.name)
    if result.record == "none":
        return data
    source = {**data.source, "binarize": how}
    if result.scale is not None:
        source["scale"] = list(result.scale)
    train, valid, test = (result.splits.get(split) for split in SPLITS)
    if train is None:
        raise AssertionError("a data set has a train split")
    # What was known of the grey rows, their entropy and how to draw more, is not true of the bits.
    return replace(
        data,
        train=train,
        valid=valid,
        test=test,
        binarization=result.record,
        source=source,
        entropy=None,
        draw=None,
    )
