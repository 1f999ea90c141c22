"""Figures of curves: every curve and level is drawn, the same numbers give the same bytes."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from harmonium.errors import MissingExtraError, SettingError
from harmonium.report.curves import Curve, CurveFigure, CurvePanel, draw_curves
from tests.conftest import need

CURVE = Curve("ours", (0.0, 1.0, 2.0), (-3.0, -math.inf, -1.0), (-4.0, math.nan, -2.0), (-2.0, -1.0, 0.0))
FIGURE = CurveFigure(
    "scores",
    "Two panels",
    "updates",
    "nats",
    (CurvePanel("left", (CURVE,), (("best", 0.0),)), CurvePanel("right", (replace(CURVE, label="theirs"),))),
    least=-10.0,
)


def test_a_figure_holds_its_words() -> None:
    need("matplotlib", "report")
    drawn = draw_curves(FIGURE)
    ElementTree.fromstring(drawn)
    words = ("Two panels", "updates", "nats", "left", "right", "ours", "theirs", "best")
    assert all(word in drawn.decode() for word in words)


def test_the_same_numbers_give_the_same_bytes() -> None:
    need("matplotlib", "report")
    assert draw_curves(FIGURE) == draw_curves(FIGURE)
    assert draw_curves(replace(FIGURE, least=-20.0)) != draw_curves(FIGURE)


def test_no_panels_are_no_figure() -> None:
    with pytest.raises(SettingError, match="the figure scores has no panels"):
        draw_curves(replace(FIGURE, panels=()))


def test_without_matplotlib_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="harmonium\\[report\\]"):
        draw_curves(FIGURE)
