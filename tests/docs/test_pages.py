"""Every Python block of README.md and of the documentation runs, page by page."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, pages, run_blocks

PAGES = pages()


def test_there_are_pages_to_run() -> None:
    assert ROOT / "README.md" in PAGES
    assert len(PAGES) > 1


def test_no_python_block_is_passed_over() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        fences = [line for line in text.splitlines() if line.strip().lower().startswith(("```py", "~~~py"))]
        assert len(blocks(text)) == len(fences), page


def test_blocks_keep_their_line_numbers() -> None:
    text = textwrap.dedent(
        """\
        Words.

        - an item

            ```python
            one = 1
            ```

        ```python
        two = 2
        ```
        """
    )
    assert blocks(text) == [Block(6, "one = 1\n"), Block(10, "two = 2\n")]


def test_a_wrong_block_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_blocks(page) > 0


def test_the_quick_start_is_short() -> None:
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    assert 0 < sum(1 for line in first.code.splitlines() if line.strip()) <= 20
