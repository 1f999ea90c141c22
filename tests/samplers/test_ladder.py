"""What every replica exchange shares, against what the same rounds come to when written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise
from harmonium.samplers.ladder import (
    Traffic,
    barrier,
    check_order,
    equalised,
    exchanged,
    pairs_in_turn,
    recommended_rungs,
    round_trip_rate,
    swap_pairs,
    unit_updates,
)

NOISE = Noise.from_key(jax.random.key(0))


def words(pairs: int, chains: int, number: int = 0) -> tuple[jax.Array, jax.Array]:
    return NOISE.fold(number).pair((pairs, chains))


def test_a_swap_is_an_exchange_of_neighbours() -> None:
    coins, turns = words(6, 500)
    log_ratio = jnp.asarray(np.random.default_rng(0).normal(0, 2, (6, 500)), jnp.float32)
    tried = pairs_in_turn("random", jnp.int32(0), turns)
    swaps = swap_pairs(coins, log_ratio, tried)
    source = np.asarray(swaps.source)
    np.testing.assert_array_equal(np.sort(source, axis=0), np.arange(7)[:, None] + np.zeros((1, 500)))
    np.testing.assert_array_equal(np.take_along_axis(source, source, axis=0), np.sort(source, axis=0))
    accepted = source[:-1] == np.arange(1, 7)[:, None]
    assert not (accepted & ~np.asarray(tried)).any()
    assert accepted.any(axis=1).all()
    share = accepted.sum() / np.asarray(tried).sum()
    expected = np.asarray(swaps.acceptance)[np.asarray(tried)].mean()
    assert abs(share - expected) < 4.5 * np.sqrt(0.25 / np.asarray(tried).sum())
    layer = jnp.arange(7 * 500 * 3).reshape(7, 500, 3)
    moved = np.asarray(exchanged((layer,), swaps.source)[0])
    np.testing.assert_array_equal(moved, np.take_along_axis(np.asarray(layer), source[:, :, None], axis=0))


def test_huge_ratios_are_decided_by_their_logarithms() -> None:
    coins, _ = words(2, 50)
    log_ratio = jnp.asarray([[1e6], [-1e6]]) * jnp.ones((2, 50))
    swaps = swap_pairs(coins, log_ratio, jnp.asarray([[True], [False]]) & jnp.ones((2, 50), bool))
    assert np.isfinite(swaps.acceptance).all()
    np.testing.assert_array_equal(swaps.acceptance[:, 0], [1, 0])
    np.testing.assert_array_equal(swaps.source[:, 0], [1, 0, 2])
    refused = swap_pairs(coins, -jnp.abs(log_ratio), jnp.ones((2, 50), bool))
    np.testing.assert_array_equal(refused.source[:, 0], [0, 1, 2])


def test_pairs_take_turns_and_never_share_a_rung() -> None:
    _, turns = words(5, 4000)
    for rounds in range(3):
        tried = np.asarray(pairs_in_turn("even-odd", jnp.int32(rounds), turns))
        np.testing.assert_array_equal(tried[:, 0], (np.arange(5) + rounds) % 2 == 0)
        assert (tried == tried[:, :1]).all()
    tried = np.asarray(pairs_in_turn("random", jnp.int32(0), turns))
    assert not (tried[:-1] & tried[1:]).any()
    assert abs(tried[0].mean() - 0.5) < 4.5 * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize("order", ["even-odd", "random"])
def test_traffic_is_that_of_replicas_followed_one_by_one(order: str) -> None:
    rungs, chains, rounds = 4, 30, 200
    acceptance = np.array([0.9, 0.5, 0.7])
    log_ratio = jnp.broadcast_to(jnp.log(jnp.asarray(acceptance, jnp.float32))[:, None], (3, chains))
    traffic, replica = Traffic.none(rungs, chains), np.tile(np.arange(rungs)[:, None], (1, chains))
    last = np.full((rungs, chains), "", dtype=object)
    trips, upward = np.zeros(chains, int), []
    last[0], last[-1] = "top", "bottom"
    for index in range(rounds):
        coins, turns = words(3, chains, index)
        swaps = swap_pairs(coins, log_ratio, pairs_in_turn(order, jnp.int32(index), turns))
        traffic = traffic.after(swaps)
        replica = np.take_along_axis(replica, np.asarray(swaps.source), axis=0)
        for chain in range(chains):
            top, bottom = replica[0, chain], replica[-1, chain]
            trips[chain] += last[top, chain] == "bottom"
            last[top, chain], last[bottom, chain] = "top", "bottom"
        heading = np.take_along_axis(last, replica, axis=0)
        known = (heading != "").sum(axis=1)
        upward.append((heading == "top").sum(axis=1) / np.maximum(known, 1))
        if index == rounds - 1:
            np.testing.assert_array_equal(np.asarray(traffic.heading) == 1, heading == "top")
            np.testing.assert_array_equal(np.asarray(traffic.heading) == -1, heading == "bottom")
    assert trips.sum() > 100
    np.testing.assert_array_equal(traffic.trips, trips)
    np.testing.assert_allclose(traffic.rejection, 1 - acceptance, atol=1e-5)
    np.testing.assert_allclose(traffic.upward[np.array([0, -1])], [1, 0], atol=1e-6)
    # Once every rung has been reached from an end, the share is the one that was counted.
    np.testing.assert_allclose(traffic.upward, np.mean(upward, axis=0), atol=0.02)
    assert int(traffic.rounds) == rounds
    begun = traffic.fresh()
    assert int(begun.rounds) == 0
    np.testing.assert_array_equal(begun.trips, trips)


def test_replicas_travel_where_pairs_take_turns_and_diffuse_where_a_coin_is_tossed() -> None:
    """With nothing refused a replica crosses R rungs in R rounds, back and forth; the rate is the formula's."""
    rungs, chains, rounds = 6, 200, 600
    log_ratio = jnp.zeros((rungs - 1, chains))

    def trips(order: str, log_ratio: jax.Array) -> float:
        def one(index: jax.Array, traffic: Traffic) -> Traffic:
            coins, turns = NOISE.fold(index).pair(log_ratio.shape)
            return traffic.after(swap_pairs(coins, log_ratio, pairs_in_turn(order, index, turns)))

        end = jax.jit(lambda: jax.lax.fori_loop(0, rounds, one, Traffic.none(rungs, chains)))()
        return float(np.mean(np.asarray(end.trips))) / rounds

    assert trips("even-odd", log_ratio) == pytest.approx(float(round_trip_rate(np.zeros(5))), rel=0.02)
    assert trips("random", log_ratio) < 0.5 * trips("even-odd", log_ratio)
    rejection = np.array([0.2, 0.4, 0.1, 0.3, 0.5], np.float32)
    some = jnp.broadcast_to(jnp.log(1 - jnp.asarray(rejection))[:, None], log_ratio.shape)
    assert trips("even-odd", some) == pytest.approx(float(round_trip_rate(rejection)), rel=0.05)


