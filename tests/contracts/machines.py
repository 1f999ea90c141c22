"""Small machines with written-down parameters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.couplings.graph import Graph
from harmonium.energy.dbm import DBM
from harmonium.energy.rbm import RBM


def wave_matrix(rows: int, columns: int, phase: float = 0.0, scale: float = 0.8) -> np.ndarray:
    """``scale * sin(1 + 1.7 i + 2.3 j + phase)``: parameters that anyone can write down again."""
    i, j = np.indices((rows, columns))
    return scale * np.sin(1 + 1.7 * i + 2.3 * j + phase)


def wave_vector(size: int, phase: float = 0.0, scale: float = 0.5) -> np.ndarray:
    """``scale * cos(0.5 + 1.9 i + phase)``."""
    return scale * np.cos(0.5 + 1.9 * np.arange(size) + phase)


def wave_rbm(
    visible: str = "bernoulli",
    hidden: str = "bernoulli",
    *,
    sizes: tuple[int, int] = (4, 3),
    gain: float = 1.0,
) -> RBM:
    """An RBM of float64 waves, its weights multiplied by ``gain``; the default one has golden values."""
    rows, columns = sizes
    return RBM.from_arrays(
        gain * wave_matrix(rows, columns),
        wave_vector(rows),
        wave_vector(columns, 1.0),
        visible=visible,
        hidden=hidden,
    )


def wave_machine(
    n_visible: int,
    n_hidden: int = 0,
    *,
    pairs: np.ndarray | None = None,
    visible: str = "bernoulli",
    hidden: str = "bernoulli",
    gain: float = 1.0,
) -> BoltzmannMachine:
    """A general machine of float64 waves: ``M + M'`` without its diagonal and where ``pairs`` are, times ``gain``."""
    size = n_visible + n_hidden
    matrix = gain * (wave_matrix(size, size) + wave_matrix(size, size).T) * Graph(size, pairs).adjacency
    return BoltzmannMachine.from_arrays(
        matrix, wave_vector(size), n_visible, pairs=pairs, visible=visible, hidden=hidden
    )


def wave_layers(*layers: tuple[str, int]) -> DBM:
    """A deep machine of the given kinds and sizes, bottom first, with float64 waves for parameters."""
    sizes = [size for _, size in layers]
    return DBM.from_arrays(
        [wave_matrix(*pair, phase=0.7 * place) for place, pair in enumerate(pairwise(sizes))],
        [wave_vector(size, phase=float(place)) for place, size in enumerate(sizes)],
        [kind for kind, _ in layers],
    )
