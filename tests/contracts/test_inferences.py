"""Proofs that every inference inherits: its energies, gradients and means against sums over hidden states."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference
from harmonium.inference.mean_field import MeanField, bound_at
from harmonium.inference.names import build_inference, describe_inference
from harmonium.numerics.random import Noise
from harmonium.typing import Batch
from tests.contracts.cases import INFERENCES
from tests.contracts.model_cases import MODELS, model_of, table_of
from tests.contracts.tables import POWER, deviation_limit, deviation_power, largest_deviation

COPIES = 40_000

inferences = pytest.mark.parametrize("name", INFERENCES)
machines = pytest.mark.parametrize(
    "machine", ["machine", "machine, spins below", "machine on a sparse graph"]
)


@cache
def program(inference: AbstractInference) -> Any:
    """Mean slope of the energy as one vector (couplings, biases), and mean means of the hidden units."""

    def run(model: Any, noise: Noise, rows: jax.Array) -> Any:
        def mean_energy(model: Any) -> Any:
            posterior = inference.posterior(noise, model, Batch(x=rows))
            return jnp.mean(posterior.energy), posterior.means

        slopes, means = jax.grad(mean_energy, has_aux=True)(model)
        flat = jnp.concatenate([slopes.couplings[0].strengths, *(units.bias for units in slopes.units)])
        return flat, jnp.concatenate(means[1:], axis=-1).mean(axis=0)

    return jax.jit(run)


def found_by(inference: AbstractInference, machine: str, row: np.ndarray, copies: int) -> np.ndarray:
    with jax.enable_x64(True):
        rows = jnp.broadcast_to(jnp.asarray(row), (copies, len(row)))
        noise = Noise.from_key(jax.random.key(5))
        flat, means = program(inference)(jax.tree.map(jnp.asarray, model_of(machine)), noise, rows)
        return np.concatenate([flat, means])


def expected_of(machine: str, law: np.ndarray, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Expectation of the slopes and means under a law of configurations, and the error of a mean over draws."""
    table = table_of(machine)
    x = np.concatenate(table.layers, axis=1)
    model = model_of(machine)
    assert isinstance(model, hm.BoltzmannMachine)
    first, second = model.couplings[0].graph.pairs.T
    statistics = np.concatenate([-x[:, first] * x[:, second], -x, x[:, table.sizes[0] :]], axis=1)
    mean = law @ statistics
    variance = law @ (statistics - mean) ** 2
    return mean, np.sqrt(variance / copies)


@inferences
@machines
def test_the_positive_phase_is_that_of_its_law(name: str, machine: str) -> None:
    """And another inference, whose law is another, is told from it."""
    case, table = INFERENCES[name], table_of(machine)
    row = table.layers[0][0]
    model = model_of(machine)
    copies = COPIES if case.draws else 1
    expected, stderr = expected_of(machine, case.law(model, table, row), copies)
    found = found_by(case.inference, machine, row, copies)
    if case.draws:
        assert largest_deviation(found, expected, stderr) < deviation_limit(len(expected))
    else:
        np.testing.assert_allclose(found, expected, atol=1e-9)


@inferences
def test_the_twin_is_caught(name: str) -> None:
    case, machine = INFERENCES[name], "machine"
    table = table_of(machine)
    row = table.layers[0][0]
    model = model_of(machine)
    copies = COPIES if case.draws else 1
    expected, stderr = expected_of(machine, case.law(model, table, row), copies)
    twin = found_by(case.twin, machine, row, copies)
    if not case.draws:
        assert np.abs(twin - expected).max() > 1e-3
        return
    mistaken, _ = expected_of(machine, law_of_one_sweep(machine, row), copies)
    assert deviation_power(mistaken, expected, stderr) >= POWER
    assert largest_deviation(twin, expected, stderr) > deviation_limit(len(expected))