def test_equalised_betas_divide_the_barrier_evenly() -> None:
    """Where refusals go like the distance in the square of beta, the new betas are even in that square."""
    betas = jnp.linspace(1, 0, 41)
    rejection = betas[:-1] ** 2 - betas[1:] ** 2
    found = np.asarray(equalised(betas, rejection))
    np.testing.assert_allclose(found**2, np.linspace(1, 0, 41), atol=2e-3)
    np.testing.assert_allclose(equalised(betas, jnp.zeros(40)), betas, atol=1e-6)
    assert float(barrier(rejection)) == pytest.approx(1)


def test_how_many_rungs_are_recommended() -> None:
    assert recommended_rungs(np.zeros(4)) == 2
    assert recommended_rungs(np.full(4, 0.5)) == 5
    assert recommended_rungs(np.full(9, 0.95)) == 19


def test_every_replica_is_counted() -> None:
    model = hm.RBM(6, 4, seed=0)
    tempering = hm.ParallelTempering(rungs=7, steps=3)
    particles = tuple(jnp.zeros((5, units.size)) for units in model.units)
    state = tempering.init(NOISE.words, model, particles)
    assert tempering.unit_updates(model, state) == 7 * 5 * 3 * 10 == unit_updates(model, 35, 3)


def test_an_order_of_another_name_is_refused() -> None:
    with pytest.raises(SettingError, match="swaps must be one of even-odd, random, got 'odd'"):
        check_order("odd")
