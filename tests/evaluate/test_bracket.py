"""Brackets against exact sums: their intervals, their golden cases, their settings, and what makes them unreliable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats

import harmonium as hm
from harmonium.errors import BudgetError, SettingError
from harmonium.evaluate import bracket, ladders
from harmonium.evaluate.annealing import sweep_operations
from harmonium.evaluate.bracket import Bracket, bracketed_log_partition
from harmonium.evaluate.bracket_verdict import doubts_about_ladders
from harmonium.evaluate.bridge import Bridge
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.ladders import Climb, records_of
from harmonium.samplers.tempering import ParallelTempering
from tests.contracts.machines import wave_machine, wave_matrix, wave_rbm, wave_vector
from tests.contracts.model_cases import model_of, table_of

FALSE_ALARM = 1e-5

SHORT = Bracket(ladders=8, chains=4, rungs=4, sweeps=60, burn_in=30)
"""Settings that the tests share, so that programs are compiled once for each shape of machine."""


def rows_of(name: str, count: int = 60) -> np.ndarray:
    table = table_of(name)
    return table.draw(count, table.law(), seed=0)[0]


@pytest.mark.parametrize("name", ["strong rbm", "machine", "machine, fully visible"])
def test_it_covers_the_exact_value_as_often_as_it_says(name: str) -> None:
    """Both kinds of machine: as few misses as one time in twenty, and an error that is no larger than it need be."""
    model, rows, exact = model_of(name), rows_of(name), table_of(name).log_partition()
    found = [hm.log_partition(model, SHORT, rows, seed) for seed in range(40)]
    assert {one.kind for one in found} == {Kind.CONSISTENT}
    assert {one.method for one in found} == {"bracket"}
    missed = sum(not one.low <= exact <= one.high for one in found)
    assert scipy.stats.binom.sf(missed - 1, 40, 0.05) > FALSE_ALARM
    tenths = sum(abs(one.value - exact) > (one.high - one.low) / 20 for one in found)
    assert scipy.stats.binom.sf(tenths - 1, 40, 0.05) < FALSE_ALARM
    flagged = sum(not one.reliable for one in found)
    assert scipy.stats.binom.sf(flagged - 1, 40, 0.1) > FALSE_ALARM


def test_forward_lies_below_and_reverse_above_on_average() -> None:
    """Their bias is the direction they are named by, where few walks make it large."""
    name = "strong rbm"
    few = replace(SHORT, chains=1, rungs=2, sweeps=8, burn_in=20)
    costs = [hm.log_partition(model_of(name), few, rows_of(name), seed).cost for seed in range(60)]
    limit = scipy.stats.norm.isf(FALSE_ALARM)
    exact = table_of(name).log_partition()
    for end, sign in (("forward", 1), ("reverse", -1)):
        errors = np.array([cost[end] for cost in costs]) - exact
        assert sign * errors.mean() < limit * errors.std(ddof=1) / math.sqrt(60)
    apart = np.array([cost["reverse"] - cost["forward"] for cost in costs])
    assert apart.mean() > 0


@pytest.mark.parametrize("base", ["model", "data"])
@pytest.mark.parametrize("machine", [False, True])
def test_zero_weights_are_exact(base: str, machine: bool) -> None:
    """From the model's own base without any scatter; from the marginals of a pilot within a small error."""
    model: Any = wave_machine(4, 3, gain=0.0) if machine else wave_rbm(gain=0.0)
    exact = hm.log_partition(model, "exact").value
    estimate = bracketed_log_partition(model, None, replace(SHORT, base=base), seed=1)
    if base == "model":
        assert estimate.stderr < 1e-12
        assert estimate.value == pytest.approx(exact, rel=1e-6)
        assert estimate.cost["forward"] == estimate.cost["reverse"] == pytest.approx(exact, rel=1e-6)
    else:
        assert 0 < estimate.stderr < 0.02
        assert estimate.low <= exact <= estimate.high


