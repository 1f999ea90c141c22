"""Annealers as negative phase: temperatures that are found and followed, runs that repeat, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dimod
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.interop.dimod import Annealer, range_report
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.rules.contrastive import ContrastiveState
from harmonium.rules.mode_assisted import ModeAssistedState
from harmonium.train.outside import sampler_metrics
from tests.conftest import need
from tests.contracts.annealer_cases import HeatBath
from tests.contracts.machines import wave_rbm
from tests.contracts.model_cases import model_of

DATA = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])


def settled(annealer: Annealer, steps: int = 60) -> Any:
    """The state of 500 chains of a small machine after some steps, adapted after each."""
    model = as_single(model_of("strong rbm"))
    noise = Noise.from_key(jax.random.key(3))

    @jax.jit
    def step(index: jax.Array, state: Any) -> Any:
        moved, info = annealer.step(noise.fold(index), model, state)
        return annealer.adapt(moved, info)

    start = tuple(jnp.zeros((500, units.size)) for units in model.units)
    state = annealer.init(noise.words, model, start)
    for index in range(steps):
        state = step(jnp.int32(index), state)
    return state


def test_a_calibrated_annealer_comes_to_the_temperature_of_the_model() -> None:
    """A sampler twice as hot as it is asked for: found by the samples, and put right."""
    hot = settled(Annealer(HeatBath(0.5), num_sweeps=20), steps=3).metrics()
    assert abs(hot["effective_beta"] - 0.5) < 5 * hot["effective_beta_stderr"]
    assert hot["sampler_beta"] == 1.0
    right = settled(Annealer(HeatBath(0.5), calibrated=True, num_sweeps=20)).metrics()
    assert right["sampler_beta"] == pytest.approx(0.5, rel=0.1)
    assert abs(right["effective_beta"] - 1) < 5 * right["effective_beta_stderr"] < 0.5


def test_a_run_tells_the_temperature_of_its_samples_and_repeats(tmp_path: Path) -> None:
    rule = hm.PCD(sampler=Annealer(HeatBath(), calibrated=True, num_sweeps=2), chains=20, burn_in=0)
    settings: dict[str, Any] = dict(batch_size=2, learning_rate=0.5, seed=0)
    whole = hm.fit(hm.RBM(4, 3, seed=0), DATA, rule, updates=200, **settings, out=tmp_path / "run")
    last = whole.history[-1]
    assert abs(last["effective_beta"] - 1) < 5 * last["effective_beta_stderr"]
    assert 0.5 < last["sampler_beta"] < 2
    assert hm.log_likelihood(whole.model, DATA).value > -2  # of independent columns it is -4 log 2
    assert hm.resume(tmp_path / "run", rule=rule).history == whole.history
    again = hm.fit(hm.RBM(4, 3, seed=0), DATA, rule, updates=200, **settings)
    for left, right in zip(jax.tree.leaves(whole.model), jax.tree.leaves(again.model), strict=True):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(SettingError, match="one machine at a time, not for 2 members"):
        hm.fit(hm.RBM(4, 3, seed=0), DATA, rule, updates=2, members=2)


def test_an_annealer_that_is_assisted_by_modes_tells_its_temperature_too() -> None:
    model = model_of("strong rbm")
    particles = tuple(jnp.zeros((20, units.size)) for units in model.units)
    words = Noise.from_key(jax.random.key(0)).words
    base = ContrastiveState(Annealer(HeatBath()).init(words, model, particles), None)
    assisted = ModeAssistedState(base, jnp.int32(0), jnp.float32(0), jnp.float32(0))
    assert sampler_metrics(assisted) == sampler_metrics(base) != {}


def test_a_list_of_all_states_is_no_sample() -> None:
    rule = hm.PCD(sampler=Annealer(dimod.ExactSolver()), chains=20, burn_in=0)
    with pytest.raises(SettingError, match=r"^ExactSolver gave 128 rows for 20 chains"):
        hm.fit(hm.RBM(4, 3, seed=0), DATA, rule, updates=2)


def test_what_no_annealer_is_or_takes_is_refused() -> None:
    with pytest.raises(SettingError, match="dimod sampler is needed"):
        Annealer("annealing")
    with pytest.raises(SettingError, match="dimod sampler is needed, with sample_ising, got HeatBath"):
        Annealer(HeatBath)
    with pytest.raises(SettingError, match="HeatBath has no option 'sweeps'; it takes initial_states"):
        Annealer(HeatBath(), sweeps=3)
    with pytest.raises(SettingError, match="num_reads=3 is not for you to set"):
        Annealer(HeatBath(), num_reads=3)
    with pytest.raises(SettingError, match="takes no initial_states"):
        Annealer(dimod.ExactSolver(), continued=True)
    with pytest.raises(SettingError, match="rate is a share"):
        Annealer(HeatBath(), rate=0)
    with pytest.raises(SettingError, match="single or double precision"):
        hm.fit(hm.RBM(4, 3), DATA, hm.PCD(sampler=Annealer(HeatBath()), precision="bfloat16"), updates=2)


def test_simulated_annealing_of_dwave_takes_what_it_is_given() -> None:
    samplers = need("dwave.samplers", "anneal")
    annealer = Annealer(
        samplers.SimulatedAnnealingSampler(), continued=True, num_sweeps=10, beta_range=[1.0, 1.0]
    )
    found = settled(annealer, steps=4).metrics()
    assert abs(found["effective_beta"] - 1) < 5 * found["effective_beta_stderr"] < 0.6


def test_a_range_is_kept_by_division_and_rounding_is_counted() -> None:
    model = wave_rbm(sizes=(3, 2), gain=20.0)
    report = range_report(model, bits=5)
    spins, _ = hm.to_spin(model)
    values = spins.parameters()
    fields = np.concatenate([values["visible_bias"], values["hidden_bias"]])
    weights = values["weights"]
    assert report.scale == pytest.approx(max(np.abs(fields).max() / 2, np.abs(weights).max()))
    assert report.couplings_beyond == np.mean(np.abs(weights) > 1)
    # Written out: numbers of a grid of 32, and the energies of all states with them.
    grids = [np.linspace(-2, 2, 32), np.linspace(-1, 1, 32)]
    off = [
        report.scale * grid[np.abs(part[..., None] / report.scale - grid).argmin(-1)] - part
        for grid, part in zip(grids, (fields, weights), strict=True)
    ]
    states = 2.0 * ((np.arange(32)[:, None] >> np.arange(5)) & 1) - 1
    errors = states @ off[0] + np.einsum("si,ij,sj->s", states[:, :3], off[1], states[:, 3:])
    assert report.error == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert np.abs(errors).max() <= report.largest_error
    assert report.step == pytest.approx((report.scale * 4 / 31, report.scale * 2 / 31))
    assert range_report(model).error == 0
    with pytest.raises(SettingError, match="h_range must be two numbers"):
        range_report(model, h_range=(0.0, 1.0))
