"""The contract table: register a member here and it inherits the proofs of its kind.

A row of `UNITS`, `SAMPLERS`, `RULES`, `INFERENCES` or `EVALUATORS`, or of `MODELS` in `model_cases.py`, says only what
is special about the member; what it must obey is in the test file of that name beside this one. `test_cases.py` fails
for a member of the library without a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

import harmonium as hm
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.inference.base import AbstractInference
from harmonium.inference.clamped import ClampedGibbs
from harmonium.inference.exact import Exact
from harmonium.inference.mean_field import MeanField
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import Contrastive
from harmonium.rules.likelihood import ExactGradient
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.gibbs import Gibbs
from harmonium.typing import Clamp
from harmonium.units.base import AbstractUnits
from harmonium.units.pair import BernoulliPair, SpinPair
from tests.contracts.deep_cases import DEEP, DEEP_RULE, WRONG_DEEP_RULE, of_deep, wrongly_exchanged_chains
from tests.contracts.drawn_cases import DRAWN as DRAWN
from tests.contracts.drawn_cases import log_probability
from tests.contracts.ladders import (
    TEMPERED,
    Difference,
    WronglySwapped,
    at_their_laws,
    law_of_wrong_swaps,
)
from tests.contracts.model_cases import model_of, table_of, twisted_table
from tests.contracts.sabotage import (
    AtOnce,
    HalfStepApart,
    Twisted,
    blind,
    law_at_once,
    law_half_a_step_apart,
    weaker,
)
from tests.contracts.tables import Table, normalised
from tests.contracts.walks import WALKING, WALKING_RULES

Law = Callable[[Table], np.ndarray]

# ------------------------------------------------------------------------------------------------------------- units

UNITS: dict[str, type[AbstractUnits]] = {
    "bernoulli": hm.Bernoulli,
    "spin": hm.Spin,
    "bernoulli-pair": BernoulliPair,
    "spin-pair": SpinPair,
    "categorical": hm.Categorical,
}
"""Every kind of unit, by its name; those that are not two-valued are proved in a file of their own."""

# ---------------------------------------------------------------------------------------------------------- samplers


@dataclass(frozen=True)
class SamplerCase:
    """A sampler, the machine it is proved on, and a sabotaged twin that the proof must catch.

    ``chains`` start independently at the law ``start`` (None: the target) and make ``steps`` steps; ``mistaken`` is the
    exact law of the twin's chains then. ``settled``: after so many steps from anywhere the target is reached.
    """

    model: str
    sampler: AbstractSampler
    twin: AbstractSampler
    mistaken: Law
    steps: int = 1
    chains: int = 50_000
    settled: int = 40
    clamp: Clamp | None = None
    start: Law = field(default=lambda table: table.law())
    extended: Callable[[Any, Any, Table, Any, int], Any] | None = None
    """Where the target is that of more than the chains: sampler, model, table, state and seed to a state at it."""


_HELD: Clamp = (np.array([True, False, False]), None, np.array([False, True]))


def _held_evenly(table: Table, clamp: Clamp = _HELD) -> np.ndarray:
    """Held units uniform, the rest at its conditional law: the target, seen through other held values."""
    free = table.block_kernel(range(len(table.sizes)), clamp=clamp)
    return np.full(table.count, 1 / table.count) @ free


_SOME_HELD: Clamp = (np.array([True, False, False]), np.array([False, False, True]))


def _weaker_sweeps(name: str, gain: float, sweeps: int) -> Law:
    def law(table: Table) -> np.ndarray:
        kernel = twisted_table(name, weaker(gain)).sweep_kernel()
        return table.law() @ np.linalg.matrix_power(kernel, sweeps)

    return law


def _blind_sweep(table: Table) -> np.ndarray:
    kernel = twisted_table("three layers", blind(0)).sweep_kernel(clamp=_HELD)
    return _held_evenly(table) @ kernel


def _weaker_held(table: Table) -> np.ndarray:
    kernel = twisted_table("machine", weaker(0.8)).sweep_kernel(clamp=_SOME_HELD)
    return _held_evenly(table, _SOME_HELD) @ kernel


def _tempered(
    name: str, sampler: hm.ParallelTempering, difference: Difference, stale: bool = False
) -> SamplerCase:
    """Parallel tempering with a twin that swaps wrongly."""
    return SamplerCase(
        name,
        sampler,
        WronglySwapped(sampler, difference, stale),
        lambda table: law_of_wrong_swaps(sampler, model_of(name), table, difference, stale=stale),
        chains=20_000,
        settled=60,
        extended=at_their_laws,
    )


SAMPLERS: dict[str, SamplerCase] = {
    "gibbs": SamplerCase("strong rbm", Gibbs(), HalfStepApart(Gibbs()), law_half_a_step_apart),
    "gibbs, three sweeps a step": SamplerCase(
        "rbm of spins",
        Gibbs(3),
        Twisted(Gibbs(3), weaker(0.95)),
        _weaker_sweeps("rbm of spins", 0.95, 6),
        steps=2,
    ),
    "gibbs, clamped": SamplerCase(
        "three layers",
        Gibbs(clamp=_HELD),
        Twisted(Gibbs(clamp=_HELD), blind(0)),
        _blind_sweep,
        clamp=_HELD,
        start=_held_evenly,
    ),
    "gibbs, a label layer": SamplerCase(
        "labels on two layers",
        Gibbs(),
        Twisted(Gibbs(), weaker(0.9)),
        _weaker_sweeps("labels on two layers", 0.9, 1),
    ),
    "gibbs, one unit after the other": SamplerCase(
        "machine", Gibbs(), Twisted(Gibbs(), weaker(0.9)), _weaker_sweeps("machine", 0.9, 1), settled=60
    ),
    "gibbs, all units coupled": SamplerCase("machine, fully visible", Gibbs(), AtOnce(), law_at_once),
    "gibbs, by colours": SamplerCase("machine of spins on a lattice", Gibbs(), AtOnce(), law_at_once),
    "gibbs on a sparse graph": SamplerCase(
        "machine on a sparse graph",
        Gibbs(2),
        Twisted(Gibbs(2), weaker(0.9)),
        _weaker_sweeps("machine on a sparse graph", 0.9, 2),
    ),
    "gibbs, some units of a machine held": SamplerCase(
        "machine",
        Gibbs(clamp=_SOME_HELD),
        Twisted(Gibbs(clamp=_SOME_HELD), weaker(0.8)),
        _weaker_held,
        clamp=_SOME_HELD,
        start=lambda table: _held_evenly(table, _SOME_HELD),
    ),
    **{f"parallel tempering, {what}": _tempered(*row) for what, row in TEMPERED.items()},
    **{what: SamplerCase(**row) for what, row in WALKING.items()},
    **{f"deep tempering, {what}": SamplerCase(**of_deep(*row)) for what, row in DEEP.items()},
}
"""Markov kernels of the negative phase."""

# ------------------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True)
class RuleCase:
    """A rule, and the law of the chains whose statistics its gradient subtracts.

    ``negative`` takes the visible kernel of one sweep and the visible law of the target and gives, for each visible
    state that a row may be, the law of its chain; ``mistaken`` is the same for the sabotaged ``twin``. A rule whose
    chains are at the target has the exact gradient of the log-likelihood.
    """

    model: str
    rule: Contrastive
    negative: Callable[[np.ndarray, np.ndarray], np.ndarray]
    twin: Contrastive
    mistaken: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rows: int = 60_000
    extended: Callable[[Any, Any, Table, Any, int], Any] | None = None
    """As in `SamplerCase`."""


def _chains_of(rule: Contrastive, sampler: AbstractSampler) -> Contrastive:
    return Contrastive(sampler, rule.inference, persistent=rule.persistent, chains_count=rule.chains_count)


def _at_target(kernel: np.ndarray, law: np.ndarray) -> np.ndarray:
    return np.broadcast_to(law, kernel.shape)


def _after(sweeps: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda kernel, law: np.linalg.matrix_power(kernel, sweeps)


def _weaker_chains(kernel: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Chains at the target after one sweep of the weaker machine, on the visible layer."""
    table = table_of("strong rbm")
    moved = table.law() @ table.sweep_kernel(twisted_table("strong rbm", weaker(0.9)).energy)
    return np.broadcast_to(table.marginal(0, moved)[1], kernel.shape)


