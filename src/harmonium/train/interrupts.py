"""Ctrl-C that waits for a good moment.

Python raises `KeyboardInterrupt` wherever the program happens to be. Where that is a callback of the garbage collector,
and jax has one, the exception is printed and dropped, and the program goes on as if nobody had asked it to stop.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def patient_interrupts() -> Iterator[Callable[[], None]]:
    """Inside the block a first SIGINT or SIGTERM waits; a second one while it waits is handled at once.

    Yields the function that hands a waiting signal to whoever handled it before the block, which for Ctrl-C usually
    raises `KeyboardInterrupt`: call it where stopping is safe. What still waits at the end of the block is handed over
    then. Nothing changes for a signal that no Python function handles, nor outside the main thread.

    >>> with patient_interrupts() as hand_over:
    ...     hand_over()
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    usual: dict[int, Callable[[int, FrameType | None], Any]] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if callable(handler):
            usual[number] = handler
    waiting: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            usual[number](number, frame)
        waiting.append(number)

    def hand_over() -> None:
        if waiting:
            number = waiting[0]
            waiting.clear()
            usual[number](number, None)

    for number in usual:
        signal.signal(number, wait)
    try:
        yield hand_over
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
    hand_over()
