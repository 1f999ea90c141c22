"""Jumps between modes: how often chains go from one to another, when each is first seen, and what such counts mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from jaxtyping import Int

from harmonium.errors import DataError, SettingError
from harmonium.numerics.whole import is_number, whole_number

_MOST_MODES = 1 << 20


class Interval(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class ModeJumps:
    """What labels of modes tell of chains.

    - ``jumps``: per chain, how often it came to a mode that was not the one it was in last. Draws between the modes
      count for nothing: out and back is no jump, out and into another is one.
    - ``visits``: per mode, the first draw, counted from 0, at which any chain is in it; -1 for never.
    - ``draws``: how many there are of each chain.
    """

    jumps: Int[np.ndarray, " chains"]
    visits: Int[np.ndarray, " modes"]
    draws: int

    @property
    def total(self) -> int:
        """Jumps of all chains."""
        return int(self.jumps.sum())

    @property
    def missed(self) -> int:
        """How many modes no chain was ever in."""
        return int(np.sum(self.visits < 0))

    @property
    def last_visit(self) -> float:
        """The draw at which the last of the modes was first seen; infinite where one never was."""
        return math.inf if self.missed else float(self.visits.max(initial=0))

    def rate(self, exposure: float, level: float = 0.95) -> tuple[float, Interval]:
        """Jumps per unit of an exposure, such as the units drawn by all chains, and their `poisson_interval`."""
        return self.total / _checked_exposure(exposure), poisson_interval(self.total, exposure, level)


def mode_jumps(labels: Any, modes: SupportsIndex | None = None) -> ModeJumps:
    """Count the jumps of chains between modes, and when each mode was first seen.

    ``labels``: whole numbers ``(chains, draws)``, the mode that each draw is in, counted from 0, or -1 for none.
    ``modes``: how many there are; one more than the largest label when None, and then a mode that no chain has seen is
    not missed.

    **Raises** `DataError` for labels that are no such array, `SettingError` for fewer modes than they name.

    >>> found = mode_jumps([[0, 0, -1, 0, 1], [1, -1, 2, 2, 2]])
    >>> found.jumps.tolist(), found.visits.tolist(), found.last_visit
    ([1, 1], [0, 0, 2], 2.0)
    >>> mode_jumps([[0, 0]], modes=2).last_visit
    inf
    """
    try:
        given = np.asarray(labels)
    except ValueError:
        raise DataError("labels must have as many draws in each chain; cut the longer ones") from None
    if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iu":
        raise DataError(
            f"labels must be whole numbers of shape (chains, draws), got the shape {given.shape} of {given.dtype}; "
            "pass the number of a mode for every draw, -1 for none"
        )
    if given.min() < -1:
        raise DataError(
            f"a label is the number of a mode or -1 for none, got {given.min()}; number modes from 0"
        )
    largest = int(given.max())
    if modes is None:
        modes = largest + 1
    modes = whole_number(modes, "modes must be a whole number", least=0, most=_MOST_MODES)
    if largest >= modes:
        raise SettingError(f"labels go up to {largest}, but modes={modes}; pass modes={largest + 1}")
    # Between the modes a chain counts as still in its last one: the place of the last label that is one.
    place = np.maximum.accumulate(np.where(given >= 0, np.arange(given.shape[1]), 0), axis=1)
    held = np.take_along_axis(given, place, axis=1)
    moved = (held[:, 1:] != held[:, :-1]) & (held[:, :-1] >= 0)
    visits = np.full(modes, -1)
    for mode in np.unique(given[given >= 0]):
        visits[mode] = np.flatnonzero((given == mode).any(axis=0))[0]
    return ModeJumps(moved.sum(axis=1), visits, given.shape[1])


def poisson_interval(count: SupportsIndex, exposure: float = 1.0, level: float = 0.95) -> Interval:
    r"""The exact interval of a Poisson rate from a count over an exposure.

    .. math:: \Big[ \tfrac12 \chi^2_{2k}(\tfrac{\alpha}{2}),\; \tfrac12 \chi^2_{2k + 2}(1 - \tfrac{\alpha}{2}) \Big]
        \Big/ T

    with :math:`\alpha` one minus ``level``; it covers the rate at least that often. Of no event at all the lower end is
    0 and the upper one still says something: 3.69 over the exposure. Jumps that come in bursts are no Poisson process:
    the interval is then too narrow.

    **Raises** `SettingError` for a negative count, an exposure that is not positive, or a level out of (0, 1).

    Source: Garwood, "Fiducial limits for the Poisson distribution" (1936).

    >>> [round(end, 3) for end in poisson_interval(0)], [round(end, 2) for end in poisson_interval(10, 2.0)]
    ([0.0, 3.689], [2.4, 9.2])
    """
    from scipy.stats import chi2

    count = whole_number(count, "a count must be a whole number of at least 0", least=0)
    exposure = _checked_exposure(exposure)
    if not is_number(level) or not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {level!r}; pass 0.95")
    tail = (1 - level) / 2
    low = float(chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
    return Interval(low / exposure, float(chi2.isf(tail, 2 * count + 2)) / 2 / exposure)


def _checked_exposure(exposure: float) -> float:
    if not is_number(exposure) or not 0 < exposure < math.inf:
        raise SettingError(f"exposure must be a positive number, got {exposure!r}; pass what was looked at")
    return float(exposure)
