"""Proofs that every evaluator inherits: its numbers against sums over the table, its word on kind and direction."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from scipy.sparse import csr_array

import harmonium as hm
from harmonium.energy.base import check_model
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.rbm import RBM
from harmonium.errors import BudgetError, DataError, SettingError
from harmonium.evaluate import likelihood
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.exact import exact_log_partition, plan_enumeration
from tests.contracts.cases import DRAWN, EVALUATORS
from tests.contracts.model_cases import MODELS, model_of, table_of
from tests.contracts.tables import FALSE_ALARM, Table

RBMS = [name for name in MODELS if isinstance(model_of(name), RBM)]
SCORED = [*RBMS, *(name for name in MODELS if isinstance(model_of(name), BoltzmannMachine))]

evaluators = pytest.mark.parametrize("name", EVALUATORS)
machines = pytest.mark.parametrize("machine", SCORED)


def rows_of(machine: str) -> np.ndarray:
    table = table_of(machine)
    return table.draw(16, table.law(), seed=0)[0].astype(np.float64)


@evaluators
@machines
def test_the_number_is_that_of_the_table(name: str, machine: str) -> None:
    case, model = EVALUATORS[name], model_of(machine)
    rows = rows_of(machine)
    if name == "reconstruction_error" and machine not in RBMS:
        with pytest.raises(
            SettingError, match="a reconstruction error needs a model whose layers fall into two"
        ):
            case.estimate(model, rows)
        return
    truth = case.truth(model, table_of(machine), rows)
    estimate = case.estimate(model, rows)
    assert estimate.kind == case.kind
    assert estimate.reliable
    assert estimate.value == pytest.approx(truth.mean(), rel=1e-12, abs=1e-12)
    assert estimate.low == estimate.value == estimate.high
    assert estimate.stderr == 0
    if len(truth) > 1:
        assert estimate.row_stderr == pytest.approx(
            truth.std(ddof=1) / math.sqrt(len(truth)), rel=1e-9, abs=1e-12
        )
    else:
        assert math.isnan(estimate.row_stderr)
    assert isinstance(float(estimate), float)
    assert str(case.kind) in str(estimate)


@evaluators
def test_every_row_counts_once_and_in_any_order(name: str) -> None:
    case, model = EVALUATORS[name], model_of("rbm")
    rows = rows_of("rbm")
    whole = case.estimate(model, rows).value
    assert case.estimate(model, rows[::-1].astype(np.int64)).value == pytest.approx(whole, rel=1e-13)
    assert case.estimate(model, np.concatenate([rows, rows])).value == pytest.approx(whole, rel=1e-13)


@pytest.mark.parametrize("machine", MODELS)
def test_log_partition_of_any_number_of_layers(machine: str) -> None:
    """The smaller side is enumerated, whichever it is, spins too, and any depth."""
    model = model_of(machine)
    plan = plan_enumeration(model)
    if isinstance(model, AbstractBipartite):
        sizes = [sum(model.units[layer].size for layer in side) for side in model.sides]
        assert plan.side is not None
        assert plan.bits == min(sizes) == sizes[plan.side]
    else:
        assert plan.bits < sum(units.size for units in model.units)
    estimate = exact_log_partition(model)
    assert estimate.value == pytest.approx(table_of(machine).log_partition(), rel=1e-13)
    assert estimate.cost["states"] == 2.0**plan.bits


def test_both_sides_are_enumerated_by_some_row() -> None:
    assert {plan_enumeration(model_of(machine)).side for machine in MODELS} == {0, 1, None}


@machines
def test_probabilities_of_all_rows_add_up_to_one(machine: str) -> None:
    states, law = table_of(machine).marginal(0, table_of(machine).law())
    estimate = hm.log_likelihood(model_of(machine), states, rows=True)
    assert len(estimate) == len(states)
    assert np.logaddexp.reduce(estimate.value) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(estimate.value, np.log(law), atol=1e-12)


def test_one_estimate_per_row() -> None:
    rows = rows_of("rbm")
    whole, each = (
        hm.log_likelihood(model_of("rbm"), rows),
        hm.log_likelihood(model_of("rbm"), rows, rows=True),
    )
    assert np.mean(each.value) == pytest.approx(whole.value, rel=1e-13)
    singles = [hm.log_likelihood(model_of("rbm"), row[None]) for row in rows[:2]]
    for index, (single, part) in enumerate(zip(singles, each, strict=False)):
        assert part.value == pytest.approx(single.value, rel=1e-13)
        assert part.kind == Kind.EXACT
        assert each[index].value == part.value
        # One row has a likelihood but says nothing of how rows scatter.
        assert math.isnan(single.row_stderr)
        assert "over rows" not in str(single)
    with pytest.raises(SettingError, match="ask for rows=True"):
        len(whole)
    with pytest.raises(SettingError, match="ask for rows=True"):
        whole[0]


@pytest.mark.parametrize("units", [hm.Bernoulli, hm.Spin])
def test_a_machine_of_zeros_knows_nothing(units: type) -> None:
    """Every row has probability 2**-n, exactly."""
    free = RBM(units(5), units(3), weights=np.zeros((5, 3)))
    low, high = free.units[0].support
    rows = np.array([[low] * 5, [high] * 5, [low, high, low, high, low]])
    estimate = hm.log_likelihood(free, rows)
    assert estimate.value == pytest.approx(-5 * math.log(2), abs=1e-14)
    assert estimate.row_stderr == pytest.approx(0, abs=1e-15)
    assert hm.log_partition(free).value == pytest.approx(8 * math.log(2), abs=1e-14)
    assert hm.pseudo_likelihood(free, rows).value == pytest.approx(-5 * math.log(2), abs=1e-14)


@pytest.mark.parametrize("kinds", [("bernoulli", "bernoulli"), ("spin", "bernoulli")])
def test_weights_of_two_hundred_in_single_precision(kinds: tuple[str, str]) -> None:
    """|W| = 200 in float32: finite everywhere, and equal to a sum over all states in float64."""
    signs = np.where(np.indices((4, 3)).sum(axis=0) % 2 == 0, 1, -1)
    weights = np.float32(200) * signs.astype(np.float32)
    model = RBM.from_arrays(
        weights, np.zeros(4, np.float32), np.zeros(3, np.float32), visible=kinds[0], hidden=kinds[1]
    )
    table = Table.of(RBM.from_arrays(weights.astype(np.float64), np.zeros(4), np.zeros(3), visible=kinds[0]))
    rows = table.marginal(0, table.law())[0]
    for name, case in EVALUATORS.items():
        estimate = case.estimate(model, rows)
        assert math.isfinite(estimate.value), name
        assert estimate.value == pytest.approx(case.truth(model, table, rows).mean(), rel=1e-12, abs=1e-12), (
            name
        )
    energies = np.asarray(model.free_energy(rows.astype(np.float32)))
    by_sum = [-np.logaddexp.reduce(-table.energy[(table.layers[0] == row).all(axis=1)]) for row in rows]
    np.testing.assert_allclose(energies, by_sum, rtol=1e-6, atol=1e-4)
    assert np.isfinite(hm.sample(model, 50, steps=20, seed=0)).all()


def test_the_budget_is_refused_with_its_bits_and_the_way_out() -> None:
    large = RBM(40, 30, seed=0)
    with pytest.raises(BudgetError) as refusal:
        hm.log_likelihood(large, np.zeros((1, 40)), "exact")
    message = str(refusal.value)
    assert "2**30 states" in message
    assert "budget is 26 bits" in message
    assert 'method="bracket"' in message
    assert "bit_budget=30" in message
    # What costs no enumeration is answered.
    assert math.isfinite(hm.pseudo_likelihood(large, np.zeros((1, 40))).value)


def test_the_budget_is_the_callers() -> None:
    with pytest.raises(BudgetError, match=r"2\*\*3 states, but the budget is 2 bits"):
        hm.log_partition(model_of("rbm"), "exact", bit_budget=2)
    assert hm.log_partition(model_of("rbm"), bit_budget=3).kind == Kind.EXACT


@pytest.mark.parametrize("name", sorted(EVALUATORS.keys() - {"log_partition"}))
def test_rows_that_do_not_fit_are_refused(name: str) -> None:
    for rows, message in (
        (np.zeros((2, 5)), "have 5 columns but the model has 4"),
        (np.full((2, 4), 2.0), "take only the values 0 and 1"),
        (np.full((2, 4), np.nan), "NaN"),
        (np.zeros((0, 4)), "empty"),
    ):
        with pytest.raises(DataError, match=message):
            EVALUATORS[name].estimate(model_of("rbm"), rows)


def test_auto_is_decided_by_counts_alone() -> None:
    model = model_of("rbm")
    plan = plan_enumeration(model)
    assert hm.log_partition(model).method == "exact"
    assert hm.log_partition(model, operation_budget=plan.operations).method == "exact"
    assert hm.log_partition(model, bit_budget=plan.bits - 1, operation_budget=1e7).method == "bracket"
    # What is left of so small a budget is less than twenty sweeps; none of it is a clock's.
    with pytest.raises(BudgetError, match="takes at least 20 sweeps"):
        hm.log_partition(model, operation_budget=plan.operations - 1)
    with pytest.raises(BudgetError, match="at least 10 temperatures") as refusal:
        hm.log_partition(model, "ais", operation_budget=plan.operations - 1)
    least = float(str(refusal.value).split("operation_budget=")[1].split()[0])
    fewest = hm.log_partition(model, "ais", operation_budget=least)
    assert fewest.cost["temperatures"] == 10
    assert fewest.value == hm.log_partition(model, hm.AIS(temperatures=10)).value
    with pytest.raises(BudgetError, match="at least 10 temperatures"):
        hm.log_partition(model, "ais", operation_budget=hm.AIS(temperatures=10).operations(model) - 1)
    for wrong in (0, -1.0, math.inf, math.nan, True):
        with pytest.raises(SettingError, match="operation_budget must be a number of operations above 0"):
            hm.log_partition(model, operation_budget=wrong)


def test_a_budget_sets_the_temperatures_where_nothing_else_does() -> None:
    model = model_of("rbm")
    for settings in ("ais", hm.AIS()):
        estimate = hm.log_partition(model, settings, operation_budget=2e8)
        assert 1e8 < estimate.cost["operations"] <= 2e8


def test_a_budget_that_would_not_be_used_is_refused() -> None:
    model = model_of("rbm")
    with pytest.raises(SettingError, match="an exact sum is bounded by bit_budget alone"):
        hm.log_partition(model, "exact", operation_budget=2e8)
    with pytest.raises(SettingError, match=r"temperatures=7 .* and operation_budget both say"):
        hm.log_partition(model, hm.AIS(temperatures=7), operation_budget=2e8)


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(
        SettingError, match="no method is called 'guess'; choose one of auto, exact, ais, bracket"
    ):
        hm.log_partition(model_of("rbm"), "guess")
    with pytest.raises(SettingError, match="no method is called 'guess'"):
        hm.log_likelihood(model_of("rbm"), rows_of("rbm"), "guess")


# ------------------------------------------------------------------------------------------- what draws

SEEDS = 60


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("machine", ["strong rbm", "rbm of spins", "rbm, spins above"])
def test_a_drawn_number_lies_about_the_truth_as_widely_as_it_says(name: str, machine: str) -> None:
    """Over seeds: the mean is not on the wrong side, and misses are as rare as those of a normal error."""
    case, model = DRAWN[name], model_of(machine)
    rows = rows_of(machine)
    truth = case.truth(model, table_of(machine), rows).mean()
    estimates = [case.estimate(model, rows, seed) for seed in range(SEEDS)]
    errors = np.array([estimate.value for estimate in estimates]) - truth
    stderr = np.array([estimate.stderr for estimate in estimates])
    assert {estimate.kind for estimate in estimates} == {case.kind}
    assert np.all(stderr > 1e-4)
    signs = {Kind.STOCHASTIC_LOWER: (1,), Kind.STOCHASTIC_UPPER: (-1,), Kind.CONSISTENT: (1, -1)}[case.kind]
    limit = scipy.stats.norm.isf(FALSE_ALARM) * errors.std(ddof=1) / math.sqrt(SEEDS)
    assert all(sign * errors.mean() < limit for sign in signs)
    missed = int((np.abs(errors) > 1.96 * stderr).sum())
    assert scipy.stats.binom.sf(missed - 1, SEEDS, 0.1) > FALSE_ALARM
    # Errors ten times too small would be seen, and so would a value that is off by two of them.
    assert scipy.stats.binom.sf(int((np.abs(errors) > 0.196 * stderr).sum()) - 1, SEEDS, 0.1) < FALSE_ALARM
    assert abs((errors + 2 * stderr).mean()) > limit
    assert len({estimate.value for estimate in estimates}) == SEEDS
    assert case.estimate(model, rows, 0).value == estimates[0].value


# ------------------------------------------------------------------------------------- the algebra of kinds

# What a kind says of estimate minus truth: the signs it may have, surely or on average; None says nothing at all.
# A consistent estimate has an error of either sign, and any bound beside it is lost in that.
MEANING: dict[Kind, tuple[bool, frozenset[int]] | None] = {
    Kind.EXACT: (True, frozenset()),
    Kind.LOWER: (True, frozenset({-1})),
    Kind.UPPER: (True, frozenset({1})),
    Kind.UNBIASED: (False, frozenset()),
    Kind.STOCHASTIC_LOWER: (False, frozenset({-1})),
    Kind.STOCHASTIC_UPPER: (False, frozenset({1})),
    Kind.CONSISTENT: None,
    Kind.PROXY: None,
}


def meant_by_a_sum(left: Kind, right: Kind) -> Kind:
    """The one kind that says of a sum of errors all that can be said: both signs possible leaves nothing."""
    one, other = MEANING[left], MEANING[right]
    if Kind.PROXY in (left, right):
        return Kind.PROXY
    if one is None or other is None:
        known = [meaning for meaning in (one, other) if meaning is not None]
        return Kind.PROXY if any(signs for _, signs in known) else Kind.CONSISTENT
    signs = one[1] | other[1]
    if len(signs) == 2:
        return Kind.PROXY
    return next(kind for kind, meaning in MEANING.items() if meaning == (one[0] and other[0], signs))


def meant_by_a_negation(kind: Kind) -> Kind:
    meaning = MEANING[kind]
    if meaning is None:
        return kind
    turned = (meaning[0], frozenset(-sign for sign in meaning[1]))
    return next(other for other, theirs in MEANING.items() if theirs == turned)


def test_kinds_add_and_turn_as_their_meanings_do() -> None:
    assert MEANING.keys() == set(Kind)
    pairs = list(itertools.product(Kind, Kind))
    assert len(pairs) == 64
    for left, right in pairs:
        assert left.plus(right) == meant_by_a_sum(left, right), (left, right)
        assert left.plus(right) == right.plus(left)
        assert left.plus(right).negated() == left.negated().plus(right.negated())
    for kind in Kind:
        assert kind.negated() == meant_by_a_negation(kind)
        assert kind.negated().negated() == kind
        assert kind.plus(Kind.EXACT) == kind


def test_a_log_likelihood_turns_the_direction_of_its_partition_function() -> None:
    score = Estimate(-3.0)
    for kind, turned in (
        (Kind.STOCHASTIC_LOWER, Kind.STOCHASTIC_UPPER),
        (Kind.UPPER, Kind.LOWER),
        (Kind.EXACT, Kind.EXACT),
        (Kind.UNBIASED, Kind.UNBIASED),
        (Kind.CONSISTENT, Kind.CONSISTENT),
        (Kind.PROXY, Kind.PROXY),
    ):
        difference = score - Estimate(
            2.0, stderr=0.5, low=1.0, high=4.0, kind=kind, reliable=False, reason="few runs"
        )
        assert difference.kind == turned
        assert (difference.value, difference.low, difference.high) == (-5.0, -7.0, -4.0)
        assert difference.stderr == 0.5
        assert not difference.reliable
        assert "few runs" in str(difference)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("kind", [Kind.STOCHASTIC_LOWER, Kind.STOCHASTIC_UPPER, Kind.LOWER, Kind.UNBIASED])
def test_a_likelihood_of_each_row_has_the_direction_of_their_mean(
    kind: Kind, rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free energies are exact whatever the partition function is."""
    monkeypatch.setattr(likelihood, "log_partition", lambda *_, **__: Estimate(9.0, stderr=0.5, kind=kind))
    estimate = hm.log_likelihood(model_of("rbm"), rows_of("rbm"), rows=rows)
    assert estimate.kind == kind.negated()
    if rows:
        assert estimate[0].kind == kind.negated()


