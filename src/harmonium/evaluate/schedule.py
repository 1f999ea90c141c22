"""Which points of a path are stopped at."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from harmonium.energy.machine_path import AnyPath
from harmonium.evaluate.annealing import anneal
from harmonium.typing import Configuration, Words

SCHEDULES = ("linear", "pilot")

_LEAST_SHARE = 0.1
"""A stretch without any spread in the pilot still gets this share of an even stretch's points."""


def linear_schedule(temperatures: int) -> Float[np.ndarray, " points"]:
    """``temperatures`` equal steps from 0 to 1: one more point than steps.

    >>> linear_schedule(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return np.linspace(0.0, 1.0, temperatures + 1)


def pilot_schedule(
    path: AnyPath, side: int | None, temperatures: int, particles: Configuration, words: Words, steps: int
) -> Float[np.ndarray, " points"]:
    r"""Steps of equal conditional effective sample size, from a pilot run with chains of its own.

    A step of length :math:`\delta` from point :math:`\beta` keeps, to leading order, a share
    :math:`1/(1 + \delta^2 s^2(\beta))` of the effective sample, where :math:`s` is the standard deviation of
    :math:`dF/d\beta`. Steps are equal in that sense when their density is proportional to :math:`s`, which the pilot
    measures over ``steps`` equal steps. The schedule is then frozen: one adapted on the chains that are weighed would
    bias Z. Source: Zhou, Johansen and Aston (2016), the conditional ESS.
    """
    pilot = linear_schedule(steps)
    spread = anneal(path, side, pilot, particles, words).spread
    density = spread + _LEAST_SHARE * spread.mean() + np.finfo(float).tiny
    reached = np.concatenate([[0.0], np.cumsum(density)])
    return np.interp(np.linspace(0.0, reached[-1], temperatures + 1), reached, pilot)
