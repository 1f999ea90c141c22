"""Everything a training run is, as one value."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int, Key

from harmonium.energy.base import AbstractEnergyModel


class TrainState(eqx.Module):
    """The complete state of a run: with the same data and settings it determines every later update, bit for bit.

    - ``model``, ``optimizer_state`` and ``rule_state`` (persistent chains, centring offsets).
    - ``index``: updates done. ``start`` and ``horizon``: the stretch that the schedules run over; extending a
      finished run moves both, which restarts the decay.
    - ``chunk``: updates per compiled call; calls end at absolute multiples of it.
    - ``key``: the base key; an update's noise is this key folded with the update's index. ``shared_key``: the same for
      what members of an ensemble share.
    - ``rate_scale``: what the divergence guard has multiplied the learning rate by.

    The data cursor is not stored: the order of rows is a function of the key and the index.

    In the state of an ensemble everything that members have of their own (``model``, ``optimizer_state``,
    ``rule_state``, ``key``, ``rate_scale``) has a leading member axis; the rest is shared. A member that the guard has
    stopped has a ``rate_scale`` of 0.
    """

    model: AbstractEnergyModel
    optimizer_state: Any
    rule_state: Any
    index: Int[Array, ""]
    start: Int[Array, ""]
    horizon: Int[Array, ""]
    chunk: Int[Array, ""]
    key: Key[Array, "*members"]
    shared_key: Key[Array, ""]
    rate_scale: Float[Array, "*members"]
