"""Every example in a docstring gives what it shows, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import harmonium
from tests.docs.pages import (
    SOURCE,
    docstrings_with_examples,
    module_name,
    modules_with_examples,
)

MODULES = modules_with_examples()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_there_are_examples_to_run() -> None:
    assert len(MODULES) > 0


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_examples_give_what_they_show(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(module_name(path))
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for docstring in docstrings_with_examples(path):
        example = parser.get_doctest(
            docstring.text, dict(vars(module)), docstring.owner, str(path), docstring.line
        )
        runner.run(example, out=report.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(report)


def test_every_public_name_has_an_example() -> None:
    names = list(harmonium.__all__)
    assert len(names) > 0
    shown = {
        docstring.owner.rpartition(".")[2]
        for path in SOURCE.rglob("*.py")
        for docstring in docstrings_with_examples(path)
    }
    without: list[str] = []
    for name in names:
        value = getattr(harmonium, name)
        if inspect.ismodule(value) or (isinstance(value, type) and issubclass(value, Exception)):
            assert inspect.getdoc(value), f"harmonium.{name} has no docstring"
            continue
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        assert inspect.getdoc(value), f"harmonium.{name} has no docstring"
        if getattr(value, "__name__", name) not in shown and name not in shown:
            without.append(name)
    assert not without, f"public names without an example in their docstring: {without}"