def test_two_machines_side_by_side_add() -> None:
    one, other = wave_rbm(), wave_rbm(sizes=(3, 4), gain=1.5)
    weights = np.zeros((7, 7))
    weights[:4, :3] = wave_matrix(4, 3)
    weights[4:, 3:] = 1.5 * wave_matrix(3, 4)
    biases = [
        np.concatenate([m.parameters()[name] for m in (one, other)])
        for name in ("visible_bias", "hidden_bias")
    ]
    both = hm.RBM.from_arrays(weights, *biases)
    parts = [hm.log_partition(model, SHORT, seed=7) for model in (one, other, both)]
    difference = parts[0] + parts[1] - parts[2]
    assert difference.kind == Kind.CONSISTENT
    assert 0 < abs(difference.value) < 4 * difference.stderr


def test_a_wrong_sign_of_the_bridge_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = model_of("strong rbm"), rows_of("strong rbm")
    assert hm.log_partition(model, SHORT, rows).reliable
    right = bracket.bridge
    monkeypatch.setattr(bracket, "bridge", lambda hotter, colder: right(-hotter, -colder))
    estimate = hm.log_partition(model, SHORT, rows)
    assert not estimate.reliable
    assert "forward and bridge part by" in estimate.reason
    exact = table_of("strong rbm").log_partition()
    # What it cannot tell is which of the two is right: the interval reaches over both.
    assert estimate.low <= exact <= estimate.high


def test_the_json_of_an_estimate_shows_the_bracket() -> None:
    cost = hm.log_partition(model_of("machine"), SHORT, rows_of("machine")).to_dict()["cost"]
    assert cost["bridge"] == pytest.approx(cost["forward"], abs=1)
    assert {"forward_stderr", "reverse", "reverse_effective_chains", "round_trips", "barrier"} <= cost.keys()
    assert (cost["ladders"], cost["chains"], cost["rungs"], cost["sweeps"], cost["burn_in"]) == (
        8,
        4,
        4,
        60,
        30,
    )


def test_the_same_seed_gives_the_same_number_and_rows_matter() -> None:
    model, rows = model_of("machine"), rows_of("machine")
    one = hm.log_partition(model, SHORT, rows, seed=3)
    assert hm.log_partition(model, SHORT, rows, seed=3).value == one.value
    assert hm.log_partition(model, SHORT, rows, seed=4).value != one.value
    blind = hm.log_partition(model, SHORT, seed=3)
    assert blind.value != one.value
    assert not blind.reliable
    assert "no chain started from a row" in blind.reason


def test_a_likelihood_by_a_bracket_is_the_exact_one_within_its_error() -> None:
    name = "machine"
    rows = rows_of(name)
    exact, estimate = (hm.log_likelihood(model_of(name), rows, how) for how in ("exact", SHORT))
    assert estimate.kind == Kind.CONSISTENT
    assert abs(estimate.value - exact.value) < 5 * estimate.stderr
    assert estimate.row_stderr == pytest.approx(exact.row_stderr, rel=1e-9)


# ------------------------------------------------------------------------------------------------- settings and cost


def test_what_it_costs_is_counted_before() -> None:
    model = hm.RBM(100, 40, seed=0)
    usual = Bracket().resolve(model)
    assert (usual.rungs, usual.ladders, usual.chains) == (15, 16, 1)
    assert usual.sweeps is not None
    assert usual.burn_in == usual.sweeps // 2
    assert 0.9 < usual.operations(model) / (2 * hm.AIS().operations(model)) <= 1.001
    assert Bracket().operations(model) == usual.operations(model)
    told = Bracket(rungs=5).resolve(model, 1e9)
    assert told.rungs == 5
    assert 0.9e9 < told.operations(model) <= 1e9
    assert told.sweeps is not None
    # By hand: sweeps of all rungs, records, walks either way from four snapshots, and the pilot.
    chains, rungs, sweeps = 16, 5, told.sweeps
    burn_in = sweeps // 2
    records, every = records_of(sweeps, rungs * chains)
    assert every == 2
    by_hand = rungs * (burn_in + sweeps + records) + 8 * sweeps + burn_in
    assert told.operations(model) == by_hand * sweep_operations(model, chains)


