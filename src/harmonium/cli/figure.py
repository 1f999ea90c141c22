"""``harmonium figure``: the structure drawings of the field, and those of one's own models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import Force, Json, Member


def figure(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|RUN|MODEL",
            show_default=False,
            help="A drawing, a run folder or a model file; without it, the list of drawings.",
        ),
    ] = None,
    bipartite: Annotated[
        bool,
        typer.Option("--bipartite", help="Beside a model its layers of even and of odd number as two sides."),
    ] = False,
    most: Annotated[
        int, typer.Option(metavar="N", help="Units of a layer that are drawn.", show_default=True)
    ] = 8,
    member: Member = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .svg file; without one, the drawing goes to standard output."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Draw what a machine consists of: its units, and which of them are coupled.

    A drawing of the list is made from a small machine that is built for it; a run or a model file is drawn as it is, of
    large layers the first units and the last, with the number of those left out.
    """
    from harmonium.cli.output import put, put_json
    from harmonium.cli.rows import check_output
    from harmonium.report.names import SKETCHES

    if name is None:
        if as_json:
            put_json(
                {"figures": [{"name": key, "summary": found.summary} for key, found in SKETCHES.items()]}
            )
        else:
            width = max(map(len, SKETCHES))
            put("\n".join(f"{key:{width}}  {found.summary}" for key, found in SKETCHES.items()))
        return 0
    if out is not None:
        check_output(out, force, (".svg",))
    drawing = _drawing(name, bipartite, most, member)
    if out is not None:
        drawing.save(out, force=force)
    if as_json:
        values = {"figure": name, "panels": drawing.describe(), "out": None if out is None else str(out)}
        put_json(values if out is not None else {**values, "svg": drawing.svg})
    else:
        put(drawing.svg.rstrip("\n") if out is None else f"{name}: {out}")
    return 0


def _drawing(name: str, bipartite: bool, most: int, member: int | None):
    from harmonium.cli.sources import open_model
    from harmonium.errors import SettingError
    from harmonium.report.drawing import figure as draw
    from harmonium.report.names import SKETCHES, sketch

    if name not in SKETCHES and Path(name).exists():
        return draw(open_model(Path(name), member).model, bipartite=bipartite, most=most)
    if bipartite or member is not None:
        flag = "--bipartite" if bipartite else "--member"
        raise SettingError(f"{flag} is of a run or a model file, not of the drawing {name!r}; leave it out")
    return sketch(name, most)
