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
from harmonium.train.ensemble import reason_of
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load_described
from harmonium.train.unrolled import Unrolled


class Opened(NamedTuple):
    """A model and, where it came from a run, that run's folder and settings.

    ``doubt`` says why no number of the model is to be trusted: the divergence guard stopped its training, or that of
    some members; "" where it did not.
    """

    model: AbstractEnergyModel | Ensemble
    folder: RunFolder | None
    config: RunConfig | None
    doubt: str = ""


def open_model(path: Path, member: int | None = None) -> Opened:
    """The model of a run folder or of a model file; of an ensemble all members, or the one that is asked for.

    **Raises** FileError for anything else, SettingError for a member that is not there.
    """
    if not path.exists():
        raise FileError(
            f"there is no {path}; name a run folder, such as those under runs/, or a .safetensors file"
        )
    if not path.is_dir():
        held, about = load_described(path)
        refuse_networks(held, path)
        model, doubt = _member_of(held, member, path, about.get("fault", ""))
        return Opened(model, None, None, doubt)
    folder = RunFolder.open(path)
    run = rebuild.load_run(path)
    model, doubt = _member_of(run.model, member, path, run.reason)
    return Opened(model, folder, read_settings(folder.read_config()), doubt)


def refuse_networks(held: Any, path: Path) -> None:
    """Raise SettingError for a classifier, of which these commands have nothing to say."""
    if isinstance(held, Unrolled):
        raise SettingError(
            f"{path} holds an Unrolled network, which classifies rows and has no likelihood and no samples; in Python, "
            f"hm.load({str(path)!r}).classify(rows) does that"
        )


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


def _member_of(model: Any, member: int | None, path: Path, fault: str) -> tuple[Any, str]:
    """The model or the member that is asked for, and why it is not to be trusted."""
    if member is None and isinstance(model, Ensemble):
        return model, reason_of(
            {number: words for number, words in enumerate(model.faults) if words}, len(model)
        )
    if member is None:
        return model, fault and f"its training {fault}"
    if not isinstance(model, Ensemble):
        raise SettingError(
            f"--member {member} is of ensembles, but {path} holds a single model; leave it out"
        )
    if not 0 <= member < len(model):
        raise SettingError(
            f"--member {member} is not there: {path} has the members 0 to {len(model) - 1}; choose one of them"
        )
    words = model.faults[member] if model.faults else ""
    return model.member(member), words and f"its training {words}"


def shape_for(opened: Opened) -> tuple[int, ...] | None:
    """The picture shape of the rows that a run was trained on; None where it is not known or the data are gone."""
    if opened.config is None or opened.folder is None:
        return None
    try:
        return rebuild.load_data_again(opened.folder, opened.config).shape
    except HarmoniumError:
        return None
