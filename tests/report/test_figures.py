"""Figures: every number is drawn, the same numbers give the same bytes, and without matplotlib one is told."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

from harmonium.errors import MissingExtraError, SettingError
from harmonium.report.figures import Bar, Figure, Panel, can_draw, draw_figure
from tests.conftest import need

FIGURE = Figure(
    name="rates",
    caption="Two panels",
    axis="jumps per something",
    panels=(
        Panel("first", (Bar("gibbs", None, 0.0, 0.5), Bar("pt", 30.0, 20.0, 40.0))),
        Panel("second", (Bar("gibbs", 2.0, 1.0, 3.0), Bar("pt", None, 0.0, 1e5))),
    ),
)


def test_a_figure_holds_its_words() -> None:
    need("matplotlib", "report")
    drawn = draw_figure(FIGURE)
    ElementTree.fromstring(drawn)
    assert all(
        word in drawn.decode() for word in ("Two panels", "jumps per something", "first", "second", "pt")
    )


def test_the_same_numbers_give_the_same_bytes() -> None:
    need("matplotlib", "report")
    assert draw_figure(FIGURE) == draw_figure(FIGURE)
    other = Figure("rates", "Two panels", "jumps per something", FIGURE.panels[:1])
    assert draw_figure(other) != draw_figure(FIGURE)


def test_bounds_alone_can_be_drawn() -> None:
    need("matplotlib", "report")
    assert draw_figure(Figure("none", "", "", (Panel("", (Bar("a", None, 0.0, 0.0),)),)))


def test_without_panels_there_is_nothing_to_draw() -> None:
    with pytest.raises(SettingError, match="no panels"):
        draw_figure(Figure("none", "", "", ()))


def test_without_matplotlib_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not can_draw()
    with pytest.raises(MissingExtraError, match=r"harmonium\[report\]"):
        draw_figure(FIGURE)
