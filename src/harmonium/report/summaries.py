"""What a model or a run is, as plain values that fit into JSON."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.stack import AbstractStack
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load_described
from harmonium.train.rebuild import load_run
from harmonium.units.categorical import Categorical

_SURE = 0.005
"""A unit is called constant when its mean is this near to one end of its range whatever its neighbours are."""

_UNUSED = 0.1
"""A unit is called unused when all its neighbours together move its field by less than this many nats."""


def summarise_model(model: AbstractEnergyModel | Ensemble) -> dict[str, Any]:
    """Kind, layers, number of parameters and dtype of a model, or of each member of an ensemble, which is counted.

    >>> from harmonium.energy.rbm import RBM
    >>> summarise_model(RBM(64, 16))["parameters"]
    1104
    """
    if isinstance(model, Ensemble):
        return {**summarise_model(model.member(0)), "members": len(model)}
    arrays = jax.tree.leaves(model)
    layers = model.layers if isinstance(model, AbstractStack) else model.units
    return {
        "kind": type(model).__name__,
        "layers": [{"units": units.kind, "size": int(units.size)} for units in layers],
        "parameters": sum(part.size for part in arrays),
        "dtype": str(np.result_type(*(np.asarray(part) for part in arrays))),
    }


def inspect_parameters(model: AbstractLayered) -> list[dict[str, Any]]:
    """Per layer above the visible one: its weights downwards and its biases in numbers, and units that do no work.

    ``constant`` units have the same value whatever their neighbours are: over all states of these their field keeps to
    one end. ``unused`` units are moved by less than 0.1 nats by all their neighbours together.

    >>> from harmonium.energy.rbm import RBM
    >>> still = RBM.from_arrays(np.zeros((3, 2)), np.zeros(3), np.array([9.0, 0.0]))
    >>> [(layer["constant"], layer["unused"]) for layer in inspect_parameters(still)]
    [([0], [1])]
    """
    found: list[dict[str, Any]] = []
    for index in range(1, len(model.units)):
        units = model.units[index]
        weights = np.asarray(model.couplings[index - 1].kernel, np.float64)
        bias = np.asarray(units.bias, np.float64)
        low, high = _field_range(model, index)
        bottom, top = units.support[0], units.support[-1]
        share = [
            (np.asarray(units.mean(jnp.asarray(field))) - bottom) / (top - bottom) for field in (low, high)
        ]
        constant = (share[0] > 1 - _SURE) | (share[1] < _SURE)
        if isinstance(units, Categorical):
            # How probable a class is does not follow from its own field alone.
            constant = np.zeros(units.size, bool)
        unused = (high - low < _UNUSED) & ~constant
        found.append(
            {
                "layer": index,
                "finite": bool(np.isfinite(weights).all() and np.isfinite(bias).all()),
                "weight_rms": float(np.sqrt(np.mean(weights**2))),
                "weight_low": float(weights.min()),
                "weight_high": float(weights.max()),
                "bias_low": float(bias.min()),
                "bias_high": float(bias.max()),
                "constant": np.flatnonzero(constant).tolist(),
                "unused": np.flatnonzero(unused).tolist(),
            }
        )
    return found


def summarise_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Settings, progress, last metrics and model of a run, and what has changed since it began.

    **Raises** FileError where the path is no run folder.
    """
    folder = RunFolder.open(path)
    run = load_run(path)
    _, about = load_described(folder.model_path)
    timing = folder.read_timing()
    reported = run.history[-1]["index"] if run.history else 0
    return {
        "path": str(folder.path),
        "finished": run.finished,
        "updates": about.get("updates", reported),
        "horizon": about.get("horizon", reported),
        "reliable": run.reliable,
        "reason": run.reason,
        "metrics": run.history[-1] if run.history else None,
        "seconds": timing[-1].get("seconds") if timing else None,
        "settings": run.config,
        "model": {**summarise_model(run.model), "parts": parts_of(run.model)},
        "checkpoints": folder.checkpoints.indices(),
        "environment_changes": folder.environment_changes(),
        "samples": str(folder.samples_path) if folder.samples_path.exists() else None,
    }


def inspect_machine(model: BoltzmannMachine) -> dict[str, Any]:
    """The couplings of a general machine, each pair counted once, and its biases in numbers.

    Without a pair the numbers of the couplings are None.

    >>> machine = BoltzmannMachine.from_arrays([[0.0, 2.0], [2.0, 0.0]], [1.0, -1.0])
    >>> inspect_machine(machine)["pairs"], inspect_machine(machine)["weight_high"]
    (1, 2.0)
    """
    weights = np.asarray(model.couplings[0].strengths, np.float64)
    bias = np.concatenate([np.asarray(units.bias, np.float64) for units in model.units])
    return {
        "pairs": len(weights),
        "finite": bool(np.isfinite(weights).all() and np.isfinite(bias).all()),
        "weight_rms": float(np.sqrt(np.mean(weights**2))) if len(weights) else None,
        "weight_low": float(weights.min()) if len(weights) else None,
        "weight_high": float(weights.max()) if len(weights) else None,
        "bias_low": float(bias.min()),
        "bias_high": float(bias.max()),
    }


def parts_of(model: AbstractEnergyModel | Ensemble) -> list[dict[str, Any]]:
    """`inspect_parameters` of a layered model or of every level of a stack, `inspect_machine` of a general one.

    Nothing of others and of ensembles.
    """
    if isinstance(model, BoltzmannMachine):
        return [inspect_machine(model)]
    if isinstance(model, AbstractStack):
        return [
            {**part, "layer": index}
            for index, rbm in enumerate(model.levels, start=1)
            for part in inspect_parameters(rbm)
        ]
    return inspect_parameters(model) if isinstance(model, AbstractLayered) else []


def _field_range(model: AbstractLayered, index: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest field of every unit of a layer over all states of its neighbours."""
    low = high = np.asarray(model.units[index].natural(), np.float64)
    neighbours = [(index - 1, np.asarray(model.couplings[index - 1].kernel, np.float64))]
    if index < len(model.units) - 1:
        neighbours.append((index + 1, np.asarray(model.couplings[index].kernel, np.float64).T))
    for other, kernel in neighbours:
        if isinstance(model.units[other], Categorical):
            low, high = low + kernel.min(axis=1), high + kernel.max(axis=1)
            continue
        support = model.units[other].support
        ends = support[0] * kernel, support[-1] * kernel
        low = low + np.minimum(*ends).sum(axis=1)
        high = high + np.maximum(*ends).sum(axis=1)
    return low, high