def test_a_budget_that_is_too_small_is_refused_with_one_that_is_enough() -> None:
    model = model_of("rbm")
    with pytest.raises(BudgetError, match="takes at least 20 sweeps") as refusal:
        hm.log_partition(model, "bracket", operation_budget=1e4)
    least = float(str(refusal.value).split("operation_budget=")[1].split()[0])
    assert 20 <= hm.log_partition(model, "bracket", operation_budget=least).cost["sweeps"] <= 22
    with pytest.raises(
        SettingError, match=r"sweeps=60 .* and operation_budget both say how long a bracket is"
    ):
        hm.log_partition(model, SHORT, operation_budget=1e9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ladders": 7}, "ladders of a bracket must be a whole number from 8 to 1048576, got 7"),
        ({"chains": 0}, "chains of a bracket must be a whole number from 1 to"),
        ({"rungs": 1}, "rungs of a bracket must be a whole number from 2 to 100, got 1"),
        ({"sweeps": 7}, "sweeps of a bracket must be a whole number from 8 to"),
        ({"burn_in": -1}, "burn_in of a bracket must be a whole number from 0 to"),
        ({"base": "guess"}, "no base of a bracket is called 'guess'; choose one of data, model, uniform"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Bracket(**settings)


# -------------------------------------------------------------------------------------------------------- the verdict


def two_valleys(depth: float) -> hm.RBM:
    """All off, or all on with an energy ``depth`` nats lower, and forty nats of barrier between."""
    size = 16
    bias = np.full(size, -5.0)
    return hm.RBM.from_arrays(np.full((size, size), (10.0 * size + depth) / size**2), bias, bias)


DEEP = np.ones((50, 16), np.uint8)
SHALLOW = np.zeros((50, 16), np.uint8)


def test_a_mode_that_half_of_the_ladders_miss_is_flagged() -> None:
    model, settings = two_valleys(12.0), replace(SHORT, base="model")
    estimate = hm.log_partition(model, settings, DEEP)
    assert not estimate.reliable
    assert "have not met" in estimate.reason
    # The interval says so too, from whichever side.
    assert estimate.low < hm.log_partition(model, "exact").value


def test_a_mode_that_rows_and_base_miss_is_flagged() -> None:
    """Two valleys of one weight and rows of one of them: only ladders from rest can know of the other."""
    model, settings = two_valleys(0.0), replace(SHORT, rungs=10)
    rows = (np.random.default_rng(0).random((50, 16)) < 0.9).astype(np.uint8)
    estimate = hm.log_partition(model, settings, rows)
    assert not estimate.reliable
    assert "have not met" in estimate.reason
    assert estimate.low < hm.log_partition(model, "exact").value < estimate.high


def test_rows_of_a_mode_that_every_chain_misses_prove_it_wrong() -> None:
    model, settings = two_valleys(12.0), replace(SHORT, base="model")
    estimate = hm.log_likelihood(model, {"train": SHALLOW, "test": DEEP[:1]}, settings)
    assert not estimate.reliable
    assert estimate.reason.startswith("the rows alone would have a probability of exp(")


Wrong = Callable[[Any], Any]


def standing_still(right: Any) -> Any:
    def step(self: Any, base: Any, noise: Any, model: Any, state: Any) -> Any:
        after, info = right(self, base, noise, model, state)
        return eqx.tree_at(lambda tree: tree.replicas, after, state.replicas), info

    return step


def at_heat(heat: float) -> Wrong:
    def how(right: Any) -> Any:
        def step(self: Any, base: Any, noise: Any, model: Any, state: Any) -> Any:
            base, model = jax.tree.map(lambda leaf: heat * leaf, (base, model))
            return right(self, base, noise, model, state)

        return step

    return how


@pytest.fixture
def wrong_ladders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Wrong], None]]:
    """A way to make every ladder step wrongly; no program of it is left behind."""

    def put(how: Wrong) -> None:
        monkeypatch.setattr(ParallelTempering, "step_from", how(ParallelTempering.step_from))
        # A compiled program is found by its function: this one has steps of its own.
        right = ladders._climb
        monkeypatch.setattr(ladders, "_climb", lambda *arguments: right(*arguments))
        ladders._climb_program.cache_clear()

    yield put
    monkeypatch.undo()
    ladders._climb_program.cache_clear()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (standing_still, "split R-hat of the energy"),
        (at_heat(0.8), "contradict Crooks"),
        (at_heat(1.25), "forward and bridge part"),
    ],
)
def test_ladders_that_step_wrongly_are_flagged(
    wrong_ladders: Callable[[Wrong], None], how: Wrong, reason: str
) -> None:
    """A wrong temperature shows in Crooks's relation or between the directions, of 20 seeds in 19 at either heat."""
    model, rows = model_of("strong rbm"), rows_of("strong rbm")
    settings = replace(SHORT, sweeps=200)
    assert hm.log_partition(model, settings, rows).reliable
    wrong_ladders(how)
    estimate = hm.log_partition(model, settings, rows)
    assert not estimate.reliable
    assert reason in estimate.reason


