"""A run's objects, made again from its folder."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.labels import classes_of, label_fingerprint
from harmonium.data.load import as_dataset, from_source
from harmonium.energy import names as models
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.labels import label_units
from harmonium.errors import DataError, FileError, SettingError
from harmonium.inference.names import default_inference
from harmonium.numerics.precision import as_single
from harmonium.rules import names as rules
from harmonium.rules.base import AbstractRule
from harmonium.train.config import RunConfig, SamplerConfig, read_settings
from harmonium.train.ensemble import member_seed, reason_of
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load_described
from harmonium.train.run import History, Run

CUSTOM = "custom"
"""What settings call an object that was given in Python and that they cannot describe."""


def load_run(path: str | os.PathLike[str]) -> Run:
    """A run as its folder holds it now: its settings, its newest saved model, and its metrics up to that model.

    ``run.finished`` says whether it has come to its end, ``run.reliable`` whether its guard stopped it.

    Raises `FileError` when the folder holds no run, one that was stopped before it began, or one without a model.

    >>> from harmonium.energy.rbm import RBM
    >>> from harmonium.train.fit import fit
    >>> run = fit(RBM(4, 2, seed=0), "bars-and-stripes:side=2", updates=100, seed=0, out="runs/bars")
    >>> load_run("runs/bars").history == run.history
    True
    """
    folder = RunFolder.open(path)
    config = read_settings(folder.read_config())
    if not folder.model_path.exists():
        raise FileError(
            f"the run in {path} has no model.safetensors; hm.resume (harmonium resume) writes it again, or, where its "
            "class is your own, hm.resume(path, model=...) returns it"
        )
    model, about = load_described(folder.model_path)
    updates = about.get("updates", math.inf)  # a file that hm.save put there says nothing of a run
    fault = about.get("fault", "")
    reason = fault
    if isinstance(model, Ensemble) and not fault:
        stopped = {member: words for member, words in enumerate(model.faults) if words}
        reason = reason_of(stopped, len(model))
    return Run(
        model=model,
        # A run that is still going on, or was killed, has told more than it has saved.
        history=History(record for record in folder.read_metrics() if record["index"] <= updates),
        path=Path(path),
        state=None,
        finished=bool(fault) or updates >= about.get("horizon", 0),
        reliable=not reason,
        reason=reason,
        config=config.to_dict(),
    )


def model(config: RunConfig, data: DataSet) -> AbstractEnergyModel:
    """The model that settings describe, before any training."""
    settings = config.model
    if settings.kind == CUSTOM:
        raise SettingError(
            "this run's model was given in Python and no settings describe it; pass model= again"
        )
    return models.build_model(
        settings.kind,
        data.width,
        settings.hidden,
        visible=settings.visible,
        hidden_units=settings.hidden_units,
        weight_scale=settings.weight_scale,
        labels=settings.labels,
        seed=config.train.seed,
    )


def members(config: RunConfig, data: DataSet) -> AbstractEnergyModel | Ensemble:
    """What settings describe, before any training: the model, or the members that settings ask for.

    Each member is the model that the settings make with the member's own seed.
    """
    count = config.train.members or 1
    if count == 1:
        return model(config, data)
    return Ensemble.of(model(_with_seed(config, member), data) for member in range(count))


def members_like(
    template: AbstractEnergyModel, config: RunConfig, data: DataSet
) -> AbstractEnergyModel | Ensemble:
    """The model itself, or the members that settings ask for, begun from it.

    From a fresh model, whose biases are all zero, member 0 is itself, and the others have weights of their own: those
    that a new model of its kind has with the member's seed, at the root mean square of the given ones. Of any other
    model all members are copies.

    Raises `SettingError` for a fresh model of a kind that no settings describe.
    """
    count = config.train.members or 1
    if count == 1:
        return template
    if any(np.any(np.asarray(units.bias)) for units in template.units):
        return Ensemble.of([template] * count)
    if config.model.kind == CUSTOM:
        raise SettingError(
            f"members={count} of a fresh {type(template).__name__} need weights of their own, and no settings say how "
            "to draw them; pass hm.Ensemble.of([...]) with a model for each member"
        )
    weights = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(template.couplings)])
    scale = float(np.sqrt(np.mean(np.square(weights, dtype=np.float64))))
    scaled = config.model.model_copy(update={"weight_scale": scale})
    own = config.model_copy(update={"model": scaled})
    others = [as_single(model(_with_seed(own, member), data)) for member in range(1, count)]
    return Ensemble.of([as_single(template), *others])


def _with_seed(config: RunConfig, member: int) -> RunConfig:
    seed = member_seed(config.train.seed, member)
    return config.model_copy(update={"train": config.train.model_copy(update={"seed": seed})})


def rule(config: RunConfig) -> AbstractRule:
    """The training rule that settings describe: of a network that is trained level by level, that of the levels."""
    return _rule(config.sampler.model_dump(), None if config.is_greedy else config.model.kind)


def joint_rule(config: RunConfig) -> AbstractRule | None:
    """The rule of the joint training that follows a greedy one; None where there is none."""
    if config.joint is None:
        return None
    return _rule(config.joint.model_dump(include=set(SamplerConfig.model_fields)), config.model.kind)


def _rule(settings: dict[str, Any], kind: str | None) -> AbstractRule:
    """The rule of these settings; ``kind`` is that of the machine, None where that is an RBM."""
    name = settings.pop("name")
    if name == CUSTOM:
        raise SettingError(
            "this run's rule was given in Python and no settings describe it; pass rule= again"
        )
    if kind is not None and settings["inference"] is None and rules.takes(name, "inference"):
        settings["inference"] = default_inference(kind)
    return rules.build_rule(name, settings)


def optimizer(config: RunConfig) -> str:
    """The name of the optimiser that settings describe."""
    if config.train.optimizer == CUSTOM:
        raise SettingError(
            "this run's optimizer was given in Python and no settings name it; pass optimizer= again"
        )
    return config.train.optimizer


def load_data(config: RunConfig) -> DataSet:
    """The data set that settings name, loaded from its source.

    Raises `SettingError` when they name none or two, `DataError` for data that were only ever in memory, and what
    `harmonium.load_data` raises.
    """
    settings = config.data
    if settings.array:
        raise DataError(
            "the data of these settings were an array in memory; name them by data.name or data.path"
        )
    if settings.name is None and settings.path is None:
        raise SettingError(
            "no data are named; give --data NAME or PATH, or data.name or data.path in the settings"
        )
    if settings.name is not None and settings.path is not None:
        raise SettingError(
            f"both data.name={settings.name!r} and data.path={settings.path!r} are given; keep one"
        )
    return from_source(settings.model_dump(exclude_none=True, exclude={"fingerprint", "label_fingerprint"}))


def check_fingerprint(data: DataSet, expected: str | None, whose: str) -> None:
    """Raise `DataError` when the data are not those of ``expected``; None expects nothing."""
    if expected is not None and data.fingerprint != expected:
        raise DataError(
            f"{data.name} has fingerprint {data.fingerprint}, but {whose} began with {expected}; "
            "bring back the data it began with, or start a new run"
        )


def describe_data(data: DataSet) -> dict[str, Any]:
    """What settings say of a data set: where it comes from, and its fingerprint."""
    return {**data.source, "fingerprint": data.fingerprint}


def with_classes(config: RunConfig, template: AbstractEnergyModel, data: DataSet) -> RunConfig:
    """The settings of a model with a label layer, with what its data call the classes; any others as they are.

    Raises `DataError` where the labels are no longer those that the settings say, and for data without any.
    """
    labels = label_units(template)
    if labels is None:
        return config
    found, expected = label_fingerprint(data), config.data.label_fingerprint
    classes = classes_of(data, labels.states)
    if expected is not None and found != expected:
        raise DataError(
            f"the labels of {data.name} have fingerprint {found}, but the run began with {expected}; bring back those "
            "it began with, or start a new run"
        )
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"classes": classes}),
            "data": config.data.model_copy(update={"label_fingerprint": found}),
        }
    )


def keep_data(folder: RunFolder, data: DataSet, labelled: bool = False) -> None:
    """Keep rows that were only in memory, so that the run can go on without whoever made them.

    Labels are kept for a model that learns them, ``labelled``, as numbers and, in the description, what these mean.
    """
    arrays = data.splits()
    if data.weight is not None:
        arrays["weight"] = data.weight
    meanings: dict[str, Any] = {}
    for split, values in (data.labels or {}).items() if labelled else ():
        names, numbers = np.unique(np.asarray(values), return_inverse=True)
        arrays[f"{split}_labels"], meanings[split] = np.ravel(numbers).astype(np.int32), names.tolist()
    shape = None if data.shape is None else list(data.shape)
    about = {"name": data.name, "binarization": data.binarization, "shape": shape}
    folder.write_data(arrays, about | ({"labels": meanings} if meanings else {}))


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
        labels = {
            split: np.asarray(names)[arrays.pop(f"{split}_labels")]
            for split, names in about.get("labels", {}).items()
        }
        shape = None if about["shape"] is None else tuple(about["shape"])
        data = DataSet(
            about["name"],
            **arrays,
            weight=weight,
            labels=labels or None,
            shape=shape,
            binarization=about["binarization"],
        )
    else:
        try:
            data = load_data(config)
        except FileError as error:
            raise FileError(
                f"the data of the run in {folder.path} cannot be read: {error}; where they were moved, write their new "
                f"place as path under [data] in {folder.config_path}"
            ) from error
    check_fingerprint(data, config.data.fingerprint, f"the run in {folder.path}")
    return data


def network_of(path: Path) -> Path | None:
    """The folder of the network of which the run in this folder is a stage; None for a run that stands alone."""
    whole = path.absolute().parent
    name = path.absolute().name
    if not (name.startswith("level-") or name == "joint") or not (whole / "config.toml").exists():
        return None
    return whole if read_settings(RunFolder.open(whole).read_config()).is_greedy else None


def never_began(path: str | os.PathLike[str]) -> FileError:
    """The error for a folder without checkpoints: of a run that was stopped before anything could be kept, or whose
    checkpoints were taken away since."""
    if RunFolder(path).metrics_path.exists():
        return FileError(
            f"there is no checkpoint in {path}, so that its run cannot go on; restore one from a copy, or keep the "
            "model.safetensors elsewhere and start the run again with force=True (--force)"
        )
    return FileError(
        f"the run in {path} was stopped before it began; start it again with force=True (--force)"
    )
