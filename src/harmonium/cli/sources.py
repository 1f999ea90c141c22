"""A model, wherever it is: in a run folder or in a file; and the data that go with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from harmonium.data.base import DataSet
from harmonium.data.load import load_data
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.errors import FileError, HarmoniumError, SettingError
from harmonium.train import rebuild
from harmonium.train.config import RunConfig, read_settings
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load


class Opened(NamedTuple):
    """A model and, where it came from a run, that run's folder and settings."""

    model: AbstractEnergyModel | Ensemble
    folder: RunFolder | None
    config: RunConfig | None


def open_model(path: Path, member: int | None = None) -> Opened:
    """The model of a run folder or of a model file; of an ensemble all members, or the one that is asked for.

    **Raises** FileError for anything else, SettingError for a member that is not there.
    """
    if not path.exists():
        raise FileError(
            f"there is no {path}; name a run folder, such as those under runs/, or a .safetensors file"
        )
    if not path.is_dir():
        return Opened(_member_of(load(path), member, path), None, None)
    folder = RunFolder.open(path)
    model = _member_of(rebuild.load_run(path).model, member, path)
    return Opened(model, folder, read_settings(folder.read_config()))


def one_model(opened: Opened, path: Path) -> AbstractEnergyModel:
    """The model that was opened. **Raises** SettingError for an ensemble of which no member was chosen."""
    if isinstance(opened.model, Ensemble):
        raise SettingError(
            f"{path} is an ensemble of {len(opened.model)} members; choose one, such as --member 0"
        )
    return opened.model


def data_for(opened: Opened, name: str | None, binarize: str | None) -> DataSet:
    """The data called ``name``, or those of the run where no name is given.

    Other data than the run's own are binarised as those were, unless ``binarize`` says how.

    **Raises** SettingError where a model file comes without data, and what `load_data` raises.
    """
    config = opened.config
    if name is not None:
        scale: Any = None
        if binarize is None and config is not None:
            binarize, scale = config.data.binarize, config.data.scale
        return load_data(name, binarize, scale=scale)
    if config is None or opened.folder is None:
        raise SettingError("a model file does not say what data it is for; add --data NAME or PATH")
    if binarize is not None and binarize != config.data.binarize:
        raise SettingError(
            f"--binarize {binarize} is not how the run's data were treated; name the data too, with --data"
        )
    return rebuild.load_data_again(opened.folder, config)


def _member_of(model: Any, member: int | None, path: Path) -> Any:
    if member is None:
        return model
    if not isinstance(model, Ensemble):
        raise SettingError(
            f"--member {member} is of ensembles, but {path} holds a single model; leave it out"
        )
    if not 0 <= member < len(model):
        raise SettingError(f"--member {member} is not there: {path} has the members 0 to {len(model) - 1}")
    return model.member(member)


def shape_for(opened: Opened) -> tuple[int, ...] | None:
    """The picture shape of the rows that a run was trained on; None where it is not known or the data are gone."""
    if opened.config is None or opened.folder is None:
        return None
    try:
        return rebuild.load_data_again(opened.folder, opened.config).shape
    except HarmoniumError:
        return None
