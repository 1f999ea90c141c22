"""What a run of a stack reports: the network's score beside the bottom machine's, and signs of every level."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.numerics.enumerate import all_states
from harmonium.numerics.precision import as_single
from harmonium.train import monitor as monitors
from harmonium.train.monitor import Monitor, vital_signs
from tests.golden.test_dbn import wave_dbn


def test_both_scores_are_told_with_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    dbn, rows = wave_dbn(4, 12, 2, gain=2.0), all_states(4)
    watch = Monitor(hm.PCD(), rows[:9], ("test", rows[9:]), np.arange(1.0, 10.0))
    told = watch.scores(dbn)
    assert told["log_likelihood_kind"] == "exact"
    weight = np.arange(1.0, 10.0) / 45
    for name, model in (("", dbn), ("_of_level_0", dbn.levels[0])):
        by_row = hm.log_likelihood(model, rows[:9], rows=True).value
        assert told[f"log_likelihood_train{name}"] == pytest.approx(weight @ by_row, rel=1e-12)
        assert told[f"log_likelihood_test{name}"] == pytest.approx(
            hm.log_likelihood(model, rows[9:]).value, rel=1e-12
        )
    # Where the sum costs too much, a bound from draws; where even that does, nothing.
    monkeypatch.setattr(monitors, "EXACT_OPERATIONS", 2e5)
    bounded = watch.scores(dbn)
    assert bounded["log_likelihood_kind"] == "stochastic lower bound"
    # Ten draws for each of seven rows: a standard error of some tenths of a nat.
    bound = hm.log_likelihood(dbn, rows[9:], "bound").value
    assert bounded["log_likelihood_test"] == pytest.approx(bound, abs=2)
    assert bounded["log_likelihood_test"] < told["log_likelihood_test"]
    assert bounded["log_likelihood_test_of_level_0"] == told["log_likelihood_test_of_level_0"]
    monkeypatch.setattr(monitors, "EXACT_OPERATIONS", 10.0)
    assert watch.scores(dbn) == {}


def test_vital_signs_hold_every_level_at_what_is_passed_up() -> None:
    """The gap is that of the sum over levels, each at the means of the level below; not of blank codes."""
    dbn = as_single(wave_dbn(4, 3, 2, gain=3.0))
    probe = all_states(4)[3:12].astype(np.float32)
    chains = tuple(jnp.zeros((5, units.size), jnp.float32) for units in dbn.units)
    model = jax.tree.map(jnp.asarray, dbn)
    signs = vital_signs(model, chains, jnp.asarray(probe), None, jax.random.key(0), jnp.int32(3))
    bottom, top = dbn.levels
    field = bottom.parameters()["hidden_bias"] + probe @ bottom.parameters()["weights"]
    means = 1 / (1 + np.exp(-field))
    energy = np.mean(np.asarray(bottom.free_energy(probe)) + np.asarray(top.free_energy(means)))
    still = sum(float(rbm.free_energy(np.zeros(rbm.units[0].size))) for rbm in dbn.levels)
    assert bool(signs[0])
    assert float(signs[1]) == pytest.approx(energy - still, abs=1e-4)
    assert float(signs[4]) == pytest.approx(means.mean(), abs=1e-5)
