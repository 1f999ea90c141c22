"""``harmonium evaluate``: how probable data are under a model, and what that number is worth."""

from __future__ import annotations

from typing import Annotated

import typer

from harmonium.cli.options import Binarize, Data, Json, Member, Source


def evaluate(
    source: Source,
    data: Data = None,
    binarize: Binarize = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="train|valid|test",
            help="Rows to score; default test, else valid, else train.",
            rich_help_panel="Data",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(metavar="auto|exact", help="How the partition function is found.", show_default=True),
    ] = "auto",
    bit_budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most units on the smaller side that are enumerated; default 26."),
    ] = None,
    member: Member = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Of methods that draw; exact ones do not.")] = 0,
    as_json: Json = False,
) -> int:
    """Score a model on rows, in nats, with errors.

    The score is the mean log-likelihood per row. Without --data, a run is scored on the data it was trained with. Of an
    ensemble it is the median member's, beside the band of all.
    """
    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED
    from harmonium.cli.outcome import describe_members, describe_split, held_out_split, remarks, score_lines
    from harmonium.cli.output import put, put_json, say
    from harmonium.cli.sources import data_for, open_model
    from harmonium.energy.ensemble import Ensemble
    from harmonium.evaluate.likelihood import both_estimates, check_method, visible_rows
    from harmonium.numerics.enumerate import BIT_BUDGET
    from harmonium.report.summaries import summarise_model

    check_method(method)
    keep_compiled_programs()
    opened = open_model(source, member)
    dataset = data_for(opened, data, binarize)
    split = held_out_split(dataset) if split is None else split
    budget = BIT_BUDGET if bit_budget is None else bit_budget
    whose = opened.model.member(0) if isinstance(opened.model, Ensemble) else opened.model
    rows = visible_rows(whose, dataset, split)
    likelihood, partition = both_estimates(opened.model, rows, method, seed, bit_budget=budget)
    for remark in remarks(dataset, split):
        say(remark)
    if as_json:
        put_json(
            {
                "log_likelihood": likelihood.to_dict(),
                "log_partition": partition.to_dict(),
                **describe_members(likelihood, partition),
                **({} if member is None else {"member": member}),
                "method": likelihood.method,
                "n": len(rows),
                "data": describe_split(dataset, split),
                "model": {"source": str(source), **summarise_model(opened.model)},
                "seed": seed,
            }
        )
    else:
        put(score_lines(likelihood, split, len(rows)))
        put(f"log partition function: {partition}")
        put(f"data: {dataset.name}, fingerprint {dataset.fingerprint}, binarisation {dataset.binarization}")
    return DONE if likelihood.reliable and partition.reliable else NOT_TO_BE_TRUSTED
