"""The study of deep tempering in the small: what is trained, how it is scored, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harmonium.data.load import load_data
from harmonium.energy.rbm import RBM
from harmonium.report.curves import CurveFigure, draw_curves
from harmonium.samplers.deep_tempering import DeepTempering
from harmonium.studies import deep_tempering
from harmonium.studies.base import SCALES, StudyResult
from harmonium.studies.deep_tempering import DeepTemperingStudy, result_of
from harmonium.studies.deep_tempering_plan import (
    CAST100,
    DEEP2,
    DEEP3,
    FAST,
    HOT,
    PLANS,
    PRE2,
    SML,
    Length,
    Plan,
    methods_of,
)
from harmonium.studies.modes_runs import Method, Scored, Trace, best_of, late, pretrain, train_method
from harmonium.studies.names import find_study
from harmonium.studies.write import files_of, result_text
from harmonium.train.ensemble import member_seed
from tests.conftest import need

PLAN: Plan = PLANS["quick"]._replace(rows=200, test=60)


@pytest.fixture(scope="module")
def scored() -> Scored:
    return Scored.of(load_data("artificial-modes:rows=200"), 60)


@pytest.fixture(scope="module")
def deep(scored: Scored) -> list[Trace]:
    method = Method(DEEP2, 2, DeepTempering(), (0.05, 0.0))
    return train_method(method, Length(110, 4, 2), scored, 3)


def made_up(plan: Plan, **changes: float) -> list[Trace]:
    """Traces as training would leave them: every method rises from -540 to -100, or to what ``changes`` say."""
    traces = []
    for method, length in methods_of(plan):
        for rate in method.rates:
            index = np.arange(0, length.updates + 1, length.updates // length.points)
            rise = np.linspace(0, 1, len(index)) ** 0.2
            level = changes.get(method.label, -100.0)
            bottom = -540 + rise * (level + 540) - np.arange(length.seeds)[:, None] * 0.1
            stack: dict[str, Any] = {}
            if method.depth > 1:
                stack = {"bound": bottom - 1, "network": bottom - 0.5}
                stack |= {"moved": np.full(length.seeds, 0.3), "distance": np.full(length.seeds, 0.1)}
            before = np.full(length.seeds, 4000) if method.pretrained else None
            traces.append(
                Trace(method, rate, index, bottom, np.full(length.seeds, 0.1), before=before, **stack)
            )
    return traces


GOOD = {SML: -300.0, HOT: -83.0, FAST: -80.0}


# ------------------------------------------------------------------------------------------------- what is trained


def test_scores_are_minus_the_entropy_minus_the_paired_gap(scored: Scored, deep: list[Trace]) -> None:
    """Of the untrained bottom RBM, by a sum over its hidden states that shares nothing with the library's."""
    still = deep[1]
    assert still.rate == 0
    stack = [deep_tempering_first(member_seed(3, number)) for number in range(2)]
    for number, given in enumerate(stack):
        weights, c, b = (np.asarray(given[key], float) for key in ("weights", "visible_bias", "hidden_bias"))
        codes = np.array(np.meshgrid(*[[0, 1]] * 10)).reshape(10, -1).T
        partition = np.logaddexp.reduce(codes @ b + np.logaddexp(0, codes @ weights.T + c).sum(axis=1))
        rows = np.asarray(scored.rows, float)
        of_model = rows @ c + np.logaddexp(0, rows @ weights + b).sum(axis=1) - partition
        gap = scored.data.log_probability(scored.rows) - of_model
        assert still.bottom[number, 0] == pytest.approx(-78.826 - gap.mean(), abs=2e-3)
        assert still.stderr[number] == pytest.approx(gap.std(ddof=1) / np.sqrt(60), rel=1e-4)


def deep_tempering_first(seed: int) -> dict[str, Any]:
    """Parameters of the bottom RBM of a stack with the authors' first weights."""
    import harmonium as hm

    return hm.DBN(784, [10, 10], seed=seed, weight_scale=0.01).levels[0].parameters()


