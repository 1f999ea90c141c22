"""The four stages in the small, and what is said of numbers that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from harmonium.data.base import DataSet
from harmonium.data.load import load_data
from harmonium.energy.dbm import DBM
from harmonium.studies import classifier_recipe
from harmonium.studies.base import SCALES
from harmonium.studies.classifier_recipe import (
    SKIPPED,
    STAGES,
    Outcome,
    Recipe,
    random_machine,
    run_recipe,
    split_at_first,
    with_labels,
)
from harmonium.studies.dbm_classifier import PLANS, RECIPES, Series, result_of

SMALL = RECIPES["digits"]._replace(
    hidden=(32, 24),
    batch_size=200,
    first_epochs=20,
    second_epochs=10,
    most_steps=2,
    tuning_epochs=40,
    tuning_rate=0.02,
    visible_dropout=0.0,
    hidden_dropout=0.0,
)


def test_every_stage_and_every_way_without_one_has_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the joint training, which is `fit` of a machine with labels and has tests of its own."""
    joined: list[DBM] = []

    def as_it_comes(recipe: Recipe, machine: DBM, data: DataSet, seed: int) -> DBM:
        joined.append(machine)
        return machine

    monkeypatch.setattr(classifier_recipe, "joint_stage", as_it_comes)
    told: list[str] = []
    data = load_data("digits")
    outcome = run_recipe(SMALL, data, 0, told.append)
    assert set(outcome.stages) == set(STAGES)
    assert set(outcome.without) == set(SKIPPED)
    assert outcome.stages["d"] == outcome.without[""] == outcome.without["c"]
    assert outcome.stages["d"] < 0.5
    assert outcome.stages["a"] < 0.5
    assert len(told) == len(SKIPPED)
    # What is put together: both levels, one on the random first level, and the random upper layers on the first RBM.
    start = random_machine(SMALL, data, 0)
    whole, without_first, without_second = ([c.weights for c in machine.couplings] for machine in joined)
    first, second, top = (coupling.weights for coupling in start.couplings)
    assert np.array_equal(without_first[0], first)
    assert np.array_equal(without_second[0], whole[0])
    assert not np.array_equal(whole[0], first)
    assert np.array_equal(without_second[1], second)
    assert np.array_equal(without_second[2], top)
    assert not any(np.array_equal(machine[1], second) for machine in (whole, without_first))


def test_levels_are_put_together_by_halves_and_the_sum_of_the_first_biases() -> None:
    machine = random_machine(SMALL, load_data("digits"), 3)
    lower, upper = split_at_first(machine)
    np.testing.assert_array_equal(lower.units[0].bias, 2 * machine.units[0].bias)
    back = with_labels(lower, upper)
    for one, other in zip(machine.parameters()["weights"], back.parameters()["weights"], strict=True):
        np.testing.assert_array_equal(one, other)
    shifted = with_labels(
        type(lower).from_arrays(
            np.asarray(lower.couplings[0].weights),
            np.asarray(lower.units[0].bias),
            np.full(32, 3.0),
            visible=lower.units[0].kind,
        ),
        upper,
    )
    bias = np.asarray(upper.units[0].bias) / 2 + 1.5
    np.testing.assert_allclose(shifted.units[1].bias, bias)


def made_up(*gaps: float) -> Series:
    """Errors of 2 % after all stages, and more by the gaps, a seed each, where one is left out."""
    return Series(
        "digits",
        tuple(
            Outcome(dict.fromkeys(STAGES, 0.02), {left: 0.02 + (gap if left else 0) for left in SKIPPED})
            for gap in gaps
        ),
    )


def test_only_what_is_seen_is_said_to_hold() -> None:
    result = result_of([made_up(0.01, 0.012, 0.011)], ["mnist-5k: left out"], [SMALL], 0)
    assert [said.holds for said in result.statements] == [True] * 6 + [None]
    rows = result.tables[1].rows
    assert rows[1]["difference"] == pytest.approx(1.1)
    # t of two degrees of freedom, 4.30265, times 0.1 over the root of three
    assert rows[1]["high"] - rows[1]["low"] == pytest.approx(2 * 4.30265 * 0.1 / 3**0.5, rel=1e-4)
    assert "low" not in rows[0]
    unclear = result_of([made_up(0.01, -0.01, 0.0)], [], [SMALL], 0)
    assert [said.holds for said in unclear.statements] == [True] + [False] * 5
    assert not unclear.holds
    few = result_of([made_up(0.01, 0.01)], [], [SMALL], 0)
    assert [said.holds for said in few.statements] == [True] + [None] * 5
    assert result.tables[0].published is not None


def test_scales_are_planned() -> None:
    assert set(PLANS) == set(SCALES)
    assert all(name in RECIPES for plan in PLANS.values() for name in plan.names)
