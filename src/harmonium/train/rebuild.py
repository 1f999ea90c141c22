"""A run's objects, made again from its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harmonium.data.base import DataSet
from harmonium.data.load import as_dataset, from_source
from harmonium.energy import names as models
from harmonium.energy.base import AbstractBipartite
from harmonium.errors import DataError, FileError, SettingError
from harmonium.rules import names as rules
from harmonium.rules.base import AbstractRule
from harmonium.train.config import RunConfig, read_settings
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load
from harmonium.train.run import History, Run

CUSTOM = "custom"
"""What settings call an object that was given in Python and that they cannot describe."""


def load_run(path: str | os.PathLike[str]) -> Run:
    """A run as its folder holds it now: its settings, its metrics, and its model as of the newest checkpoint.

    Raises `FileError` when the folder holds no run, or one that was stopped before it began.
    """
    folder = RunFolder.open(path)
    config = read_settings(folder.read_config())
    if not folder.model_path.exists():
        raise never_began(path)
    return Run(
        model=load(folder.model_path),
        history=History(folder.read_metrics()),
        path=Path(path),
        state=None,
        config=config.to_dict(),
    )


def model(config: RunConfig, data: DataSet) -> AbstractBipartite:
    """The model that settings describe, before any training."""
    settings = config.model
    if settings.kind == CUSTOM:
        raise SettingError("this run's model was given in Python and no settings describe it; pass model= again")
    return models.build_model(
        settings.kind,
        data.width,
        settings.hidden,
        visible=settings.visible,
        hidden_units=settings.hidden_units,
        weight_scale=settings.weight_scale,
        seed=config.train.seed,
    )


def rule(config: RunConfig) -> AbstractRule:
    """The training rule that settings describe."""
    settings = config.sampler.model_dump()
    name = settings.pop("name")
    if name == CUSTOM:
        raise SettingError("this run's rule was given in Python and no settings describe it; pass rule= again")
    return rules.build_rule(name, settings)


def optimizer(config: RunConfig) -> str:
    """The name of the optimiser that settings describe."""
    if config.train.optimizer == CUSTOM:
        raise SettingError("this run's optimizer was given in Python and no settings name it; pass optimizer= again")
    return config.train.optimizer


def describe_data(data: DataSet) -> dict[str, Any]:
    """What settings say of a data set: where it comes from, and its fingerprint."""
    return {**data.source, "fingerprint": data.fingerprint}


def keep_data(folder: RunFolder, data: DataSet) -> None:
    """Keep rows that were only in memory, so that the run can go on without whoever made them."""
    arrays = data.splits()
    if data.weight is not None:
        arrays["weight"] = data.weight
    shape = None if data.shape is None else list(data.shape)
    folder.write_data(arrays, {"name": data.name, "binarization": data.binarization, "shape": shape})


def load_data_again(folder: RunFolder, config: RunConfig, given: Any = None) -> DataSet:
    """The data set of a run, from ``given``, from its source, or as the folder keeps it.

    Raises `DataError` when it is no longer what it was.
    """
    if given is not None:
        data = as_dataset(given)
    elif config.data.array:
        splits, about = folder.read_data()
        arrays: dict[str, Any] = dict(splits)
        weight = arrays.pop("weight", None)
        shape = None if about["shape"] is None else tuple(about["shape"])
        data = DataSet(about["name"], **arrays, weight=weight, shape=shape, binarization=about["binarization"])
    else:
        data = from_source(config.data.model_dump(exclude_none=True, exclude={"fingerprint"}))
    expected = config.data.fingerprint
    if expected is not None and data.fingerprint != expected:
        raise DataError(
            f"the data of the run in {folder.path} have fingerprint {data.fingerprint}, but it began with {expected}; "
            "bring back the data it began with, or start a new run"
        )
    return data


def never_began(path: str | os.PathLike[str]) -> FileError:
    """The error for a folder whose run was stopped before anything could be kept."""
    return FileError(f"the run in {path} was stopped before it began; start it again with force=True (--force)")
