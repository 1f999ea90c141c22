r"""Are these chains at equilibrium, and what are their draws worth? Diagnostics of any ensemble of chains.

Arrays have the chains first and the draws second, ``(chains, draws)``, of one quantity such as the energy, or
``(chains, draws, quantities)``. They may come from any sampler. A diagnosis can only find fault: chains that all miss
the same mode agree with each other, and nothing on this page can tell. `harmonium.samplers.jumps` counts what is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Float

from harmonium.errors import DataError
from harmonium.numerics.whole import seed_number, whole_number

LARGEST_RHAT = 1.05
"""Chains whose split R-hat is above are doubted."""

LEAST_EFFECTIVE_DRAWS = 10
"""An ensemble that is worth fewer independent draws is doubted."""

_LEAST_DRAWS = 4
_MOST_POINTS = 1000
_MOST_PERMUTATIONS = 1_000_000


@dataclass(frozen=True)
class Diagnosis:
    """What an ensemble of chains says of its own mixing, the worst over the quantities it was asked about.

    - ``split_rhat``, ``effective_sample_size``, ``autocorrelation_time``: see the functions of these names; the
      effective size is that of the bulk. NaN where nothing varies.
    - ``chains``, ``draws``: how many there were.
    - ``reliable``, ``reason``: False, with the reason, when R-hat is above `LARGEST_RHAT` or the ensemble is worth
      fewer than `LEAST_EFFECTIVE_DRAWS` draws.
    """

    split_rhat: float
    effective_sample_size: float
    autocorrelation_time: float
    chains: int
    draws: int
    reliable: bool
    reason: str

    def __str__(self) -> str:
        verdict = "" if self.reliable else f"; do not trust them: {self.reason}"
        return (
            f"{self.chains} chains of {self.draws} draws: split R-hat {self.split_rhat:.3f}, worth "
            f"{self.effective_sample_size:.0f} draws, autocorrelation time {self.autocorrelation_time:.3g}{verdict}"
        )


def diagnose(chains: Any) -> Diagnosis:
    """R-hat, effective sample size and autocorrelation time of an ensemble of chains, with a verdict.

    ``chains``: an array of shape ``(chains, draws)`` or ``(chains, draws, quantities)``, of which the worst numbers
    count. Leave the burn-in out.

    **Raises** `DataError` for arrays of another shape, less than four draws, or draws that are not finite.

    >>> import numpy as np
    >>> found = diagnose(np.random.default_rng(0).normal(size=(4, 1000)))
    >>> found.reliable, round(found.split_rhat, 2)
    (True, 1.0)
    >>> diagnose(np.arange(4.0)[:, None] + np.random.default_rng(0).normal(size=(4, 1000))).reliable
    False
    """
    values = _checked(chains)
    rhat, effective, time = (
        np.atleast_1d(measure(values))
        for measure in (split_rhat, effective_sample_size, autocorrelation_time)
    )
    known = np.isfinite(effective)
    doubts = []
    if np.any(rhat > LARGEST_RHAT):
        doubts.append(f"split R-hat is {np.nanmax(rhat):.3g}, above {LARGEST_RHAT}")
    if np.any(effective[known] < LEAST_EFFECTIVE_DRAWS):
        doubts.append(f"the chains are worth {effective[known].min():.1f} draws")
    return Diagnosis(
        split_rhat=_worst(rhat, max),
        effective_sample_size=_worst(effective, min),
        autocorrelation_time=_worst(time, max),
        chains=len(values),
        draws=values.shape[1],
        reliable=not doubts,
        reason="; ".join(doubts),
    )


def split_rhat(chains: Any, ranked: bool = True) -> Any:
    r"""How much wider all chains together are than each alone: 1 at equilibrium, larger where they disagree.

    .. math:: \hat R = \sqrt{\frac{n - 1}{n} + \frac{B}{n W}}

    over half-chains of ``n`` draws (of an odd number the middle one is left out), with ``W`` the mean of their
    variances and ``B/n`` the variance of their means. ``ranked``, as in ArviZ, replaces draws by the normal quantiles
    of their ranks, so that heavy tails do no harm, does the same with their distances from the median, so that chains
    of equal means and different widths are found, and returns the larger of the two.

    **Returns** a float for one quantity, else an array with one number for each: infinite where every half-chain stands
    still and not all stand at the same place, NaN where nothing varies at all. **Raises** `DataError` as `diagnose`.

    Source: Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and localization" (2021),
    equations 1 to 4.

    >>> split_rhat([[0, 0, 0, 0], [1, 1, 1, 1]])
    inf
    """
    halves = _split(_checked(chains))
    if not ranked:
        return _scalar_or_array(_rhat(halves), chains)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return _scalar_or_array(np.fmax(_rhat(_normal_scores(halves)), _rhat(_normal_scores(folded))), chains)


def effective_sample_size(chains: Any, ranked: bool = True) -> Any:
    r"""How many independent draws would say as much: :math:`N / \tau` over half-chains.

    .. math:: \tau = 1 + 2 \sum_{t \ge 1} \rho_t, \quad \rho_t = 1 - \frac{W - \bar\gamma_t}{\widehat{\mathrm{var}}}

    where :math:`\bar\gamma_t` is the mean autocovariance of the half-chains at lag ``t`` and the variance is that of
    all of them together, so that chains that disagree are worth little. Sums of neighbouring lags are added while
    positive, each at most the one before. ``ranked`` is the effective size of the bulk, of normal quantiles of ranks;
    without, it is that of the mean. Never more than :math:`N \log_{10} N`.

    **Returns** a float for one quantity, else an array; NaN where nothing varies. **Raises** `DataError` as `diagnose`.

    Source: Geyer (1992), initial monotone sequence; Vehtari et al. (2021), section 3; ArviZ calls the two "bulk" and
    "mean".

    >>> import numpy as np
    >>> 3600 < effective_sample_size(np.random.default_rng(0).normal(size=(4, 1000))) < 4400
    True
    """
    halves = _split(_checked(chains))
    if ranked:
        halves = _normal_scores(halves)
    count = halves.shape[0] * halves.shape[1]
    return _scalar_or_array(count / _times(halves), chains)


def autocorrelation_time(chains: Any) -> Any:
    r"""Integrated autocorrelation time of the mean, in draws: :math:`\tau = 1 + 2 \sum_t \rho_t`.

    The variance of a mean over ``N`` draws is :math:`\tau` times that over independent ones; it is the draws of all
    half-chains over `effective_sample_size` without ranks. Only runs of many times :math:`\tau` can measure it.
    **Returns** and **Raises** as there. (Another convention has half of it.)

    >>> import numpy as np
    >>> pairs = np.repeat(np.random.default_rng(0).normal(size=(4, 500)), 2, axis=1)
    >>> 1.8 < autocorrelation_time(pairs) < 2.2
    True
    """
    return _scalar_or_array(_times(_split(_checked(chains))), chains)


@dataclass(frozen=True)
class Agreement:
    """Whether two groups of chains can have the same law.

    - ``p_value``: how often groups that are dealt at random differ as much. Of groups of the same law at most a share
      ``a`` is below ``a``: that is the rate of false alarms.
    - ``least_p_value``: the smallest that so few chains can have; a test below it never alarms.
    - ``distance``: :math:`\\int (F_1 - F_2)^2 dx` of the two distributions over a median width, 0 when equal.
    """

    p_value: float
    least_p_value: float
    distance: float


def agreement(
    first: Any, second: Any, *, permutations: SupportsIndex = 9999, seed: SupportsIndex = 0
) -> Agreement:
    r"""Whether two groups of chains, such as those from rest and those from data, have come to the same law.

    Whole chains are dealt into two groups of these sizes again and again; the statistic is the squared distance of the
    distribution functions of all draws of a group, :math:`\int (F_1 - F_2)^2 dx` (half the energy distance). A chain
    stays whole, so that the test holds however slowly chains move: all that it needs is that they are independent and,
    under the hypothesis, alike. Where there are at most ``permutations`` ways to deal, all are looked at.

    ``first``, ``second``: draws of one quantity, ``(chains, draws)``, with as many draws each.

    **Raises** `DataError` for arrays of another shape and draws that are not finite, `SettingError` for less than one
    permutation.

    Source: Szekely and Rizzo, "Testing for equal distributions in high dimension" (2004), over chains, not draws.

    >>> import numpy as np
    >>> rest = np.random.default_rng(0).normal(size=(10, 50))
    >>> agreement(rest, np.random.default_rng(1).normal(size=(10, 50)) + 3).p_value
    0.0001
    """
    permutations = whole_number(
        permutations, "permutations must be a whole number of at least 1", most=_MOST_PERMUTATIONS
    )
    generator = np.random.default_rng(seed_number(seed))
    groups = [_checked(group, least=1) for group in (first, second)]
    if any(group.ndim != 2 for group in groups) or groups[0].shape[1] != groups[1].shape[1]:
        raise DataError(
            f"agreement takes two arrays (chains, draws) with as many draws each, got the shapes {groups[0].shape} and "
            f"{groups[1].shape}; cut the longer one"
        )
    size, total = len(groups[0]), len(groups[0]) + len(groups[1])
    gram = _gram(np.concatenate(groups))
    ways = math.comb(total, size)
    if ways <= permutations + 1:
        members = np.array(list(combinations(range(total), size)))
    else:
        members = np.argsort(generator.random((permutations, total)), axis=1)[:, :size]
        members = np.concatenate([np.arange(size)[None], members])
    weights = np.full((len(members), total), -1 / (total - size))
    np.put_along_axis(weights, members, 1 / size, axis=1)
    distances = np.sum((weights @ gram) * weights, axis=1)
    # The first way to deal is the one that was given; ties that differ by rounding are ties.
    as_far = distances >= distances[0] - 1e-9 * max(distances.max(), 0.0)
    # Equal groups dealt the other way round are as far apart.
    both = 2 if ways <= permutations + 1 and 2 * size == total else 1
    return Agreement(float(as_far.mean()), both / len(members), float(max(distances[0], 0.0)))


def _gram(chains: Float[np.ndarray, "chains draws"]) -> Float[np.ndarray, "chains chains"]:
    """Integrals of products of the chains' distribution functions, over values of all of them, per median width."""
    draws = np.sort(chains, axis=1)
    # Points are draws, between two of which no distribution function changes: as long as all are taken it is exact.
    points = np.sort(chains, axis=None)
    points = points[np.linspace(0, chains.size - 1, min(chains.size, _MOST_POINTS + 1)).round().astype(int)]
    width = np.median(np.abs(chains - np.median(chains))) or float(np.ptp(chains)) or 1.0
    reached = np.stack([np.searchsorted(chain, points[:-1], side="right") for chain in draws])
    share = reached / chains.shape[1]
    return (share * (np.diff(points) / width)) @ share.T


