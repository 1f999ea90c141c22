from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from harmonium.cli.progress import Watch, metric_of, report_line, seconds_text

RECORD = {"index": 100, "horizon": 400, "free_energy_gap": -0.25}
SCORED = {
    **RECORD,
    "log_likelihood_valid": -18.0,
    "log_likelihood_train": -17.0,
    "log_likelihood_kind": "exact",
}


def test_a_report_in_words() -> None:
    assert report_line(SCORED, 50.0) == (
        "update 100 of 400, 50 updates/s, 6 s left, valid log-likelihood -18.000 nats (exact)"
    )
    assert (
        report_line(RECORD, 0.5)
        == "update 100 of 400, 0.50 updates/s, 10:00 left, free-energy gap -0.250 nats"
    )


def test_no_pace_is_told_while_it_includes_compilation() -> None:
    assert report_line(RECORD, 50.0, compiling=True) == "update 100 of 400, free-energy gap -0.250 nats"
    assert report_line(RECORD, None) == "update 100 of 400, free-energy gap -0.250 nats"


def test_a_likelihood_that_is_not_finite_is_not_shown() -> None:
    assert (
        metric_of({**SCORED, "log_likelihood_valid": float("nan")})
        == "train log-likelihood -17.000 nats (exact)"
    )


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (60, "1:00"), (3600, "1:00:00")])
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def follow(watch: Watch) -> None:
    with watch:
        watch.report({**SCORED, "index": 0}, {})
        for index in range(100, 401, 100):
            watch.tick(index, 400)
            watch.report({**SCORED, "index": index}, {})
    assert watch.calls == 4


def test_lines_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    follow(Watch())
    captured = capfd.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 5
    assert "\x1b" not in captured.err


@pytest.mark.parametrize("colour", [True, False])
def test_a_bar_on_a_terminal(colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"TERM": "xterm-256color"}
    if not colour:
        settings["NO_COLOR"] = "1"
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80, _environ=settings)
    follow(Watch(console))
    text = shown.getvalue()
    assert "400/400 updates" in text
    assert "valid -18.000 nats (exact)" in text
    assert ("\x1b[3" in text or "\x1b[9" in text) == colour


def test_a_dumb_terminal_gets_lines(capfd: pytest.CaptureFixture[str]) -> None:
    follow(Watch(Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})))
    assert len(capfd.readouterr().err.splitlines()) == 5
