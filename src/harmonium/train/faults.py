"""Faults on purpose: where a test may kill the process in the middle of a write.

The promise "never lose a run" is only worth what its tests are worth, and a test that kills at random moments almost
never hits the few microseconds between a write and a rename. Each dangerous moment therefore has a name, and the
environment variable ``HARMONIUM_FAULT`` arms one of them: ``HARMONIUM_FAULT=checkpoint.after-temp:3`` sends SIGKILL to
the own process at the third passage of that point. Without the variable the points do nothing.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import NoReturn

from harmonium.errors import SettingError

VARIABLE = "HARMONIUM_FAULT"

WRITERS = ("checkpoint", "config", "cut", "data", "environment", "model")
"""Kinds of file that are written whole; ``cut`` is the shortening of a log when a run is resumed."""

LOGS = ("metrics", "timing")
"""Kinds of file that grow line by line."""

FAULT_POINTS = frozenset(
    [
        f"{writer}.{moment}"
        for writer in WRITERS
        for moment in ("before-temp", "mid-temp", "after-temp", "after-rename")
    ]
    + [f"{log}.{moment}" for log in LOGS for moment in ("mid-line", "after-line")]
)
"""Every point at which a process can be made to die: before the temporary file, half-way through it, between the
temporary file and the rename, after the rename; half-way through a line, and after it."""

_passages: Counter[str] = Counter()  # the number of the passage is the one thing that has to be remembered


def fault_due(point: str) -> bool:
    """Counts one passage of ``point`` and says whether this is the one to die at.

    Raises SettingError when ``HARMONIUM_FAULT`` does not read ``point:passage`` with a known point, so that a
    misspelt point cannot make a test that kills nothing.

    >>> fault_due("checkpoint.after-temp")
    False
    """
    armed = os.environ.get(VARIABLE)
    if not armed:
        return False
    name, _, passage = armed.partition(":")
    if name not in FAULT_POINTS or not (passage or "1").isdigit() or passage == "0":
        raise SettingError(
            f"{VARIABLE}={armed!r} names no fault; write POINT or POINT:PASSAGE with a point out of "
            f"{', '.join(sorted(FAULT_POINTS))}"
        )
    if point != name:
        return False
    _passages[point] += 1
    return _passages[point] == int(passage or "1")


def fault_point(point: str) -> None:
    """Dies here when ``HARMONIUM_FAULT`` says so; otherwise does nothing."""
    if fault_due(point):
        die()


def die() -> NoReturn:
    """Ends the own process as ``kill -9`` does: no handler, no clean-up, no flushing."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    raise SystemExit(137)  # unreachable where signals are delivered at once