def test_weights_that_few_chains_carry_are_flagged() -> None:
    generator = np.random.default_rng(0)
    model = hm.RBM.from_arrays(3 * generator.standard_normal((14, 9)), np.zeros(14), np.zeros(9))
    rows = hm.sample(model, 50, steps=50)
    few = hm.log_partition(model, Bracket(ladders=8, rungs=2, sweeps=8, burn_in=0, base="uniform"), rows)
    assert not few.reliable
    assert few.cost["forward_effective_chains"] < 10
    assert "forward weights are worth" in few.reason


def healthy() -> tuple[Bridge, Climb]:
    energy = np.random.default_rng(0).standard_normal((100, 8))
    run = Climb(
        np.zeros((100, 3, 8)),
        np.zeros((100, 3, 8)),
        energy,
        (),
        np.array([1.0, 0.6, 0.3, 0.0]),
        np.array([0.2, 0.3, 0.25]),
        np.full(8, 5),
    )
    return Bridge(1.0, 0.1, 0.2, np.array([0.9, 0.8, 0.9]), 0.4), run


def test_each_fault_of_ladders_is_named() -> None:
    found, run = healthy()
    assert doubts_about_ladders(found, run) == []
    for bad_found, bad_run, reason in (
        (
            found,
            run._replace(rejection=np.array([0.2, 0.96, 0.3])),
            "rungs 1 and 2 of 4 refuse 96.0% of their swaps",
        ),
        (
            found._replace(overlap=np.array([0.9, 0.8, 0.01])),
            run,
            "distributions of rungs 2 and 3 hardly overlap",
        ),
        (
            found,
            run._replace(trips=np.ones(8, int)),
            "8 replicas came from the base to the model, fewer than 10",
        ),
        (found, run._replace(energy=run.energy + np.arange(8)), "split R-hat of the energy is"),
        (found._replace(slope_chance=1e-4), run, "contradict Crooks's relation (chance 0.0001)"),
    ):
        doubts = doubts_about_ladders(bad_found, bad_run)
        assert len(doubts) == 1
        assert reason in doubts[0]


def test_the_interval_reaches_as_far_as_a_direction_contradicts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = model_of("strong rbm"), rows_of("strong rbm")
    whole = hm.log_partition(model, SHORT, rows)
    right = bracket._direction

    def lifted(start: float, walk: Any, kind: Kind, repeats: int = 1) -> Estimate:
        found = right(start, walk, kind, repeats)
        if kind == Kind.STOCHASTIC_LOWER:
            return found
        return replace(found, value=found.value + 2.0, low=found.low + 2.0, high=found.high + 2.0)

    monkeypatch.setattr(bracket, "_direction", lifted)
    wide = hm.log_partition(model, SHORT, rows)
    assert wide.value == whole.value
    assert wide.low == whole.low
    assert whole.high + 1.5 < wide.high < whole.high + 2.5
    assert wide.stderr > 0.7
    assert "bridge and reverse part by" in wide.reason


def test_log_partitions_of_hidden_spins_and_their_vector() -> None:
    """A machine of one visible layer with a field alone: known without a sum."""
    field = wave_vector(6)
    model = hm.BoltzmannMachine.from_arrays(np.zeros((6, 6)), field, visible="spin")
    estimate = bracketed_log_partition(model, None, replace(SHORT, base="model"))
    assert estimate.value == pytest.approx(np.sum(np.logaddexp(field, -field)), rel=1e-6)
