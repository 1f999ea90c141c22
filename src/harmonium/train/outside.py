"""What a sampler that works outside of the compiled program has to say: its numbers, and its failures."""

from __future__ import annotations

import re
from typing import Any

from harmonium import errors
from harmonium.errors import HarmoniumError
from harmonium.rules.mode_assisted import ModeAssistedState
from harmonium.samplers.base import AbstractReportingState

_LAST_LINE = re.compile(r"^(?:harmonium\.errors\.)?(\w+): (.*)\Z", re.MULTILINE)


def sampler_state(rule_state: Any) -> Any:
    """The state of the sampler of a rule, or of the rule that is assisted by modes; None where chains restart."""
    own = rule_state.base if isinstance(rule_state, ModeAssistedState) else rule_state
    return getattr(own, "sampler", None)


def sampler_metrics(rule_state: Any) -> dict[str, float | None]:
    """What the sampler of a rule says of its last step; nothing for most."""
    sampler = sampler_state(rule_state)
    return sampler.metrics() if isinstance(sampler, AbstractReportingState) else {}


def error_within(error: Exception) -> HarmoniumError | None:
    """The error of ours that a call out of a compiled program has failed with, and of which jax keeps the text alone.

    >>> import jax
    >>> error_within(jax.errors.JaxRuntimeError("INTERNAL: calling back:\\nDataError: no rows"))
    DataError('no rows')
    """
    found = _LAST_LINE.search(str(error).rstrip())
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2]) if found and isinstance(kind, type) and issubclass(kind, HarmoniumError) else None
