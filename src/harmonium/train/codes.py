"""What a run by deep tempering says of its swaps, and the alarm that swaps do not show."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.codes import CODE_BITS, code_distances
from harmonium.numerics.precision import as_single
from harmonium.samplers.deep_tempering import DeepTemperingState
from harmonium.train.ensemble_monitor import summary_of, training_members
from harmonium.train.outside import sampler_state
from harmonium.train.state import TrainState

PARTED = 0.9
"""Distance of the two laws of a code above which the levels have parted."""

_HEALTHY = 0.02
"""Share of swaps that change a code above which swaps alone look well."""


def swap_signs(state: TrainState) -> dict[str, Any]:
    """What the metrics of a run by deep tempering have beside those of every run; nothing for another run.

    ``swap_acceptance`` and ``swap_rate``, means over pairs of levels: how likely a swap was, and how often one was made
    *that changed a code* (swaps of equal codes are accepted, and do nothing). ``code_distance``: the largest of
    `harmonium.evaluate.codes.code_distances`, where codes have at most 14 units. ``codes_parted`` stands where swaps
    look well and the laws of a code have parted. Of an ensemble the median and the band over members.
    """
    sampler = sampler_state(state.rule_state)
    if not isinstance(sampler, DeepTemperingState):
        return {}
    if state.key.ndim == 0:
        signs = _signs_of(state.model, sampler)
        return signs | ({"codes_parted": True} if _have_parted(signs) else {})
    members = training_members(state)
    lines = [
        _signs_of(*jax.tree.map(lambda leaf, at=member: leaf[at], (state.model, sampler)))
        for member in members
    ]
    parted = [member for member, signs in zip(members, lines, strict=True) if _have_parted(signs)]
    return (summary_of(lines) if lines else {}) | ({"codes_parted": parted} if parted else {})


def alarm_of(record: dict[str, Any]) -> str | None:
    """What to say of a run whose last metrics are these: None where the levels agree on their codes."""
    parted = record.get("codes_parted")
    if not parted:
        return None
    who = "" if parted is True else f"in members {', '.join(map(str, parted))} "
    return (
        f"{who}swaps look well (rate {record['swap_rate']:.2f}), but the levels have parted: the laws of a code in one "
        f"and in the next are {record['code_distance']:.2f} apart in total variation, so that codes with most of the "
        "mass of the lower level are never proposed; use hot replicas, hm.DeepTempering(hot=4) (--set hot=4)"
    )


def _signs_of(model: Any, sampler: DeepTemperingState) -> dict[str, Any]:
    signs = {
        "swap_acceptance": float(np.mean(np.asarray(sampler.acceptance))),
        "swap_rate": float(np.mean(np.asarray(sampler.moved))),
    }
    if isinstance(model, AbstractStack) and all(
        units.size <= CODE_BITS and len(units.support) == 2 for units in model.units[1:-1]
    ):
        single = as_single(model)
        if all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(single)):
            signs["code_distance"] = max(code_distances(single))
    return signs


def _have_parted(signs: dict[str, Any]) -> bool:
    return signs["swap_rate"] > _HEALTHY and signs.get("code_distance", 0.0) > PARTED
