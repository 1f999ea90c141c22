"""Rules that are assisted by modes: a row here says what the update at a mode is on a small machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import harmonium as hm
from harmonium.rules.mode_assisted import ModeAssisted
from tests.contracts.model_cases import model_of, table_of

ALWAYS: dict[str, Any] = {"probability": 1.0, "offset": 100.0}
"""Settings with which every update takes a mode."""


@dataclass(frozen=True)
class AssistedCase:
    """An assisted rule whose every update takes a mode, and the twin that the proof must catch.

    ``push`` is the scale of the update on a machine of `MODELS`, by conversion to units of +-1.
    """

    rule: ModeAssisted
    twin: ModeAssisted
    push: Callable[[str], float]


def spin_push(name: str, scale: float = 0.25) -> float:
    """Minus the energy of the ground state in units of +-1, over the number of parameters and one, times a scale.

    ``x = m + r s`` with ``s`` of +-1: ``J = r r' C`` and ``h = r (b + C m)``, and what does not depend on ``s`` is left
    out.
    """
    model, table = model_of(name), table_of(name)
    coupling, bias = (np.asarray(part, np.float64) for part in model.pairwise())
    x = np.concatenate(table.layers, axis=1)
    low, high = x.min(axis=0), x.max(axis=0)
    middle, reach = (low + high) / 2, (high - low) / 2
    spins = (x[np.argmin(table.energy)] - middle) / reach
    energy = -spins @ (np.outer(reach, reach) * coupling) @ spins / 2 - spins @ (
        reach * (bias + coupling @ middle)
    )
    parameters = np.count_nonzero(np.triu(coupling)) + len(bias)
    return scale * max(-energy, 0) / (1 + parameters)


ASSISTED: dict[str, AssistedCase] = {
    "cd": AssistedCase(
        hm.ModeAssisted(hm.CD(1, centred=False), "descent", **ALWAYS),
        hm.ModeAssisted(hm.CD(1, centred=False), "descent", **ALWAYS, push_scale=0.3),
        spin_push,
    ),
    "pcd": AssistedCase(
        hm.ModeAssisted(hm.PCD(chains=8, centred=False), "descent", **ALWAYS, push=0.1),
        hm.ModeAssisted(hm.PCD(chains=8, centred=False), "descent", push=0.1),
        lambda name: 0.1,
    ),
}
"""Assisted rules; the second twin takes no mode."""
