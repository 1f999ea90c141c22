"""The reference names every package, and the shell lines of the pages do what they say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from harmonium.cli.main import run
from tests.docs.pages import ROOT

SHELL = re.compile(r"^```sh\n(?P<lines>.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = ROOT / "docs" / "start" / "command-line.md"


def shell_lines(page: Path) -> list[str]:
    """The lines of a page's shell blocks."""
    found = SHELL.finditer(page.read_text(encoding="utf-8"))
    return [line for block in found for line in block["lines"].splitlines() if line.strip()]


def test_every_package_has_a_reference_page() -> None:
    package = ROOT / "src" / "harmonium"
    names = {path.name for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    names |= {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    documented = set(re.findall(r"^::: harmonium\.(\w+)$", text, re.MULTILINE))
    assert len(names) > 0
    assert documented == names


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = {path.name for path in folder.glob("[0-9]*.md")}
    listed = set(re.findall(r"\]\((\d{3}-[\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8")))
    assert len(pages) > 0
    assert listed == pages


@pytest.mark.parametrize("name", ["train", "tests"])
def test_the_readme_commands_are_single_lines_with_their_own_environment(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    (block,) = blocks
    assert len(block.splitlines()) == 1
    assert block.startswith("python3 -m venv --clear ")


def test_the_installed_command_is_the_one_that_is_tested() -> None:
    (entry,) = entry_points(group="console_scripts", name="harmonium")
    assert entry.load() is run
    command = Path(sys.executable).with_name("harmonium")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_line_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = shell_lines(COMMANDS)
    assert len(lines) > 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "harmonium", line
        # In this process: the start of another one costs more than what most of these lines do.
        assert run(arguments) == 0, f"{line}\n{capfd.readouterr()}"
