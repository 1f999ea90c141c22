"""Annealed importance sampling against exact sums: its errors, its direction, its golden cases and its settings."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
import scipy.stats

import harmonium as hm
from harmonium.energy.independent import Independent
from harmonium.energy.path import Path
from harmonium.errors import SettingError
from harmonium.evaluate.ais import AIS, forward_log_partition, prepare, reverse_log_partition
from harmonium.evaluate.annealing import anneal, effective_chains, log_mean_weight, walked_side
from harmonium.evaluate.base_rate import independent_draws
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.schedule import linear_schedule
from harmonium.evaluate.starts import exact_draws
from harmonium.numerics.precision import as_double, as_single
from tests.contracts.machines import wave_layers, wave_matrix, wave_rbm, wave_vector
from tests.contracts.model_cases import model_of, table_of

FALSE_ALARM = 1e-5


def random_machine(number: int, scale: float) -> hm.RBM:
    generator = np.random.default_rng(number)
    weights = scale * generator.standard_normal((14, 9))
    return hm.RBM.from_arrays(weights, generator.standard_normal(14), generator.standard_normal(9))


def test_it_lies_within_its_errors_of_the_exact_value() -> None:
    """Twenty machines of four strengths, five seeds each: no miss of four errors, and as few of two as a normal has."""
    misses, flagged = [], 0
    for number in range(20):
        model = random_machine(number, (0.3, 0.6, 1.0, 1.5)[number % 4])
        exact = hm.log_partition(model, "exact").value
        for seed in range(5):
            estimate = hm.log_partition(model, AIS(temperatures=200), seed=seed)
            assert estimate.kind == Kind.STOCHASTIC_LOWER
            flagged += not estimate.reliable
            assert 0 < estimate.stderr < 0.1
            misses.append(abs(estimate.value - exact) / estimate.stderr)
    assert len(misses) == 100
    assert max(misses) < 4
    # Three combined errors, a normal chance of 0.0027: a flag or two among a hundred honest estimates.
    assert scipy.stats.binom.sf(flagged - 1, 100, 0.0027) > FALSE_ALARM
    beyond = sum(miss > 1.96 for miss in misses)
    assert scipy.stats.binom.sf(beyond - 1, 100, 0.05) > FALSE_ALARM
    # Errors half as large would be caught.
    assert scipy.stats.binom.sf(sum(miss > 0.98 for miss in misses) - 1, 100, 0.05) < FALSE_ALARM


def walks(name: str, settings: AIS, *, back: bool) -> tuple[float, np.ndarray]:
    """Log Z of the base and the log-weights of many independent walks, forward or back from exact draws."""
    model = model_of(name)
    prepared = prepare(model, None, settings, 3)
    assert prepared.side is not None
    start: Any
    if back:
        drawn = iter(exact_draws(model, prepared.side, settings.chains, 5))
        start = tuple(
            next(drawn)
            if index in model.sides[prepared.side]
            else np.zeros((settings.chains, units.size), np.float32)
            for index, units in enumerate(model.units)
        )
    else:
        start = independent_draws(prepared.base, settings.chains, prepared.words(50))
    betas = prepared.betas[::-1] if back else prepared.betas
    walk = anneal(prepared.path, prepared.side, betas, start, prepared.words(51))
    return prepared.base.log_partition(), walk.log_weight


@pytest.mark.parametrize("name", ["strong rbm", "rbm of spins"])
def test_forward_lies_below_and_reverse_above_on_average(name: str) -> None:
    """Estimates of two walks each, ten thousand of them: the means over all lie on their sides beyond chance.

    Both average to the exact value where they are unbiased, and the other sign of the reverse is far from it.
    """
    settings = AIS(chains=20_000, temperatures=2)
    exact = table_of(name).log_partition()
    limit = scipy.stats.norm.isf(FALSE_ALARM)
    for back, sign in ((False, 1), (True, -1)):
        base, log_weight = walks(name, settings, back=back)
        pairs = log_weight.reshape(-1, 2)
        errors = np.array([base + sign * log_mean_weight(pair)[0] - exact for pair in pairs])
        deviation = sign * errors.mean() / (errors.std(ddof=1) / math.sqrt(len(errors)))
        assert deviation < -limit, (back, deviation)
        whole, stderr = log_mean_weight(log_weight)
        assert abs(base + sign * whole - exact) < limit * stderr
        if back:
            assert abs(base + whole - exact) > 100 * stderr


@pytest.mark.parametrize("kinds", [("bernoulli", "bernoulli"), ("spin", "bernoulli"), ("bernoulli", "spin")])
@pytest.mark.parametrize("sizes", [(4, 3), (3, 5)])
def test_zero_weights_with_the_models_own_base_have_no_variance(
    kinds: tuple[str, str], sizes: tuple[int, int]
) -> None:
    """Every walk gives the exact value, from either side, in either direction."""
    model = hm.RBM.from_arrays(
        np.zeros(sizes), wave_vector(sizes[0]), wave_vector(sizes[1], 1.0), visible=kinds[0], hidden=kinds[1]
    )
    exact = hm.log_partition(model, "exact").value
    settings = AIS(chains=10, temperatures=5, base="model")
    for estimate in (
        forward_log_partition(model, None, settings),
        reverse_log_partition(model, None, settings),
        hm.log_partition(model, settings),
    ):
        assert estimate.stderr == 0
        assert estimate.value == estimate.low == estimate.high == pytest.approx(exact, rel=1e-6)
        assert estimate.reliable
    # The base of a pilot's marginals is another one: its walks differ.
    assert hm.log_partition(model, AIS(chains=10, temperatures=5)).stderr > 0


def test_no_energy_from_an_even_base_is_n_log_2() -> None:
    free = hm.RBM.from_arrays(np.zeros((6, 4)), np.zeros(6), np.zeros(4))
    estimate = hm.log_partition(free, AIS(chains=10, temperatures=5, base="uniform"))
    assert estimate.value == pytest.approx(10 * math.log(2), rel=1e-15)
    assert estimate.stderr == 0


def test_two_machines_side_by_side_add() -> None:
    """Exactly by the exact sum, within the errors by annealing."""
    one, other = wave_rbm(), wave_rbm(sizes=(3, 4), gain=1.5)
    weights = np.zeros((7, 7))
    weights[:4, :3] = wave_matrix(4, 3)
    weights[4:, 3:] = 1.5 * wave_matrix(3, 4)
    biases = [
        np.concatenate([m.parameters()[name] for m in (one, other)])
        for name in ("visible_bias", "hidden_bias")
    ]
    both = hm.RBM.from_arrays(weights, *biases)
    exact = [hm.log_partition(model, "exact").value for model in (one, other, both)]
    assert exact[0] + exact[1] == pytest.approx(exact[2], rel=1e-14)
    parts = [hm.log_partition(model, AIS(temperatures=50), seed=7) for model in (one, other, both)]
    difference = parts[0] + parts[1] - parts[2]
    assert difference.stderr > 0
    assert abs(difference.value) < 4 * difference.stderr


def test_one_temperature_is_plain_importance_sampling() -> None:
    """From the base's own draws, with the weights written out."""
    model = wave_rbm(gain=2.0)
    base = as_single(Independent(model.units))
    path = as_single(Path(base, model))
    words = jax.random.bits(jax.random.key(0), (2,))
    draws = independent_draws(base, 1000, words)
    side = walked_side(model)
    assert side is not None
    walk = anneal(path, side, linear_schedule(1), draws, words)
    with jax.enable_x64(True):
        held = tuple(np.asarray(draws[layer], np.float64) for layer in model.sides[side])
        plain = Path(Independent(model.units), model)
        energies = [np.asarray(plain.at(beta).marginal_energy(side, held)) for beta in (0.0, 1.0)]
    np.testing.assert_allclose(walk.log_weight, energies[0] - energies[1], atol=1e-5)
    assert walk.log_weight.dtype == np.float64


