"""What a study is, and what comes out of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from harmonium.report.curves import CurveFigure
from harmonium.report.figures import Figure

Scale = Literal["quick", "full"]
"""How much a study does: minutes on a laptop, or as much as the published numbers took."""

SCALES: tuple[str, ...] = get_args(Scale)

Progress = Callable[[str], None]
"""Is told in a few words what is done now."""


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words with a heading for each column.

    - ``name``: that of its file. ``caption``: what it shows, with units.
    - ``columns``: heading of each column by its key, in order.
    - ``rows``: values by key; None where there is none.
    - ``published``: the table in print that it stands beside, if any; ``source``, of a published one, where it is from.
    - ``long``: too long to be read, so that it is only in the JSON and CSV files.
    """

    name: str
    caption: str
    columns: Mapping[str, str]
    rows: tuple[Mapping[str, Any], ...]
    published: Table | None = None
    source: str = ""
    long: bool = False


@dataclass(frozen=True)
class Statement:
    """One sentence about what came out; ``holds``: whether what it claims was found, None where it claims nothing."""

    text: str
    holds: bool | None = None


@dataclass(frozen=True)
class StudyResult:
    """Tables, figures and sentences of a study, and the settings that it ran with."""

    tables: tuple[Table, ...]
    figures: tuple[Figure | CurveFigure, ...] = ()
    statements: tuple[Statement, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether everything that was claimed was found."""
        return all(statement.holds is not False for statement in self.statements)


class AbstractStudy(ABC):
    """A study: one file, one final class, one line in `harmonium.studies.names`.

    ``name`` is what a user types, ``summary`` one line about it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def run(self, scale: Scale, seed: int, progress: Progress) -> StudyResult:
        """Do it; the same scale, seed and machine give the same result."""