def test_rows_may_come_in_any_form_that_data_have(tmp_path: Path) -> None:
    model = hm.RBM(4, 2, seed=0)
    data = hm.load_data("bars-and-stripes:side=2")
    assert data.test is not None
    np.save(tmp_path / "rows.npy", data.test)
    expected = hm.log_likelihood(model, data.test).value
    forms = (data, data.name, str(tmp_path / "rows.npy"), tmp_path / "rows.npy", csr_array(data.test))
    for form in forms:
        assert hm.log_likelihood(model, form).value == expected


def test_what_is_no_model_is_named_with_the_cure() -> None:
    run = hm.fit(hm.RBM(4, 2, seed=0), np.eye(4, dtype=np.uint8), hm.CD(), updates=1)
    check_model(run.model)
    for given, said in (
        (run, "got Run; pass run.model"),
        (np.eye(4), "got ndarray; pass the model first"),
        (hm.RBM, "got RBM"),
    ):
        with pytest.raises(SettingError, match=r"a model such as hm\.RBM\(64, 16\) is needed, " + said):
            check_model(given)


def test_the_numbers_of_an_estimate_are_plain() -> None:
    estimate = hm.log_likelihood(hm.RBM(4, 2, seed=0), np.eye(4, dtype=np.uint8))
    assert all(
        type(number) is float for number in (estimate.value, estimate.stderr, estimate.low, estimate.high)
    )
