"""Generators: data whose distribution, entropy and best possible likelihood are known exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.noise import uniform_index
from harmonium.errors import SettingError

LARGEST_TABLE = 1 << 30
"""Bytes above which a finite generator refuses to write its whole set down."""


def bars_and_stripes(side: int = 4, repeat: bool = False) -> DataSet:
    """Square pictures whose columns are constant (bars) or whose rows are constant (stripes), all alike likely.

    There are ``2^(side + 1) - 2`` distinct patterns, because all-on and all-off are both bars and stripes; the best
    mean log-likelihood is minus the log of that number. ``repeat=True`` keeps the two patterns that are both twice, as
    many programs do: ``2^(side + 1)`` rows whose best mean is less than one may think,
    ``((N - 4) log(1 / N) + 4 log(2 / N)) / N`` for N rows. Rows: the bars in binary order, then the stripes.
    Each of the three splits is the whole set. Shapes: (patterns, side * side), uint8 0/1.

    **Raises** SettingError for a side below 1 or a set of more than a gibibyte.

    Source: MacKay, Information Theory, Inference, and Learning Algorithms (2003), section 43.3.

    **Example**

    >>> data = bars_and_stripes(side=4)
    >>> data.train.shape, round(-data.entropy, 3)
    ((30, 16), -3.401)
    """
    _at_least("bars-and-stripes", "side", side, 1)
    if side > 20 or 2 ** (side + 1) * side**2 > LARGEST_TABLE:
        largest = max(s for s in range(1, 21) if 2 ** (s + 1) * s**2 <= LARGEST_TABLE)
        raise SettingError(
            f"bars-and-stripes with side={side} has 2^{side + 1} patterns of {side**2} values, more than a gibibyte; "
            f"choose a side of at most {largest}"
        )
    lines = np.arange(2**side)[:, None] >> np.arange(side - 1, -1, -1) & 1
    lines = lines.astype(np.uint8)
    bars = np.repeat(lines[:, None, :], side, axis=1).reshape(len(lines), -1)
    stripes = np.repeat(lines[:, :, None], side, axis=2).reshape(len(lines), -1)
    if repeat:
        table = np.concatenate([bars, stripes])
        entropy = math.log(len(table)) - 4.0 * math.log(2.0) / len(table)
    else:
        # For side 1 the two bars are all there is; in general only the first and last stripe are bars as well.
        table = np.concatenate([bars, stripes[1:-1]])
        entropy = math.log(len(table))
    name = f"bars-and-stripes:side={side}" + (",repeat=true" if repeat else "")
    return _finite(name, table, (side, side), entropy)


def shifting_bars(length: int = 24, bar: int | None = None) -> DataSet:
    """A block of ``bar`` ones in a ring of ``length`` units, at each of its ``length`` places, all alike likely.

    The best mean log-likelihood is ``-log(length)``. ``bar`` is half the length (rounded down) unless given. The
    inverted bars of ``bar`` ones are the bars of ``length - bar``. Row ``i`` has its ones at ``i, ..., i + bar - 1``
    modulo the length. Each of the three splits is the whole set. Shapes: (length, length), uint8 0/1.

    **Raises** SettingError unless ``0 < bar < length``: other bars are one single pattern.

    Source: Manukian and Di Ventra, Mode-assisted joint training of deep Boltzmann machines (2021), which leaves the
    length of the bar open; half the length is our choice.

    **Example**

    >>> shifting_bars(length=4, bar=2).train
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1],
           [1, 0, 0, 1]], dtype=uint8)
    """
    _at_least("shifting-bars", "length", length, 2)
    if length**2 > LARGEST_TABLE:
        raise SettingError(
            f"shifting-bars with length={length} needs more than a gibibyte; choose at most 32768"
        )
    ones = length // 2 if bar is None else bar
    if isinstance(ones, bool) or not 0 < ones < length:
        raise SettingError(f"shifting-bars needs a bar from 1 to length - 1 = {length - 1}, got bar={ones}")
    place = np.arange(length)
    table = ((place[None, :] - place[:, None]) % length < ones).astype(np.uint8)
    return _finite(f"shifting-bars:length={length},bar={ones}", table, None, math.log(length))


def _finite(name: str, table: np.ndarray, shape: tuple[int, ...] | None, entropy: float) -> DataSet:
    return DataSet(
        name,
        table,
        table,
        table,
        shape=shape,
        source={"name": name},
        entropy=entropy,
        draw=_uniform_rows(table),
    )


def _uniform_rows(table: np.ndarray) -> Callable[[np.random.Philox, int], np.ndarray]:
    def draw(noise: np.random.Philox, n: int) -> np.ndarray:
        return table[uniform_index(noise, n, len(table))]

    return draw


def _at_least(name: str, parameter: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingError(
            f"{name} needs {parameter} to be a whole number of at least {least}, got {value!r}"
        )
