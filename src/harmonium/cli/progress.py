"""How far training is: a live bar on a terminal, one line per report anywhere else, always on standard error."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from harmonium.cli.output import say


class Watch:
    """Follows a run: `report` is its reporter and `tick` its ticker, see `harmonium.train.drive`.

    Used as a context manager around the run. ``calls`` counts the compiled calls made inside it.
    """

    def __init__(self, console: Console | None = None):
        console = Console(file=sys.stderr) if console is None else console
        self._bar: Progress | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._bar = Progress(
                # All of it fits into 80 columns.
                BarColumn(bar_width=10),
                TextColumn("{task.completed}/{task.total} updates"),
                _Pace(),
                TextColumn("{task.fields[metric]}"),
                console=console,
            )
        self._task: Any = None
        self._reported: tuple[int, float] | None = None
        self.calls = 0

    def report(self, record: dict[str, Any], _timing: dict[str, Any]) -> None:
        """Show a metrics record: in the bar, or as a line of its own."""
        if self._bar is None:
            # The timing record counts from the start of the process, compilation included; people want the pace of now.
            now, index = time.monotonic(), record["index"]
            last, self._reported = self._reported, (index, now)
            # The levels of a greedy run count from nothing again.
            known = last is not None and now > last[1] and index > last[0] and "levels" not in record
            pace = (index - last[0]) / (now - last[1]) if known and last is not None else None
            say(report_line(record, pace, compiling=self.calls <= 1))
            return
        self._move(record["index"], record["horizon"])
        self._bar.update(self._task, metric=metric_of(record, brief=True))

    def tick(self, done: int, horizon: int) -> None:
        """Show that ``done`` of ``horizon`` updates are done."""
        self.calls += 1
        if self._bar is not None:
            self._move(done, horizon)

    def _move(self, done: int, horizon: int) -> None:
        assert self._bar is not None
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=horizon, completed=done, metric="")
        self._bar.update(self._task, completed=done, total=horizon)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.stop()


class _Pace(ProgressColumn):
    """Updates per second over the last while, and the time left at that pace."""

    def render(self, task: Task) -> Text:
        if not task.speed:
            return Text("compiling" if not task.completed else "")
        left = "" if not task.time_remaining else f" {seconds_text(task.time_remaining)} left"
        return Text(f"{_number(task.speed)}/s{left}")


def report_line(record: dict[str, Any], pace: float | None, compiling: bool = False) -> str:
    """One report in words; ``pace`` in updates per second, which foretells nothing while it includes compilation.

    >>> report_line({"index": 100, "horizon": 200, "free_energy_gap": 0.5}, 50.0)
    'update 100 of 200, 50 updates/s, 2 s left, free-energy gap +0.500 nats'
    """
    whose = f"level {record['level']}, " if "level" in record else ""
    if "joint" in record:
        whose = "all levels jointly, "
    if "levels" in record:
        whose = f"levels 0 to {record['level']} together, "
    parts = [f"{whose}update {record['index']} of {record['horizon']}"]
    remaining = record["horizon"] - record["index"]
    if pace and not compiling:
        parts.append(f"{_number(pace)} updates/s")
        if remaining:
            parts.append(f"{seconds_text(remaining / pace)} left")
    parts.append(metric_of(record))
    return ", ".join(parts)


def metric_of(record: dict[str, Any], brief: bool = False) -> str:
    """The number of a metrics record that says most: the held-out likelihood where there is one."""
    for split in ("test", "valid", "train"):
        value = record.get(f"log_likelihood_{split}")
        if value is not None and math.isfinite(value):
            kind = record.get("log_likelihood_kind", "exact")
            if "members" in record:
                return _of_members(record, f"log_likelihood_{split}", f"{split} log-likelihood", kind, brief)
            name = split if brief else f"{split} log-likelihood"
            return f"{name} {value:.3f} nats ({kind})"
    if "members" in record:
        return _of_members(record, "free_energy_gap", "free-energy gap", "", brief)
    return f"free-energy gap {record['free_energy_gap']:+.3f} nats"


def _of_members(record: dict[str, Any], key: str, name: str, kind: str, brief: bool) -> str:
    """A number of an ensemble: its median, and the 5-95 % band of its members."""
    value, low, high = (record[f"{key}{ending}"] for ending in ("", "_low", "_high"))
    if brief:
        return f"{name.partition(' ')[0]} {value:.2f} [{low:.2f}, {high:.2f}]"
    kind = f" ({kind})" if kind else ""
    return f"{name} {value:.3f} nats{kind}, {low:.3f} to {high:.3f} over {record['members']} members"


def seconds_text(seconds: float) -> str:
    """``8 s``, ``3:05``, ``2:03:05``.

    >>> seconds_text(7.6), seconds_text(185), seconds_text(7385)
    ('8 s', '3:05', '2:03:05')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _number(updates_per_second: float) -> str:
    return f"{updates_per_second:.{0 if updates_per_second >= 10 else 2}f}"
