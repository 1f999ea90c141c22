"""What a run reports about itself, and the guard that notices when it has come apart."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.energy.guided import unguided
from harmonium.energy.labels import split_observed
from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import (
    exact_log_partition,
    likelihood_operations,
    plan_enumeration,
    unnormalised_log_probability,
)
from harmonium.evaluate.likelihood import mean_over_rows
from harmonium.evaluate.stacks import affordable_bounds, affordable_estimates
from harmonium.inference.clamped import are_coupled
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import Noise, update_words
from harmonium.rules.base import AbstractRule
from harmonium.rules.centring import weighted_mean
from harmonium.rules.contrastive import RESTART_SWEEPS
from harmonium.train.state import TrainState
from harmonium.typing import Configuration

EXACT_OPERATIONS = 2e9
"""Most operations that an exact likelihood in a report may cost; above it reports carry none."""

_PROBE_ROWS = 128
_SCORED_ROWS = 2000
_PROBE_STREAM = 200
_WORST_GAP = 4.0
_WORST_LIKELIHOOD = 2.0


class Health(NamedTuple):
    """A run's vital signs; see `Monitor.health`."""

    finite: bool
    free_energy_gap: float
    reconstruction_error: float
    weight_rms: float
    hidden_mean: float


class Monitor:
    """Reports on a run from fixed probe rows: what a report says depends on the state alone, never on the clock.

    Training rows with weights are averaged with them, the heaviest rows first where not all are taken: rows that hardly
    count in training would else make a good model look bad.
    """

    def __init__(
        self,
        rule: AbstractRule,
        rows: np.ndarray,
        held_out: tuple[str, np.ndarray] | None,
        weight: np.ndarray | None = None,
        states: int = 2,
        coupled: int = 0,
    ):
        """``states``: how many a visible unit has; ``coupled``: hidden units that are not summed out of energies."""
        self.rule, self.states, self.coupled = rule, states, coupled
        if weight is not None:
            order = np.argsort(-weight, kind="stable")[:_SCORED_ROWS]
            rows, weight = rows[order], np.asarray(weight[order], np.float64)
        self.probe = np.asarray(rows[:_PROBE_ROWS], np.float32)
        self.probe_weight = None if weight is None else np.asarray(weight[:_PROBE_ROWS], np.float32)
        self.scored = {"train": (rows[:_SCORED_ROWS], weight)}
        if held_out is not None:
            self.scored[held_out[0]] = (held_out[1][:_SCORED_ROWS], None)

    def health(self, state: TrainState) -> Health:
        """Vital signs, from one compiled call.

        ``free_energy_gap`` is the mean free energy of the probe rows minus that of the persistent chains, or, without
        any, of one sweep from the rows, in nats: near zero when the model's samples look like the data.
        ``reconstruction_error`` is a proxy: the mean squared distance between rows and one sweep from them.
        """
        signs = _health_program()(
            state.model,
            self.rule.chains(state.rule_state),
            self.probe,
            self.probe_weight,
            state.key,
            state.index,
        )
        finite, *numbers = jax.device_get(signs)
        return Health(bool(finite), *(float(number) for number in numbers))

    def faults(self, _state: TrainState, health: Health) -> dict[int, str]:
        """`fault` of the one model, which is member 0 of a run without members; empty while it is sound."""
        fault = self.fault(health)
        return {} if fault is None else {0: fault}

    def report(
        self, state: TrainState, health: Health, rate: np.ndarray, epoch: float, _number: int | None
    ) -> tuple[dict[str, Any], dict[int, str]]:
        """One line of metrics, and the fault that it shows."""
        record = self.record(state, health, float(rate), epoch)
        fault = self.fault_of_likelihood(record)
        return record, {} if fault is None else {0: fault}

    def fault(self, health: Health) -> str | None:
        """Why the run must be held to have diverged; None while it is sound.

        A mean log-likelihood above that of coin flips, :math:`-n \\log 2`, bounds the gap by :math:`2 n \\log 2`;
        twice that is beyond doubt. Where energies are of whole configurations, hidden units count among the n.
        """
        if not health.finite:
            return "a parameter or chain is no longer finite"
        worst = _WORST_GAP * (self.probe.shape[1] * math.log(self.states) + self.coupled * math.log(2))
        if not abs(health.free_energy_gap) <= worst:
            return (
                f"the free energies of data and chains are {abs(health.free_energy_gap):.3g} nats apart, "
                f"more than {worst:.3g}"
            )
        return None

    def fault_of_likelihood(self, record: dict[str, Any]) -> str | None:
        """Why a report shows that the run has diverged: the training rows are beyond doubt worse than coin flips."""
        worst = -_WORST_LIKELIHOOD * self.probe.shape[1] * math.log(self.states)
        found = record.get("log_likelihood_train_of_level_0", record.get("log_likelihood_train"))
        if found is None or found >= worst:
            return None
        return f"the mean log-likelihood of the training rows is {found:.4g} nats, below {worst:.4g}"

    def record(self, state: TrainState, health: Health, rate: float, epoch: float) -> dict[str, Any]:
        """One line of metrics."""
        return self.line(state, health, rate, epoch, self.likelihoods(state.model))

    def line(
        self, state: TrainState, health: Health, rate: float, epoch: float, likelihoods: dict[str, Estimate]
    ) -> dict[str, Any]:
        """One line of metrics, of which the likelihoods are known."""
        record: dict[str, Any] = {
            "index": int(state.index),
            "epoch": epoch,
            "learning_rate": rate,
            "free_energy_gap": health.free_energy_gap,
            "proxy_reconstruction_error": health.reconstruction_error,
            "weight_rms": health.weight_rms,
        }
        if not math.isnan(health.hidden_mean):
            record["hidden_mean"] = health.hidden_mean
        return record | self.numbers_of(likelihoods)

    def scores(self, model: AbstractEnergyModel) -> dict[str, Any]:
        """The likelihoods of a model as a line of metrics holds them."""
        return self.numbers_of(self.likelihoods(model))

    def numbers_of(self, likelihoods: dict[str, Estimate]) -> dict[str, Any]:
        """Likelihoods as a line of metrics holds them."""
        numbers: dict[str, Any] = {}
        for split, estimate in likelihoods.items():
            numbers[f"log_likelihood_{split}"] = estimate.value
            numbers[f"log_likelihood_{split}_row_stderr"] = estimate.row_stderr
            if split in self.scored:
                numbers["log_likelihood_kind"] = str(estimate.kind)
        return numbers

    def likelihoods(self, model: AbstractEnergyModel) -> dict[str, Estimate]:
        """Exact mean log-likelihoods of the scored rows by split; empty when they would cost too much.

        Of a deep Boltzmann machine they are mean-field bounds where only log Z can be had exactly.

        Of a stack they are those of the network, or a lower bound where only that is affordable, and beside them, under
        ``SPLIT_of_level_0``, those of its bottom RBM.
        """
        model = unguided(model)
        if isinstance(model, AbstractStack):
            return affordable_estimates(model, self.scored, EXACT_OPERATIONS) | {
                f"{split}_of_level_0": estimate
                for split, estimate in self.likelihoods(model.level(0)).items()
            }
        scored = sum(len(rows) for rows, _ in self.scored.values())
        plan = plan_enumeration(model)
        if likelihood_operations(model, scored, plan) > EXACT_OPERATIONS:
            return affordable_bounds(model, self.scored, EXACT_OPERATIONS) if isinstance(model, DBM) else {}
        partition = exact_log_partition(model, plan=plan)
        return {
            split: mean_over_rows(unnormalised_log_probability(model, rows), weight) - partition
            for split, (rows, weight) in self.scored.items()
        }