def test_single_and_double_precision_agree() -> None:
    """The same walks in either precision: to 1e-4 of a nat, on a machine of a log Z near a hundred."""
    generator = np.random.default_rng(1)
    model = hm.RBM.from_arrays(
        0.7 * generator.standard_normal((60, 20)),
        generator.standard_normal(60),
        generator.standard_normal(20),
    )
    base = as_single(Independent(model.units))
    words = jax.random.bits(jax.random.key(2), (2,))
    start = independent_draws(base, 20, words)
    found = []
    for cast in (as_single, as_double):
        with jax.enable_x64(cast is as_double):
            path = cast(Path(base, as_single(model)))
            particles = tuple(np.asarray(layer, path.beta.dtype) for layer in start)
            walk = anneal(path, 1, linear_schedule(300), particles, words)
            found.append(base.log_partition() + log_mean_weight(walk.log_weight)[0])
    assert found[0] > 90
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_any_number_of_layers() -> None:
    for name in ("three layers", "four layers"):
        model = model_of(name)
        estimate = hm.log_partition(model, AIS(temperatures=50), seed=1)
        assert abs(estimate.value - table_of(name).log_partition()) < 4 * estimate.stderr + 1e-5
        assert estimate.reliable


def test_general_machines_are_annealed_as_a_whole() -> None:
    """Walks hold all units, and walk back from Gibbs runs that say that they are not exact."""
    model, table = model_of("machine"), table_of("machine")
    rows = table.draw(60, table.law(), 0)[0]
    estimate = hm.log_partition(model, AIS(temperatures=50), rows, seed=1)
    assert estimate.kind == Kind.STOCHASTIC_LOWER
    assert abs(estimate.value - table.log_partition()) < 4 * estimate.stderr
    assert "Gibbs sweeps, half from rows, half from rest" in estimate.reason
    assert walked_side(model) is None


