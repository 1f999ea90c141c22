"""Settings from a TOML file, from ``--set`` and from flags, in rising order, as one checked `RunConfig`."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harmonium.errors import FileError, SettingError

if TYPE_CHECKING:
    from harmonium.train.config import RunConfig

SETTING_OF_FLAG = {
    "--data": "data.name",
    "--binarize": "data.binarize",
    "--model": "model.kind",
    "--visible": "model.visible",
    "--hidden": "model.hidden",
    "--hidden-units": "model.hidden_units",
    "--labels": "model.labels",
    "--sampler": "sampler.name",
    "--steps": "sampler.steps",
    "--chains": "sampler.chains",
    "--inference": "sampler.inference",
    "--centred": "sampler.centred",
    "--epochs": "train.epochs",
    "--updates": "train.updates",
    "--batch-size": "train.batch_size",
    "--optimizer": "train.optimizer",
    "--learning-rate": "train.learning_rate",
    "--final-rate": "train.final_rate",
    "--momentum": "train.momentum",
    "--weight-decay": "train.weight_decay",
    "--members": "train.members",
    "--seed": "train.seed",
    "--initialize": "train.initialize",
    "--on-divergence": "train.on_divergence",
}
"""Which setting each flag of ``harmonium train`` gives."""

# A layer that gives one of these replaces the others of a lower layer; given both in one layer, they are refused.
_EXCLUSIVE = (
    ("train.epochs", "train.updates"),
    ("joint.epochs", "joint.updates"),
    ("data.name", "data.path", "data.array"),
)
_OF_THE_SOURCE = ("data.scale", "data.shape", "data.called")

_OF_A_SECOND_STAGE = "joint."

Layer = dict[str, Any]


def merge(path: Path | None, assignments: Iterable[str], flags: Mapping[str, Any]) -> RunConfig:
    """The settings of a run: those of the file, over them those of ``--set``, over them those of flags.

    Flags that are None were not given. A layer that names other data, or another length of training, replaces what a
    lower layer said of these as a whole; an empty value in ``--set key=`` takes a setting back to its default.

    **Raises** FileError for a file that cannot be read, SettingError for anything that is no setting or cannot be used,
    with the nearest name.

    >>> config = merge(None, ["epochs=5", "train.momentum=0.5"], {"--hidden": "16", "--epochs": 2})
    >>> config.model.hidden, config.train.epochs, config.train.momentum
    ([16], 2, 0.5)
    """
    from harmonium.train.config import read_settings

    base = {} if path is None else _flat(_read(path), path)
    given = {SETTING_OF_FLAG[flag]: value for flag, value in flags.items() if value is not None}
    if "model.hidden" in given:
        given["model.hidden"] = _sizes(given["model.hidden"])
    settings = _over(_over(base, dict(_assignment(text) for text in assignments)), given)
    sections: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    try:
        return read_settings(sections)
    except SettingError as error:
        raise SettingError(_name_the_flag(str(error), given)) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"there is no settings file {path}; name a TOML file, or use flags alone") from None
    except IsADirectoryError:
        raise FileError(
            f"{path} is a folder; name a settings file, such as the config.toml in a run"
        ) from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}; check its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is no TOML ({error}); correct it there") from None


def _flat(tables: Mapping[str, Any], path: Path) -> Layer:
    """``{"train.seed": 0}`` of ``{"train": {"seed": 0}}``."""
    from harmonium.train.config import known_settings

    sections = known_settings()
    found: Layer = {}
    for section, values in tables.items():
        if section not in sections:
            place = _nearest(section, list(sections)) or f"the sections are {', '.join(sections)}"
            owner = next((name for name, keys in sections.items() if section in keys), None)
            hint = f"it belongs in the section [{owner}]" if owner else place
            raise SettingError(f"{path}: there is no section {section!r}; {hint}")
        if not isinstance(values, Mapping):
            raise SettingError(f"{path}: {section} must be a section, [{section}], got {values!r}")
        for name, value in values.items():
            found[_known(f"{section}.{name}")] = value
    return found


def assignment_of(text: str) -> tuple[str, Any]:
    """The key and the value of ``--set``; nothing is known yet of the key.

    >>> assignment_of("schedule=[0, 0.5, 1]")
    ('schedule', [0, 0.5, 1])
    """
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise SettingError(f"--set {text!r} is no assignment; write key=value, such as train.momentum=0.5")
    return key, _value(value)


def _assignment(text: str) -> tuple[str, Any]:
    key, value = assignment_of(text)
    return _known(key), value


def _value(text: str) -> Any:
    """A TOML value where it is one (0.5, true, [64, 32]), nothing where it is empty, else the text itself."""
    if not text:
        return None
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str | list) else text


def _known(key: str) -> str:
    """The full name of a setting, also where the section was left out and only one has it.

    What a section [joint] repeats of others is theirs where it is left out.
    """
    from harmonium.train.config import known_settings

    full = [f"{section}.{name}" for section, names in known_settings().items() for name in names]
    if key in full:
        return key
    ending = [
        name for name in full if name.partition(".")[2] == key and not name.startswith(_OF_A_SECOND_STAGE)
    ]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise SettingError(f"the setting {key!r} is in several sections; write {' or '.join(ending)}")
    near = _nearest(key, full) or _nearest(key.rpartition(".")[2], [name.partition(".")[2] for name in full])
    raise SettingError(f"there is no setting {key!r}; {near or 'they are ' + ', '.join(full)}")


def _over(lower: Layer, upper: Layer) -> Layer:
    """Both layers in one, where the upper wins."""
    dropped: set[str] = set()
    for group in _EXCLUSIVE:
        if any(upper.get(key) is not None for key in group):
            dropped.update(group)
    if "data.name" in dropped:
        dropped.update(_OF_THE_SOURCE)
    if any(key.startswith("data.") for key in upper):
        dropped |= {"data.fingerprint", "data.label_fingerprint", "model.classes"}
    kept = {key: value for key, value in lower.items() if key not in dropped}
    return {key: value for key, value in {**kept, **upper}.items() if value is not None}


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(
            f"--hidden {text!r} is no number of units; write e.g. 128, or 128,64 for two layers"
        ) from None


def _name_the_flag(message: str, given: Mapping[str, Any]) -> str:
    """Say ``--epochs 0`` where the message says ``train.epochs=0``, for that is what was typed."""
    flags = {setting: flag for flag, setting in SETTING_OF_FLAG.items()}
    name, _, rest = message.partition("=")
    setting = next((key for key in given if name == key or name.startswith(f"{key}.")), None)
    return message if setting is None else f"{flags[setting]} {rest}"


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""
