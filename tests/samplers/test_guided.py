"""Deep tempering on the even layers of a deep Boltzmann machine: swaps, what the guide learns, whole runs, refusals."""

from itertools import product
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.inference.guided import drawn_proposals
from harmonium.inference.mean_field import MeanField
from harmonium.inference.stacked import positive_phase
from harmonium.numerics.random import Noise
from harmonium.samplers.deep_tempering import swap_log_ratio
from harmonium.typing import Batch
from tests.contracts.machines import wave_layers
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, Table, agreement, power_against

PATTERNS = hm.load_data("bars-and-stripes:side=2")


def laws_of_proposals(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All configurations of the even layers, and their laws in the machine and in the guide, by sums over the table."""
    guided, table = model_of(name), table_of(name)
    even = np.concatenate([table.layers[index] for index in range(0, guided.height, 2)], axis=1)
    states = np.array(list(product((0.0, 1.0), repeat=even.shape[1])))
    laws = []
    for found in (even, table.layers[guided.height]):
        place = np.argmax((found[:, None] == states[None]).all(axis=-1), axis=1)
        laws.append(np.bincount(place, table.law(), len(states)))
    return states, laws[0], laws[1]


@pytest.mark.parametrize("name", ["guided, three layers", "guided, four layers"])
def test_swaps_of_even_layers_are_in_detailed_balance(name: str) -> None:
    """By marginal energies of both; by those of the visible layer alone, as of a stack, they are not."""
    states, machine, guide = laws_of_proposals(name)
    guided = model_of(name)
    with jax.enable_x64(True):
        stack = guided.as_stack()
        here, there = (jnp.asarray(part) for part in (states[:, None], states[None]))
        pairs = [
            jnp.broadcast_to(side, (len(states), len(states), states.shape[1])) for side in (here, there)
        ]
        right = np.asarray(swap_log_ratio(stack, 0, *pairs))
        own = [np.asarray(guided.machine.units[0].base_energy(side[..., :2])) for side in pairs]
    expected = np.log(np.outer(guide, machine)) - np.log(np.outer(machine, guide))
    np.testing.assert_allclose(right, expected, atol=1e-10)
    flow = np.outer(machine, guide) * np.exp(np.minimum(right, 0))
    np.testing.assert_allclose(flow, flow.T, atol=1e-14)
    wrong = np.outer(machine, guide) * np.exp(np.minimum(own[0] - own[1], 0))
    assert np.abs(wrong - wrong.T).max() > 1e-3


def test_what_the_guide_learns_from_has_the_law_of_the_posterior() -> None:
    """The data, and h_2 drawn from the mean-field posterior; the slopes of the guide are those of an RBM on that."""
    guided = hm.GuidedDBM(wave_layers(*(("bernoulli", size) for size in (3, 2, 2))), [2], weight_scale=0.5)
    inference, noise, row = MeanField(200), Noise.from_key(jax.random.key(2)), np.array([1.0, 0, 1])
    batch = Batch(x=jnp.broadcast_to(jnp.asarray(row, jnp.float32), (20_000, 3)))
    found = jax.jit(inference.posterior)(noise, guided.machine, batch)
    drawn = np.asarray(drawn_proposals(inference, noise, guided, batch, found.means))
    np.testing.assert_array_equal(drawn[:, :3], np.broadcast_to(row, (20_000, 3)))
    mean = np.asarray(found.means[2][0], np.float64)
    law = np.outer([1 - mean[0], mean[0]], [1 - mean[1], mean[1]]).ravel()
    counts = np.bincount((drawn[:, 3:] @ [2, 1]).astype(int), minlength=4)
    assert agreement(counts, law) > FALSE_ALARM
    # Draws at rest, of a guide that does not know of the row, would be told from these.
    bias = 1 / (1 + np.exp(-np.asarray(guided.machine.units[2].bias)))
    assert power_against(np.outer([1 - bias[0], bias[0]], [1 - bias[1], bias[1]]).ravel(), law, 20_000) > 0.99

    def energy(guide: Any) -> jax.Array:
        whole = eqx.tree_at(lambda tree: tree.guide, guided, guide)
        return jnp.mean(positive_phase(inference, noise, whole, batch).energy)

    slopes = jax.grad(energy)(jax.tree.map(jnp.asarray, guided.guide))
    rbm = jax.tree.map(jnp.asarray, guided.guide.level(0))
    right = jax.grad(lambda rbm: jnp.mean(rbm.free_energy(jnp.asarray(drawn))))(rbm)
    for one, other in zip(jax.tree.leaves(slopes), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
        assert np.abs(one).max() > 1e-3


def test_a_stack_and_its_machine_are_one_law() -> None:
    guided = model_of("guided, four layers")
    rows = tuple(map(jnp.asarray, table_of("guided, four layers").layers))
    for one, other in zip(rows, guided.from_stack(guided.to_stack(rows)), strict=True):
        np.testing.assert_array_equal(one, other)
    with jax.enable_x64(True):
        stack = Table.of(jax.tree.map(np.asarray, guided.as_stack()))
    assert stack.log_partition() == pytest.approx(table_of("guided, four layers").log_partition())


def train(rule: Any = None, model: Any = None, **settings: Any) -> hm.Run:
    model = hm.GuidedDBM(hm.DBM(4, [3, 2], seed=1, weight_scale=0.3), [3], seed=1) if model is None else model
    rule = hm.DeepTempering(hot=1) if rule is None else rule
    return hm.fit(model, PATTERNS, rule, batch_size=6, seed=0, **settings)


def test_a_run_is_scored_as_its_machine_and_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = train(updates=200, learning_rate=0.5, final_rate=0.5, out=tmp_path / "whole")
    settings: Any = whole.config
    assert settings["model"]["kind"] == "dbm"
    assert settings["model"]["guide"] == [3]
    assert settings["sampler"]["name"] == "deep"
    assert settings["sampler"]["inference"] == "mean-field"
    assert whole.history[-1]["swap_rate"] > 0.01
    score = hm.log_likelihood(whole.model, PATTERNS)
    assert score.value == hm.log_likelihood(whole.model.machine, PATTERNS).value
    assert score.value == pytest.approx(whole.history[-1]["log_likelihood_train"], abs=1e-9)

    def stop(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if record["index"] == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(updates=200, learning_rate=0.5, final_rate=0.5, out=tmp_path / "broken", reporter=stop)
    resumed = hm.resume(tmp_path / "broken")
    for one, other in zip(
        jax.tree.leaves((whole.model, whole.state)),
        jax.tree.leaves((resumed.model, resumed.state)),
        strict=True,
    ):
        if not jnp.issubdtype(jnp.asarray(one).dtype, jax.dtypes.prng_key):
            np.testing.assert_array_equal(one, other)
    assert isinstance(hm.load_run(tmp_path / "broken").model, hm.GuidedDBM)


def test_samples_are_those_of_the_machine() -> None:
    """With the guide and without it, and with held values; the exact conditional of a deep machine by enumeration."""
    guided, table = model_of("guided, four layers"), Table.of(model_of("guided, four layers").machine)
    states, law = table.marginal(0, table.law())
    for sampler in (None, hm.DeepTempering(hot=1)):
        drawn = hm.sample(guided, 20_000, steps=40, seed=5, sampler=sampler)
        counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
        assert agreement(counts, law) > FALSE_ALARM
        assert power_against(np.full(4, 0.25), law, 20_000) > 0.99


def test_completions_of_a_deep_machine_follow_its_exact_conditional() -> None:
    dbm, table = model_of("four strong layers"), table_of("four strong layers")
    states, law = table.marginal(0, table.law())
    drawn = hm.sample(dbm, 20_000, steps=40, seed=6, clamp=[0, np.nan, np.nan])
    conditional = np.where(states[:, 0] == 0, law, 0.0) / law[states[:, 0] == 0].sum()
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert agreement(counts, conditional) > FALSE_ALARM
    # Were the held unit not seen by the layers above, the rest would have its unconditional law.
    unseen = np.zeros(len(states))
    for state, weight in zip(states, law, strict=True):
        unseen[(states[:, 1:] == state[1:]).all(axis=1) & (conditional > 0)] += weight
    assert power_against(unseen, conditional, 20_000) > 0.99
    ladders = hm.ParallelTempering(3), hm.CAST(1, 3), hm.TemperedTransitions(3)
    for sampler in ladders:
        with pytest.raises(SettingError, match="clamp works with the default sampler only, got"):
            hm.sample(dbm, 2, clamp=[0, np.nan, np.nan], sampler=sampler)


def test_what_has_no_guide_is_refused() -> None:
    dbm = hm.DBM(4, [3, 2])
    mixed = hm.DBM(4, [3, hm.Spin(2)])
    for arguments, message in (
        ((hm.DBN(4, [3, 2]), [2]), "a guide is of a machine such as hm.DBM"),
        ((dbm, []), r"guide takes a list of hidden layers, bottom first, got \[\]"),
        ((mixed, [2]), "all even layers of a machine as one layer of one kind, got bernoulli and spin units"),
    ):
        with pytest.raises(SettingError, match=message):
            hm.GuidedDBM(*arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SettingError, match=r"a guided machine such as hm.GuidedDBM\(dbm, \[16\]\), got DBM"):
        train(model=dbm, updates=1)
    with pytest.raises(SettingError, match=r"pass the machine alone, guided\.machine"):
        train(hm.ExactGradient(), updates=1)
    other = hm.GuidedDBM(hm.DBM(5, [3, 2]), [2]).guide.parameters()
    with pytest.raises(
        SettingError, match="the even layers of the machine have 6 bernoulli units, but the guide 7"
    ):
        hm.GuidedDBM.from_arrays(dbm.parameters(), other)
