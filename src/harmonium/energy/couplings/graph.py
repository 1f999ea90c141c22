"""Which pairs of units are coupled, and which units can therefore be drawn at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from harmonium.errors import SettingError
from harmonium.numerics.whole import whole_number

MOST_UNITS = 16_384
"""Most units of a graph: what is made of it are square matrices, of a gibibyte at this size."""


class Graph:
    """Pairs of ``size`` units, each named once: a value that hashes, so that programs are compiled per graph.

    ``pairs`` holds two numbers of units per pair; None couples all units with one another. Raises `SettingError` for
    numbers that name no unit, for a unit paired with itself and for a pair that is given twice.

    >>> Graph(3, [[0, 2]]).pairs.tolist()
    [[0, 2]]
    >>> len(Graph(3).pairs)
    3
    """

    def __init__(self, size: SupportsIndex, pairs: ArrayLike | None = None):
        self.size = whole_number(size, "a graph needs a whole number of units, at least 1")
        if self.size > MOST_UNITS:
            raise SettingError(
                f"a machine of {self.size} units keeps a matrix of {self.size} by {self.size} numbers; at most "
                f"{MOST_UNITS} units can be coupled in any way: use layers, such as hm.RBM, for more"
            )
        self._given = None if pairs is None else _sorted_pairs(pairs, self.size)
        self._hash = hash((self.size, None if self._given is None else self._given.tobytes()))

    @property
    def is_complete(self) -> bool:
        """Whether every unit is coupled to every other."""
        return self._given is None

    @cached_property
    def pairs(self) -> Int[np.ndarray, "pairs 2"]:
        """Two numbers of units per pair, the smaller first, in rising order."""
        if self._given is None:
            return np.stack(np.triu_indices(self.size, 1), axis=1).astype(np.int32)
        return self._given

    @cached_property
    def adjacency(self) -> Bool[np.ndarray, "size size"]:
        """Whether two units are coupled."""
        coupled = np.zeros((self.size, self.size), bool)
        first, second = self.pairs.T
        coupled[first, second] = coupled[second, first] = True
        return coupled

    @cached_property
    def places(self) -> Int[np.ndarray, "size size"]:
        """Which pair two units are, by its number; the number of pairs where they are none."""
        found = np.full((self.size, self.size), len(self.pairs), np.int32)
        first, second = self.pairs.T
        found[first, second] = found[second, first] = np.arange(len(self.pairs))
        return found

    def colours(self, members: ArrayLike) -> tuple[tuple[int, ...], ...]:
        """Groups of the units ``members`` such that no two of a group are coupled, the largest group first.

        Greedy, by the number of colours that a unit's neighbours already have, then by degree, then by number: two
        groups wherever two will do, and one unit a group where all are coupled.
        """
        units = np.asarray(members, np.intp)
        if self.is_complete:
            return tuple((int(unit),) for unit in units)
        coupled = self.adjacency[np.ix_(units, units)]
        colour = np.full(len(units), -1)
        taken = np.zeros((len(units), len(units) + 1), bool)
        degree = coupled.sum(axis=1)
        for _ in units:
            order = np.lexsort((-np.arange(len(units)), degree, taken.sum(axis=1), colour < 0))
            chosen = order[-1]
            colour[chosen] = int(np.argmin(taken[chosen]))
            taken[coupled[chosen], colour[chosen]] = True
        groups = [tuple(units[colour == number].tolist()) for number in range(colour.max(initial=-1) + 1)]
        return tuple(sorted(groups, key=lambda group: (-len(group), group)))

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        if not isinstance(other, Graph) or self.size != other.size or self._hash != other._hash:
            return False
        if self._given is None or other._given is None:
            return self._given is other._given
        return np.array_equal(self._given, other._given)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Graph({self.size})" if self.is_complete else f"Graph({self.size}, {len(self.pairs)} pairs)"


def grid(
    rows: SupportsIndex, columns: SupportsIndex, *, periodic: bool = False
) -> Int[np.ndarray, "pairs 2"]:
    """Pairs of neighbours on a square lattice, units numbered along its rows; ``periodic`` joins opposite edges.

    A side of one or two units has no edge to join that is not there already.

    >>> grid(2, 2).tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    height, width = (
        whole_number(extent, "a lattice has a whole number of rows and columns, at least 1")
        for extent in (rows, columns)
    )
    number = np.arange(height * width).reshape(height, width)
    found = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if periodic and width > 2:
        found.append((number[:, :1], number[:, -1:]))
    if periodic and height > 2:
        found.append((number[:1], number[-1:]))
    pairs = [np.stack([first.ravel(), second.ravel()], axis=1) for first, second in found]
    return _sorted_pairs(np.concatenate(pairs), height * width)


def _sorted_pairs(pairs: ArrayLike, size: int) -> Int[np.ndarray, "pairs 2"]:
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), np.int32)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise SettingError(
            f"pairs must be whole numbers of shape (pairs, 2), got {array.dtype} of shape {array.shape}; "
            "pass two numbers of units per pair"
        )
    wrong = (array < 0) | (array >= size)
    if wrong.any():
        raise SettingError(
            f"pairs names a unit {array[wrong][0]}, but units are numbered from 0 to {size - 1}"
        )
    array = np.sort(array.astype(np.int32), axis=1)
    alone = array[:, 0] == array[:, 1]
    if alone.any():
        raise SettingError(
            f"pairs couples unit {array[alone][0, 0]} with itself; leave it out: that is what its bias is for"
        )
    kept = np.unique(array, axis=0)
    if len(kept) < len(array):
        raise SettingError("pairs names a pair twice; pass each of them once")
    kept.setflags(write=False)
    return kept
