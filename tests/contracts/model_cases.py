"""The contract table of models: machines small enough to write down, with their energies written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.couplings.graph import grid
from harmonium.energy.dbn import DBN
from harmonium.energy.independent import Independent
from harmonium.energy.machine_path import MachinePath
from harmonium.energy.path import Path
from tests.contracts.machines import wave_layers, wave_machine, wave_matrix, wave_rbm, wave_vector
from tests.contracts.tables import Table

Energy = Callable[[dict[str, Any], tuple[np.ndarray, ...]], np.ndarray]


@dataclass(frozen=True)
class ModelCase:
    """A machine small enough to write down.

    ``energy`` is the energy written out from ``parameters()`` and the layers, independently of the model's own code.
    """

    build: Callable[[], Any]
    energy: Energy


def _rbm_energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
    v, h = layers
    interaction = np.einsum("si,ij,sj->s", v, parameters["weights"], h)
    return -v @ parameters["visible_bias"] - h @ parameters["hidden_bias"] - interaction


def _layers_energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
    total = np.zeros(len(layers[0]))
    for layer, bias in zip(layers, parameters["biases"], strict=True):
        total -= layer @ bias
    for lower, matrix, upper in zip(layers[:-1], parameters["weights"], layers[1:], strict=True):
        total -= np.einsum("si,ij,sj->s", lower, matrix, upper)
    return total


def _pairs_energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
    x = np.concatenate(layers, axis=1)
    total = -x @ parameters["bias"]
    for one in range(x.shape[1]):
        for other in range(one):
            total -= parameters["coupling"][one, other] * x[:, one] * x[:, other]
    return total


_SPARSE = np.array([[0, 1], [0, 4], [1, 2], [1, 5], [2, 3], [2, 4], [3, 5]])
"""Couplings of four visible and two hidden units: a chain of visible units, and hidden ones that are independent."""


def _stack_energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
    total = np.zeros(len(layers[0]))
    uppers = [*parameters["recognition_biases"], parameters["biases"][-1]]
    for level, (matrix, upper) in enumerate(zip(parameters["weights"], uppers, strict=True)):
        v, h = layers[2 * level], layers[2 * level + 1]
        total -= v @ parameters["biases"][level] + h @ upper + np.einsum("si,ij,sj->s", v, matrix, h)
    return total


def _independent_energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
    parts = [layer @ bias for layer, bias in zip(layers, parameters["biases"], strict=True)]
    return -np.sum(parts, axis=0)


def _path_energy(base: Energy, model: Energy) -> Energy:
    def energy(parameters: dict[str, Any], layers: tuple[np.ndarray, ...]) -> np.ndarray:
        beta = np.asarray(parameters["beta"])
        ends = base(parameters["base"].parameters(), layers), model(parameters["model"].parameters(), layers)
        return (1 - beta) * ends[0] + beta * ends[1]

    return energy


def wave_base(model: AbstractEnergyModel) -> Independent:
    """Independent layers like those of a model, of biases that are none of its own."""
    biases = [wave_vector(units.size, 2.0 + place) for place, units in enumerate(model.units)]
    return Independent.from_arrays(biases, kinds=[units.kind for units in model.units])


def wave_stack(*sizes: int, gain: float = 1.0) -> DBN:
    """A stack of float64 waves, its weights times ``gain``, with two different biases for every inner layer."""
    return DBN.from_arrays(
        [gain * wave_matrix(*pair, phase=0.7 * place) for place, pair in enumerate(pairwise(sizes))],
        [wave_vector(size, float(place)) for place, size in enumerate(sizes)],
        [wave_vector(size, 3.0 + place) for place, size in enumerate(sizes[1:-1])],
    )


def _path_to_an_rbm() -> Path:
    model = wave_rbm("spin", gain=2.0)
    return Path(wave_base(model), model, 0.6)


def _path_between_layers() -> Path:
    model = wave_layers(("bernoulli", 3), ("spin", 2), ("bernoulli", 2))
    arguments: dict[str, Any] = model.parameters() | {"biases": [wave_vector(n, 0.2) for n in (3, 2, 2)]}
    earlier = model.from_arrays(**arguments)
    return Path(earlier, model, 0.3)


def _path_to_labels() -> Path:
    model = wave_layers(("bernoulli", 2), ("bernoulli", 2), ("categorical:3", 3))
    return Path(wave_base(model), model, 0.6)


def _path_to_a_machine() -> MachinePath:
    model = wave_machine(3, 2, visible="spin", gain=0.7)
    return MachinePath(wave_base(model), model, 0.6)


MODELS: dict[str, ModelCase] = {
    "rbm": ModelCase(wave_rbm, _rbm_energy),
    "rbm of spins": ModelCase(lambda: wave_rbm("spin", "spin"), _rbm_energy),
    "rbm, spins below": ModelCase(lambda: wave_rbm("spin", "bernoulli"), _rbm_energy),
    "rbm, spins above": ModelCase(lambda: wave_rbm("bernoulli", "spin"), _rbm_energy),
    "rbm of one by one": ModelCase(lambda: wave_rbm(sizes=(1, 1)), _rbm_energy),
    "rbm, more hidden than visible": ModelCase(lambda: wave_rbm(sizes=(2, 5)), _rbm_energy),
    "strong rbm": ModelCase(lambda: wave_rbm(gain=3.0), _rbm_energy),
    "three layers": ModelCase(
        lambda: wave_layers(("bernoulli", 3), ("spin", 2), ("bernoulli", 2)), _layers_energy
    ),
    "four layers": ModelCase(
        lambda: wave_layers(("bernoulli", 2), ("bernoulli", 2), ("spin", 2), ("bernoulli", 1)), _layers_energy
    ),
    "stack of two": ModelCase(lambda: wave_stack(3, 2, 2), _stack_energy),
    "stack of three": ModelCase(lambda: wave_stack(2, 2, 1, 2), _stack_energy),
    "square stack": ModelCase(lambda: wave_stack(2, 2, 2, gain=3.0), _stack_energy),
    "stack on four": ModelCase(lambda: wave_stack(4, 2, 1, gain=2.0), _stack_energy),
    "machine, fully visible": ModelCase(lambda: wave_machine(5), _pairs_energy),
    "machine": ModelCase(lambda: wave_machine(3, 3, gain=0.7), _pairs_energy),
    "machine on a sparse graph": ModelCase(lambda: wave_machine(4, 2, pairs=_SPARSE), _pairs_energy),
    "machine of spins on a lattice": ModelCase(
        lambda: wave_machine(6, pairs=grid(2, 3), visible="spin", gain=0.5), _pairs_energy
    ),
    "machine, spins below": ModelCase(lambda: wave_machine(3, 2, visible="spin", gain=0.5), _pairs_energy),
    "independent": ModelCase(
        lambda: Independent.from_arrays([wave_vector(3), wave_vector(2, 1.0)], kinds=["bernoulli", "spin"]),
        _independent_energy,
    ),
    "path to an rbm": ModelCase(_path_to_an_rbm, _path_energy(_independent_energy, _rbm_energy)),
    "path to a machine": ModelCase(_path_to_a_machine, _path_energy(_independent_energy, _pairs_energy)),
    "path between layers": ModelCase(_path_between_layers, _path_energy(_layers_energy, _layers_energy)),
}
"""Machines by name; every proof of models and exact evaluators runs on each."""


LABELLED: dict[str, ModelCase] = {
    "classification rbm": ModelCase(
        lambda: wave_layers(("bernoulli", 3), ("spin", 2), ("categorical:3", 3)), _layers_energy
    ),
    "labels on two layers": ModelCase(
        lambda: wave_layers(("bernoulli", 3), ("bernoulli", 2), ("bernoulli", 2), ("categorical:3", 3)),
        _layers_energy,
    ),
    "path to labels": ModelCase(_path_to_labels, _path_energy(_independent_energy, _layers_energy)),
}
"""Machines with a label layer: the proofs of models, and those in ``tests/energy/test_labels.py``."""

STACKS = tuple(name for name in MODELS if "stack" in name)
"""Machines that are trained level by level, and whose density is not that of their energy."""

TRAINABLE = tuple(
    name for name in MODELS if name != "independent" and not name.startswith("path ") and name not in STACKS
)
"""Machines whose own arrays are what a rule trains as a whole: not the fixed ends of a path."""


def case_of(name: str) -> ModelCase:
    """The row of a machine, with labels or without."""
    return LABELLED[name] if name in LABELLED else MODELS[name]


@cache
def model_of(name: str) -> Any:
    """The machine of a row, its arrays in float64."""
    return case_of(name).build()


@cache
def table_of(name: str) -> Table:
    """Every configuration of the machine of a row."""
    return Table.of(model_of(name))


def twisted_table(name: str, twist: Callable[[Any], Any]) -> Table:
    with jax.enable_x64(True):
        return Table.of(twist(model_of(name)))


def table_gradient(name: str, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """``E_model[d(-E)] - E_data[d(-E)]`` of the tied parameters, by sums over the table: pairs, then units."""
    model, table = model_of(name), table_of(name)
    x, law = np.concatenate(table.layers, axis=1), table.law()
    data = np.zeros(table.count)
    for row, share in zip(rows, weight / weight.sum(), strict=True):
        chosen = (table.layers[0] == row).all(axis=1)
        data[chosen] += share * law[chosen] / law[chosen].sum()
    with jax.enable_x64(True):
        coupled = np.argwhere(np.triu(np.asarray(model.pairwise()[0])))
    pairs = x[:, coupled[:, 0]] * x[:, coupled[:, 1]]
    return np.concatenate([(law - data) @ pairs, (law - data) @ x])
