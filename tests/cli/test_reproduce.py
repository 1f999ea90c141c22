"""``harmonium reproduce``: the list, a study's table and folder, and what it exits with."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from harmonium.errors import DataError
from harmonium.studies import names
from harmonium.studies.base import AbstractStudy, Progress, Scale, Statement, StudyResult, Table
from tests.cli.conftest import Command


class Small(AbstractStudy):
    """A study that is done at once."""

    name = "small"
    summary = "one number"

    def run(self, scale: Scale, seed: int, progress: Progress) -> StudyResult:
        progress(f"counting at {scale} scale")
        if seed == 13:
            raise DataError("no rows; give some")
        if seed == 14:
            raise KeyboardInterrupt
        table = Table("numbers", "Ours.", {"value": "value"}, ({"value": seed},))
        return StudyResult((table,), statements=(Statement("seeds are even", seed % 2 == 0),))


@pytest.fixture(autouse=True)
def only_the_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "STUDIES", MappingProxyType({"small": Small()}))


def test_without_a_study_there_is_the_list(harmonium: Command) -> None:
    said = harmonium("reproduce")
    assert (said.status, said.out, said.err) == (0, "small  one number\n", "")
    listed = harmonium("reproduce --json")
    assert listed.json == {"studies": [{"name": "small", "summary": "one number"}]}


def test_a_study_prints_its_table_and_leaves_a_folder(harmonium: Command, tmp_path: Path) -> None:
    said = harmonium("reproduce small --seed 4 --out here")
    assert said.status == 0
    assert "| 4 |" in said.out
    assert "(holds)" in said.out
    assert said.err.splitlines() == [
        "counting at quick scale",
        "written to here: numbers.csv, small.json, small.md",
    ]
    assert (tmp_path / "here" / "small.md").read_text() == said.out
    assert (tmp_path / "here" / "numbers.csv").read_text() == "value\n4\n"


def test_json_is_one_object(harmonium: Command) -> None:
    said = harmonium("reproduce small --full --json")
    assert said.status == 0
    assert (said.json["study"], said.json["scale"], said.json["seed"]) == ("small", "full", 0)
    assert said.json["tables"]["numbers"]["rows"] == [{"value": 0}]
    assert said.json["out"] == "runs/0001-small"
    assert said.json["files"] == ["numbers.csv", "small.json", "small.md"]
    assert harmonium("reproduce small --json").json["out"] == "runs/0002-small"


def test_what_does_not_hold_is_not_to_be_trusted(harmonium: Command, tmp_path: Path) -> None:
    said = harmonium("reproduce small --seed 3 --out here")
    assert said.status == 3
    assert "does not hold" in said.out
    assert (tmp_path / "here" / "small.json").exists()


def test_nothing_is_overwritten_unasked(harmonium: Command, tmp_path: Path) -> None:
    assert harmonium("reproduce small --out here").status == 0
    before = (tmp_path / "here" / "small.json").read_bytes()
    said = harmonium("reproduce small --seed 2 --out here")
    assert said.status == 2
    assert "--force" in said.err
    assert "counting" not in said.err  # refused before any work
    assert (tmp_path / "here" / "small.json").read_bytes() == before
    assert harmonium("reproduce small --seed 2 --out here --force").status == 0
    assert (tmp_path / "here" / "small.json").read_bytes() != before


def test_what_was_found_is_told_where_it_cannot_be_written(
    harmonium: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up, or a folder that somebody else has filled meanwhile, loses no work."""
    (tmp_path / "file").touch()
    said = harmonium("reproduce small --out file/sub")
    assert said.status == 2
    assert "file is a file" in said.err
    assert "counting" not in said.err  # refused before any work
    (tmp_path / "here").mkdir()

    def filled(study: Small, scale: Scale, seed: int, progress: Progress) -> StudyResult:
        (tmp_path / "here" / "other").touch()
        return StudyResult((Table("numbers", "Ours.", {"value": "value"}, ({"value": seed},)),))

    monkeypatch.setattr(Small, "run", filled)
    said = harmonium("reproduce small --seed 4 --out here")
    assert said.status == 2
    assert "| 4 |" in said.out
    assert "here exists already and is not empty" in said.err
    assert "written" not in said.err
    (tmp_path / "here" / "other").unlink()
    said = harmonium("reproduce small --seed 4 --out here --json")
    assert said.status == 2
    assert (said.json["out"], said.json["files"]) == (None, [])
    assert said.json["tables"]["numbers"]["rows"] == [{"value": 4}]


@pytest.mark.parametrize(
    ("line", "status", "hint"),
    [
        ("reproduce smal", 2, "choose one of small"),
        ("reproduce small --seed -1", 2, "--seed must be"),
        ("reproduce small --seed 13", 2, "no rows"),
        ("reproduce small --seed 14", 130, "interrupted before anything was written"),
        ("reproduce small --slow", 2, "--slow"),
    ],
)
def test_what_goes_wrong(harmonium: Command, tmp_path: Path, line: str, status: int, hint: str) -> None:
    said = harmonium(line)
    assert (said.status, said.out) == (status, "")
    assert hint in said.err
    assert not (tmp_path / "runs").exists()


def test_without_matplotlib_one_is_told(harmonium: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.report.figures.can_draw", lambda: False)
    said = harmonium("reproduce small --out here")
    assert said.status == 0
    assert "pip install 'harmonium[report]'" in said.err