def test_rates_share_starts_and_nothing_else(deep: list[Trace]) -> None:
    moving, still = deep
    np.testing.assert_array_equal(moving.updates, [0, 28, 56, 84, 110])
    np.testing.assert_allclose(moving.bottom[:, 0], still.bottom[:, 0])
    np.testing.assert_allclose(still.bottom, still.bottom[:, :1] + np.zeros(5), atol=1e-3)
    assert (moving.bottom[:, -1] > moving.bottom[:, 0] + 50).all()
    assert abs(moving.bottom[0, -1] - moving.bottom[1, -1]) > 1e-3


def test_a_stack_is_scored_as_a_network_too(deep: list[Trace]) -> None:
    for trace in deep:
        assert trace.bound is not None
        assert trace.network is not None
        assert trace.bound.shape == trace.network.shape == (2, 5)
        assert (trace.bound <= trace.network + 1e-9).all()
        assert trace.moved is not None
        assert trace.distance is not None
        assert ((trace.distance >= 0) & (trace.distance <= 1)).all()


def test_the_same_seed_gives_the_same_runs(scored: Scored) -> None:
    method, length = Method(SML, 1, None, (0.05,)), Length(100, 2, 2)
    one, again, other = (train_method(method, length, scored, seed)[0].bottom for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (np.abs(one[:, -1] - other[:, -1]) > 1e-3).all()


def test_our_start_knows_the_marginals_and_its_rate_falls(scored: Scored) -> None:
    (trace,) = train_method(Method("ours", 1, None, (0.0,), improved=True), Length(100, 1, 2), scored, 0)
    # Independent pixels score -427.2; large first weights cost a few nats.
    assert (trace.bottom[:, 0] > -470).all()


def test_pretraining_leaves_the_top_level_alone(scored: Scored) -> None:
    import harmonium as hm

    stack = hm.DBN(784, [10, 10], seed=1, weight_scale=0.01)
    trained, updates = pretrain(stack, Length(200, 2, 1), scored.data, 0.01, 5)
    assert 0 < updates <= 200
    before, after = ([level.parameters() for level in one.levels] for one in (stack, trained))
    assert np.abs(after[0]["weights"] - before[0]["weights"]).max() > 0.01
    np.testing.assert_array_equal(after[1]["weights"], before[1]["weights"])


def test_scales_train_what_the_paper_trained() -> None:
    assert set(PLANS) == set(SCALES)
    full = {method.label: (method, length) for method, length in methods_of(PLANS["full"])}
    assert full[SML][0].rates == full[DEEP2][0].rates == full[DEEP3][0].rates == (1e-3, 1e-4, 1e-5)
    assert full[SML][1][::2] == (1_000_000, 5)
    assert CAST100 in full
    assert CAST100 not in {method.label for method, _ in methods_of(PLANS["quick"])}
    assert full[PRE2][0].pretrained
    assert full[HOT][0].improved
    # Chains of one row each: 505 of them for CAST 1:100, as in the paper.
    model = RBM(784, 10, seed=0)
    assert model.units[1].size == 10


# ----------------------------------------------------------------------------------------------------- what is said


def said_of(result: StudyResult, words: str) -> Any:
    (found,) = (statement for statement in result.statements if words in statement.text)
    return found


def test_what_came_out_well_is_said_to_hold(scored: Scored) -> None:
    result = result_of(PLAN, made_up(PLAN, **GOOD), scored)
    assert result.holds
    assert said_of(result, "80000 updates over 3 seeds where the paper has 1000000").holds is None
    assert said_of(result, "nats apart").holds
    assert "197.9 nats apart" in said_of(result, "nats apart").text
    assert said_of(result, "4 hot replicas, rate falling from 0.03").holds
    assert "not reproduced here" in said_of(result, 'clearly worse", t-DBN2').text


def test_every_claim_can_fail(scored: Scored) -> None:
    for label, level, words in (
        (SML, -100.0, "nats apart"),
        (HOT, -95.0, "4 hot replicas, rate falling from 0.03"),
        (FAST, -95.0, "4 hot replicas, fast, rate"),
        (DEEP3, -70.0, "no score is above"),
    ):
        result = result_of(PLAN, made_up(PLAN, **{**GOOD, label: level}), scored)
        assert said_of(result, words).holds is False
        assert not result.holds
    traces = [
        trace._replace(bound=trace.network + 0.5) if trace.network is not None else trace
        for trace in made_up(PLAN, **GOOD)
    ]
    assert said_of(result_of(PLAN, traces, scored), "is below its exact").holds is False


def test_worse_pretraining_is_called_reproduced(scored: Scored) -> None:
    result = result_of(PLAN, made_up(PLAN, **{**GOOD, PRE2: -130.0}), scored)
    assert ": reproduced here" in said_of(result, 'clearly worse", t-DBN2').text


def test_runs_that_fell_back_are_counted(scored: Scored) -> None:
    traces = made_up(PLAN, **GOOD)
    traces[0] = traces[0]._replace(bottom=traces[0].bottom.copy())
    traces[0].bottom[0, -3:] = -900
    result = result_of(PLAN, traces, scored)
    assert "at 0.001 -302.7, 1 of 3 seeds fallen back" in said_of(result, "RBM, SML: at").text
    assert late(traces[0], traces[0].bottom)[0] == pytest.approx(-900)
    assert best_of(traces, SML).rate != 1e-3


def test_the_full_study_asks_for_more(scored: Scored) -> None:
    plan = PLANS["full"]
    assert result_of(plan, made_up(plan, **GOOD), scored).holds
    worse = result_of(plan, made_up(plan, **{**GOOD, HOT: -83.7}), scored)  # of five seeds the worst is -84.1
    assert said_of(worse, "4 hot replicas, rate falling").holds is False


def test_tables_and_figures_are_written(scored: Scored) -> None:
    result = result_of(PLAN, made_up(PLAN, **GOOD), scored)
    table = result.tables[0]
    assert all(set(row) == set(table.columns) for row in table.rows)
    beside = {(row["model"], row["rate"]): row["paper"] for row in table.rows}
    assert beside[DEEP2, 1e-4] == -120.4
    assert beside[SML, 1e-3] == "diverges"
    assert [row["paper_bound"] for row in table.rows if row["paper_bound"] is not None] == [-94.6, -91.0]
    text = result_text("deep-tempering", result, "quick", 0)
    assert "See curves.csv" in text
    assert len(text.splitlines()) < 90
    need("matplotlib", "report")
    files = files_of("deep-tempering", result, "quick", 0)
    assert {"scores.csv", "curves.csv", "figure-1.svg", "figure-2.svg"} <= set(files)
    first = result.figures[0]
    assert isinstance(first, CurveFigure)
    drawn = draw_curves(first).decode()
    assert all(word in drawn for word in (SML, DEEP2, DEEP3, "rate 0.001", "minus the entropy"))


def test_the_study_is_found_and_trains_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, int]] = []

    def trained(method: Method, length: Length, scored: Scored, seed: int) -> list[Trace]:
        asked.append((method.label, length.updates, seed))
        return [trace for trace in made_up(PLAN, **GOOD) if trace.method.label == method.label]

    monkeypatch.setattr(deep_tempering, "train_method", trained)
    monkeypatch.setattr(deep_tempering, "PLANS", {"quick": PLAN})
    told: list[str] = []
    study = find_study("deep-tempering")
    assert isinstance(study, DeepTemperingStudy)
    assert study.run("quick", 7, told.append).holds
    assert asked == [(method.label, 80_000, 7) for method, _ in methods_of(PLAN)]
    assert told[0] == "drawing 200 rows of Artificial Modes"
    assert len(told) == len(asked) + 1
