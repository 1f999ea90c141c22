from __future__ import annotations

from pathlib import Path

import harmonium as hm
from harmonium.report.names import SKETCHES, sketch
from tests.cli.conftest import Command


def test_the_list(harmonium: Command) -> None:
    said = harmonium("figure")
    assert said.status == 0
    assert [line.split()[0] for line in said.out.splitlines()] == list(SKETCHES)
    assert [row["name"] for row in harmonium("figure --json").json["figures"]] == list(SKETCHES)


def test_a_drawing_by_name(harmonium: Command) -> None:
    assert harmonium("figure rbm").out == sketch("rbm").svg
    said = harmonium("figure dbn --out dbn.svg --json").json
    assert said["out"] == "dbn.svg"
    assert "svg" not in said
    assert (said["panels"][0]["undirected"], said["panels"][0]["directed"]) == (12, 12)
    assert Path("dbn.svg").read_text() == sketch("dbn").svg
    again = harmonium("figure dbm --out dbn.svg")
    assert (again.status, again.err) == (
        2,
        "error: dbn.svg exists already; choose another name, or pass --force\n",
    )
    assert harmonium("figure dbm --out dbn.svg --force").status == 0
    assert Path("dbn.svg").read_text() == sketch("dbm").svg


def test_a_model_and_a_run(harmonium: Command, small_run: Path) -> None:
    machine = hm.DBM(20, [6, 5])
    hm.save(machine, "dbm.safetensors")
    assert harmonium("figure dbm.safetensors --most 6").out == hm.figure(machine, most=6).svg
    (_, sides) = harmonium("figure dbm.safetensors --bipartite --json").json["panels"]
    assert sides["title"] == "DBM 20-6-5, odd above even"
    (panel,) = harmonium(f"figure {small_run} --json").json["panels"]
    assert (panel["units"], panel["undirected"]) == (7, 12)


def test_what_is_refused(harmonium: Command) -> None:
    for line, words in (
        ("figure rbn", "no drawing is called 'rbn', and there is no such file; choose one of bm, rbm"),
        ("figure rbm --out rbm.png", "--out rbm.png does not say what to write; end it in .svg"),
        ("figure rbm --bipartite", "--bipartite is of a run or a model file, not of the drawing 'rbm'"),
        ("figure rbm --most 2", "--most must be a whole number of units of a layer, at least 3, got 2"),
    ):
        said = harmonium(line)
        assert said.status == 2
        assert words in said.err
