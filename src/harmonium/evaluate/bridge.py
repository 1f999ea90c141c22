"""The bridge: the ratio of two partition functions from samples of both, with an error from independent blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Float

_ROUNDS = 60
_TOLERANCE = 1e-10


class Bridge(NamedTuple):
    """What the samples of a ladder say of the ratio of the partition functions of its ends.

    - ``value``: log of the ratio, in nats; ``stderr``: its standard error by the jackknife over blocks.
    - ``half_width``: of its 95 % interval, which is that of Student's law with one degree fewer than there are blocks.
    - ``overlap``: per pair of neighbours, how much of their work distributions is common to both; 1 when they are one.
    - ``slope_chance``: chance of so large a deviation from Crooks's relation, if it holds at every pair.
    """

    value: float
    stderr: float
    half_width: float
    overlap: Float[np.ndarray, " pairs"]
    slope_chance: float


def bridge(
    hotter: Float[np.ndarray, "blocks draws pairs"], colder: Float[np.ndarray, "blocks draws pairs"]
) -> Bridge:
    r""":math:`\log Z_{\text{first}} - \log Z_{\text{last}}` by acceptance ratios of neighbours, in float64 nats.

    ``hotter`` holds the log-weight :math:`F_k(x) - F_{k+1}(x)` of draws at rung ``k``, ``colder`` the opposite of
    draws at rung ``k + 1``, with as many draws of each. Every pair's :math:`f = \log Z_k - \log Z_{k+1}` solves

    .. math:: \sum_{x \sim k} \sigma(f - d(x)) = \sum_{x \sim k+1} \sigma(d(x) - f), \quad d = F_{k+1} - F_k

    and these add up. Blocks are independent of one another; draws in a block need not be. The error is that of leaving
    out one block after the other, each time with one Newton step from the whole solution.

    Crooks's relation says that :math:`\log p_k(d) - \log p_{k+1}(d) = d - f`: the slope of the two work distributions'
    log-ratio is one. Samples of another temperature, or chains that did not move, give another slope; the score of
    that slope in each block, added up over pairs, is tested against zero.

    Source: Bennett (1976), the acceptance ratio for equal counts; Crooks (1999); the slope as a logistic regression,
    Shirts, Bair, Hooker and Pande (2003).
    """
    d = np.stack([-np.asarray(hotter, np.float64), np.asarray(colder, np.float64)])
    blocks, draws = d.shape[1], d.shape[2]
    found = _solved(d)
    share = scipy.special.expit(d - found)
    weight = share * (1 - share)
    misfit = share.sum(axis=(0, 2)) - draws
    steepness = weight.sum(axis=(0, 2))
    total = np.maximum(steepness.sum(axis=0), np.finfo(float).tiny)
    # With a block left out the sums are those of the others; a Newton step from the whole solution is enough.
    left = found + (misfit.sum(axis=0) - misfit) / np.maximum(total - steepness, np.finfo(float).tiny)
    values = left.sum(axis=1)
    stderr = float(np.sqrt((blocks - 1) / blocks * np.sum((values - values.mean()) ** 2)))
    overlap = 4 * weight.mean(axis=(0, 1, 2))
    centre = (d * weight).sum(axis=(0, 1, 2)) / total
    of_class = np.array([1.0, 0.0])[:, None, None, None]
    scores = ((of_class - share) * (d - centre)).sum(axis=(0, 2, 3))
    spread = scores.std(ddof=1)
    chance = 1.0
    if spread > 0:
        chance = float(2 * scipy.stats.t.sf(abs(scores.mean()) / (spread / np.sqrt(blocks)), blocks - 1))
    return Bridge(
        float(found.sum()),
        stderr,
        float(scipy.stats.t.isf(0.025, blocks - 1)) * stderr,
        overlap,
        chance,
    )


def _solved(d: Float[np.ndarray, "2 blocks draws pairs"]) -> Float[np.ndarray, " pairs"]:
    """The root of each pair's equation, by Newton steps kept inside a bracket that always holds the root."""
    half = d[0].size // d.shape[-1]
    low, high = d.min(axis=(0, 1, 2)), d.max(axis=(0, 1, 2))
    now = d.mean(axis=(0, 1, 2))
    for _ in range(_ROUNDS):
        share = scipy.special.expit(d - now)
        excess = share.sum(axis=(0, 1, 2)) - half
        low, high = np.where(excess > 0, now, low), np.where(excess > 0, high, now)
        slope = (share * (1 - share)).sum(axis=(0, 1, 2))
        step = now + excess / np.maximum(slope, np.finfo(float).tiny)
        following = np.where((step > low) & (step < high), step, (low + high) / 2)
        if np.all(np.abs(following - now) <= _TOLERANCE * (1 + np.abs(now))):
            return following
        now = following
    return now
