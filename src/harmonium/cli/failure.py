"""What went wrong, in one sentence, and the exit status that says whose fault it is."""

from __future__ import annotations

import errno
import os
import re
import traceback
from typing import Any

from harmonium.errors import (
    BudgetError,
    DataError,
    DivergenceError,
    FileError,
    HarmoniumError,
    RunBusyError,
    SettingError,
)

DONE = 0
FAILED = 1
BAD_INPUT = 2
NOT_TO_BE_TRUSTED = 3
INTERRUPTED = 130

# What a user cannot help by naming another file: then it is the work that failed.
_DISK_FAULTS = {errno.ENOSPC, errno.EIO, getattr(errno, "EDQUOT", errno.EIO), errno.EFBIG}

_OF_CALLS = ("seed", "chains", "temperatures", "steps", "n", "ladders", "rungs", "sweeps", "burn_in", "most")
"""Arguments of Python for which some verb has a flag of the same name."""


class InterruptedRun(KeyboardInterrupt):
    """An interrupt that has been told to the user already."""


def explain(error: BaseException) -> tuple[int, str]:
    """The exit status of an error, and the sentence for standard error ("" where silence is right).

    >>> explain(DataError("rows hold NaN; fill them in"))
    (2, 'error: rows hold NaN; fill them in')
    """
    if isinstance(error, SystemExit):
        return (error.code if isinstance(error.code, int) else FAILED), ""
    if isinstance(error, InterruptedRun | BrokenPipeError):
        return (INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED), ""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if _is_usage_error(error):
        return BAD_INPUT, f"error: {_usage_message(error)}"
    if isinstance(error, HarmoniumError):
        return _status(error), f"error: {in_flags(_one_line(error))}"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return FAILED, "error: out of memory; use a smaller model, fewer chains or fewer rows"
    if isinstance(error, OSError) and error.strerror:
        return FAILED, f"error: {error.filename or 'reading or writing'}: {error.strerror}"
    platform = os.environ.get("JAX_PLATFORMS")
    if platform and _is_raised_by(error, "xla_bridge.py"):
        return (
            BAD_INPUT,
            f"error: JAX_PLATFORMS={platform} names nothing jax can compute on here; unset it, or say cpu",
        )
    return FAILED, (
        f"error: unexpected {type(error).__name__}: {_one_line(error)[:300] or 'no message'}; "
        "this is a fault of harmonium, run the command again with HARMONIUM_DEBUG=1 to see where it lies"
    )


def in_flags(message: str) -> str:
    """A message that names arguments of Python and their flags, with the flags alone.

    >>> in_flags('pass force=True (--force) or binarize="threshold", or bit_budget=30 (--bit-budget)')
    'pass --force or --binarize threshold, or --bit-budget 30'
    """
    message = re.sub(r"\bhm\.\w+\(\) \((--[\w-]+ \w+)\)", r"\1", message)
    message = re.sub(r"\b\w+=True \((--[\w-]+)\)", r"\1", message)
    message = re.sub(r"\b\w+=(\w+) \((--[\w-]+)\)", r"\2 \1", message)
    message = re.sub(r"\b[\w.]+='([\w-]+)' \((--[\w-]+)\)", r"\2 \1", message)
    message = re.sub(r'\b\w+="(\w+)" \((--[\w-]+) \w+\)', r"\2 \1", message)
    message = re.sub(r'\bbinarize="(\w+)"', r"--binarize \1", message)
    message = re.sub(r"\bon_divergence='(\w+)'", r"--on-divergence \1", message)
    message = re.sub(r"\bbit_budget\b(?!=)", "--bit-budget", message)
    message = re.sub(r"\boperation_budget(?:=([\d.e+-]+))?", _seconds_of_budget, message)
    message = re.sub(r"(?<![\w.])precision='(\w+)'", r"--set sampler.precision=\1", message)
    message = re.sub(r"^(\w+)=([^\s=]+) (is a setting|belongs)\b", _flag_of_setting, message)
    named = rf"^({'|'.join(_OF_CALLS)})(?: of AIS| of a bracket)? must be\b"
    return re.sub(named, lambda found: f"--{found[1].replace('_', '-')} must be", message)


def _seconds_of_budget(found: re.Match[str]) -> str:
    from harmonium.evaluate.likelihood import NOMINAL_RATE

    return f"--budget {float(found[1]) / NOMINAL_RATE:.3g}" if found[1] else "--budget"


def _flag_of_setting(found: re.Match[str]) -> str:
    """``--chains 16`` for a setting that has a flag of its own, else ``--set sampler.burn_in=3``."""
    from harmonium.cli.config import SETTING_OF_FLAG
    from harmonium.train.config import known_settings

    name, value, rest = found.groups()
    flag = next((key for key, full in SETTING_OF_FLAG.items() if full.endswith(f".{name}")), None)
    if flag is not None:
        return f"{flag} {value} {rest}"
    section = next((key for key, names in known_settings().items() if name in names), None)
    return found[0] if section is None else f"--set {section}.{name}={value} {rest}"


def _status(error: HarmoniumError) -> int:
    if isinstance(error, DivergenceError):
        return NOT_TO_BE_TRUSTED
    if isinstance(error, FileError):
        cause = error.__cause__
        return FAILED if isinstance(cause, OSError) and cause.errno in _DISK_FAULTS else BAD_INPUT
    if isinstance(error, SettingError | DataError | BudgetError | RunBusyError):
        return BAD_INPUT
    return FAILED


def _is_usage_error(error: Any) -> bool:
    """Whether the parser of the command line raised it; its classes have moved between versions of typer."""
    return callable(getattr(error, "format_message", None)) and getattr(error, "exit_code", None) == BAD_INPUT


def _usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"{_one_line(error.format_message()).rstrip('.')}{hint}"


def _is_raised_by(error: BaseException, file: str) -> bool:
    """Whether a source file of this name raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and os.path.basename(frames[-1].filename) == file


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
