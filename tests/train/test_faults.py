from collections.abc import Callable

import pytest

from harmonium.errors import SettingError
from harmonium.train.faults import FAULT_POINTS, fault_due, fault_point


def test_nothing_happens_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARMONIUM_FAULT", raising=False)
    for point in FAULT_POINTS:
        fault_point(point)
    assert len(FAULT_POINTS) > 20


def test_only_the_named_passage_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.train.faults._passages", __import__("collections").Counter())
    monkeypatch.setenv("HARMONIUM_FAULT", "model.after-temp:3")
    assert not fault_due("model.after-rename")
    assert [fault_due("model.after-temp") for _ in range(5)] == [False, False, True, False, False]


@pytest.mark.parametrize("armed", ["model.after-lunch", "model.after-temp:x", "model.after-temp:0", ":3"])
def test_a_misspelt_fault_is_refused(monkeypatch: pytest.MonkeyPatch, armed: str) -> None:
    monkeypatch.setenv("HARMONIUM_FAULT", armed)
    with pytest.raises(SettingError, match="names no fault"):
        fault_point("model.after-temp")


def test_a_process_dies_at_the_passage_named(killed: Callable[..., int]) -> None:
    program = """
        from harmonium.train.faults import fault_point
        for i in range(9):
            print(i, flush=True)
            fault_point("checkpoint.after-temp")
        """
    assert killed("checkpoint.after-temp:4", program) == 4
