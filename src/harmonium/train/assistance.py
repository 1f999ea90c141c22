"""What a mode-assisted run says of its modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from harmonium.rules.mode_assisted import ModeAssistedState
from harmonium.train.ensemble_monitor import summary_of, training_members
from harmonium.train.state import TrainState


def mode_signs(state: TrainState) -> dict[str, Any]:
    """What the metrics of a mode-assisted run have beside those of every run; nothing for another run.

    ``mode_share``: the share of the updates so far that took a mode, one number for all members; ``mode_energy`` and
    ``mode_push``: those of the last mode, in nats, of an ensemble the median and the band over members.
    """
    found = state.rule_state
    if not isinstance(found, ModeAssistedState):
        return {}
    share = {"mode_share": float(np.max(np.asarray(found.taken)) / max(1, int(state.index)))}
    if found.energy is None or found.push is None:
        return share
    energy, push = np.asarray(found.energy), np.asarray(found.push)
    if energy.ndim == 0:
        return {**share, "mode_energy": float(energy), "mode_push": float(push)}
    members = training_members(state)
    lines = [{"mode_energy": float(energy[at]), "mode_push": float(push[at])} for at in members]
    return share | (summary_of(lines) if lines else {})
