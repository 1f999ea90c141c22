"""Markdown for docstrings: formulas become MathML, examples become code blocks, cross-references become code.

Docstrings are written to be read in the source: formulas in the notation of Sphinx (``:math:`` inline, ``.. math::``
as a block) and examples as bare ``>>>`` lines, which Markdown would take for quotations. Pages use GitHub's notation
(a dollar and a backtick inline, a ``math`` fence as a block). All formulas are turned into MathML here, while the
pages are built, so that a reader's browser fetches no program from elsewhere.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

INLINE = re.compile(r":math:`(?P<role>[^`]+)`|\$`(?P<dollar>[^`]+)`\$")
REFERENCE = re.compile(r":(?:meth|class|func|attr|mod|data|exc):`~?(?P<name>[^`]+)`")
FENCE = re.compile(r"^\s*(?P<marks>```+|~~~+)\s*(?P<language>\w*)")
DIRECTIVE = re.compile(r"^(?P<indent>\s*)\.\. math::\s*(?P<formula>.*)$")
EXAMPLE = re.compile(r"^(?P<indent>\s*)>>> ")


class DocstringPreprocessor(Preprocessor):
    """Rewrites lines before the fences are looked for; leaves everything inside other fences alone."""

    def run(self, lines: list[str]) -> list[str]:
        written: list[str] = []
        index = 0
        while index < len(lines):
            line = lines[index]
            if fence := FENCE.match(line):
                end = self._closing(lines, index, fence["marks"])
                if fence["language"] == "math":
                    written += self._display(" ".join(lines[index + 1 : end]))
                else:
                    written += lines[index : end + 1]
                index = end + 1
            elif directive := DIRECTIVE.match(line):
                end = self._indented(lines, index + 1, len(directive["indent"]))
                written += self._display(" ".join([directive["formula"], *lines[index + 1 : end]]))
                index = end
            elif example := EXAMPLE.match(line):
                end = index
                while end < len(lines) and lines[end].strip():
                    end += 1
                indent = example["indent"]
                block = textwrap.dedent("\n".join(lines[index:end])).splitlines()
                written += ["", *(indent + part for part in ["```pycon", *block, "```"]), ""]
                index = end
            else:
                written.append(REFERENCE.sub(r"`\g<name>`", INLINE.sub(self._inline, line)))
                index += 1
        return written

    @staticmethod
    def _closing(lines: list[str], start: int, marks: str) -> int:
        for index in range(start + 1, len(lines)):
            if lines[index].strip() == marks:
                return index
        return len(lines) - 1

    @staticmethod
    def _indented(lines: list[str], start: int, indent: int) -> int:
        end = start
        while end < len(lines):
            text = lines[end]
            if text.strip() and len(text) - len(text.lstrip()) <= indent:
                break
            end += 1
        return end

    def _display(self, formula: str) -> list[str]:
        return ["", self.md.htmlStash.store(f"<p>{convert(formula.strip(), display='block')}</p>"), ""]

    def _inline(self, match: re.Match[str]) -> str:
        return self.md.htmlStash.store(convert((match["role"] or match["dollar"]).strip()))


class DocstringExtension(Extension):
    """Puts the preprocessor between the normalisation of white space (30) and the fences (25)."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(DocstringPreprocessor(md), "docstrings", 28)


def on_config(config: Any) -> Any:
    """Called by mkdocs: pages and docstrings are converted with the same extensions."""
    config["markdown_extensions"].append(DocstringExtension())
    return config