_PCD = hm.PCD(chains=60_000)


RULES: dict[str, RuleCase] = {
    "pcd": RuleCase(
        "strong rbm", _PCD, _at_target, _chains_of(_PCD, Twisted(Gibbs(), weaker(0.9))), _weaker_chains
    ),
    "cd": RuleCase("strong rbm", hm.CD(1), _after(1), hm.CD(2), _after(2)),
    "cd, three sweeps": RuleCase("strong rbm", hm.CD(3), _after(3), hm.CD(2), _after(2)),
    **{name: RuleCase(**row) for name, row in WALKING_RULES.items()},
    "deep": RuleCase("stack on four", DEEP_RULE, _at_target, WRONG_DEEP_RULE, wrongly_exchanged_chains),
}
"""Training rules."""


EXACT_RULES: dict[str, AbstractRule] = {"exact": ExactGradient()}
"""Rules without a sample: their gradient is the exact one, on every machine of `MODELS`."""


# -------------------------------------------------------------------------------------------------------- inferences


@dataclass(frozen=True)
class InferenceCase:
    """A positive phase, proved on machines whose hidden units are coupled to each other and on others.

    ``law`` takes a model, its table and one visible row and gives the exact probability of every hidden state of the
    table's rows that the inference stands for; ``twin`` is an inference that the proof must catch.
    """

    inference: AbstractInference
    law: Callable[[Any, Table, np.ndarray], np.ndarray]
    twin: AbstractInference
    draws: bool = False


