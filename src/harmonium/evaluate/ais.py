"""Annealed importance sampling, forward and reverse, with the verdict that neither can give alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.energy.machine_path import AnyPath, path_between
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate.annealing import (
    Annealed,
    anneal,
    check_side,
    effective_chains,
    log_mean_weight,
    sweep_operations,
    walked_side,
)
from harmonium.evaluate.base_rate import BASES, base_of, independent_draws
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.schedule import SCHEDULES, linear_schedule, pilot_schedule
from harmonium.evaluate.starts import Start, equilibrium_starts
from harmonium.evaluate.verdict import LEAST_EFFECTIVE_CHAINS, doubts_about
from harmonium.numerics.named import is_name
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import BEYOND_UPDATES, key_words, seed_key
from harmonium.numerics.whole import rounded_up, whole_number
from harmonium.typing import Words

DEFAULT_TEMPERATURES = 1000
"""Steps of a walk where neither a number nor a budget is given."""

_LEAST_TEMPERATURES = 10
"""A budget for fewer is refused: their estimate would be worth nothing, and one cannot be had for less."""

_PILOT_SHARE = 10
"""The pilot of a schedule and the run that a base is taken from are a tenth as long as the walk itself."""

_WALKS = 3 + 2 / _PILOT_SHARE
"""Sweeps counted for each temperature: forward, reverse, its Gibbs run, and pilots."""

_PURPOSES = BEYOND_UPDATES | 0xA15000

_MOST_TEMPERATURES = 1 << 23
_MOST_CHAINS = 1 << 24


@dataclass(frozen=True)
class AIS:
    """Settings of annealed importance sampling, to be passed as ``method``; "ais" stands for ``AIS()``.

    - ``chains``: independent walks in either direction. ``temperatures``: steps of each; None is 1000, or as many as a
      given budget of operations allows.
    - ``base``: the independent model that walks start from: "data" (the marginals of the rows given as ``data``, or of
      a pilot run of the model), "model" (the model without its couplings), or "uniform"; all are smoothed and frozen.
    - ``schedule``: "linear", or "pilot" (steps of equal conditional effective sample size, frozen before the chains
      that are weighed are drawn).
    - ``side``: the layers whose states a walk holds, the others summed out: "even" (with the visible one) or "odd";
      None is the smaller.

    Temperatures and a budget at once are refused, and with `BudgetError` a budget for fewer than 10 temperatures.
    Raises `SettingError` for fewer than two chains or less than one temperature, and for unknown names.

    >>> AIS(temperatures=500).chains
    100
    """

    chains: int = 100
    temperatures: int | None = None
    base: str = "data"
    schedule: str = "linear"
    side: str | None = None

    def __post_init__(self) -> None:
        for name, least, most in (("chains", 2, _MOST_CHAINS), ("temperatures", 1, _MOST_TEMPERATURES)):
            value = getattr(self, name)
            if value is None and name == "temperatures":
                continue
            fault = f"{name} of AIS must be a whole number from {least} to {most}"
            object.__setattr__(self, name, whole_number(value, fault, least=least, most=most))
        for name, known in (("base", BASES), ("schedule", SCHEDULES)):
            if not is_name(getattr(self, name), known):
                raise SettingError(
                    f"no {name} of AIS is called {getattr(self, name)!r}; choose one of {', '.join(known)}"
                )

        check_side(self.side, "AIS")

    def resolve(self, model: AbstractEnergyModel, operations: float | None = None) -> AIS:
        """These settings with a number of temperatures: their own, else what ``operations`` allow, else 1000."""
        if self.temperatures is not None:
            if operations is not None:
                raise SettingError(
                    f"temperatures={self.temperatures} (--temperatures) and operation_budget both say how long AIS "
                    "is; give one of them"
                )
            return self
        if operations is None:
            return replace(self, temperatures=DEFAULT_TEMPERATURES)
        each = replace(self, temperatures=1).operations(model)
        if operations < _LEAST_TEMPERATURES * each:
            raise BudgetError(
                f"AIS with {self.chains} chains takes at least {_LEAST_TEMPERATURES} temperatures, which is more than "
                f"the budget allows; pass operation_budget={rounded_up(_LEAST_TEMPERATURES * each):.2g} or more"
            )
        return replace(self, temperatures=min(_MOST_TEMPERATURES, int(operations / each)))

    def in_words(self) -> str:
        """What there is to do, for a reader who is to wait for it."""
        return f"annealing: {self.temperatures} temperatures with {self.chains} chains each way"

    def operations(self, model: AbstractEnergyModel) -> float:
        """What the walks both ways count as, with the default number of temperatures where none is set."""
        return (self.temperatures or DEFAULT_TEMPERATURES) * _WALKS * sweep_operations(model, self.chains)


class Prepared(NamedTuple):
    """A path from a frozen base, its stops, and what names the draws to come."""

    path: AnyPath
    base: Independent
    side: int | None
    betas: np.ndarray
    key: Any

    def words(self, purpose: int) -> Words:
        """Noise words of one use; no two uses share any."""
        return _words(self.key, purpose)


def forward_log_partition(
    model: AbstractEnergyModel, data: np.ndarray | None = None, settings: AIS | None = None, seed: int = 0
) -> Estimate:
    r"""Annealed importance sampling from the base to the model: a stochastic *lower* bound of :math:`\log Z`.

    .. math:: \log \hat Z = \log Z_0 + \log \frac1n \sum_i w_i, \quad
        \log w = \sum_k F_{\beta_{k-1}}(x_{k-1}) - F_{\beta_k}(x_{k-1})

    in nats, with :math:`E_\beta = (1-\beta) E_0 + \beta E`. :math:`\hat Z` is unbiased, so that its logarithm is too
    low on average (Jensen), and lower the fewer chains carry the weight. Walks hold the states of the smaller side and
    sum the larger one out; those of a machine without sides hold all its units. ``data`` are rows, already encoded;
    without them the base is that of a pilot run.
    ``stderr`` is on the log scale; ``cost`` holds the effective number of chains.

    Source: Neal (2001); Salakhutdinov and Murray (2008), whose form has the states of the visible side.
    """
    settings = (settings or AIS()).resolve(model)
    prepared = prepare(model, data, settings, seed)
    return _forward(prepared, _walk_forward(prepared, settings))


def reverse_log_partition(
    model: AbstractEnergyModel, data: np.ndarray | None = None, settings: AIS | None = None, seed: int = 0
) -> Estimate:
    r"""The same walk backwards, from the model to the base: a stochastic *upper* bound of :math:`\log Z`.

    .. math:: \log \hat Z = \log Z_0 - \log \frac1n \sum_i \frac1{w_i}

    in nats. Chains start from exact draws of the model where its smaller side can be enumerated; else from Gibbs runs
    as long as the walk, half of them from rows (or from the ends of the forward walk) and half from rest, and then
    the direction holds only as far as those have reached equilibrium; ``reason`` says which. Source: Burda, Grosse and
    Salakhutdinov (2015), section 3; Jarzynski's equality read backwards.
    """
    settings = (settings or AIS()).resolve(model)
    prepared = prepare(model, data, settings, seed)
    start = _starts(prepared, data, settings, None if data is not None else _walk_forward(prepared, settings))
    return _reverse(prepared, start, _walk_back(prepared, start))


def both_directions(
    model: AbstractEnergyModel, data: np.ndarray | None = None, settings: AIS | None = None, seed: int = 0
) -> Estimate:
    """Forward annealed importance sampling, judged by its reverse.

    The value and its kind are those of `forward_log_partition`; the interval reaches over both directions, and the
    error is the forward one or half the distance of the two, whichever is larger.
    ``reliable`` is False, with the reason, when the two part by more than three of their combined errors, when either
    is worth fewer than ten chains, when a number is not finite, or when reversed chains that started from rows and
    from rest disagree.
    """
    settings = (settings or AIS()).resolve(model)
    prepared = prepare(model, data, settings, seed)
    walk = _walk_forward(prepared, settings)
    forward = _forward(prepared, walk)
    start = _starts(prepared, data, settings, walk)
    back = _walk_back(prepared, start)
    reverse = _reverse(prepared, start, back)
    doubts = doubts_about(forward, reverse, prepared.path.model, start, back)
    agreement = ", ".join(
        f"{name} {estimate.value:.4f} +- {estimate.stderr:.4f}"
        for name, estimate in (("forward", forward), ("reverse", reverse))
    )
    # Walks that all miss a small mode agree with each other: what the reverse says of that counts as error.
    stderr = float(np.fmax(forward.stderr, abs(reverse.value - forward.value) / 2))
    steps = len(prepared.betas) - 1
    cost = {
        "operations": _WALKS * steps * sweep_operations(model, settings.chains),
        "chains": float(settings.chains),
        "temperatures": float(steps),
        "effective_chains": forward.cost["effective_chains"],
        "reverse_effective_chains": reverse.cost["effective_chains"],
    }
    return Estimate(
        value=forward.value,
        stderr=stderr,
        low=min(forward.low, reverse.low),
        high=max(forward.high, reverse.high),
        kind=forward.kind,
        reliable=not doubts,
        reason="; ".join([*doubts, agreement, start.origin]),
        method="ais",
        cost=cost,
    )


def prepare(model: AbstractEnergyModel, rows: np.ndarray | None, settings: AIS, seed: int) -> Prepared:
    """Choose and freeze base and schedule, with draws that the walks do not see again."""
    temperatures = settings.resolve(model).temperatures or DEFAULT_TEMPERATURES
    key = seed_key(seed)
    pilot = max(1, temperatures // _PILOT_SHARE)
    words = [_words(key, purpose) for purpose in range(3)]
    base = base_of(model, settings.base, rows, settings.chains, pilot, words[0])
    path = as_single(path_between(base, model))
    side = walked_side(model, settings.side)
    if settings.schedule == "pilot":
        start = independent_draws(base, settings.chains, words[1])
        betas = pilot_schedule(path, side, temperatures, start, words[2], pilot)
    else:
        betas = linear_schedule(temperatures)
    return Prepared(path, base, side, betas, key)


def _words(key: Any, purpose: int) -> Words:
    """Noise words of one use, none of which the updates of a run with the same seed have."""
    return key_words(jax.random.fold_in(key, _PURPOSES | purpose))


def _walk_forward(prepared: Prepared, settings: AIS) -> Annealed:
    start = independent_draws(prepared.base, settings.chains, prepared.words(3))
    return anneal(prepared.path, prepared.side, prepared.betas, start, prepared.words(4))


def _starts(prepared: Prepared, rows: np.ndarray | None, settings: AIS, walk: Annealed | None) -> Start:
    words = (prepared.words(5), prepared.words(6), prepared.words(7))
    return equilibrium_starts(
        prepared.path.model, prepared.side, rows, walk, settings.chains, len(prepared.betas) - 1, words
    )


def _walk_back(prepared: Prepared, start: Start) -> Annealed:
    return anneal(prepared.path, prepared.side, prepared.betas[::-1], start.particles, prepared.words(8))


def _forward(prepared: Prepared, walk: Annealed) -> Estimate:
    log_mean, stderr = log_mean_weight(walk.log_weight)
    return _estimate(prepared, walk, log_mean, stderr, Kind.STOCHASTIC_LOWER, "")


def _reverse(prepared: Prepared, start: Start, walk: Annealed) -> Estimate:
    # A walk back weighs its chains by 1/w.
    log_mean, stderr = log_mean_weight(walk.log_weight)
    return _estimate(prepared, walk, -log_mean, stderr, Kind.STOCHASTIC_UPPER, start.origin)


def _estimate(
    prepared: Prepared, walk: Annealed, log_ratio: float, stderr: float, kind: Kind, origin: str
) -> Estimate:
    effective = effective_chains(walk.log_weight)
    worth = f"{len(walk.log_weight)} chains, worth {effective:.1f}"
    finite = math.isfinite(log_ratio)
    few = effective < LEAST_EFFECTIVE_CHAINS
    return Estimate(
        value=prepared.base.log_partition() + log_ratio,
        stderr=stderr,
        kind=kind,
        reliable=finite and not few,
        reason="; ".join(part for part in (worth, origin) if part),
        method="ais",
        cost={
            "operations": len(prepared.betas) * sweep_operations(prepared.path.model, len(walk.log_weight)),
            "effective_chains": effective,
        },
    )
