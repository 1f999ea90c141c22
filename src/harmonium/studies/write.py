"""The folder of a study: its tables as JSON, CSV and Markdown, its figures as SVG."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from harmonium.errors import FileError
from harmonium.report.curves import CurveFigure, draw_curves
from harmonium.report.figures import can_draw, draw_figure
from harmonium.studies.base import StudyResult, Table
from harmonium.train.atomic import write_atomically
from harmonium.train.plain import plain

_NONE = "–"


def result_values(name: str, result: StudyResult, scale: str, seed: int) -> dict[str, Any]:
    """Everything that a study found, as plain values for JSON; numbers that are not finite become None."""
    values = {
        "study": name,
        "scale": scale,
        "seed": seed,
        "holds": result.holds,
        "settings": dict(result.settings),
        "statements": [{"text": said.text, "holds": said.holds} for said in result.statements],
        "tables": {table.name: _table_values(table) for table in result.tables},
    }
    return plain(values, "the result of the study", not_finite="null")


def result_text(name: str, result: StudyResult, scale: str, seed: int) -> str:
    """The same for people, as Markdown: statements, then every table beside the published one."""
    lines = [f"# {name}", "", f"`harmonium reproduce {name} --{scale} --seed {seed}`", ""]
    lines += [f"- {said.text}{_VERDICTS[said.holds]}" for said in result.statements]
    for table in result.tables:
        if table.long:
            lines += ["", f"## {table.name}", "", f"{table.caption} See {table.name}.csv."]
            continue
        lines += ["", f"## {table.name}", "", *table_lines(table)]
        if table.published is not None:
            lines += ["", "Published:", "", *table_lines(table.published)]
    lines += [line for figure in result.figures for line in ("", f"![{figure.caption}]({figure.name}.svg)")]
    return "\n".join(lines) + "\n"


_VERDICTS: Mapping[bool | None, str] = {True: " (holds)", False: " (**does not hold**)", None: ""}


def table_lines(table: Table) -> list[str]:
    """A table as lines of Markdown, under its caption.

    >>> table_lines(Table("t", "Two.", {"a": "A", "b": "B"}, ({"a": 0.12345, "b": None},)))
    ['Two.', '', '| A | B |', '| --- | --- |', '| 0.123 | – |']
    """
    caption = table.caption + (f" Source: {table.source}." if table.source else "")
    return [
        caption,
        "",
        "| " + " | ".join(table.columns.values()) + " |",
        "| " + " | ".join("---" for _ in table.columns) + " |",
        *("| " + " | ".join(_cell(row.get(key)) for key in table.columns) + " |" for row in table.rows),
    ]


def files_of(name: str, result: StudyResult, scale: str, seed: int) -> dict[str, bytes]:
    """The files of a study's folder by name: ``NAME.json``, ``NAME.md``, a ``.csv`` per table, an ``.svg`` per figure.

    Figures are left out where matplotlib is not installed.
    """
    values = json.dumps(
        result_values(name, result, scale, seed), indent=1, allow_nan=False, ensure_ascii=False
    )
    files = {
        f"{name}.json": f"{values}\n".encode(),
        f"{name}.md": result_text(name, result, scale, seed).encode(),
    }
    for table in result.tables:
        files[f"{table.name}.csv"] = _csv(table).encode()
    if can_draw():
        for figure in result.figures:
            drawn = draw_curves(figure) if isinstance(figure, CurveFigure) else draw_figure(figure)
            files[f"{figure.name}.svg"] = drawn
    return files


def check_folder(path: Path, force: bool) -> None:
    """Refuse, before any work, a folder that could not be written into.

    **Raises** FileError when the path is a file or below one, when nothing may be made there, or when it is a folder
    that holds something and ``force`` is False.
    """
    if path.exists() and not path.is_dir():
        raise FileError(f"{path} is a file; give the name of a folder")
    if path.is_dir() and not force and any(path.iterdir()):
        raise FileError(f"{path} exists already and is not empty; choose another folder, or pass --force")
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "may not be written to" if there.is_dir() else "is a file"
        raise FileError(f"cannot make the folder {path}: {there} {why}; choose another place (--out)")


def write_folder(path: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write files into a folder, which is made, each whole or not at all.

    **Raises** FileError as `check_folder`, when a file is there and ``force`` is False, and when the system refuses.
    """
    check_folder(path, force)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"cannot make the folder {path}: {error.strerror or error}; choose another place (--out)"
        ) from error
    for name, data in files.items():
        write_atomically(path / name, data, overwrite=force, fault="study")


def _table_values(table: Table) -> dict[str, Any]:
    values = {
        "caption": table.caption,
        "columns": dict(table.columns),
        "rows": [{key: row.get(key) for key in table.columns} for row in table.rows],
    }
    if table.source:
        values["source"] = table.source
    if table.published is not None:
        values["published"] = _table_values(table.published)
    return values


def _csv(table: Table) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(
        ["" if row.get(key) is None else row[key] for key in table.columns] for row in table.rows
    )
    return buffer.getvalue()


def _cell(value: Any) -> str:
    """Words as they are, numbers to three digits, counts in full."""
    if value is None:
        return _NONE
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "∞" if value > 0 else _NONE
    if value and not 1e-3 <= abs(value) < 1e4:
        return f"{value:.2e}"
    return f"{value:.3g}"
