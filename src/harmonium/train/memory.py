"""How many members a run may have: counted before the first of them is made."""

from __future__ import annotations

import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError
from harmonium.rules.base import AbstractRule
from harmonium.train.config import TrainConfig
from harmonium.train.setup import SHORTEST_CHUNK

MOST_NUMBERS = 2**31
"""Most numbers, of four bytes or so, that the members of one run may hold together: eight gigabytes."""


def numbers_of_a_member(model: AbstractEnergyModel, rule: AbstractRule, rows: int, batch_size: int) -> int:
    """What one member holds at least: its parameters, its chains with a batch beside them, and its order of the rows.

    The order is a permutation of all rows, and the row numbers of the shortest compiled call.

    >>> from harmonium.energy.rbm import RBM
    >>> from harmonium.rules.contrastive import PCD
    >>> numbers_of_a_member(RBM(9, 4), PCD(chains=16), rows=14, batch_size=100)  # 49 + 30 * 13 + 14 + 100 * 14
    1853
    """
    parameters = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(model))
    batch = min(batch_size, rows)
    chains = getattr(rule, "chains_count", None) or 0
    units = sum(layer.size for layer in model.units)
    return parameters + (chains + batch) * units + rows + SHORTEST_CHUNK * batch


def check_members(settings: TrainConfig, model: AbstractEnergyModel, rule: AbstractRule, rows: int) -> None:
    """Raise `SettingError` for more members than `MOST_NUMBERS` hold, each such a model, trained on so many rows."""
    members = settings.members or 1
    each = numbers_of_a_member(model, rule, rows, settings.batch_size)
    if members > 1 and members * each > MOST_NUMBERS:
        raise SettingError(
            f"members={members} (--members) would hold {members * each:.2g} numbers, {each} each, and those of one run "
            f"may hold 2**31; pass at most {max(1, MOST_NUMBERS // each)}, and train more as runs of other seeds"
        )
