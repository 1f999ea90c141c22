"""At which temperature samples are: what an annealer's answers are to a machine."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.special
from jaxtyping import Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.quadratic import quadratic_of
from harmonium.energy.variables import rows_of
from harmonium.errors import HarmoniumWarning
from harmonium.evaluate.estimate import Kind
from harmonium.typing import Layers

_LARGEST = 1e9
"""Inverse temperature, in units of the largest field, above which no maximum is looked for."""


@dataclass(frozen=True)
class Temperature:
    """An inverse temperature with its error and a verdict; see `estimate_beta`.

    - ``beta``: the estimate, infinite where no temperature is too cold; ``stderr``, ``low`` and ``high`` as in
      `harmonium.Estimate`, for rows that were drawn independently.
    - ``kind``: ``consistent``: as near to the truth as there are samples, in neither direction.
    - ``reliable`` with its ``reason``; ``rows``: how many samples, ``method``: how it was estimated.
    """

    beta: float
    stderr: float
    rows: int
    reliable: bool = True
    reason: str = ""
    kind: Kind = Kind.CONSISTENT
    method: str = "maximum pseudo-likelihood"

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        return self.beta - 1.96 * self.stderr if math.isfinite(self.beta) else self.beta

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        return self.beta + 1.96 * self.stderr if math.isfinite(self.beta) else self.beta

    def __float__(self) -> float:
        return self.beta

    def __str__(self) -> str:
        verdict = "" if self.reliable else f"; do not trust it: {self.reason}"
        return f"beta {self.beta:.4f} [{self.low:.4f}, {self.high:.4f}] ({self.kind}{verdict})"


class Fit(NamedTuple):
    """The best inverse temperature, its standard error, and what is wrong with it ("" where nothing is)."""

    beta: float
    stderr: float
    fault: str


def estimate_beta(model: AbstractEnergyModel, samples: Layers) -> Temperature:
    r"""The inverse temperature :math:`\beta` at which samples follow :math:`e^{-\beta E(x)}`, by pseudo-likelihood.

    .. math:: \hat\beta = \arg\max_\beta \sum_{t,i} \log p_\beta(x_{ti} \mid x_{t,-i})
        = \arg\min_\beta \sum_{t,i} \log\left(1 + e^{-\beta m_{ti}}\right)

    with :math:`m_{ti}` the energy that flipping unit ``i`` of sample ``t`` would add, in nats. The function is convex,
    needs no partition function, and is right in the limit of many samples of any temperature. A model at its own
    temperature has :math:`\beta = 1`; above it samples are colder than the model, below it they are hotter, and a
    negative one means that its sign was turned round on the way. The error is that of independent rows, also where the
    samples follow no temperature (the sandwich formula); rows of one chain say less than as many independent ones.
    Source: Besag, "Statistical analysis of non-lattice data" (1975), for one parameter.

    ``samples`` is a configuration, one array per layer with rows first, hidden units included, such as
    `harmonium.interop.dimod.from_sampleset` gives it.

    **Returns** a `Temperature`. It is not reliable, and a `HarmoniumWarning` says so, where all samples are one
    state, where every unit of every sample lies at its best value (no temperature is too low) or at its worst, and
    where the model has no field at all. **Raises** `SettingError` for a model or layers that do not fit, `DataError`
    for values that the units do not take.

    >>> from harmonium.energy.rbm import RBM
    >>> rbm = RBM.from_arrays([[0.0]], [2.0], [0.0])
    >>> visible = np.repeat([1.0, 0.0], [731, 269])[:, None]  # log(731 / 269) = 1, half of the model's 2
    >>> print(estimate_beta(rbm, (visible, np.zeros((1000, 1)))))
    beta 0.4999 [0.4300, 0.5697] (consistent)
    """
    quadratic = quadratic_of(model)
    rows = rows_of(model, samples)
    size = rows.shape[1]
    coupling = np.zeros((size, size))
    first, second = quadratic.pairs.T
    coupling[first, second] = coupling[second, first] = -quadratic.strengths
    beta, stderr, fault = fit_beta(margins(rows, coupling, -quadratic.linear, quadratic.ends), rows)
    if fault:
        warnings.warn(
            f"the inverse temperature of these samples cannot be told: {fault}",
            HarmoniumWarning,
            stacklevel=2,
        )
    return Temperature(beta, stderr, len(rows), not fault, fault)


def margins(
    rows: Float[np.ndarray, "rows n"],
    coupling: Float[np.ndarray, "n n"],
    bias: Float[np.ndarray, " n"],
    ends: Float[np.ndarray, "2 n"],
) -> Float[np.ndarray, "rows n"]:
    """The energy that flipping each unit of each row would add, in nats: negative where it would fall."""
    return (2 * rows - ends[0] - ends[1]) * (rows @ coupling + bias)


def fit_beta(costs: Float[np.ndarray, "rows n"], rows: Float[np.ndarray, "rows n"]) -> Fit:
    """The inverse temperature at which units of ``rows``, whose flips would cost so much, are as they are."""
    largest = float(np.abs(costs).max())
    if largest == 0:
        return Fit(math.nan, math.inf, "the model has no field at these samples, so that all are alike to it")
    if costs.min() >= 0:
        fault = "no flip of a single unit lowers the energy of any sample, so that no temperature is too low"
        return Fit(math.inf, math.inf, fault)
    if costs.max() <= 0:
        fault = "no flip of a single unit raises the energy of any sample: is the sign of the energy turned round?"
        return Fit(-math.inf, math.inf, fault)
    scaled = costs / largest

    def slope(beta: float) -> float:
        return float(np.mean(scaled * scipy.special.expit(-beta * scaled)))

    end = math.copysign(1.0, slope(0.0))
    while slope(end) * end > 0 and abs(end) < _LARGEST:
        end *= 2
    if slope(end) * end > 0:
        fault = "hardly any flip of a single unit lowers the energy of a sample: no temperature is too low by much"
        return Fit(math.copysign(math.inf, end), math.inf, fault)
    found = scipy.optimize.root_scalar(
        slope, bracket=(min(0.0, end), max(0.0, end)), method="brentq", xtol=1e-12
    )
    beta = float(found.root)
    off = scipy.special.expit(-beta * scaled)
    scores = np.sum(scaled * off, axis=1)
    curvature = float(np.sum(scaled**2 * off * (1 - off)))
    stderr = math.sqrt(float(np.sum(scores**2))) / curvature
    same = bool(np.all(rows == rows[0]))
    fault = f"all {len(rows)} samples are one state" if same else ""
    return Fit(beta / largest, math.inf if same else stderr / largest, fault)
