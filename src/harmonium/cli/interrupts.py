"""Ctrl-C and a request to end, as one interrupt that the trainer answers by saving."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from harmonium.cli.failure import InterruptedRun
from harmonium.cli.output import say


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into `KeyboardInterrupt` inside the block.

    SIGINT also where a shell started the command in the background, which would have it ignored: whoever sends a signal
    to a training run wants it to stop. Outside the main thread nothing changes, for signals arrive only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    def again(unraisable: Any) -> None:
        # Raised inside a callback of the garbage collector, of which jax has one, the interrupt would be lost.
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            _thread.interrupt_main()
        else:
            usual(unraisable)

    usual, sys.unraisablehook = sys.unraisablehook, again
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        sys.unraisablehook = usual
        for number, handler in before.items():
            signal.signal(number, handler)


def tell_interrupted(folder: Path | None) -> InterruptedRun:
    """Say what is saved and how to go on; the error to raise then."""
    if folder is None:
        say("interrupted before anything was written")
    elif not (folder / "config.toml").exists():
        say(f"interrupted before the run in {folder} began; start it again")
    else:
        say(f"interrupted; the run is saved in {folder}, go on with\n  harmonium resume {_quoted(folder)}")
    return InterruptedRun()


def _quoted(folder: Path) -> str:
    from shlex import quote

    return quote(str(folder))