@cache
def _health_program():
    return compile_function(vital_signs)


def vital_signs(
    model: AbstractEnergyModel,
    chains: Configuration | None,
    probe: Float[Array, "rows n"],
    weight: Float[Array, " rows"] | None,
    key: Array,
    index: Array,
) -> tuple[Array, ...]:
    """What `Health` holds, on the device; the weights of a machine without any have a root mean square of zero."""
    noise = Noise.of(update_words(key, index[None])[0]).stream(_PROBE_STREAM)
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves((model, chains))]).all()
    model = unguided(model)
    chains = None if chains is None else chains[: len(model.units)]
    probe, label = split_observed(model, probe)
    held = _held_at(noise, model, probe, label)
    reconstructed = model.sweep(noise.at(_sweeps_held(model)), held)
    samples, sample_weight = (reconstructed, weight) if chains is None else (chains, None)
    data_energy, model_energy = (
        weighted_mean(model.chain_energy(layers), counts)
        for layers, counts in ((held, weight), (samples, sample_weight))
    )
    weights = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(model.couplings)])
    return (
        finite,
        data_energy - model_energy,
        weighted_mean(jnp.sum((reconstructed[0] - probe) ** 2, axis=-1), weight),
        jnp.sqrt(jnp.mean(weights**2)) if weights.size else jnp.zeros(()),
        _hidden_mean(model, held, weight),
    )


def _sweeps_held(model: AbstractEnergyModel) -> int:
    """Draws that `_held_at` makes: coupled hidden layers are a draw only once they have heard each other."""
    return RESTART_SWEEPS if are_coupled(model) and not isinstance(model, AbstractStack) else 1


def _held_at(
    noise: Noise,
    model: AbstractEnergyModel,
    probe: Float[Array, "rows n"],
    label: Float[Array, "rows states"] | None,
) -> Configuration:
    """The probe rows, and their labels if any, with their hidden layers drawn; in a stack with the visible layer of
    each level at the means that the level below recognises, which is where training holds it."""
    blank = tuple(jnp.zeros((probe.shape[0], units.size)) for units in model.units[1:])
    if not isinstance(model, AbstractStack):
        above = None if label is None else True
        clamp = (True, *(None for _ in blank[1:]), above) if blank else (True,)
        start = (probe, *blank) if label is None else (probe, *blank[:-1], label)
        return jax.lax.fori_loop(
            0, _sweeps_held(model), lambda draw, now: model.sweep(noise.at(draw), now, clamp=clamp), start
        )
    layers = [probe, *blank]
    layers[::2] = model.recognised(probe)[:-1]
    return model.sweep(noise, tuple(layers), clamp=(True, None) * model.depth)


def _hidden_mean(
    model: AbstractEnergyModel, held: Configuration, weight: Float[Array, " rows"] | None
) -> Float[Array, ""]:
    """Mean of the first hidden layer with the data clamped; not a number where there is none."""
    if len(model.units) == 1:
        return jnp.full((), jnp.nan)
    return jnp.mean(weighted_mean(model.units[1].mean(model.field(1, held)), weight))