def _checked(chains: Any, least: int = _LEAST_DRAWS) -> np.ndarray:
    try:
        values = np.asarray(chains, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "chains must be an array of numbers (chains, draws) with as many draws in each; cut the longer ones"
        ) from None
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise DataError(
            f"chains must be an array (chains, draws) or (chains, draws, quantities), got the shape {values.shape}; "
            "pass chains[None] for a single one"
        )
    if values.shape[1] < least:
        raise DataError(f"chains of at least {least} draws are needed, got {values.shape[1]}; run them on")
    if not np.all(np.isfinite(values)):
        chain, draw = (int(place) for place in np.argwhere(~np.isfinite(values))[0][:2])
        raise DataError(f"draw {draw} of chain {chain} is not finite; diagnose finite quantities only")
    return values


def _split(values: np.ndarray) -> Float[np.ndarray, "halves draws quantities"]:
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    return halves if halves.ndim == 3 else halves[..., None]


def _scalar_or_array(numbers: np.ndarray, chains: Any) -> Any:
    return float(numbers[0]) if np.ndim(chains) == 2 else numbers


def _worst(numbers: np.ndarray, choose: Any) -> float:
    known = numbers[~np.isnan(numbers)]
    return float(choose(known)) if len(known) else math.nan


def _normal_scores(halves: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    flat = halves.reshape(-1, halves.shape[-1])
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(halves.shape)


def _rhat(halves: np.ndarray) -> np.ndarray:
    count = halves.shape[1]
    within = np.var(halves, axis=1, ddof=1).mean(axis=0)
    between = np.var(halves.mean(axis=1), axis=0, ddof=1)
    still = np.ptp(halves, axis=1).max(axis=0) == 0
    apart = np.ptp(halves, axis=(0, 1)) > 0
    ratio = np.divide(between, within, out=np.zeros_like(within), where=~still & (within > 0))
    return np.where(still, np.where(apart, math.inf, math.nan), np.sqrt((count - 1) / count + ratio))


def _times(halves: np.ndarray) -> np.ndarray:
    """Autocorrelation time per quantity."""
    return np.array([_time(halves[..., index]) for index in range(halves.shape[-1])])


def _time(halves: Float[np.ndarray, "halves draws"]) -> float:
    from scipy.fft import irfft, next_fast_len, rfft

    chains, draws = halves.shape
    if np.ptp(halves) == 0:
        return math.nan
    length = next_fast_len(2 * draws, real=True)
    spectrum = np.abs(np.asarray(rfft(halves - halves.mean(axis=1, keepdims=True), length, axis=1))) ** 2
    covariance = np.asarray(irfft(spectrum.mean(axis=0), length))[:draws] / draws
    within = covariance[0] * draws / (draws - 1)
    variance = covariance[0] + np.var(halves.mean(axis=1), ddof=1)
    correlation = 1 - (within - covariance) / variance
    correlation[0] = 1.0
    pairs = correlation[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)[: max(1, (draws - 1) // 2)]
    ended = np.flatnonzero(pairs <= 0)
    last = int(ended[0]) if len(ended) else len(pairs) - 1
    # The first even lag beyond the pairs that count is added once, where positive.
    time = 2 * np.minimum.accumulate(pairs[:last]).sum() - 1 + max(correlation[2 * last], 0.0)
    return float(max(time, 1 / math.log10(chains * draws)))
