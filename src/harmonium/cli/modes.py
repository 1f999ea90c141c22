"""``harmonium modes``: the state of lowest energy of a model, and what is proved of it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harmonium.cli.options import Force, Json, Member, Source

if TYPE_CHECKING:
    import numpy as np

    from harmonium.modes.mode import Mode

_LONGEST_LINE = 100


def modes(
    source: Source,
    solver: Annotated[
        str,
        typer.Option(
            metavar="descent|annealing|memcomputing|exact",
            help="How to search; only exact proves that nothing lies lower.",
            show_default=True,
        ),
    ] = "descent",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the solver, such as starts=256 or nodes=1000000. Can be repeated.",
        ),
    ] = None,
    member: Member = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Of every start and draw.", show_default=True)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .npz file takes all layers; .npy, .csv and .png take the visible one.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Find the state of lowest energy of a model, with its certificate.

    "exact" is said only of what is proved. An exact search that is stopped before its proof ends with status 3.
    """
    from harmonium.cli.rows import check_output, write_rows

    if out is not None:
        check_output(out, force)

    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.config import assignment_of
    from harmonium.cli.failure import DONE, NOT_TO_BE_TRUSTED, in_flags
    from harmonium.cli.output import put, put_json, say
    from harmonium.cli.sources import one_model, open_model, shape_for
    from harmonium.modes.mode import find
    from harmonium.modes.names import build_solver
    from harmonium.train.atomic import write_atomically

    keep_compiled_programs()
    chosen = build_solver(solver, dict(assignment_of(text) for text in assignments or []))
    opened = open_model(source, member)
    mode = find(one_model(opened, source), chosen, seed)
    if opened.doubt:
        say(in_flags(f"not to be trusted: {opened.doubt}"))
    shape = shape_for(opened)
    if out is not None and out.suffix.lower() == ".npz":
        write_atomically(out, _archive(mode), overwrite=force, fault="samples")
    elif out is not None:
        write_rows(out, mode.state[0][None], shape, force)
    if as_json:
        put_json(
            {
                "source": str(source),
                "energy": mode.energy,
                "certificate": mode.certificate,
                "lower_bound": mode.lower_bound,
                "solver": mode.solver,
                "runs": mode.runs,
                "agreed": mode.agreed,
                "unit_updates": mode.unit_updates,
                **({} if member is None else {"member": member}),
                "seed": seed,
                "out": None if out is None else str(out),
                "state": [layer.tolist() for layer in mode.state],
            }
        )
    else:
        put(_in_words(mode, shape))
        if out is not None:
            put(f"state: {out}")
    if solver == "exact" and mode.certificate != "exact":
        say("not to be trusted: the search was stopped before its proof; allow more with --set nodes=N")
        return NOT_TO_BE_TRUSTED
    return DONE


def _in_words(mode: Mode, shape: tuple[int, ...] | None) -> str:
    if mode.certificate == "exact":
        worth = "exact: no state lies lower"
    elif mode.lower_bound is not None:
        worth = f"best found; no state lies below {mode.lower_bound:.6f}"
    else:
        searches = "search" if mode.runs == 1 else "searches"
        worth = f"best found, by {mode.agreed} of {mode.runs} {searches}; nothing is proved"
    lines = [f"energy: {mode.energy:.6f} nats ({worth})", f"solver: {mode.solver}"]
    for index, layer in enumerate(mode.state):
        name = "visible" if index == 0 else f"hidden {index}"
        on = f"{name}: {int((layer > 0).sum())} of {len(layer)} units on"
        lines.append(on + (f", {_signs(layer)}" if len(layer) <= _LONGEST_LINE else ""))
    sides = [side for side in shape or () if side != 1]
    if len(sides) == 2 and sides[1] <= _LONGEST_LINE:
        lines += [
            " ".join(_signs(row)).replace("0", ".").replace("-", ".") for row in mode.state[0].reshape(sides)
        ]
    return "\n".join(lines)


def _signs(layer: np.ndarray) -> str:
    """One letter a unit: 0 and 1, or for spins - and +."""
    low, high = ("-", "+") if layer.dtype.kind == "i" else ("0", "1")
    return "".join(high if value > 0 else low for value in layer.tolist())


def _archive(mode: Mode) -> bytes:
    import numpy as np

    buffer = BytesIO()
    layers = {f"layer_{index}": layer for index, layer in enumerate(mode.state)}
    np.savez_compressed(buffer, energy=mode.energy, certificate=mode.certificate, **layers)  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()
