"""What a training run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harmonium.errors import MissingExtraError
from harmonium.train.state import TrainState


class History(list[dict[str, Any]]):
    """The metrics of a run, one dictionary per report.

    >>> History([{"index": 0, "free_energy_gap": 0.5}]).column("free_energy_gap")
    [0.5]
    """

    def column(self, name: str) -> list[Any]:
        """One metric over all reports; None where a report lacks it."""
        return [record.get(name) for record in self]

    def to_pandas(self) -> Any:
        """The reports as a pandas data frame. Raises `MissingExtraError` where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError(
                "a table needs pandas, which is not installed: pip install pandas"
            ) from None
        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class Run:
    """A training run: the model it arrived at and how it went.

    - ``model``: the trained model, with numpy arrays; the `harmonium.Ensemble` of all members where there are several.
    - ``history``: its reports (see `History`).
    - ``path``: its folder, or None for a run that was kept in memory.
    - ``state``: the complete state at the end of training; None for a run read from its folder.
    - ``finished``: False for a run read from its folder before it came to its end; see `resume`.
    - ``reliable`` and ``reason``: False, with the reason, when the divergence guard stopped it, or a member of it;
      the model is then the last good one.
    - ``config``: the resolved settings in sections.

    >>> from harmonium.energy.rbm import RBM
    >>> Run(model=RBM(4, 2), history=History([{"index": 100}]), path=None, state=None)
    Run of 100 updates
    """

    model: Any
    history: History
    path: Path | None
    state: TrainState | None
    finished: bool = True
    reliable: bool = True
    reason: str = ""
    config: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        place = f" in {self.path}" if self.path else ""
        finished = "" if self.finished else ", not finished"
        verdict = "" if self.reliable else f", not to be trusted: {self.reason}"
        done = self.history[-1]["index"] if self.history else 0
        return f"Run of {done} updates{place}{finished}{verdict}"