def _posterior(model: Any, table: Table, row: np.ndarray) -> np.ndarray:
    """The law of all configurations given the row."""
    chosen = (table.layers[0] == row).all(axis=1)
    return np.where(chosen, table.law(), 0) / table.law()[chosen].sum()


def _factorial(model: Any, table: Table, row: np.ndarray) -> np.ndarray:
    """The product of the means that the fixed point settles at, by many damped steps of the written-out energy."""
    chosen = (table.layers[0] == row).all(axis=1)
    coupling, bias = (np.asarray(part, np.float64) for part in model.pairwise())
    size = len(row)
    low, high = np.array([table.supports[i] for i, n in enumerate(table.sizes) for _ in range(n)])[size:].T
    mean = (low + high) / 2
    for _ in range(4000):
        field = bias[size:] + row @ coupling[:size, size:] + mean @ coupling[size:, size:]
        mean = 0.8 * mean + 0.2 * (low + (high - low) / (1 + np.exp(-(high - low) * field)))
    hidden = np.concatenate(table.layers[1:], axis=1)
    on = (mean - low) / (high - low)
    return np.where(chosen, np.prod(np.where(hidden == high, on, 1 - on), axis=1), 0)


INFERENCES: dict[str, InferenceCase] = {
    "exact": InferenceCase(Exact(), _posterior, MeanField()),
    "mean-field": InferenceCase(MeanField(sweeps=400, tolerance=1e-12), _factorial, Exact()),
    "gibbs": InferenceCase(ClampedGibbs(sweeps=40), _posterior, ClampedGibbs(sweeps=1), draws=True),
}
"""Positive phases, by the names of ``--inference``."""

# -------------------------------------------------------------------------------------------------------- evaluators


@dataclass(frozen=True)
class EvaluatorCase:
    """A number that is asked of a model on rows, and the same number from the table of all configurations.

    ``truth`` takes the model, its table and the rows and gives one value per row (or one for all).
    """

    estimate: Callable[[Any, np.ndarray], Estimate]
    truth: Callable[[Any, Table, np.ndarray], np.ndarray]
    kind: Kind
    per_row: Callable[[Any, np.ndarray], Estimate] | None = None


def _pseudo(model: Any, table: Table, rows: np.ndarray) -> np.ndarray:
    total = np.zeros(len(rows))
    for unit in range(rows.shape[1]):
        here = log_probability(table, rows)
        flipped = rows.copy()
        flipped[:, unit] = sum(table.supports[0]) - rows[:, unit]
        total += here - np.logaddexp(here, log_probability(table, flipped))
    return total


def _reconstruction(model: Any, table: Table, rows: np.ndarray) -> np.ndarray:
    """By sums over states: E[h | v], then E[v | h] at that mean, which the energy takes as it takes any numbers."""
    errors = []
    for row in rows:
        chosen = (table.layers[0] == row).all(axis=1)
        hidden = normalised(-table.energy[chosen]) @ table.layers[1][chosen]
        states, _ = table.marginal(0, table.law())
        with jax.enable_x64(True):
            energy = np.asarray(model.energy((states, np.broadcast_to(hidden, (len(states), len(hidden))))))
        errors.append(np.sum((row - normalised(-energy) @ states) ** 2))
    return np.array(errors)


EVALUATORS: dict[str, EvaluatorCase] = {
    "log_partition": EvaluatorCase(
        lambda model, rows: hm.log_partition(model),
        lambda model, table, rows: np.array([table.log_partition()]),
        Kind.EXACT,
    ),
    "log_likelihood": EvaluatorCase(
        hm.log_likelihood,
        lambda model, table, rows: log_probability(table, rows),
        Kind.EXACT,
        lambda model, rows: hm.log_likelihood(model, rows, rows=True),
    ),
    "pseudo_likelihood": EvaluatorCase(hm.pseudo_likelihood, _pseudo, Kind.PROXY),
    "reconstruction_error": EvaluatorCase(hm.reconstruction_error, _reconstruction, Kind.PROXY),
}
"""Public functions that return an estimate."""
