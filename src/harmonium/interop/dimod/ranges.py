"""What a machine becomes on hardware whose numbers have a range and a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.quadratic import SPIN, quadratic_of
from harmonium.errors import SettingError
from harmonium.numerics.whole import is_number, whole_number

H_RANGE = (-2.0, 2.0)
J_RANGE = (-1.0, 1.0)

_MOST_BITS = 52


@dataclass(frozen=True)
class RangeReport:
    """How a machine fits the numbers of Ising hardware; see `range_report`.

    - ``scale``: what all fields and couplings must be divided by to be in range, 1 where they are. Samples must then be
      taken at ``scale`` times the inverse temperature of the machine.
    - ``fields_beyond``, ``couplings_beyond``: shares of them that would be cut off without it.
    - ``step``: distance of two neighbouring numbers of the grid, for fields and for couplings, in nats of the machine.
    - ``error``: root mean square over all states of the error of an energy, in nats; ``largest_error``: what no state's
      exceeds. A constant is not counted, since it changes no probability. ``energy_spread``: the standard deviation of
      the energy itself over all states, beside which the error is to be seen.
    """

    scale: float
    fields_beyond: float
    couplings_beyond: float
    step: tuple[float, float]
    error: float
    largest_error: float
    energy_spread: float

    def __str__(self) -> str:
        return (
            f"divide by {self.scale:.4g} (else {self.fields_beyond:.1%} of fields and {self.couplings_beyond:.1%} of "
            f"couplings are cut off); energies err by {self.error:.3g} nats, at most {self.largest_error:.3g}, of a "
            f"spread of {self.energy_spread:.3g}"
        )


def range_report(
    model: AbstractEnergyModel,
    h_range: tuple[float, float] = H_RANGE,
    j_range: tuple[float, float] = J_RANGE,
    bits: SupportsIndex | None = None,
) -> RangeReport:
    r"""What scaling a machine needs for hardware of given ranges, and what rounding to its grid does to energies.

    The machine is written in spins. With ``bits`` :math:`b` a number in a range from :math:`l` to :math:`u` is one of
    :math:`2^b` equally far apart; None rounds nothing. With rounding errors :math:`\delta` the error of an energy is
    :math:`\sum_i \delta h_i s_i + \sum_{i<j} \delta J_{ij} s_i s_j`, whose mean square over all states is the sum of
    the squares of all :math:`\delta`.

    **Raises** `SettingError` for a range that does not hold numbers of both signs and for bits that are no count.

    >>> from harmonium.energy.rbm import RBM
    >>> report = range_report(RBM.from_arrays([[8.0]], [-4.0], [0.0]), bits=8)
    >>> report.scale, report.fields_beyond, report.couplings_beyond
    (2.0, 0.0, 1.0)
    """
    (h_low, h_high), (j_low, j_high) = _checked("h_range", h_range), _checked("j_range", j_range)
    written = quadratic_of(model).written_in(SPIN)
    needed = [
        _needed(written.linear, h_low, h_high),
        _needed(written.strengths, j_low, j_high),
    ]
    scale = max(1.0, *(float(part.max(initial=0.0)) for part in needed))
    steps, errors = [0.0, 0.0], [np.zeros(1), np.zeros(1)]
    if bits is not None:
        count = 2 ** whole_number(bits, "bits must be a whole number of at least 1", most=_MOST_BITS) - 1
        for place, (values, low, high) in enumerate(
            ((written.linear, h_low, h_high), (written.strengths, j_low, j_high))
        ):
            step = (high - low) / count
            rounded = low + step * np.round((values / scale - low) / step)
            steps[place] = step * scale
            errors[place] = scale * rounded - values
    every = np.concatenate(errors)
    terms = np.concatenate([written.linear, written.strengths])
    return RangeReport(
        scale=scale,
        fields_beyond=_share(needed[0]),
        couplings_beyond=_share(needed[1]),
        step=(steps[0], steps[1]),
        error=math.sqrt(float(every @ every)),
        largest_error=float(np.abs(every).sum()),
        energy_spread=math.sqrt(float(terms @ terms)),
    )


def _checked(name: str, ends: Any) -> tuple[float, float]:
    values = tuple(ends) if isinstance(ends, tuple | list) else ()
    if (
        len(values) != 2
        or not all(map(is_number, values))
        or not -math.inf < values[0] < 0 < values[1] < math.inf
    ):
        raise SettingError(
            f"{name} must be two numbers on both sides of zero, got {ends!r}; pass e.g. (-2, 2)"
        )
    return float(values[0]), float(values[1])


def _needed(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """What each value must be divided by to be in range."""
    return np.maximum(values / high, values / low)


def _share(needed: np.ndarray) -> float:
    return float(np.mean(needed > 1)) if needed.size else 0.0
