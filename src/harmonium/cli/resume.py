"""``harmonium resume``: go on with a run after any interruption, or further than it was meant to go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import Json


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")],
    epochs: Annotated[
        int | None, typer.Option(metavar="N", help="Go so many passes further, on a new horizon.")
    ] = None,
    updates: Annotated[
        int | None, typer.Option(metavar="N", help="Go so many updates further, on a new horizon.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Continue a run after any interruption.

    It ends as if nothing had happened. With a number it goes so much further, on a new horizon; without one, a finished
    run is left as it is.
    """
    from harmonium.cli.interrupts import interruptible
    from harmonium.errors import SettingError

    if epochs is not None and updates is not None:
        raise SettingError(f"both --epochs {epochs} and --updates {updates} are given; keep one of them")
    for flag, value in (("--epochs", epochs), ("--updates", updates)):
        if value is not None and value < 1:
            raise SettingError(f"{flag} must be a whole number of at least 1, got {value}")

    with interruptible():
        from harmonium.train.folder import RunFolder

        RunFolder.open(run).lock().release()  # at once, not after the seconds that loading takes

        from harmonium.cli.training import resume_and_conclude

        return resume_and_conclude(run, epochs, updates, as_json)
