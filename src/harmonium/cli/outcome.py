"""What ``train`` and ``resume`` say at the end: how good the model is, where it is, and what it draws."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED
from harmonium.cli.output import put, put_json, say
from harmonium.data.base import DataSet
from harmonium.energy.base import AbstractBipartite
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.exact import plan_enumeration
from harmonium.evaluate.likelihood import log_likelihood
from harmonium.evaluate.proxies import pseudo_likelihood
from harmonium.evaluate.starts import affordable_plan
from harmonium.report.pictures import write_pictures
from harmonium.report.summaries import summarise_model
from harmonium.samplers.sample import sample
from harmonium.train.folder import RunFolder
from harmonium.train.run import Run

_SAMPLES = 64

_COIN_FLIPS = 2
"""How many times the entropy of coin flips, n log 2, a model of n units may lose per row and still be believed."""


def conclude(run: Run, data: DataSet, path: Path, as_json: bool, draw: bool) -> int:
    """Score the model on rows it was not trained on, draw samples if ``draw``, print both; the exit status."""
    split = held_out_split(data)
    rows = data.split(split)
    estimate, is_proxy, remark = _score(run.model, data, split, path)
    samples = RunFolder(path).samples_path
    if draw:
        seed = run.config["train"]["seed"]
        write_pictures(samples, sample(run.model, _SAMPLES, seed=seed), data.shape, overwrite=True)
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
                "n": len(rows),
                "data": describe_split(data, split),
                "model": summarise_model(run.model),
                "samples": None if shown is None else str(shown),
                "reliable": run.reliable,
                "reason": run.reason,
            }
        )
    else:
        put(score_line(estimate, split, len(rows), is_proxy))
        put(f"run folder: {path}")
        put(f"samples: {shown}" if shown else f"samples: none yet; harmonium sample {path} --out samples.png")
    doubts = []
    if not run.reliable:
        doubts.append("the divergence guard stopped training; the model is the last good one")
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


def remarks(data: DataSet, split: str) -> list[str]:
    """What a reader of a score should know about its rows."""
    found = []
    if split == "train":
        found.append(f"{data.name} has no held-out rows: this is the score of the training rows themselves")
    if data.binarization == "stochastic":
        found.append("grey levels were drawn to bits once, with seed 0, for this score")
    return found


def _score(model: AbstractBipartite, data: DataSet, split: str, path: Path) -> tuple[Estimate, bool, str]:
    """The exact likelihood, or a proxy where that costs too much; whether it is a proxy; and what to say of it."""
    from harmonium.evaluate.likelihood import visible_rows

    rows = visible_rows(model, data, split)
    notes = remarks(data, split)
    if affordable_plan(model) is not None:
        return log_likelihood(model, rows), False, "\n".join(notes)
    bits = plan_enumeration(model).bits
    notes.append(
        f"too large for an exact likelihood here ({bits} units on the smaller side, 2**{bits} states); what follows is "
        f"a proxy, not a likelihood; harmonium evaluate {shlex.quote(str(path))} --method ais gives one, with a verdict"
    )
    return pseudo_likelihood(model, rows), True, "\n".join(notes)
