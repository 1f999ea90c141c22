"""Model files: ``hm.save`` and ``hm.load``.

A model is what its ``parameters()`` say: the arguments of its class's ``from_arrays``. The arrays among them become
the tensors of the file with their dtype as it is; everything else, with the name of the class, becomes its
description. Loading calls ``from_arrays`` of a class out of a closed list, so that a file can name no other code.

Of an ensemble the arrays of the members are stacked along a first axis, and what is no array is the same for all.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from harmonium.energy.ensemble import Ensemble
from harmonium.errors import FileError, SettingError
from harmonium.train.plain import plain
from harmonium.train.storage import harmonium_version, read_tensors, write_tensors

MODELS: dict[str, str] = {
    "RBM": "harmonium.energy.rbm:RBM",
    "BoltzmannMachine": "harmonium.energy.boltzmann:BoltzmannMachine",
    "DBM": "harmonium.energy.dbm:DBM",
    "DBN": "harmonium.energy.dbn:DBN",
    "GuidedDBM": "harmonium.energy.guided_dbm:GuidedDBM",
    "Unrolled": "harmonium.train.unrolled:Unrolled",
}
"""Name in the file, and where the class is found."""

_KIND = "model"
_ENSEMBLE = "ensemble"


def save(
    model: Any,
    path: str | os.PathLike[str],
    overwrite: bool = False,
    *,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model, or an `Ensemble`, as one checksummed safetensors file, whole or not at all; returns its path.

    ``about`` is any JSON description of where the model comes from; see `load_described`.

    Raises FileError when the file exists and ``overwrite`` is False, or cannot be written; SettingError when the
    object is none of harmonium's models.

    >>> from harmonium.energy.rbm import RBM
    >>> save(RBM(4, 2, seed=0), "small.safetensors").name
    'small.safetensors'
    """
    name = _class_name(model)
    if name is None:
        raise SettingError(
            f"cannot save a {type(model).__name__}, only {', '.join(MODELS)}; pass the model itself (run.model)"
        )
    tensors: dict[str, np.ndarray] = {}
    document: dict[str, Any] = {"kind": _KIND, "class": name}
    if isinstance(model, Ensemble):
        document |= {"kind": _ENSEMBLE, "members": len(model), "faults": list(model.faults)}
        stacks: dict[str, list[np.ndarray]] = {}
        for member in model:
            own: dict[str, np.ndarray] = {}
            document["parameters"] = _pack_all(member, own)
            for key, array in own.items():
                stacks.setdefault(key, []).append(array)
        tensors |= {key: np.stack(arrays) for key, arrays in stacks.items()}
    else:
        document["parameters"] = _pack_all(model, tensors)
    if about:
        document["about"] = dict(about)
    return write_tensors(path, tensors, document, overwrite, fault="model")


def can_save(model: Any) -> bool:
    """Whether ``save`` knows the class of this model."""
    return _class_name(model) is not None


def load(path: str | os.PathLike[str]) -> Any:
    """Returns the model, or the ensemble, that ``save`` wrote; float64 parameters come back as float64.

    Raises FileError when the file is missing, damaged, of a newer harmonium, or holds something else.

    >>> from harmonium.energy.rbm import RBM
    >>> load(save(RBM(4, 2, seed=0), "rbm.safetensors")).parameters()["weights"].shape
    (4, 2)
    """
    return load_described(path)[0]


def load_described(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Returns the model and what ``save`` was told ``about`` it, empty when nothing. Raises as ``load`` does."""
    if Path(path).is_dir():
        raise FileError(
            f"{path} is a folder, not a model file; for a run folder use hm.load_run({str(path)!r}).model, or name the "
            "model.safetensors in it"
        )
    tensors, document = read_tensors(path)
    if document.get("kind") not in (_KIND, _ENSEMBLE):
        raise FileError(
            f"{path} holds a {document.get('kind', 'nameless thing')}, not a model; name a file that hm.save wrote, or "
            "use hm.load_run on the run folder"
        )
    name = document["class"]
    if name not in MODELS:
        raise FileError(
            f"{path} holds a {name}, which harmonium {harmonium_version()} does not know; install a newer harmonium"
        )
    module, _, attribute = MODELS[name].partition(":")
    from_arrays = getattr(import_module(module), attribute).from_arrays
    members = document.get("members")
    of_members = [
        {key: tensor[member] for key, tensor in tensors.items()} for member in range(members or 0)
    ] or [tensors]
    parameters = [
        {key: _unpack(value, own) for key, value in document["parameters"].items()} for own in of_members
    ]
    try:
        inspect.signature(from_arrays).bind(**parameters[0])
    except TypeError as error:
        raise FileError(
            f"{path} holds a {name} that harmonium {harmonium_version()} cannot build ({error}); install a newer "
            "harmonium"
        ) from error
    about = document.get("about", {})
    if members is None:
        return from_arrays(**parameters[0]), about
    return Ensemble(Ensemble.of(from_arrays(**own) for own in parameters).stacked, document["faults"]), about


def _class_name(model: Any) -> str | None:
    model = model.stacked if isinstance(model, Ensemble) else model
    kind = f"{type(model).__module__}:{type(model).__qualname__}"
    return next((name for name, place in MODELS.items() if place == kind), None)


def _pack_all(model: Any, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    return {key: _pack(value, key, tensors) for key, value in model.parameters().items()}


def _pack(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """``value`` as JSON, with every array put into ``tensors`` and replaced by its name there.

    Every object of the result is one of ours, ``{"tensor": name}`` or ``{"mapping": {...}}``, so that no mapping among
    the parameters can be mistaken for the name of a tensor.
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        tensors[name] = np.asarray(value)
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"mapping": {key: _pack(item, f"{name}.{key}", tensors) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_pack(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
    return plain(value, f"the parameter {name!r}")


def _unpack(value: Any, tensors: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, tensors) for item in value]
    if isinstance(value, dict) and "tensor" in value:
        return tensors[value["tensor"]]
    if isinstance(value, dict):
        return {key: _unpack(item, tensors) for key, item in value["mapping"].items()}
    return value
