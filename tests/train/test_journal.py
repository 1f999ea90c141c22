import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.errors import FileError, HarmoniumWarning, SettingError
from harmonium.train.journal import append_line, cut_back, read_lines


def test_a_line_is_sorted_exact_and_plain_json(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    record = {"value": 0.1 + 0.2, "index": 7, "bad": float("nan"), "worse": [-np.inf, 1], "none": None}
    append_line(log, record, fault="metrics")
    assert (
        log.read_text()
        == '{"bad": null, "index": 7, "none": null, "value": 0.30000000000000004, "worse": [null, 1]}\n'
    )


def test_numbers_of_numpy_and_jax_are_numbers(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    record = {
        "index": np.int64(3),
        "single": np.float32(0.1),
        "double": np.float64(0.1),
        "jax": jnp.float32(0.1),
        "half": jnp.array(0.5, jnp.bfloat16),
        "yes": np.True_,
        "several": np.array([1.5, np.nan]),
        "nested": {"deep": jnp.arange(2)},
    }
    append_line(log, record, fault="metrics")
    (read,) = read_lines(log)
    assert read == {
        "index": 3,
        "single": float(np.float32(0.1)),
        "double": 0.1,
        "jax": float(np.float32(0.1)),
        "half": 0.5,
        "yes": True,
        "several": [1.5, None],
        "nested": {"deep": [0, 1]},
    }


@pytest.mark.parametrize("record", [{}, {"index": None}, {"index": True}, {"index": 1.0}, {"index": "1"}])
def test_a_record_without_its_index_is_refused(tmp_path: Path, record: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="needs the update count"):
        append_line(tmp_path / "metrics.jsonl", record, fault="metrics")
    assert os.listdir(tmp_path) == []


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "metrics.jsonl") == []
    cut_back(tmp_path / "metrics.jsonl", 3)
    assert os.listdir(tmp_path) == []


def lines(*indices: int) -> bytes:
    return b"".join(b'{"index": %d}\n' % index for index in indices)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lines(1, 2, 3), lines(1, 2)),
        (lines(1, 2), lines(1, 2)),
        (lines(3, 4), b""),
        (b"", b""),
        (lines(1, 2) + b'{"index": 3', lines(1, 2)),
        (lines(1, 2) + b'{"index": 2}', lines(1, 2)),
        (lines(1) + b'{"ind', lines(1)),
        (b'{"ind', b""),
        (lines(1, 2, 2, 3, 2), lines(1, 2, 2, 2)),
    ],
)
def test_a_log_is_cut_back_to_an_index(tmp_path: Path, before: bytes, after: bytes) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(before)
    cut_back(log, 2)
    assert log.read_bytes() == after
    append_line(log, {"index": 9}, fault="metrics")
    assert log.read_bytes() == after + lines(9)


def test_a_log_with_nothing_to_drop_is_not_rewritten(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(b'{"index":   1}\n')
    before = log.stat().st_ino
    cut_back(log, 1)
    assert log.stat().st_ino == before


@pytest.mark.parametrize(
    "damage", [b"{\n", b"\n", b"[1]\n", b'{"index": "2"}\n', b"\0\0\0\n", b"\xff\n", b"3\n"]
)
def test_a_damaged_line_in_the_middle_is_reported(tmp_path: Path, damage: bytes) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(lines(1) + damage + lines(2))
    with pytest.warns(HarmoniumWarning, match=r"line 2 of .*metrics\.jsonl is damaged"):
        assert [record["index"] for record in read_lines(log)] == [1, 2]
    with pytest.warns(HarmoniumWarning, match="line 2"):
        cut_back(log, 5)
    assert log.read_bytes() == lines(1, 2)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "metrics.jsonl"
    append_line(log, {"index": 1}, fault="metrics")
    write = os.write
    taken: list[int] = []

    def nearly_full(descriptor: int, data: bytes) -> int:
        if taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken.append(write(descriptor, data[:5]))
        return 5

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", nearly_full)
        with pytest.raises(FileError, match=r"cannot write .*No space left on device.*resume"):
            append_line(log, {"index": 2}, fault="metrics")
    assert taken == [5]
    assert log.read_bytes() == lines(1)


LOGGER = """
    from pathlib import Path
    from harmonium.train.journal import append_line, cut_back
    log = Path("metrics.jsonl")
    for index in range(1, 6):
        append_line(log, {"index": index, "value": index / 7}, fault="metrics")
    cut_back(log, 3)
    """


@pytest.mark.parametrize(("moment", "whole", "torn"), [("mid-line", 3, True), ("after-line", 4, False)])
def test_a_kill_leaves_whole_lines_and_at_most_one_torn(
    tmp_path: Path, killed: Callable[..., int], moment: str, whole: int, torn: bool
) -> None:
    killed(f"metrics.{moment}:4", LOGGER)
    log = tmp_path / "metrics.jsonl"
    assert log.read_bytes().endswith(b"\n") is not torn
    assert [record["index"] for record in read_lines(log)] == list(range(1, whole + 1))
    cut_back(log, whole)
    assert log.read_bytes().count(b"\n") == whole
    assert log.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("moment", "kept"), [("before-temp", 5), ("mid-temp", 5), ("after-temp", 5), ("after-rename", 3)]
)
def test_a_kill_while_cutting_back_cuts_all_or_nothing(
    tmp_path: Path, killed: Callable[..., int], moment: str, kept: int
) -> None:
    killed(f"cut.{moment}", LOGGER)
    log = tmp_path / "metrics.jsonl"
    assert [record["index"] for record in read_lines(log)] == list(range(1, kept + 1))
    cut_back(log, 3)
    assert len(read_lines(log)) == 3