@pytest.mark.parametrize("base", ["data", "model", "uniform"])
@pytest.mark.parametrize("schedule", ["linear", "pilot"])
def test_every_base_and_schedule_leads_to_the_same_value(base: str, schedule: str) -> None:
    model = wave_layers(("bernoulli", 6), ("spin", 4))
    exact = hm.log_partition(model, "exact").value
    rows = hm.sample(model, 60, steps=20, seed=0)
    settings = AIS(base=base, schedule=schedule, temperatures=60)
    for data in (None, rows):
        estimate = hm.log_partition(model, settings, data, seed=2)
        assert abs(estimate.value - exact) < 4 * estimate.stderr + 1e-5
        assert estimate.reliable


def test_the_marginals_of_the_data_are_a_better_start_than_none() -> None:
    """Spread of the log-weights at equal cost, on a machine with biases of its own."""
    model = hm.RBM.from_arrays(0.3 * wave_matrix(20, 8), 3 * wave_vector(20), wave_vector(8))
    rows = hm.sample(model, 200, steps=50, seed=0)
    spread = {}
    for base in ("data", "uniform"):
        estimate = forward_log_partition(model, rows, AIS(base=base, temperatures=10))
        spread[base] = estimate.stderr
    assert spread["data"] < spread["uniform"] / 2


def test_rows_of_a_data_set_are_its_training_rows() -> None:
    data = hm.load_data("bars-and-stripes:side=3")
    model = hm.RBM(9, 4, seed=0, weight_scale=0.5)
    named = hm.log_partition(model, AIS(temperatures=10), data, seed=1)
    assert named.value == hm.log_partition(model, AIS(temperatures=10), data.train, seed=1).value
    assert named.value == hm.log_partition(model, AIS(temperatures=10), data.name, seed=1).value
    assert named.value != hm.log_partition(model, AIS(temperatures=10), seed=1).value
    assert named.value != hm.log_partition(model, AIS(temperatures=10), data, seed=2).value


def test_the_interval_reaches_over_both_directions() -> None:
    model = wave_rbm(gain=2.0)
    settings = AIS(temperatures=10)
    forward, reverse = (
        ask(model, None, settings, 4) for ask in (forward_log_partition, reverse_log_partition)
    )
    both = hm.log_partition(model, settings, seed=4)
    assert both.value == forward.value
    assert both.stderr == max(forward.stderr, abs(reverse.value - forward.value) / 2)
    assert both.low == min(forward.low, reverse.low)
    assert both.high == max(forward.high, reverse.high)
    assert f"forward {forward.value:.4f}" in both.reason
    assert f"reverse {reverse.value:.4f}" in both.reason
    assert both.cost["effective_chains"] == forward.cost["effective_chains"]
    assert both.cost["reverse_effective_chains"] == reverse.cost["effective_chains"]


def test_a_likelihood_by_annealing_is_the_exact_one_within_its_error() -> None:
    model = model_of("strong rbm")
    rows = table_of("strong rbm").draw(50, table_of("strong rbm").law(), 0)[0]
    exact = hm.log_likelihood(model, rows, "exact")
    estimate = hm.log_likelihood(model, rows, "ais")
    assert estimate.kind == Kind.STOCHASTIC_UPPER
    assert estimate.method == "ais"
    assert abs(estimate.value - exact.value) < 4 * estimate.stderr
    assert estimate.row_stderr == pytest.approx(exact.row_stderr, rel=1e-9)
    assert estimate.low < exact.value < estimate.high
    each = hm.log_likelihood(model, rows, "ais", rows=True)
    assert np.mean(each.value) == pytest.approx(estimate.value, rel=1e-12)


def test_the_mean_weight_and_its_worth() -> None:
    log_weight = np.log(np.array([1.0, 2.0, 3.0])) + 1000
    value, stderr = log_mean_weight(log_weight)
    assert value == pytest.approx(1000 + math.log(2))
    assert stderr == pytest.approx(1 / (2 * math.sqrt(3)))
    assert effective_chains(log_weight) == pytest.approx(36 / 14)
    assert effective_chains(np.zeros(7)) == pytest.approx(7)
    for bad in (math.nan, math.inf, -math.inf):
        assert math.isnan(log_mean_weight(np.array([0.0, bad]))[0])
        assert effective_chains(np.array([0.0, bad])) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chains": 1}, "chains of AIS must be a whole number from 2 to"),
        ({"temperatures": 0}, "temperatures of AIS must be a whole number from 1 to 8388608, got 0"),
        ({"base": "guess"}, "no base of AIS is called 'guess'; choose one of data, model, uniform"),
        ({"schedule": "steep"}, "no schedule of AIS is called 'steep'; choose one of linear, pilot"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        AIS(**settings)
    with pytest.raises(SettingError, match="seed must be"):
        hm.log_partition(wave_rbm(), "ais", seed=-1)
