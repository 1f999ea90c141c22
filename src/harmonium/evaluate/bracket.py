"""The log partition function from both sides, and the bridge between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

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
from harmonium.evaluate.base_rate import BASES, base_of, chosen_rows, independent_draws
from harmonium.evaluate.bracket_verdict import doubts_about_bracket
from harmonium.evaluate.bridge import Bridge, bridge
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.ladders import SNAPSHOTS, Climb, climb, records_of
from harmonium.evaluate.starts import from_rows, long_run
from harmonium.evaluate.verdict import ROUNDING
from harmonium.numerics.named import is_name
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import BEYOND_UPDATES, key_words, seed_key
from harmonium.numerics.whole import rounded_up, whole_number
from harmonium.typing import Words

DEFAULT_OPERATIONS_OF_SWEEPS = 640_000
"""What a bracket costs where neither sweeps nor a budget are given, in sweeps of one chain: twice what AIS takes."""

LEAST_LADDERS = 8
"""Fewer blocks say too little of their own scatter."""

_FEWEST_SWEEPS = 8
_LEAST_SWEEPS = 20
"""A budget for fewer is refused."""

_RUNGS_OF_ROOT = 1.25
_FEWEST_RUNGS, _USUAL_MOST_RUNGS = 6, 24
"""Rungs where none are given: 1.25 times the root of the number of units, within these."""

_SIGMAS = 1.96

_PURPOSES = BEYOND_UPDATES | 0xB2AC00

_MOST_CHAINS = 1 << 20
_MOST_SWEEPS = 1 << 23
_MOST_RUNGS = 100


@dataclass(frozen=True)
class Bracket:
    """Settings of a bracket, to be passed as ``method``; "bracket" stands for ``Bracket()``.

    - ``ladders``: independent blocks that the interval is taken from, at least 8. ``chains``: ladders of replicas in
      each block.
    - ``rungs``: replicas of each, from the model to independent units at the marginals of the data; None is 1.25
      times the root of the number of units, from 6 to 24.
    - ``sweeps``: sweeps of every replica after the burn-in, and temperatures of the walks either way; None is as many
      as cost twice what AIS does by default, or as a given budget of operations allows.
    - ``burn_in``: sweeps of every replica before, in whose first two thirds the schedule is learned; None is half of
      ``sweeps``.
    - ``base``: the independent model at the far end: "data" (the marginals of the rows given as ``data``, or of a pilot
      run of the model), "model" (the model without its couplings), or "uniform", as of `harmonium.evaluate.ais.AIS`.
    - ``side``: the layers whose states are weighed, the others summed out, as there.

    Sweeps and a budget at once are refused, and with `BudgetError` a budget for fewer than 20 sweeps. Raises
    `SettingError` for numbers out of range.

    >>> Bracket(sweeps=100).ladders
    16
    """

    ladders: int = 16
    chains: int = 1
    rungs: int | None = None
    sweeps: int | None = None
    burn_in: int | None = None
    base: str = "data"
    side: str | None = None

    def __post_init__(self) -> None:
        for name, least, most in (
            ("ladders", LEAST_LADDERS, _MOST_CHAINS),
            ("chains", 1, _MOST_CHAINS),
            ("rungs", 2, _MOST_RUNGS),
            ("sweeps", _FEWEST_SWEEPS, _MOST_SWEEPS),
            ("burn_in", 0, _MOST_SWEEPS),
        ):
            value = getattr(self, name)
            if value is None and name not in ("ladders", "chains"):
                continue
            fault = f"{name} of a bracket must be a whole number from {least} to {most}"
            object.__setattr__(self, name, whole_number(value, fault, least=least, most=most))
        if not is_name(self.base, BASES):
            raise SettingError(
                f"no base of a bracket is called {self.base!r}; choose one of {', '.join(BASES)}"
            )

        check_side(self.side, "a bracket")

    def resolve(self, model: AbstractEnergyModel, operations: float | None = None) -> Bracket:
        """These settings with every number set: its own, else what ``operations`` allow, else the usual one."""
        if self.sweeps is not None and operations is not None:
            raise SettingError(
                f"sweeps={self.sweeps} (--sweeps) and operation_budget both say how long a bracket is; give one of "
                "them"
            )
        units = sum(layer.size for layer in model.units)
        usual = int(np.clip(round(_RUNGS_OF_ROOT * units**0.5), _FEWEST_RUNGS, _USUAL_MOST_RUNGS))
        known = replace(self, rungs=self.rungs or usual)
        if self.sweeps is None:
            most = (
                DEFAULT_OPERATIONS_OF_SWEEPS * sweep_operations(model, 1)
                if operations is None
                else operations
            )
            known = replace(known, sweeps=known._sweeps_for(model, most, operations is not None))
        if known.burn_in is None:
            known = replace(known, burn_in=(known.sweeps or 0) // 2)
        return known

    def operations(self, model: AbstractEnergyModel) -> float:
        """What ladders, walks and all else count as: sweeps of chains, a weighing of all rungs being one sweep more."""
        known = self.resolve(model)
        assert known.rungs is not None
        assert known.sweeps is not None
        assert known.burn_in is not None
        chains = known.ladders * known.chains
        records, _ = records_of(known.sweeps, known.rungs * chains)
        climbed = known.rungs * (known.burn_in + known.sweeps + records)
        walked = 2 * SNAPSHOTS * known.sweeps
        return (climbed + walked + _pilot(known)) * sweep_operations(model, chains)

    def in_words(self) -> str:
        """What there is to do, for a reader who is to wait for it."""
        return (
            f"bracket: {self.ladders} x {self.chains} ladders of {self.rungs} rungs, {self.burn_in} and {self.sweeps} "
            "sweeps"
        )

    def _sweeps_for(self, model: AbstractEnergyModel, operations: float, told: bool) -> int:
        """The most sweeps that so many operations allow; at least the fewest, unless the budget was told."""

        def cost(sweeps: int) -> float:
            return replace(self, sweeps=sweeps).operations(model)

        if cost(_LEAST_SWEEPS) > operations:
            if told:
                raise BudgetError(
                    f"a bracket of {self.ladders} x {self.chains} ladders takes at least {_LEAST_SWEEPS} sweeps, which "
                    f"is more than the budget allows; pass operation_budget={rounded_up(cost(_LEAST_SWEEPS)):.2g} or "
                    "more"
                )
            return _LEAST_SWEEPS
        low, high = _LEAST_SWEEPS, _MOST_SWEEPS
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if cost(middle) <= operations else (low, middle - 1)
        return low


def bracketed_log_partition(
    model: AbstractEnergyModel, data: np.ndarray | None = None, settings: Bracket | None = None, seed: int = 0
) -> Estimate:
    r"""A lower and an upper stochastic bound of :math:`\log Z`, and the bridge between them, which is the value.

    - *Ladders*: independent ladders of replica exchange between the model and independent units, half of them started
      at rows (``data``), half at rest, at draws of the biases alone: the base, being at the marginals of the rows, need
      not reach what the rows do not have. The schedule is learned in the burn-in and frozen before anything is
      recorded.
    - *Bridge*: acceptance ratios of neighbouring rungs, added up (`harmonium.evaluate.bridge.bridge`); consistent, and
      neither bound. Of machines with two sides the states of the smaller one are weighed, the larger summed out.
    - *Forward*: annealed importance sampling from exact draws of the base along the frozen schedule, a stochastic
      lower bound. *Reverse*: the same walk back from the chains at the model, a stochastic upper bound as far as these
      are at equilibrium.

    The interval is that of Student's law over whole ladders left out one by one; where either direction lies further
    from the bridge than their errors allow, it reaches over that one's interval too. ``cost`` holds ``forward`` and
    ``reverse`` with their errors. ``reliable`` is False, with every reason, as `harmonium.evaluate.bracket_verdict`
    says.

    Source: Krause, Fischer and Igel, "Algorithms for estimating the partition function of restricted Boltzmann
    machines" (2020), which finds the bridge on tempered samples the best of several; Bennett (1976); Neal (2001).
    """
    settings = (settings or Bracket()).resolve(model)
    single = as_single(model)
    base = _base(single, data, settings, seed)
    side = walked_side(single, settings.side)
    run = _climbed(base, single, side, data, settings, seed)
    found = bridge(*run.by_ladder(settings.ladders))
    path, betas = path_between(base, single), _stops(run.betas, settings.sweeps or 1)
    start = independent_draws(base, len(run.particles[0]), _words(seed, 4))
    walk = anneal(path, side, betas, start, _words(seed, 5))
    back = anneal(path, side, betas[::-1], run.particles, _words(seed, 6))
    return _judged(base, path, found, run, walk, back, settings, blind=data is None)


def _base(model: AbstractEnergyModel, rows: np.ndarray | None, settings: Bracket, seed: int) -> Independent:
    return base_of(
        model, settings.base, rows, settings.ladders * settings.chains, _pilot(settings), _words(seed, 0)
    )


def _pilot(settings: Bracket) -> int:
    """Sweeps of the run that the marginals are taken from: as many as the burn-in, and a few at least."""
    return max(10, settings.burn_in or 0)


def _climbed(
    base: Independent,
    model: AbstractEnergyModel,
    side: int | None,
    rows: np.ndarray | None,
    settings: Bracket,
    seed: int,
) -> Climb:
    """All ladders: the first half of them from rows and the others from rest; without rows, all from the base."""
    chains = settings.ladders * settings.chains
    if rows is None:
        particles: Any = independent_draws(base, chains, _words(seed, 1))
    else:
        near = _from_rows(settings)
        halves = (
            from_rows(model, chosen_rows(rows, near), _words(seed, 2)),
            long_run(model, None, 0, _words(seed, 1), chains - near),
        )
        particles = tuple(np.concatenate(pair) for pair in zip(*halves, strict=True))
    return climb(
        base,
        model,
        side,
        particles,
        _words(seed, 3),
        rungs=settings.rungs or 2,
        sweeps=settings.sweeps or 1,
        burn_in=settings.burn_in or 0,
    )


def _from_rows(settings: Bracket) -> int:
    """How many chains start at rows: those of the first half of the ladders."""
    return settings.ladders // 2 * settings.chains


def _stops(betas: np.ndarray, temperatures: int) -> np.ndarray:
    """The frozen schedule with evenly many stops between its rungs, rising from 0 to 1."""
    rungs = np.arange(len(betas))
    return np.interp(np.linspace(0, rungs[-1], temperatures + 1), rungs, betas[::-1])


def _judged(
    base: Independent,
    path: AnyPath,
    found: Bridge,
    run: Climb,
    walk: Annealed,
    back: Annealed,
    settings: Bracket,
    *,
    blind: bool,
) -> Estimate:
    start = base.log_partition()
    value = start + found.value
    forward = _direction(start, walk, Kind.STOCHASTIC_LOWER)
    reverse = _direction(start, back, Kind.STOCHASTIC_UPPER, SNAPSHOTS)
    middle = Estimate(
        value, found.stderr, value - found.half_width, value + found.half_width, kind=Kind.CONSISTENT
    )
    origins = (0 if blind else settings.ladders // 2, settings.ladders)
    doubts = doubts_about_bracket(middle, forward, reverse, found, run, path.model, back, origins)
    # A direction that contradicts the bridge beyond their errors says that one of the two is wrong, but not which.
    contrary = [
        end
        for end in (forward, reverse)
        if abs(end.value - value) > _SIGMAS * math.hypot(end.stderr, found.stderr) + ROUNDING
    ]
    stderr = max([found.stderr, *(abs(end.value - value) / 2 for end in contrary)])
    parts = {
        f"{name}{what}": float(number)
        for name, end in (("forward", forward), ("reverse", reverse))
        for what, number in (
            ("", end.value),
            ("_stderr", end.stderr),
            ("_effective_chains", end.cost["effective_chains"]),
        )
    }
    said = ", ".join(
        f"{name} {end.value:.4f} +- {end.stderr:.4f}"
        for name, end in (("forward", forward), ("reverse", reverse))
    )
    origin = "all ladders from the base" if blind else "half of the ladders from rows, half from rest"
    return Estimate(
        value=value,
        stderr=stderr,
        low=min(float(one.low) for one in (middle, *contrary)),
        high=max(float(one.high) for one in (middle, *contrary)),
        kind=Kind.CONSISTENT,
        reliable=not doubts,
        reason="; ".join([*doubts, f"bridge between {said}", origin]),
        method="bracket",
        cost={
            "operations": settings.operations(path.model),
            "ladders": float(settings.ladders),
            "chains": float(settings.chains),
            "rungs": float(settings.rungs or 0),
            "sweeps": float(settings.sweeps or 0),
            "burn_in": float(settings.burn_in or 0),
            **parts,
            "bridge": value,
            "bridge_stderr": found.stderr,
            "barrier": float(run.rejection.sum()),
            "round_trips": float(run.trips.sum()),
        },
    )


def _direction(start: float, walk: Annealed, kind: Kind, repeats: int = 1) -> Estimate:
    """One of the two bounds: a walk back weighs its chains by 1/w.

    Walks are in ``repeats`` rounds over the same chains; their error is that of the means over these.
    """
    log_mean, stderr = log_mean_weight(walk.log_weight)
    if repeats > 1 and math.isfinite(log_mean):
        by_chain = np.logaddexp.reduce(walk.log_weight.reshape(repeats, -1), axis=0) - math.log(repeats)
        stderr = log_mean_weight(by_chain)[1]
    sign = 1 if kind == Kind.STOCHASTIC_LOWER else -1
    return Estimate(
        start + sign * log_mean,
        stderr,
        kind=kind,
        method="ais",
        cost={"effective_chains": effective_chains(walk.log_weight)},
    )


def _words(seed: int, purpose: int) -> Words:
    """Noise words of one use, none of which the updates of a run with the same seed have."""
    return key_words(jax.random.fold_in(seed_key(seed), _PURPOSES | purpose))
