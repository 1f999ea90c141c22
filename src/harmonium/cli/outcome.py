"""What ``train`` and ``resume`` say at the end: how good the model is, where it is, and what it draws."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED
from harmonium.cli.output import put, put_json, say
from harmonium.data.base import DataSet
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.ais import AIS
from harmonium.evaluate.bracket import Bracket
from harmonium.evaluate.ensemble import band, median_estimate
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import likelihood_operations, plan_enumeration
from harmonium.evaluate.likelihood import both_estimates, normalised_part, work_ahead
from harmonium.evaluate.proxies import pseudo_likelihood
from harmonium.evaluate.starts import MOST_OPERATIONS, affordable_plan
from harmonium.numerics.enumerate import BIT_BUDGET
from harmonium.report.pictures import write_pictures
from harmonium.report.summaries import summarise_model
from harmonium.samplers.sample import sample
from harmonium.train.folder import RunFolder
from harmonium.train.run import Run

_SAMPLES = 64

_LONG = 1e11
"""Operations of what draws that are worth a word before they begin: some seconds and more."""

_COIN_FLIPS = 2
"""How many times the entropy of coin flips, n log 2, a model of n units may lose per row and still be believed."""


def announce_work(model: AbstractEnergyModel | Ensemble, settings: AIS | Bracket) -> None:
    """Say how long what draws will be, where that is long."""
    one, members = (model.member(0), len(model)) if isinstance(model, Ensemble) else (model, 1)
    operations = members * settings.operations(normalised_part(one))
    if operations > _LONG:
        what, _, how = settings.in_words().partition(": ")
        times = f"{members} times " if members > 1 else ""
        say(f"{what}: {times}{how}, {operations:.2g} operations")


def conclude(run: Run, data: DataSet, path: Path, as_json: bool, draw: bool) -> int:
    """Score the model on rows it was not trained on, draw samples if ``draw``, print both; the exit status.

    Of an ensemble all members are scored, and the median one draws.
    """
    split = held_out_split(data)
    rows = data.split(split)
    estimate, is_proxy, remark = _score(run.model, data, split, path)
    samples = RunFolder(path).samples_path
    if draw:
        seed = run.config["train"]["seed"]
        whose = run.model if estimate.member is None else run.model.member(estimate.member)
        write_pictures(samples, sample(whose, _SAMPLES, seed=seed), data.shape, overwrite=True)
    updates = run.history[-1]["index"] if run.history else 0
    if run.state is not None:
        updates = int(run.state.index)
    shown = samples if samples.exists() else None
    if remark:
        say(remark)
    if as_json:
        put_json(
            {
                "run": str(path),
                "updates": updates,
                "log_likelihood": None if is_proxy else estimate.to_dict(),
                "proxy": {"pseudo_likelihood": estimate.to_dict()} if is_proxy else None,
                **describe_members(estimate),
                "n": len(rows),
                "data": describe_split(data, split),
                "model": summarise_model(run.model),
                "samples": None if shown is None else str(shown),
                "reliable": run.reliable,
                "reason": run.reason,
            }
        )
    else:
        put(score_lines(estimate, split, len(rows), is_proxy))
        put(f"run folder: {path}")
        put(f"samples: {shown}" if shown else f"samples: none yet; harmonium sample {path} --out samples.png")
    doubts = []
    if not run.reliable:
        doubts.append(
            "the divergence guard stopped training; the model is the last good one"
            if estimate.member is None
            else run.reason.partition(";")[0]
        )
    coin_flips = -data.width * math.log(2)
    if not is_proxy and estimate.value < _COIN_FLIPS * coin_flips:
        doubts.append(f"the model is far worse than {data.width} coin flips, {coin_flips:.2f} nats per row")
    for doubt in doubts:
        say(f"not to be trusted: {doubt}; train with a smaller learning rate")
    return DONE if estimate.reliable and not doubts else NOT_TO_BE_TRUSTED


def held_out_split(data: DataSet) -> str:
    """The split that a model is judged by: test where there is one, else valid, else train."""
    splits = data.splits()
    return next(split for split in ("test", "valid", "train") if split in splits)


def describe_split(data: DataSet, split: str) -> dict[str, Any]:
    """What a result says of the rows it is about."""
    return {
        "name": data.name,
        "split": split,
        "fingerprint": data.fingerprint,
        "binarization": "stochastic, drawn once with seed 0"
        if data.binarization == "stochastic"
        else data.binarization,
    }


def score_line(estimate: Estimate, split: str, rows: int, is_proxy: bool = False) -> str:
    """An estimate in words, with the rows it is about and what it is worth.

    >>> score_line(Estimate(-18.25, row_stderr=0.5), "test", 199)
    'test log-likelihood: -18.2500 nats per row, +- 0.5000 over 199 rows (exact)'
    """
    name = "proxy, pseudo-likelihood" if is_proxy else "log-likelihood"
    error = "" if estimate.low == estimate.high or is_proxy else f" [{estimate.low:.4f}, {estimate.high:.4f}]"
    spread = "" if math.isnan(estimate.row_stderr) else f", +- {estimate.row_stderr:.4f}"
    counted = f" over {rows} rows" if spread else f", {rows} row{'s' if rows > 1 else ''}"
    verdict = "" if estimate.reliable else f"; not to be trusted: {estimate.reason}"
    return f"{split} {name}: {estimate.value:.4f} nats per row{error}{spread}{counted} ({estimate.kind}){verdict}"


def score_lines(estimate: Estimate, split: str, rows: int, is_proxy: bool = False) -> str:
    """`score_line`, and for an ensemble, whose median member it is, the band of all members.

    >>> members = tuple(Estimate(value) for value in (-18.5, -18.25, -18.0))
    >>> print(score_lines(Estimate(-18.25, member=1, members=members), "test", 199))
    test log-likelihood: -18.2500 nats per row, 199 rows (exact)
    of the median member, 1, of 3; 5-95 % of the members: -18.5000 to -18.0000
    """
    line = score_line(estimate, split, rows, is_proxy)
    if estimate.member is None:
        return line
    found = band([float(one.value) for one in estimate.members])
    return (
        f"{line}\nof the median member, {estimate.member}, of {len(estimate.members)}; 5-95 % of the members: "
        f"{found.low:.4f} to {found.high:.4f}"
    )


def describe_members(estimate: Estimate, partition: Estimate | None = None) -> dict[str, Any]:
    """What a result says of the members of an ensemble; nothing of a single model.

    ``median_member`` is whose the numbers beside it are, ``band`` the 5-95 % band, and ``members`` the estimates of
    all.
    """
    if estimate.member is None:
        return {}
    found = band([float(one.value) for one in estimate.members])
    members = [{"member": number, **one.to_dict()} for number, one in enumerate(estimate.members)]
    if partition is not None:
        for entry, one in zip(members, partition.members, strict=True):
            entry["log_partition"] = one.to_dict()
    return {
        "median_member": estimate.member,
        "band": {"low": found.low, "high": found.high},
        "members": members,
    }


def remarks(data: DataSet, split: str) -> list[str]:
    """What a reader of a score should know about its rows."""
    found = []
    if split == "train":
        found.append(f"{data.name} has no held-out rows: this is the score of the training rows themselves")
    if data.binarization == "stochastic":
        found.append("grey levels were drawn to bits once, with seed 0, for this score")
    return found


def _score(
    model: AbstractEnergyModel | Ensemble, data: DataSet, split: str, path: Path
) -> tuple[Estimate, bool, str]:
    """The exact likelihood, or a proxy where that costs too much; whether it is a proxy; and what to say of it.

    Of a stack it is what `log_likelihood` finds affordable: the likelihood, or a lower bound of it.
    """
    if isinstance(model, Ensemble):
        scores = [_score(member, data, split, path) for member in model]
        return median_estimate(model, [(one, one) for one, _, _ in scores])[0], *scores[0][1:]
    from harmonium.evaluate.likelihood import visible_rows

    rows = visible_rows(model, data, split)
    notes = remarks(data, split)
    if isinstance(model, AbstractStack):
        ahead = work_ahead(model, "auto", BIT_BUDGET, None)
        if ahead is not None:
            announce_work(model, ahead)
        return both_estimates(model, data, split=split)[0], False, "\n".join(notes)
    plan = affordable_plan(model)
    # Of a deep Boltzmann machine it is the mean-field bound where only log Z can be had exactly.
    exactly = plan is not None and likelihood_operations(model, len(rows)) <= MOST_OPERATIONS
    if exactly or (plan is not None and isinstance(model, DBM)):
        return both_estimates(model, data, split=split)[0], False, "\n".join(notes)
    bits = plan_enumeration(model).bits
    place = shlex.quote(str(path))
    other = f"; harmonium evaluate {place} gives one, with a verdict"
    notes.append(
        f"too large for an exact likelihood here ({bits} units to enumerate, 2**{bits} states); what follows is a "
        f"proxy, not a likelihood{other}"
    )
    return pseudo_likelihood(model, rows), True, "\n".join(notes)
