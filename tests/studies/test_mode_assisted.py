"""The study of mode-assisted training in the small: what is trained, how it is scored, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

import harmonium as hm
from harmonium.report.curves import CurveFigure, draw_curves
from harmonium.studies.base import SCALES, StudyResult
from harmonium.studies.mode_assisted import result_of
from harmonium.studies.mode_assisted_plan import (
    CD10,
    CD_DBM,
    CD_RBM,
    LARGE,
    LONG,
    MA_DBM,
    MA_RBM,
    PCD_FAST,
    PLANS,
    POOR,
    Case,
    Digits,
    Length,
    Net,
    assisted,
    controls,
    figure_2,
    figure_3,
    persistent,
    shaped,
)
from harmonium.studies.mode_assisted_runs import (
    Scores,
    first_net,
    train_case,
    train_digits,
)
from harmonium.studies.names import find_study
from harmonium.studies.write import files_of, result_text

PLAN = PLANS["quick"]


@pytest.fixture(scope="module")
def small() -> Scores:
    net = shaped(4, 4, 0.2)
    return train_case(Case(MA_DBM, net, assisted(net), Length(230, 3, points=2)), seed=3)


def test_nets_are_those_of_the_paper() -> None:
    assert [shaped(24, total, 0.2).hidden for total in (14, 22)] == [(12, 2), (18, 4)]
    assert shaped(784, 138, 0.15).hidden == (120, 18)
    net = Net(24, (18, 4))
    assert net.parameters == 24 * 18 + 18 * 4 + 24 + 18 + 4
    first = first_net(net, 0)
    parts = [part for key in ("weights", "biases") for part in first.parameters()[key]]
    assert np.concatenate([np.ravel(part) for part in parts]).std() == pytest.approx(0.01, rel=0.1)


def test_scores_are_those_of_the_library(small: Scores) -> None:
    assert small.ideal == pytest.approx(-np.log(4))
    assert small.last.shape == (3,)
    assert (small.last <= small.ideal + 1e-9).all()
    assert (small.bound <= small.last + 1e-9).all()
    assert (small.best >= small.last).all()
    assert (small.divergence >= -1e-9).all()


GOOD = {
    CD_RBM: 0.14,
    CD_DBM: 0.16,
    MA_RBM: 0.004,
    MA_DBM: 0.005,
    CD10: 0.04,
    LONG: 0.02,
    POOR: 2.0,
    PCD_FAST: 9.0,
}


def made_up(**changes: float) -> StudyResult:
    """A result with the divergences that the labels usually have, or those of ``changes``."""
    levels = GOOD | {LARGE: 0.05} | changes

    def scores(case: Case) -> Scores:
        ideal = -np.log(case.net.visible)
        wide = 1 if len(case.net.hidden) == 1 else 1 + case.net.hidden[1] / case.net.hidden[0]
        last = ideal - levels.get(case.label, 0.005) * wide * np.linspace(0.5, 1.5, case.length.members)
        return Scores(case, last, last, last, ideal)

    return result_of(
        PLAN,
        [scores(case) for case in figure_2(PLAN)],
        [scores(case) for case in figure_3(PLAN)],
        [scores(case) for case in controls(PLAN)],
        [],
        [],
    )


def test_a_good_result_holds_and_is_written() -> None:
    result = made_up()
    assert result.holds
    assert {table.name for table in result.tables} == {"figure-2", "figure-3", "controls", "efficiency"}
    text = result_text("mode-assisted", result, "quick", 0)
    assert "RBM with modes, which the paper leaves out" in text
    assert "left out at this scale" in text
    assert {"mode-assisted.json", "mode-assisted.md", "controls.csv"} <= files_of(
        "mode-assisted", result, "quick", 0
    ).keys()
    for figure in result.figures:
        assert isinstance(figure, CurveFigure)
        assert draw_curves(figure).startswith(b"<?xml")
    sweeps = {row["method"]: row["sweeps"] for row in result.tables[2].rows}
    assert sweeps[CD10] == 120
    assert sweeps[LONG] == pytest.approx(12 * (0.93 + 0.07 * 720), rel=0.01)


@pytest.mark.parametrize(
    ("label", "level"),
    [(MA_RBM, 0.2), (MA_DBM, 0.2), (POOR, 0.01), (LARGE, 0.001), (PCD_FAST, 0.1), (LONG, 0.001)],
)
def test_a_result_that_is_not_what_was_asked_for_does_not_hold(label: str, level: float) -> None:
    assert not made_up(**{label: level}).holds


def test_every_scale_has_its_plan_and_the_study_its_name() -> None:
    assert PLANS.keys() == set(SCALES)
    assert find_study("mode-assisted").name == "mode-assisted"
    assert PLANS["full"].digits is not None
    assert PLANS["full"].digits[2:] == (100, 10, 100, 29_000)


def test_digits_are_scored_as_the_paper_scores_them() -> None:
    """A tiny net, two runs of one epoch and a few temperatures: the estimate stands beside the exact number."""
    data = hm.load_data("bars-and-stripes:side=2")
    plan = Digits(("bars",), (3,), 1, 2, 4, 50)
    net = shaped(4, 3, 0.0)
    score = train_digits("bars", data, net, "RBM, mode-assisted", persistent(net, True), plan, seed=0)
    assert score.exact is not None
    assert float(score.estimate.value) == pytest.approx(float(score.exact.value), abs=0.5)
    assert score.estimate.kind != "exact"
