"""Deep tempering: swaps in detailed balance, the printed rule that is not, settings, and what is counted."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.samplers.deep_tempering import DeepTempering, hot_betas, swap_log_ratio
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.names import build_sampler, describe_sampler
from harmonium.samplers.sample import sample
from tests.contracts.deep_cases import codes_of, hot_laws, hot_ratio, place_of, printed
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, Table, agreement, power_against

STACKS = range(3)


def random_stack(seed: int, kind: str = "bernoulli") -> hm.DBN:
    """A stack of 3-3-2 units, with strong weights and two biases for its inner layer."""
    draw = np.random.default_rng(seed).standard_normal
    return hm.DBN.from_arrays(
        [1.5 * draw((3, 3)), 1.5 * draw((3, 2))],
        [draw(3), draw(3), draw(2)],
        [draw(3)],
        kinds=[kind] * 3,
    )


def laws_of_codes(stack: hm.DBN) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All codes of the inner layer, and the laws of h_1 and of v_2, by sums over all configurations."""
    table, codes = Table.of(stack), codes_of(stack)
    laws = [np.bincount(place_of(table.layers[layer], codes), table.law(), len(codes)) for layer in (1, 2)]
    return codes, laws[0], laws[1]


def violation(lower: np.ndarray, upper: np.ndarray, log_ratio: np.ndarray) -> tuple[float, float]:
    """Of the exchange of codes: the largest net flow between two states, and the total variation of one step."""
    flow = np.outer(lower, upper) * np.exp(np.minimum(log_ratio, 0))
    return float(np.abs(flow - flow.T).max()), float(np.abs(flow - flow.T).sum() / 2)


@pytest.mark.parametrize("seed", STACKS)
@pytest.mark.parametrize("kind", ["bernoulli", "spin"])
def test_swaps_are_in_detailed_balance_and_the_printed_ones_are_not(seed: int, kind: str) -> None:
    """Eq. 4 to rounding; Algorithm 2 as printed, with one kind of free energy for both sides, by more than 1e-3."""
    stack = random_stack(seed, kind)
    codes, lower, upper = laws_of_codes(stack)
    with jax.enable_x64(True):
        here, there = jnp.asarray(codes)[:, None], jnp.asarray(codes)[None]
        pairs = [jnp.broadcast_to(side, (len(codes), len(codes), 3)) for side in (here, there)]
        right = np.asarray(swap_log_ratio(stack, 0, *pairs))
        wrong = np.asarray(printed(stack, pairs[0], *pairs))
    assert right.dtype == np.float64
    expected = np.log(np.outer(upper, lower)) - np.log(np.outer(lower, upper))
    np.testing.assert_allclose(right, expected, atol=1e-10)
    flow, variation = violation(lower, upper, right)
    assert flow <= 1e-12
    assert variation <= 1e-12
    flow, variation = violation(lower, upper, wrong)
    assert flow > 1e-3
    assert variation > 1e-3


@pytest.mark.parametrize("seed", STACKS)
def test_exchanges_with_hot_replicas_are_in_detailed_balance(seed: int) -> None:
    stack = random_stack(seed)
    codes, lower, _ = laws_of_codes(stack)
    for beta, law in zip(hot_betas(3), hot_laws(stack, 3), strict=True):
        with jax.enable_x64(True):
            places = np.indices((len(codes), len(codes))).reshape(2, -1)
            code, offered = (jnp.asarray(codes[place]) for place in places)
            ratio = np.asarray(hot_ratio(stack, code, code, offered, float(beta))).reshape(len(codes), -1)
        assert violation(lower, law, ratio)[0] <= 1e-12
    np.testing.assert_allclose(hot_laws(stack, 3)[-1], 1 / len(codes))


@pytest.mark.parametrize("sampler", [DeepTempering(), DeepTempering(hot=2)])
def test_rows_are_those_of_the_bottom_rbm(sampler: DeepTempering) -> None:
    """Swaps at sampling time, on a stack trained beforehand, leave the law of the lowest level alone."""
    table = table_of("square stack")
    states, law = table.marginal(0, table.law())
    drawn = sample(model_of("square stack"), n=100_000, steps=25, seed=3, sampler=sampler)
    counts = np.array([(drawn == state).all(axis=1).sum() for state in states])
    assert agreement(counts, law) > FALSE_ALARM
    assert power_against(table.marginal(0, table.law(beta=0.9))[1], law, len(drawn)) >= POWER


def test_codes_that_gibbs_sampling_never_leaves_are_left() -> None:
    """A lower level whose two codes are behind a barrier, and an upper level that goes between them at once."""
    strong = 8.0 * np.array([[1.0, -1.0]] * 6)
    lower = hm.RBM.from_arrays(strong, np.zeros(6), np.array([-38.0, 10.0]))
    upper = hm.RBM.from_arrays(np.zeros((2, 1)), np.zeros(2), np.zeros(1))
    stack = hm.DBN.of([lower, upper])
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), stack)
    on = jnp.tile(jnp.asarray([[1.0, 0.0]]), (50, 1))
    start = (jnp.ones((50, 6)), on, on, jnp.zeros((50, 1)))
    ends = []
    for sampler in (DeepTempering(), Gibbs()):

        def run(state: Any, sampler: Any = sampler) -> Any:
            noise = Noise.from_key(jax.random.key(0))
            return jax.lax.fori_loop(0, 20, lambda i, now: sampler.step(noise.fold(i), single, now)[0], state)

        first = sampler.init(jnp.zeros(2, jnp.uint32), single, start)
        ends.append(float(np.mean(np.asarray(jax.jit(run)(first).particles[0]))))
    assert 0.2 < ends[0] < 0.8
    assert ends[1] > 0.99


