"""Mode-assisted training: figures 2, 3 and 4 of the paper made again, and beside them what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from harmonium.data.load import load_data
from harmonium.errors import HarmoniumError
from harmonium.evaluate.ensemble import band
from harmonium.report.curves import Curve, CurveFigure, CurvePanel
from harmonium.studies.base import AbstractStudy, Progress, Scale, StudyResult, Table
from harmonium.studies.mode_assisted_plan import (
    CD_DBM,
    CD_RBM,
    CLOSE,
    DIGITS_RATIO,
    MA_DBM,
    MA_RBM,
    OUR_DBM,
    OUR_RBM,
    PLANS,
    PUBLISHED,
    Case,
    Plan,
    controls,
    figure_2,
    figure_3,
    persistent,
    shaped,
)
from harmonium.studies.mode_assisted_runs import DigitScore, Scores, train_case, train_digits
from harmonium.studies.mode_assisted_words import statements

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "net": "units",
        "hidden": "hidden units",
        "ratio": "ratio of the hidden layers",
        "method": "method",
        "parameters": "parameters",
        "updates": "updates",
        "members": "nets",
        "median": "log-likelihood: median",
        "low": "5 %",
        "high": "95 %",
        "divergence": "divergence: median",
        "worst": "of the worst 5 %",
        "close": f"nets within {CLOSE:g} nats",
        "peak": "best on the way: median",
        "bound": "mean-field bound: median",
    }
)


class ModeAssistedStudy(AbstractStudy):
    """Ensembles of RBMs and DBMs on shifting bars, with exact likelihoods, trained with modes and without.

    All nets begin with weights and biases of standard deviation 0.01 and are trained in ordinary coordinates on full
    batches, at a rate that falls linearly from 1.
    """

    name = "mode-assisted"
    summary = (
        "RBMs and DBMs trained with modes and without on shifting bars and digits, ours beside the paper"
    )

    def run(self, scale: Scale, seed: int, progress: Progress) -> StudyResult:
        return run_study(PLANS[scale], seed, progress)


def run_study(plan: Plan, seed: int, progress: Progress) -> StudyResult:
    """Train everything, and say what came out."""
    done: dict[Any, Scores] = {}

    def trained(cases: Sequence[Case]) -> list[Scores]:
        found = []
        for case in cases:
            key = (case.net, case.rule, case.length)
            if key not in done:
                progress(
                    f"{case.label}, {case.net.words} units: {case.length.updates} updates of "
                    f"{case.length.members} nets"
                )
                done[key] = train_case(case, seed)
            found.append(done[key]._replace(case=case))
        return found

    curves, shapes = trained(figure_2(plan)), trained(figure_3(plan))
    others = trained(controls(plan))
    digits, absent = _digits(plan, seed, progress)
    return result_of(plan, curves, shapes, others, digits, absent)


def _digits(plan: Plan, seed: int, progress: Progress) -> tuple[list[DigitScore], list[str]]:
    found: list[DigitScore] = []
    absent: list[str] = []
    if plan.digits is None:
        return found, absent
    for name in plan.digits.data:
        try:
            data = load_data(name)
        except HarmoniumError as error:
            absent.append(f"{name} is left out: {error}")
            continue
        for total in plan.digits.totals:
            for ratio, kind in ((0.0, "RBM"), (DIGITS_RATIO, "DBM")):
                net = shaped(data.train.shape[1], total, ratio)
                for modes, words in ((False, "PCD-1"), (True, "mode-assisted")):
                    label = f"{kind}, {words}"
                    progress(f"{label}, {net.words} units on {name}: {plan.digits.epochs} epochs")
                    found.append(
                        train_digits(name, data, net, label, persistent(net, modes), plan.digits, seed)
                    )
    return found, absent


def result_of(
    plan: Plan,
    curves: Sequence[Scores],
    shapes: Sequence[Scores],
    others: Sequence[Scores],
    digits: Sequence[DigitScore],
    absent: Sequence[str],
) -> StudyResult:
    """Tables, figures, and what they say."""
    what = (
        "Nats per row; at most minus log n for n visible units. Exact likelihoods of all nets after the last update, "
        "median and 5-95 % band; the divergence is that of the data from the net."
    )
    tables = [
        Table(
            "figure-2", f"RBMs and DBMs of as many hidden units. {what}", COLUMNS, _rows(curves), PUBLISHED
        ),
        Table(
            "figure-3",
            f"DBMs of several shapes; with a ratio of 0 they are RBMs. {what}",
            COLUMNS,
            _rows(shapes),
        ),
        Table(
            "controls",
            "What else could stand in the place of the modes, on the RBM of figure 2: longer chains, worse modes and "
            f"harder pushes. {what}",
            {**COLUMNS, "sweeps": "sweeps of rows per update"},
            tuple(
                row | {"sweeps": _sweeps(scores)} for row, scores in zip(_rows(others), others, strict=True)
            ),
        ),
        _efficiency(curves),
    ]
    if digits:
        tables.append(_digit_table(plan, digits))
    return StudyResult(
        tables=tuple(tables),
        figures=(_figure_2(curves), _figure_3(shapes)),
        statements=tuple(statements(plan, curves, shapes, others, digits, absent)),
        settings={
            "figure_2": [
                [visible, list(totals), length._asdict()] for visible, totals, length in plan.figure_2
            ],
            "figure_3": [*plan.figure_3[:2], list(plan.figure_3[2]), plan.figure_3[3]._asdict()],
            "controls": [*plan.controls[:2], plan.controls[2]._asdict()],
            "digits": None if plan.digits is None else plan.digits._asdict(),
        },
    )


def _rows(found: Sequence[Scores]) -> tuple[dict[str, Any], ...]:
    rows = []
    for scores in found:
        net, length, ends = scores.case.net, scores.case.length, band(scores.last)
        gaps = band(scores.divergence)
        rows.append(
            {
                "net": net.words,
                "hidden": net.total,
                "ratio": net.hidden[1] / net.hidden[0] if len(net.hidden) > 1 else 0.0,
                "method": scores.case.label,
                "parameters": net.parameters,
                "updates": length.updates,
                "members": length.members,
                "median": ends.median,
                "low": ends.low,
                "high": ends.high,
                "divergence": gaps.median,
                "worst": gaps.high,
                "close": float(np.mean(scores.divergence <= CLOSE)),
                "peak": band(scores.best).median,
                "bound": band(scores.bound).median,
            }
        )
    return tuple(rows)


def _sweeps(scores: Scores) -> float:
    """Sweeps of one row that an update costs on average, those of chains and of searches."""
    rule, rows = scores.case.rule, scores.case.net.visible
    solver, longer = getattr(rule, "solver", None), getattr(rule, "baseline_steps", None)
    sampler = getattr(getattr(rule, "base", rule), "sampler", None)
    steps = float(getattr(sampler, "steps", 1))
    if solver is None:
        return rows * steps
    index = np.arange(scores.case.length.updates)
    share = float(np.mean(np.asarray(rule.probability_at(index, len(index)))))  # pyright: ignore[reportAttributeAccessIssue]
    if longer is not None:
        return rows * (steps * (1 - share) + longer * share)
    return rows * steps + share * solver.starts * solver.sweeps


def _efficiency(curves: Sequence[Scores]) -> Table:
    """Equation 8: parameters of a DBM over those of the RBM of as many hidden units, and what each has learned."""
    rows = []
    for deep in (scores for scores in curves if scores.case.label == MA_DBM):
        net = deep.case.net
        flat = {
            scores.case.label: scores
            for scores in curves
            if (scores.case.net.visible, scores.case.net.hidden) == (net.visible, (net.total,))
        }
        rbm = flat[MA_RBM].case.net
        rows.append(
            {
                "dbm": net.words,
                "rbm": rbm.words,
                "efficiency": net.parameters / rbm.parameters,
                "printed": 1 / (1 + net.hidden[1] / net.hidden[0]),
                "deep": band(deep.divergence).median,
                "flat": band(flat[MA_RBM].divergence).median,
                "plain": band(flat[CD_RBM].divergence).median,
            }
        )
    return Table(
        "efficiency",
        "Equation 8: the parameters of a DBM over those of an RBM of as many hidden units, counted and as printed, and "
        "the median divergence of each from the data, nats.",
        {
            "dbm": "DBM",
            "rbm": "RBM",
            "efficiency": "parameters, ratio",
            "printed": "printed, 1/(1 + ratio)",
            "deep": "DBM with modes",
            "flat": "RBM with modes",
            "plain": "RBM, CD-1",
        },
        tuple(rows),
    )


def _digit_table(plan: Plan, digits: Sequence[DigitScore]) -> Table:
    assert plan.digits is not None
    rows = tuple(
        {
            "data": score.data,
            "net": score.net.words,
            "hidden": score.net.total,
            "method": score.label,
            "parameters": score.net.parameters,
            "value": float(score.estimate.value),
            "kind": str(score.estimate.kind),
            "stderr": score.estimate.stderr,
            "reliable": score.estimate.reliable,
            "exact": None if score.exact is None else float(score.exact.value),
            "runs": score.runs,
        }
        for score in digits
    )
    return Table(
        "figure-4",
        f"The best of {plan.digits.runs} runs of {plan.digits.epochs} epochs at a rate from 0.05 to 0.0005, chosen on "
        f"the validation rows; nats per test row, by {plan.digits.chains} walks of {plan.digits.temperatures} linear "
        "temperatures, of DBMs the mean-field bound; exact where log Z can be summed.",
        {
            "data": "data",
            "net": "units",
            "hidden": "hidden units",
            "method": "method",
            "parameters": "parameters",
            "value": "log-likelihood, annealed",
            "kind": "kind",
            "stderr": "standard error",
            "reliable": "reliable",
            "exact": "exact",
            "runs": "runs",
        },
        rows,
    )


def _curve(label: str, found: Sequence[Scores], along: Sequence[float]) -> Curve:
    ends = [band(scores.last - scores.ideal) for scores in found]
    return Curve(
        label,
        tuple(along),
        tuple(end.median for end in ends),
        tuple(end.low for end in ends),
        tuple(end.high for end in ends),
    )


def _figure_2(curves: Sequence[Scores]) -> CurveFigure:
    panels = []
    for visible in sorted({scores.case.net.visible for scores in curves}, reverse=True):
        lines = []
        for label in (CD_RBM, CD_DBM, MA_RBM, MA_DBM, OUR_RBM, OUR_DBM):
            own = [
                scores
                for scores in curves
                if (scores.case.label, scores.case.net.visible) == (label, visible)
            ]
            lines.append(_curve(label, own, [scores.case.net.total for scores in own]))
        panels.append(CurvePanel(f"{visible} visible units", tuple(lines), (("minus the entropy", 0.0),)))
    return CurveFigure(
        name="figure-2",
        caption="Log-likelihood minus the best possible, median and 5-95 % band over nets",
        along="hidden units",
        axis="nats",
        panels=tuple(panels),
        least=-1.0,
    )


def _figure_3(shapes: Sequence[Scores]) -> CurveFigure:
    lines = []
    for label in (CD_DBM, MA_DBM):
        own = [scores for scores in shapes if scores.case.label == label]
        ratios = [
            scores.case.net.hidden[1] / scores.case.net.hidden[0] if len(scores.case.net.hidden) > 1 else 0.0
            for scores in own
        ]
        lines.append(_curve(label, own, ratios))
    net = shapes[0].case.net
    return CurveFigure(
        name="figure-3",
        caption="Log-likelihood minus the best possible, median and 5-95 % band over nets",
        along="units of the second hidden layer over those of the first",
        axis="nats",
        panels=(
            CurvePanel(
                f"{net.visible} visible, {net.total} hidden units",
                tuple(lines),
                (("minus the entropy", 0.0),),
            ),
        ),
        least=-1.5,
    )
