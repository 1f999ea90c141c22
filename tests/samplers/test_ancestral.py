"""Samples of a deep belief network against its enumerated law: free ones, and completions of rows."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import DataError, SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.samplers.ancestral import complete
from tests.contracts.tables import FALSE_ALARM, POWER, agreement, power_against
from tests.golden.test_dbn import joint_of, wave_dbn

CHAINS = 40_000

NETWORKS = {
    "two levels": wave_dbn(4, 3, 2, gain=3.0),
    "three levels": wave_dbn(3, 2, 3, 2, gain=3.0),
    "spins": wave_dbn(3, 2, 2, kinds=["spin", "spin", "bernoulli"]),
}
networks = pytest.mark.parametrize("name", NETWORKS)


def counts_of(rows: np.ndarray, states: np.ndarray) -> np.ndarray:
    """How often each of the states is among the rows."""
    low = states.min()
    powers = 1 << np.arange(states.shape[1])
    codes = (np.asarray(rows) != low) @ powers
    order = (states != low) @ powers
    return np.bincount(codes, minlength=len(states))[order]


@networks
@pytest.mark.parametrize("sampler", [None, hm.ParallelTempering(rungs=3)])
def test_samples_have_the_law_of_the_network(name: str, sampler: Any) -> None:
    """Not that of the bottom machine, which the same test would notice."""
    dbn = NETWORKS[name]
    states, law = joint_of(dbn)
    marginal = law.reshape(len(states[0]), -1).sum(axis=1)
    bottom = np.exp(hm.log_likelihood(dbn.levels[0], states[0], rows=True).value)
    assert power_against(bottom, marginal, CHAINS) >= POWER
    rows = hm.sample(dbn, CHAINS, steps=60, seed=1, sampler=sampler)
    assert rows.dtype == (np.int8 if name == "spins" else np.uint8)
    assert agreement(counts_of(rows, states[0]), marginal) > FALSE_ALARM


@networks
@pytest.mark.parametrize("settings", [{}, {"hot": 2, "order": "sample-first", "steps": 2}])
def test_deep_tempering_samples_the_bottom_machine(name: str, settings: dict[str, Any]) -> None:
    """Stacked tempering: rows are of the lowest RBM by itself, and the law of the network would be noticed."""
    dbn = NETWORKS[name]
    states, law = joint_of(dbn)
    bottom = np.exp(hm.log_likelihood(dbn.levels[0], states[0], rows=True).value)
    assert power_against(law.reshape(len(states[0]), -1).sum(axis=1), bottom, CHAINS) >= POWER
    rows = hm.sample(dbn, CHAINS, steps=60, seed=1, sampler=hm.DeepTempering(**settings))
    assert rows.dtype == (np.int8 if name == "spins" else np.uint8)
    assert agreement(counts_of(rows, states[0]), bottom) > FALSE_ALARM


@networks
def test_completions_have_the_conditional_law(name: str) -> None:
    """Held values never move; the others have their law given them, which is not the one without them."""
    dbn = NETWORKS[name]
    states, law = joint_of(dbn)
    marginal = law.reshape(len(states[0]), -1).sum(axis=1)
    held = np.full(states[0].shape[1], np.nan)
    held[1] = states[0].max()
    given = np.where(states[0][:, 1] == held[1], marginal, 0)
    given /= given.sum()
    rows = hm.sample(dbn, CHAINS, steps=60, seed=2, clamp=held)
    assert (rows[:, 1] == held[1]).all()
    assert agreement(counts_of(rows, states[0])[given > 0], given[given > 0]) > FALSE_ALARM
    # A completion by the bottom machine would have been caught.
    bottom = np.exp(hm.log_likelihood(dbn.levels[0], states[0], rows=True).value)[given > 0]
    assert power_against(bottom / bottom.sum(), given[given > 0], CHAINS) >= POWER


@networks
def test_a_sweep_of_completion_keeps_the_joint_conditional_law(name: str) -> None:
    """From independent exact draws of all layers given held units, one sweep leaves the law where it is.

    A kernel that takes the inner units for independent of each other, which forgets the cumulant of the layer below, is
    caught with computed power: it is the recognition with the prior added.
    """
    dbn = NETWORKS[name]
    states, law = joint_of(dbn)
    shape = law.shape
    mask = np.zeros(states[0].shape[1], bool)
    mask[:2] = True
    match = (states[0][:, mask] == states[0][len(states[0]) // 3, mask]).all(axis=1)
    given = np.where(match.reshape(-1, *[1] * (law.ndim - 1)), law, 0).ravel()
    given /= given.sum()
    drawn = np.unravel_index(np.random.default_rng(0).choice(len(given), CHAINS, p=given), shape)
    layers = tuple(part[index].astype(np.float32) for part, index in zip(states, drawn, strict=True))
    held = np.broadcast_to(mask, layers[0].shape)
    after = jax.jit(complete)(
        Noise.from_key(jax.random.key(3)), as_single(dbn), tuple(map(jnp.asarray, layers)), held
    )
    np.testing.assert_array_equal(np.asarray(after[0])[:, mask], layers[0][:, mask])
    places = [
        (np.asarray(layer)[:, None] == part).all(axis=-1).argmax(axis=1)
        for layer, part in zip(after, states, strict=True)
    ]
    counts = np.bincount(np.ravel_multi_index(places, shape), minlength=len(given))
    assert agreement(counts[given > 0], given[given > 0]) > FALSE_ALARM
    assert sum((np.asarray(new) != old).sum() for new, old in zip(after, layers, strict=True)) > 0
    # The law of h_1 without the cumulants of the held units, with everything else exact.
    wrong = _without_cumulant(dbn, states, law, mask, given)
    assert power_against(wrong, given[given > 0], CHAINS) >= POWER


def _without_cumulant(
    dbn: hm.DBN, states: list[np.ndarray], law: np.ndarray, mask: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """The conditional law whose weights miss ``exp(-A)`` of the held units given h_1."""
    parameters = dbn.parameters()
    field = states[1] @ parameters["weights"][0].T + parameters["biases"][0]
    ends = states[0].min(), states[0].max()
    cumulant = np.logaddexp(ends[0] * field, ends[1] * field)[:, mask].sum(axis=1)
    weight = given.reshape(law.shape) * np.exp(cumulant).reshape(1, -1, *[1] * (law.ndim - 2))
    flat = weight.ravel()[given > 0]
    return flat / flat.sum()


def test_one_level_is_its_machine() -> None:
    rbm = wave_dbn(4, 3).levels[0]
    np.testing.assert_array_equal(
        hm.sample(hm.DBN.of([rbm]), 20, steps=5, seed=3), hm.sample(rbm, 20, steps=5, seed=3)
    )


def test_what_cannot_be_sampled_is_refused() -> None:
    dbn = NETWORKS["two levels"]
    with pytest.raises(DataError, match="clamp must be numbers of shape"):
        hm.sample(dbn, 2, clamp=[1, np.nan])
    with pytest.raises(SettingError, match="clamp works with the default sampler only"):
        hm.sample(dbn, 2, clamp=[1, np.nan, 0, 0], sampler=hm.ParallelTempering(rungs=3))
    with pytest.raises(SettingError, match="a stack of at least two RBMs, got one; use"):
        hm.sample(hm.DBN(4, [3]), 2, sampler=hm.DeepTempering())
    with pytest.raises(
        SettingError, match=r"a stack of RBMs such as .*, got RBM; use hm.ParallelTempering\(\)"
    ):
        hm.sample(dbn.levels[0], 2, sampler=hm.DeepTempering())


def test_every_seed_has_its_own_samples() -> None:
    dbn = NETWORKS["two levels"]
    first, again, other = (hm.sample(dbn, 30, steps=3, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
