"""Spin glasses on two sides: the machines on which solvers are compared."""

from __future__ import annotations

import numpy as np

import harmonium as hm


def glass(visible: int, hidden: int, seed: int) -> hm.RBM:
    """Normal weights, and biases that make all fields zero where every unit is a half."""
    weights = np.random.default_rng(seed).normal(size=(visible, hidden))
    return hm.RBM.from_arrays(weights, -weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2)
