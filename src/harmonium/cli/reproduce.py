"""``harmonium reproduce``: a study made again, our table beside the published one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import Force, Json


def reproduce(
    study: Annotated[
        str | None,
        typer.Argument(metavar="STUDY", show_default=False, help="Which one; without it, the list."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="As much as published numbers took, or a few minutes; default quick.",
            show_default=False,
        ),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="S", help="Of every draw.", show_default=True)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the tables and figures; default a fresh numbered one under runs/."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Run a study and print its table.

    Tables are written as JSON, CSV and Markdown, figures as SVG. A study that does not find what it claims ends with
    status 3. Benchmark data are read from the folder that HARMONIUM_DATA names; without it, a study goes without them
    and says so.
    """
    from harmonium.cli.output import put, put_json

    if study is None:
        from harmonium.studies.names import STUDIES

        if as_json:
            put_json(
                {"studies": [{"name": name, "summary": found.summary} for name, found in STUDIES.items()]}
            )
        else:
            width = max(map(len, STUDIES))
            put("\n".join(f"{name:{width}}  {found.summary}" for name, found in STUDIES.items()))
        return 0

    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED
    from harmonium.cli.interrupts import interruptible, tell_interrupted
    from harmonium.cli.output import say
    from harmonium.numerics.whole import seed_number
    from harmonium.report.figures import can_draw
    from harmonium.studies.names import find_study
    from harmonium.studies.write import check_folder, files_of, result_text, result_values, write_folder
    from harmonium.train.folder import numbered_folder

    found = find_study(study)
    seed = seed_number(seed)
    check_folder(Path("runs") if out is None else out, force or out is None)
    if not can_draw():
        say("no figure will be drawn: matplotlib is not installed; pip install 'harmonium[report]'")
    keep_compiled_programs()
    scale = "full" if full else "quick"
    with interruptible():
        try:
            result = found.run(scale, seed, say)
        except KeyboardInterrupt:
            raise tell_interrupted(None) from None
        files, folder, fault = files_of(study, result, scale, seed), out, None
        try:
            folder = numbered_folder(Path("runs"), study) if out is None else out
            write_folder(folder, files, force)
        except OSError as error:
            fault = error  # what hours of work have found is told all the same
    if as_json:
        values = result_values(study, result, scale, seed)
        where = None if fault else str(folder)
        put_json({**values, "out": where, "files": [] if fault else sorted(files)})
    else:
        put(result_text(study, result, scale, seed).rstrip("\n"))
    if fault is not None:
        raise fault
    if not as_json:
        say(f"written to {folder}: {', '.join(sorted(files))}")
    return DONE if result.holds else NOT_TO_BE_TRUSTED
