"""A deep Boltzmann machine as machines of two layers that can be trained one by one, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from harmonium.energy.dbm import DBM
from harmonium.energy.labels import check_unlabelled
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.units.base import AbstractUnits
from harmonium.units.pair import AbstractPair, pair_of


def levels_of(dbm: DBM) -> tuple[RBM, ...]:
    r"""The machines that a deep Boltzmann machine is pre-trained as, bottom first.

    An inner layer of the machine hears two layers; in a level one of them is missing, and the other counts twice for
    it. A level is therefore an RBM with *twice* the parameters that it gives the machine, weights and biases,
    :math:`(2W_l, 2b, 2c)`. The visible layer and the top hidden layer, which hear one layer only, stand in their
    levels as pairs of copies (`harmonium.units.pair`):

    .. math:: p(h_1 \mid v) = \sigma(2(v^\top W_1 + c_1)), \quad p(v \mid h_1) = \sigma(b_0 + W_1 h_1), \qquad
        p(h_{L-1} \mid h_L) = \sigma(2(b_{L-1} + W_L h_L)), \quad p(h_L \mid h_{L-1}) = \sigma(c_L + h_{L-1}^\top W_L)

    A level between is doubled both ways: that *is* an ordinary RBM, whose parameters are halved when it is put in its
    place. So is, undoubled, the only level of a machine of one hidden layer, which is an RBM. An inner bias is that of
    two levels, and each gets half of it, so that :func:`merged` gives back the machine itself.

    Raises `SettingError` for units without pairs. Source: Salakhutdinov and Hinton, "Deep Boltzmann machines" (2009),
    section 3.1, and the authors' program, which doubles biases with weights.

    >>> [rbm.units[0].kind + " - " + rbm.units[1].kind for rbm in levels_of(DBM(6, [4, 3, 2]))]
    ['bernoulli-pair - bernoulli', 'bernoulli - bernoulli', 'bernoulli - bernoulli-pair']
    """
    check_unlabelled(dbm, "training level by level")
    if len(dbm.couplings) == 1:
        return (RBM(*dbm.units, weights=dbm.couplings[0].kernel.T),)
    last = len(dbm.units) - 1
    return tuple(
        RBM(
            *(_in_a_level(dbm.units[layer], layer in (0, last)) for layer in (level, level + 1)),
            weights=2 * dbm.couplings[level].kernel.T,
        )
        for level in range(last)
    )


def merged(levels: Sequence[RBM]) -> DBM:
    r"""The deep Boltzmann machine of levels, bottom first: half of every parameter, and the *sum* of an inner layer's.

    With two levels this keeps the laws that the levels have of the layer between them as well as one machine can:

    .. math:: p(h_1) \propto \sqrt{p_1(h_1)\, p_2(h_1)}, \qquad p(v \mid h_1) = p_1(v \mid h_1), \qquad
        p(h_2 \mid h_1) = p_2(h_2 \mid h_1)

    exactly, for any parameters: each of :math:`p_1` and :math:`p_2` is a square, of what one of its two copies says of
    :math:`h_1`, and the machine takes one factor of either. A second level that is the first upside down thus leaves
    :math:`p(v)` as it is. Biases are summed *because* they were doubled; of undoubled ones the mean would be taken.

    Raises `SettingError` for levels that do not lie on each other as those of :func:`levels_of` do.
    """
    if len(levels) == 1:
        given = levels[0].parameters()
        kinds = [units.kind for units in levels[0].units]
        return DBM.from_arrays([given["weights"]], [given["visible_bias"], given["hidden_bias"]], kinds)
    last = len(levels) - 1
    for place, (lower, upper) in enumerate(pairwise(levels)):
        shared, own = lower.units[1], upper.units[0]
        if (shared.kind, shared.size) != (own.kind, own.size):
            raise SettingError(
                f"level {place} has {shared.size} {shared.kind} hidden units and level {place + 1} {own.size} "
                f"{own.kind} visible ones; make the upper one of as many of that kind"
            )
    for place, side in ((0, 0), (last, 1)):
        if not isinstance(levels[place].units[side], AbstractPair):
            raise SettingError(
                f"the {('visible', 'hidden')[side]} layer of level {place} must be pairs, got "
                f"{levels[place].units[side].kind} units; make the levels with levels_of(dbm)"
            )
    halves = [[np.asarray(units.bias) / 2 for units in level.units] for level in levels]
    inner = [lower[1] + upper[0] for lower, upper in pairwise(halves)]
    return DBM.from_arrays(
        [np.asarray(level.couplings[0].weights) / 2 for level in levels],
        [halves[0][0], *inner, halves[-1][1]],
        [_outer_kind(levels[0].units[0]), *(level.units[1].kind for level in levels[:-1])]
        + [_outer_kind(levels[-1].units[1])],
    )


def _in_a_level(units: AbstractUnits, outer: bool) -> AbstractUnits:
    """An outer layer as pairs with twice the bias, an inner one with twice the half that the level has of it."""
    pair = pair_of(units.kind)
    return pair(bias=2 * np.asarray(units.bias)) if outer else units


def _outer_kind(units: AbstractUnits) -> str:
    assert isinstance(units, AbstractPair)
    return units.of.kind
