"""The folder of a study: every table in every form, never over something that is there."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from harmonium.errors import FileError
from harmonium.report.figures import Bar, Figure, Panel
from harmonium.studies.base import Statement, StudyResult, Table
from harmonium.studies.write import check_folder, files_of, result_text, result_values, write_folder
from tests.conftest import need

PUBLISHED = Table("paper", "Theirs.", {"name": "name"}, ({"name": "old"},), source="Someone (1999)")
RESULT = StudyResult(
    tables=(
        Table(
            "numbers",
            "Ours.",
            {"name": "name", "value": "value", "count": "count"},
            (
                {"name": "a, quoted", "value": 0.123456, "count": 12345},
                {"name": "b", "value": math.inf, "count": None},
                {"name": "c", "value": 3.2e7, "count": 0},
            ),
            published=PUBLISHED,
        ),
    ),
    figures=(Figure("rates", "Rates", "per day", (Panel("here", (Bar("x", 1.0, 0.5, 2.0),)),)),),
    statements=(Statement("it was so", True), Statement("there was none")),
    settings={"length": 3},
)


def test_all_that_was_found_is_in_the_json() -> None:
    values = result_values("study", RESULT, "quick", 7)
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert (values["study"], values["scale"], values["seed"], values["holds"]) == ("study", "quick", 7, True)
    assert values["tables"]["numbers"]["rows"][1] == {"name": "b", "value": None, "count": None}
    assert values["tables"]["numbers"]["published"]["source"] == "Someone (1999)"
    assert values["statements"][1] == {"text": "there was none", "holds": None}
    assert values["settings"] == {"length": 3}


def test_people_read_our_table_beside_the_published_one() -> None:
    text = result_text("study", RESULT, "full", 7)
    assert text.startswith("# study\n\n`harmonium reproduce study --full --seed 7`\n")
    assert "- it was so (holds)" in text
    assert "| a, quoted | 0.123 | 12345 |" in text
    assert "| b | ∞ | – |" in text
    assert "| c | 3.20e+07 | 0 |" in text
    assert "Theirs. Source: Someone (1999)." in text
    assert text.index("Ours.") < text.index("Published:") < text.index("| old |")


def test_what_does_not_hold_is_said_aloud() -> None:
    result = StudyResult((), statements=(Statement("it was not so", False), Statement("nothing")))
    assert not result.holds
    assert "**does not hold**" in result_text("study", result, "quick", 0)


def test_files_hold_the_same(tmp_path: Path) -> None:
    need("matplotlib", "report")
    files = files_of("study", RESULT, "quick", 0)
    assert set(files) == {"study.json", "study.md", "numbers.csv", "rates.svg"}
    write_folder(tmp_path / "deep" / "out", files, force=False)
    with open(tmp_path / "deep" / "out" / "numbers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"name": "a, quoted", "value": "0.123456", "count": "12345"}
    assert rows[1]["count"] == ""
    assert (tmp_path / "deep" / "out" / "study.json").read_bytes() == files["study.json"]


def test_without_matplotlib_the_tables_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.studies.write.can_draw", lambda: False)
    assert set(files_of("study", RESULT, "quick", 0)) == {"study.json", "study.md", "numbers.csv"}


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        write_folder(tmp_path, {"study.md": b"new"}, force=False)
    assert not (tmp_path / "study.md").exists()
    for content in (b"new", b"newer"):
        write_folder(tmp_path, {"study.md": content}, force=True)
        assert (tmp_path / "study.md").read_bytes() == content
    assert (tmp_path / "own.txt").read_text() == "mine"
    with pytest.raises(FileError, match="is a file"):
        check_folder(tmp_path / "own.txt", force=True)
    with pytest.raises(FileError, match="cannot make"):
        write_folder(tmp_path / "own.txt" / "below", {}, force=False)
