"""Branch and bound for a maximum over spins, many nodes at a time."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from harmonium.modes.spins import SpinForm, all_spins, rounding_of
from harmonium.numerics.best_pair import best_pair
from harmonium.numerics.compile import compile_function

_BATCH = 512
_LEAF_BITS = 10


class _Nodes(NamedTuple):
    """Nodes of one depth: the fixed spins, what they are worth, and the fields of the others and of the free spins."""

    spins: np.ndarray
    value: np.ndarray
    others: np.ndarray
    free: np.ndarray
    bound: np.ndarray

    def taken(self, places: np.ndarray | slice) -> _Nodes:
        return _Nodes(*(part[places] for part in self))


def branch_and_bound(
    form: SpinForm, known: float, most_nodes: int
) -> tuple[Float[np.ndarray, " spins"] | None, float, int]:
    r"""Spins of a larger :math:`-E` than ``known``, the largest found; an upper bound of all; and how many bounds.

    Spins are None where there are none. The bound is the maximum itself, to twice the rounding of sums,
    unless ``most_nodes`` bounds were not enough. Call it with 64-bit types enabled.

    With some spins fixed, what remains is a sum of absolute values of linear forms of the free ones,

    .. math:: v + \sum_j f_j s_j + \sum_k |l_k + (J s)_k|,

    each form within :math:`l_k \pm r_k`, :math:`r_k = \sum_j |J_{kj}|`. Over that range a chord lies above the absolute
    value, and under all chords together each free spin is best by itself: that is the bound. Free spins coupled to each
    other, :math:`\frac12 s^\top K s`, are forms too, :math:`\sum_i |f_i + \frac12 (K s)_i|`. Spins are fixed in the
    order of their influence :math:`\sum_k |J_{kj}|`; the last few are enumerated.
    """
    influence = np.abs(form.between).sum(axis=0)
    if form.within is not None:
        influence = influence + np.abs(form.within).sum(axis=0)
    order = np.argsort(-influence, kind="stable")
    tree = _Tree(form, order)
    best, best_spins, count = known, None, 1
    stack = [tree.root()]
    while stack and count < most_nodes:
        nodes = stack.pop()
        nodes = nodes.taken(nodes.bound > best + tree.slack)
        if len(nodes.bound) > _BATCH:
            # The most promising ones lie last.
            stack.append(nodes.taken(slice(0, -_BATCH)))
            nodes = nodes.taken(slice(-_BATCH, None))
        if not len(nodes.bound):
            continue
        if tree.size - nodes.spins.shape[1] <= _LEAF_BITS:
            value, spins = tree.leaf(nodes)
            count += len(nodes.bound)
            if value > best + tree.slack:
                best, best_spins = value, spins
            continue
        children = tree.children(nodes)
        count += len(children.bound)
        stack.append(children.taken(np.argsort(children.bound, kind="stable")))
    open_bounds = [float(nodes.bound.max()) for nodes in stack if len(nodes.bound)]
    spins = None
    if best_spins is not None:
        spins = np.empty(tree.size)
        spins[order] = best_spins
    return spins, max([best, *open_bounds]), count


class _Tree:
    """The spins of a form in the order in which they are fixed."""

    def __init__(self, form: SpinForm, order: np.ndarray):
        self.size = len(order)
        self._between = np.asarray(form.between)[:, order]
        self._field = np.asarray(form.field)[order]
        self._within = None if form.within is None else np.asarray(form.within)[np.ix_(order, order)]
        self._others, self._constant = np.asarray(form.other_field), float(form.constant)
        self.slack = float(rounding_of(form))

    def root(self) -> _Nodes:
        """The one node in which nothing is fixed."""
        start = np.zeros((1, 0)), np.full(1, self._constant), self._others[None], self._field[None]
        return _Nodes(*start, self._bounds(*start))

    def children(self, nodes: _Nodes) -> _Nodes:
        """Both values of the next spin, for every node."""
        depth = nodes.spins.shape[1]
        parts = []
        for spin in (-1.0, 1.0):
            free = nodes.free[:, 1:]
            if self._within is not None:
                free = free + spin * self._within[depth, depth + 1 :]
            parts.append(
                (
                    np.append(nodes.spins, np.full((len(nodes.spins), 1), spin), axis=1),
                    nodes.value + spin * nodes.free[:, 0],
                    nodes.others + spin * self._between[:, depth],
                    free,
                )
            )
        spins, value, others, free = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        return _Nodes(spins, value, others, free, self._bounds(spins, value, others, free))

    def leaf(self, nodes: _Nodes) -> tuple[float, np.ndarray]:
        """The largest value below some nodes, and its spins: all states of the free ones are looked at."""
        depth = nodes.spins.shape[1]
        states = all_spins(self.size - depth)
        forms = states @ self._between[:, depth:].T
        own = np.zeros(len(states))
        if self._within is not None:
            own = np.sum(states @ self._within[depth:, depth:] * states, axis=1) / 2
        # Always as many rows, so that one program serves: what fills up is worth nothing.
        beyond = _BATCH - len(nodes.value)
        worth = np.pad(nodes.value, (0, beyond), constant_values=-np.inf)
        others, free = (np.pad(part, ((0, beyond), (0, 0))) for part in (nodes.others, nodes.free))
        value, row, state = _program()(worth, others, own, forms, (free, states))
        return float(value), np.append(nodes.spins[int(row)], states[int(state)])

    def _bounds(
        self, spins: np.ndarray, value: np.ndarray, others: np.ndarray, free: np.ndarray
    ) -> np.ndarray:
        depth = spins.shape[1]
        between = self._between[:, depth:]
        middle, slope = _chords(others, np.abs(between).sum(axis=1))
        pull = slope @ between
        bound = value + middle.sum(axis=1)
        if self._within is None:
            return bound + np.abs(free + pull).sum(axis=1)
        within = self._within[depth:, depth:] / 2
        middle, slope = _chords(free, np.abs(within).sum(axis=1))
        return bound + middle.sum(axis=1) + np.abs(pull + slope @ within).sum(axis=1)


def _chords(centre: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At its middle, and its slope: the chord of the absolute value over ``centre`` plus and minus ``reach``."""
    high, low = np.abs(centre + reach), np.abs(centre - reach)
    wide = np.where(reach > 0, 2 * reach, 1.0)
    return (high + low) / 2, (high - low) / wide


@cache
def _program():
    return compile_function(best_pair)
