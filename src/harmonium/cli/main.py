"""The command ``harmonium``: its verbs, and the border that no traceback crosses."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from harmonium.cli.evaluate import evaluate
from harmonium.cli.inspect import inspect
from harmonium.cli.modes import modes
from harmonium.cli.reproduce import reproduce
from harmonium.cli.resume import resume
from harmonium.cli.sample import sample
from harmonium.cli.train import train

_HELP_FLAGS = {"help_option_names": ["--help", "-h"]}
_EPILOG = (
    "Exit status: 0 done; 1 the work failed; 2 wrong usage or bad input; 3 finished but not to be trusted; "
    "130 interrupted with the checkpoint saved."
)

# Plain text, because the frames of rich would double the time that this page takes; the pages of verbs have them.
app = typer.Typer(
    name="harmonium",
    add_completion=False,
    context_settings=_HELP_FLAGS,
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _verb in (train, resume, evaluate, sample, modes, inspect, reproduce):
    app.command(context_settings=_HELP_FLAGS)(_verb)


def _show_version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"harmonium {version('harmonium')}")
        except PackageNotFoundError:
            print("harmonium, run from a bare source folder")
        raise typer.Exit
    return wanted


@app.callback()
def harmonium(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Boltzmann machines, with likelihoods that carry their error and runs that are never lost."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say (those of the process when None) and return the exit status.

    Nothing is raised: whatever goes wrong becomes a sentence on standard error and a status.

    >>> run(["--version"])  # doctest: +ELLIPSIS
    harmonium ...
    0
    """
    _open_streams()
    with warnings.catch_warnings():
        _warn_in_one_line()
        try:
            status = _run(sys.argv[1:] if arguments is None else list(arguments))
            sys.stdout.flush()
        except BaseException as error:
            return _failed(error)
    return status


def _run(arguments: list[str]) -> int:
    command: Any = typer.main.get_command(app)
    for verb in command.commands.values():
        verb.rich_markup_mode = "rich"
    # Not `command.main`, which would turn interrupts and broken pipes into statuses of its own.
    try:
        with command.make_context("harmonium", [*arguments] or ["--help"]) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        status = done.exit_code
    return 2 if not arguments else status or 0


def _open_streams() -> None:
    """Streams that take every word: closed ones lead nowhere, and a letter they cannot spell is written as its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _failed(error: BaseException) -> int:
    from harmonium.cli.failure import explain

    if os.environ.get("HARMONIUM_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    status, message = explain(error)
    try:
        if message:
            print(message, file=sys.stderr)
        if isinstance(error, BrokenPipeError):
            # Nobody reads any more: the interpreter must not find unwritten text when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:
        pass
    return status


def _warn_in_one_line() -> None:
    from harmonium.errors import HarmoniumWarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from harmonium.cli.failure import in_flags

        print(f"warning: {in_flags(' '.join(str(message).split()))}", file=sys.stderr)

    warnings.showwarning = show
    warnings.simplefilter("always", HarmoniumWarning)
