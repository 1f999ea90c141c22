"""``harmonium evaluate``: how probable data are under a model, and what that number is worth."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from harmonium.cli.methods import with_settings
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
        typer.Option(
            metavar="auto|exact|ais|bracket|bound",
            help="How the partition function is found: exactly, by annealing both ways, by a bridge on tempered chains "
            "between the two, or (auto) exactly where that fits and else by a bracket. Of a dbn or a dbm, bound is the "
            "variational lower bound.",
            show_default=True,
        ),
    ] = "auto",
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="What it may cost, in seconds of a nominal 2e10 operations each; counted, never timed. Default 10 for "
            "exact sums; what draws has a usual length.",
        ),
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Of annealing, each way; default 100. Of a bracket, of each ladder; default 1."
        ),
    ] = None,
    temperatures: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of annealing; default 1000, or as many as --budget allows."),
    ] = None,
    ladders: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of a bracket: independent blocks, at least 8; default 16."),
    ] = None,
    rungs: Annotated[
        int | None, typer.Option(metavar="N", help="Of a bracket; default by size, 6 to 24.")
    ] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of a bracket; default as its usual cost or --budget allows."),
    ] = None,
    burn_in: Annotated[
        int | None, typer.Option(metavar="N", help="Of a bracket, in sweeps; default half of the sweeps.")
    ] = None,
    bit_budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most units on the smaller side that are enumerated; default 26."),
    ] = None,
    classifier: Annotated[
        str | None,
        typer.Option(
            "--classify",
            metavar="auto|free-energy|bound|mean-field",
            help="Of a model with labels, how rows are classified: exactly, by mean-field bounds of each class, by "
            "inferring the label with the hidden units, or (auto) exactly where that fits and else by bounds.",
        ),
    ] = None,
    member: Member = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Of methods that draw; exact ones do not.")] = 0,
    as_json: Json = False,
) -> int:
    """Score a model on rows, in nats, with errors.

    The score is the mean log-likelihood per row. Without --data, a run is scored on the data it was trained with. Of an
    ensemble it is the median member's, beside the band of all. A model with labels is scored on rows with their labels
    where these are known, and the rows are classified. What the divergence guard stopped is not to be trusted.
    """
    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED, in_flags
    from harmonium.cli.labels import classification_of
    from harmonium.cli.outcome import (
        announce_work,
        describe_members,
        describe_split,
        held_out_split,
        remarks,
        score_lines,
    )
    from harmonium.cli.output import put, put_json, say
    from harmonium.cli.sources import data_for, open_model
    from harmonium.errors import SettingError
    from harmonium.evaluate.ensemble import doubted
    from harmonium.evaluate.estimate import Kind
    from harmonium.evaluate.likelihood import NOMINAL_RATE, both_estimates, check_method, work_ahead
    from harmonium.numerics.enumerate import BIT_BUDGET
    from harmonium.report.summaries import summarise_model

    check_method(method)
    how = with_settings(
        method,
        {
            "chains": chains,
            "temperatures": temperatures,
            "ladders": ladders,
            "rungs": rungs,
            "sweeps": sweeps,
            "burn_in": burn_in,
        },
    )
    if budget is not None and not 0 < budget < math.inf:
        raise SettingError(f"--budget must be a number of seconds above 0, got {budget:g}; pass e.g. 10")
    keep_compiled_programs()
    opened = open_model(source, member)
    dataset = data_for(opened, data, binarize)
    split = held_out_split(dataset) if split is None else split
    bits = BIT_BUDGET if bit_budget is None else bit_budget
    operations = None if budget is None else budget * NOMINAL_RATE
    ahead = work_ahead(opened.model, how, bits, operations)
    if ahead is not None:
        announce_work(opened.model, ahead)
    likelihood, partition = both_estimates(
        opened.model, dataset, how, seed, split=split, bit_budget=bits, operation_budget=operations
    )
    likelihood, partition = (doubted(estimate, opened.doubt) for estimate in (likelihood, partition))
    classified = classification_of(opened, dataset, split, classifier)
    for remark in remarks(dataset, split):
        say(remark)
    if as_json:
        put_json(
            {
                "log_likelihood": likelihood.to_dict(),
                "log_partition": partition.to_dict(),
                **describe_members(likelihood, partition),
                **({} if classified is None else {"classification": classified.to_dict()}),
                **({} if member is None else {"member": member}),
                "method": likelihood.method,
                "n": len(dataset.split(split)),
                "data": describe_split(dataset, split),
                "model": {"source": str(source), **summarise_model(opened.model)},
                "seed": seed,
            }
        )
    else:
        put(in_flags(score_lines(likelihood, split, len(dataset.split(split)))))
        if classified is not None:
            put(classified.in_words(split))
        put(in_flags(f"log partition function: {partition}"))
        if partition.reason and partition.kind != Kind.EXACT:
            say(f"{partition.method}: {partition.reason}")
        put(f"data: {dataset.name}, fingerprint {dataset.fingerprint}, binarisation {dataset.binarization}")
    return DONE if likelihood.reliable and partition.reliable else NOT_TO_BE_TRUSTED