def test_swaps_of_equal_codes_are_not_counted() -> None:
    """They are always accepted and change nothing."""
    stack = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), random_stack(0))
    code = jnp.tile(jnp.asarray([[1.0, 0.0, 1.0]]), (40, 1))
    other = 1 - code
    noise = Noise.from_key(jax.random.key(0))
    sampler = DeepTempering()
    for above, most in ((code, 0.0), (other, 1.0)):
        start = sampler.init(noise.words, stack, (code, code, above, jnp.zeros((40, 2))))
        after, info = jax.jit(sampler.step)(noise, stack, start)
        taken = np.asarray(after.particles[1] != code).any()
        if most == 0:
            assert float(after.moved[0]) == 0
            assert float(info["swap_acceptance"]) == 1
            assert float(after.acceptance[0]) == 1
        else:
            ratio = float(swap_log_ratio(stack, 0, code[:1], above[:1])[0])
            assert float(info["swap_acceptance"]) == pytest.approx(np.exp(min(ratio, 0.0)), rel=1e-4)
            assert 0 <= float(after.moved[0]) <= 1
            assert taken or ratio < -5
    assert int(after.rounds) == 1


def test_three_levels_swap_in_turn() -> None:
    """Even rounds swap the pair at the bottom, odd ones the one above it."""
    stack = hm.DBN(4, [3, 3, 3], weight_scale=0.0)
    ones, zeros = jnp.ones((30, 3)), jnp.zeros((30, 3))
    noise = Noise.from_key(jax.random.key(1))
    sampler = DeepTempering()
    state = sampler.init(noise.words, stack, (jnp.zeros((30, 4)), ones, zeros, ones, ones, zeros))
    step = jax.jit(sampler.step)
    first, _ = step(noise, stack, state)
    second, _ = step(noise.fold(1), stack, first)
    np.testing.assert_array_equal(first.moved, [1, 0])
    assert float(second.moved[0]) == float(first.moved[0])
    assert float(second.moved[1]) > 0.5


def test_what_is_known_of_swaps_is_a_mean_over_rounds_from_the_first_on() -> None:
    """Not the slow start of a mean from zero, which would say of a short run that hardly anything was swapped."""
    stack = hm.DBN(4, [3, 2], seed=1, weight_scale=2.0)
    noise, sampler = Noise.from_key(jax.random.key(3)), DeepTempering()
    state = sampler.init(noise.words, stack, tuple(jnp.zeros((50, units.size)) for units in stack.units))
    step, shares = jax.jit(sampler.step), []
    for index in range(7):
        state, info = step(noise.fold(index), stack, state)
        shares.append(float(info["swap_acceptance"]))
    assert np.ptp(shares) > 0.01
    assert float(state.acceptance[0]) == pytest.approx(np.mean(shares), rel=1e-5)


def test_what_is_known_of_swaps_counts_the_rounds_of_each_pair() -> None:
    """Codes that are all alike are always swapped, whichever pair is in turn."""
    stack = hm.DBN(4, [3, 3, 2, 2], weight_scale=0.0)
    noise, sampler = Noise.from_key(jax.random.key(3)), DeepTempering()
    state = sampler.init(noise.words, stack, tuple(jnp.zeros((50, units.size)) for units in stack.units))
    step = jax.jit(sampler.step)
    for index in range(5):
        state, _ = step(noise.fold(index), stack, state)
        np.testing.assert_allclose(state.acceptance, [1, min(index, 1), 1], rtol=1e-6)


def test_it_is_for_stacks() -> None:
    for model in (hm.RBM(6, 4), hm.BoltzmannMachine(4, 2), hm.DBN(6, [4])):
        with pytest.raises(SettingError, match=r"stack of .*hm\.DBN\(784, \[10, 10\]\)"):
            sample(model, 2, steps=1, sampler=DeepTempering())
    with pytest.raises(SettingError, match=r"got RBM; use hm\.ParallelTempering"):
        hm.fit(hm.RBM(4, 4), "bars-and-stripes:side=2", DeepTempering(), updates=100)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "at least one sweep"),
        ({"hot": -1}, "hot must be a whole number of replicas of at least 0, got -1; pass e.g. 4"),
        ({"hot": True}, "hot must be"),
        ({"order": "both"}, "order must be one of swap-first, sample-first, got 'both'"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        DeepTempering(**settings)


def test_it_has_a_name() -> None:
    sampler = DeepTempering(steps=2, hot=4, order="sample-first")
    settings = {"steps": 2, "hot": 4, "order": "sample-first"}
    assert describe_sampler(sampler) == ("deep", settings)
    assert build_sampler("deep", settings) == sampler


def test_what_a_step_costs() -> None:
    stack = hm.DBN(20, [4, 3])
    noise = Noise.from_key(jax.random.key(0))
    particles = tuple(jnp.zeros((5, units.size)) for units in stack.units)

    def cost(sampler: DeepTempering) -> int:
        return sampler.unit_updates(stack, sampler.init(noise.words, stack, particles))

    assert cost(DeepTempering()) == 5 * (20 + 4 + 4 + 3)
    assert cost(DeepTempering(steps=2)) == 2 * cost(DeepTempering())
    assert cost(DeepTempering(hot=3)) == cost(DeepTempering()) + 3 * 5 * (4 + 3)
    # Beside its sweeps it draws the visible units of all levels but the top, and the codes of all but the lowest.
    assert cost(DeepTempering(order="sample-first")) == cost(DeepTempering()) + 5 * (20 + 3)
