"""Where words go: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def put(text: str) -> None:
    """A result, for standard output."""
    print(text, flush=True)


def say(text: str) -> None:
    """Prose about the work, for standard error."""
    print(text, file=sys.stderr, flush=True)


def put_json(values: Mapping[str, Any]) -> None:
    """One JSON object in one line on standard output; numbers that are not finite become null."""
    from harmonium.train.plain import plain

    put(json.dumps(plain(values, "the result", not_finite="null"), allow_nan=False))
