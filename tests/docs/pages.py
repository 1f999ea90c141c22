"""The Python blocks of the written pages, and the examples of the docstrings, as things that can be run and counted."""

from __future__ import annotations

import ast
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FENCE = re.compile(r"^(?P<indent> *)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block of Python: the line its code starts at, and the code without the fence's indentation."""

    line: int
    code: str


def pages() -> list[Path]:
    """README.md and every page under docs/ that holds Python blocks."""
    candidates = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in candidates if blocks(page.read_text(encoding="utf-8"))]


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    found: list[Block] = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        lines = [line.removeprefix(indent) for line in match["code"].splitlines()]
        found.append(Block(text.count("\n", 0, match.start("code")) + 1, "\n".join(lines) + "\n"))
    return found


def run_blocks(page: Path) -> int:
    """Run the blocks of one page in one namespace, with the page's own line numbers; how many there were."""
    found = blocks(page.read_text(encoding="utf-8"))
    # A module of its own, because classes look their module up by name.
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    try:
        for block in found:
            code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
            exec(code, vars(module))
    finally:
        del sys.modules[module.__name__]
    return len(found)


@dataclass(frozen=True)
class Docstring:
    """One docstring with examples: the dotted name of its owner, its text, and the line it starts at."""

    owner: str
    text: str
    line: int


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstrings_with_examples(path: Path) -> list[Docstring]:
    """Every docstring of a source file that holds an example.

    They are read from the source, because a finder that inspects the imported module passes over decorated functions:
    those belong to the module of their decorator.
    """
    found: list[Docstring] = []

    def visit(node: ast.AST, owner: str) -> None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = owner if isinstance(node, ast.Module) else f"{owner}.{node.name}"
            text = ast.get_docstring(node)
            if text is not None and ">>>" in text:
                found.append(Docstring(name, text, node.body[0].lineno))
            for child in node.body:
                visit(child, name)

    visit(ast.parse(path.read_text(encoding="utf-8")), module_name(path))
    return found


def modules_with_examples() -> list[Path]:
    """Every source file that holds a docstring with an example."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if docstrings_with_examples(path)]