def law_of_one_sweep(machine: str, row: np.ndarray) -> np.ndarray:
    """One hidden unit after the other from rest, each given the ones drawn and the rest of those not yet drawn."""
    table = table_of(machine)
    with jax.enable_x64(True):
        coupling, bias = (np.asarray(part) for part in model_of(machine).pairwise())
    size = len(row)
    law = (table.layers[0] == row).all(axis=1).astype(float)
    x = np.concatenate(table.layers, axis=1)
    at_rest = np.broadcast_to(1 / (1 + np.exp(-bias)), x.shape).copy()
    at_rest[:, :size] = x[:, :size]
    for unit in range(size, x.shape[1]):
        on = 1 / (1 + np.exp(-(bias[unit] + at_rest @ coupling[:, unit])))
        law = law * np.where(x[:, unit] == 1, on, 1 - on)
        at_rest[:, unit] = x[:, unit]
    assert law.sum() == pytest.approx(1)
    return law


@machines
def test_a_sweep_of_one_layer_without_couplings_raises_the_bound_and_bounds_it(machine: str) -> None:
    """The bound is never above ``log p(v) + log Z``; on layers it rises with every sweep, whatever the damping."""
    for name, damping in (("four layers", 0.0), ("four layers", 0.7), ("machine on a sparse graph", 0.3)):
        table = table_of(name)
        with jax.enable_x64(True):
            model = jax.tree.map(jnp.asarray, model_of(name))
            field = MeanField(damping=damping)
            rows = table.marginal(0, table.law())[0]
            means = (
                jnp.asarray(rows),
                *(jnp.full((len(rows), units.size), 0.3 * units.support[1]) for units in model.units[1:]),
            )
            sweep, bound = jax.jit(field.sweep), jax.jit(bound_at)
            bounds = [np.asarray(bound(model, means))]
            for _ in range(12):
                means = sweep(model, means)
                bounds.append(np.asarray(bound(model, means)))
            free = -np.asarray(model.free_energy(rows))
        assert np.all(np.diff(bounds, axis=0) > -1e-12)
        assert np.all(bounds[-1] > bounds[0])
        assert np.all(bounds[-1] <= free + 1e-12)
    # On coupled hidden units too the settled bound is a bound.
    table = table_of(machine)
    with jax.enable_x64(True):
        rows = jnp.asarray(table.marginal(0, table.law())[0])
        model = jax.tree.map(jnp.asarray, model_of(machine))
        means, residual, _ = MeanField(sweeps=200).solve(model, Batch(x=rows))
        assert float(residual) < 1e-6
        assert np.all(np.asarray(bound_at(model, means)) <= -np.asarray(model.free_energy(rows)) + 1e-12)


@inferences
def test_a_machine_without_hidden_units_has_nothing_to_infer(name: str) -> None:
    model, rows = model_of("machine, fully visible"), table_of("machine, fully visible").layers[0]
    with jax.enable_x64(True):
        posterior = INFERENCES[name].inference.posterior(
            Noise.from_key(jax.random.key(0)), model, Batch(x=jnp.asarray(rows))
        )
        np.testing.assert_allclose(posterior.energy, table_of("machine, fully visible").energy, atol=1e-13)
    assert len(posterior.means) == 1


def test_inferences_by_name() -> None:
    assert describe_inference(build_inference("mean-field", 7)) == {
        "inference": "mean-field",
        "inference_sweeps": 7,
    }
    assert describe_inference(MeanField(damping=0.1)) is None
    assert hm.PCD(inference=MeanField(damping=0.1)).inference == MeanField(damping=0.1)
    for arguments, message in (
        (("guess",), "no inference is called 'guess'; choose one of exact, mean-field, gibbs"),
        (("exact", 3), "inference_sweeps=3 belongs to mean-field or gibbs"),
        ((MeanField(), 3), "belongs to an inference given by its name"),
        (("gibbs", 0), "at least one"),
    ):
        with pytest.raises(SettingError, match=message):
            build_inference(*arguments)  # pyright: ignore[reportArgumentType]
    for settings in ({"damping": 1.0}, {"damping": -0.1}, {"tolerance": -1.0}, {"sweeps": 0}):
        with pytest.raises(SettingError, match="got"):
            MeanField(**settings)  # pyright: ignore[reportArgumentType]
    assert set(MODELS) >= {"machine"}
