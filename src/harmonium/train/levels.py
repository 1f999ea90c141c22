"""The levels of a network that is trained one after the other: what they start from, learn from, and make together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.binarization import draw_binary
from harmonium.data.support import encode
from harmonium.energy.dbm import DBM
from harmonium.energy.dbn import DBN
from harmonium.energy.doubling import levels_of, merged
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.inference.mean_field import MeanField
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import Contrastive
from harmonium.rules.mode_assisted import ModeAssisted

Network = DBN | DBM
"""What can be trained level by level."""

_BLOCK = 4096


def as_network(model: Any) -> Network:
    """The model itself. Raises `SettingError` unless it can be trained level by level."""
    if not isinstance(model, DBN | DBM):
        raise SettingError(
            "a DBN such as hm.DBN(64, [32, 16]), or a DBM, is trained level by level, got "
            f"{type(model).__name__}; use hm.fit"
        )
    return model


def split(network: Network) -> list[RBM]:
    """The RBMs that a network is trained as, bottom first; those of a DBM are `harmonium.energy.doubling.levels_of`."""
    return list(network.levels if isinstance(network, DBN) else levels_of(network))


def joined(network: Network, levels: Sequence[RBM]) -> Network:
    """The network of these levels, of the kind of the given one."""
    return DBN.of(levels) if isinstance(network, DBN) else merged(levels)


def scored(network: Network, levels: Sequence[RBM], count: int) -> Network | None:
    """The network as far as ``count`` of its levels are trained; None where that is no machine of its own.

    Of a DBM whose first level alone is trained it is that level with itself upside down as its prior, whose
    :math:`p(v)` is that of one copy of the rows in the level.
    """
    if isinstance(network, DBN):
        return DBN.of(levels[:count])
    if count == len(levels):
        return merged(levels)
    if count > 1:
        return None
    return merged([levels[0], upside_down(levels[0])])


def check_rule(network: Network, rule: AbstractRule) -> None:
    """Raise `SettingError` for a rule that trains whole machines, and no levels."""
    if isinstance(network, DBM) and isinstance(rule, ModeAssisted):
        raise SettingError(
            "levels of a DBM have pairs of copies as units, of which no mode is looked for; leave mode-assisted "
            "training (--mode-assisted) out, or train all layers at once with it: without greedy, or, in Python, by "
            "hm.fit(run.model, data, hm.ModeAssisted(...)) after the levels"
        )
    if isinstance(network, DBM) and isinstance(rule, Contrastive) and isinstance(rule.inference, MeanField):
        raise SettingError(
            "inference='mean-field' is for all layers of a DBM together; in a level hidden units are independent given "
            "the rows: use inference='exact' (--inference) for the levels, and give the other to the joint training "
            "(joint.inference)"
        )


def next_level(below: RBM, fresh: RBM, transposed: bool | None = True) -> RBM:
    """What a level starts from: the level below upside down where its layers are the same, else what it is."""
    same = [(units.kind, units.size) for units in fresh.units] == [
        (units.kind, units.size) for units in below.units[::-1]
    ]
    return fresh if transposed is False or not same else upside_down(below)


def upside_down(rbm: RBM) -> RBM:
    """The same machine with its layers exchanged."""
    given = rbm.parameters()
    return RBM.from_arrays(
        given["weights"].T,
        given["hidden_bias"],
        given["visible_bias"],
        visible=rbm.units[1].kind,
        hidden=rbm.units[0].kind,
    )


def passed_up(rbm: RBM, data: DataSet, seed: int) -> DataSet:
    r"""What the level above learns from: probabilities of the hidden units, of which bits are drawn in every epoch.

    In a level of a DBM they are :math:`\sigma(2(v^\top W + c))`. Rows that are probabilities themselves are drawn once,
    by ``draw_binary(rows, seed)``.
    """
    units = rbm.units[0]
    splits: dict[str, Any] = {}
    for name, given in data.splits().items():
        rows = encode(
            given, units.ends, f"the {name} rows", width=units.size, binarization=data.binarization
        ).rows
        if data.binarization == "stochastic":
            rows = draw_binary(rows, seed, units.ends)
        blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        splits[name] = np.concatenate(
            [np.asarray(_probability_program()(as_single(rbm), block)) for block in blocks]
        )
    name = f"hidden units of level {seed} on {data.name}"
    return DataSet(name, **splits, weight=data.weight, binarization="stochastic")


@cache
def _probability_program():
    def probabilities(rbm: RBM, rows: Any) -> Any:
        upper = rbm.units[1]
        low, high = upper.ends
        field = upper.natural() + rbm.couplings[0].forward(jnp.asarray(rows, jnp.float32))
        return jnp.clip((upper.mean(field) - low) / (high - low), 0, 1)

    return compile_function(probabilities)
