"""``harmonium sample``: rows drawn from a model, as numbers or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import Force, Json, Member, Source


def sample(
    source: Source,
    n: Annotated[
        int | None, typer.Option("--n", metavar="N", help="Rows; default 64, or one per row of --clamp.")
    ] = None,
    steps: Annotated[
        int, typer.Option(metavar="K", help="Sweeps that each chain makes.", show_default=True)
    ] = 1000,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="gibbs|pt|cast|transitions|deep",
            help="How chains move: sweeps (default), parallel tempering, CAST, tempered transitions, or "
            "deep tempering, which gives rows of the lowest RBM of a dbn.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the sampler, such as rungs=20 or base=uniform. Can be repeated.",
        ),
    ] = None,
    clamp: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows to complete: a .csv, .npy or .npz file, whose empty or nan cells are free and others held.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Of a model with labels: draw rows of this class."),
    ] = None,
    member: Member = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Of every draw.", show_default=True)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .npz, .npy, .csv or .png file; without one, rows go to standard output as csv.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Draw rows from a model, as numbers or a picture.

    Every row comes from a chain of its own, which starts from the biases alone.
    """
    from harmonium.cli.rows import check_output, csv_text, write_rows

    if out is not None:
        check_output(out, force)

    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.config import assignment_of
    from harmonium.cli.failure import in_flags
    from harmonium.cli.output import put, put_json, say
    from harmonium.cli.sources import one_model, open_model, shape_for
    from harmonium.data.readers import read_partial_rows
    from harmonium.samplers.names import build_sampler
    from harmonium.samplers.sample import sample as draw

    keep_compiled_programs()
    opened = open_model(source, member)
    model = one_model(opened, source)
    held = None if clamp is None else read_partial_rows(clamp)
    if n is None:
        n = 64 if held is None or len(held) == 1 else len(held)
    moved = None
    if sampler is not None or assignments:
        given = dict(assignment_of(text) for text in assignments or [])
        moved = build_sampler(sampler or "gibbs", given)
    number = None
    if label is not None:
        from harmonium.cli.labels import class_number

        number = class_number(model, opened.config.model.classes if opened.config else None, label)
    drawn = draw(model, n, steps=steps, seed=seed, clamp=held, sampler=moved, label=number)
    if opened.doubt:
        say(in_flags(f"not to be trusted: {opened.doubt}"))
    if out is not None:
        shape = shape_for(opened) if out.suffix.lower() == ".png" else None
        write_rows(out, drawn, shape, force)
    if as_json:
        values = {
            "source": str(source),
            "n": n,
            "steps": steps,
            **({} if sampler is None else {"sampler": sampler}),
            **({} if label is None else {"label": label}),
            **({} if member is None else {"member": member}),
            "seed": seed,
            "out": None if out is None else str(out),
        }
        put_json(values if out is not None else {**values, "rows": drawn})
    elif out is None:
        put(csv_text(drawn).rstrip("\n"))
    else:
        put(f"{n} rows of {drawn.shape[1]} values: {out}")
    return 0
