"""The pages of the documentation, and the code blocks, commands, files and headings in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.helpers.paths import ROOT, SITE

_BLOCK = re.compile(r"^```(\w+)(?: ([\w./-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code: number of lines before its first one, language, file name if it shows a file, and text."""

    line: int
    kind: str
    file: str | None
    text: str


class Page:
    """A page in Markdown.

    Consecutive ``python`` blocks form one script; a ``text`` block after one is its output. A block with a file name
    after its language shows a file, which exists when the script runs.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text("utf-8")
        self.blocks = [
            Block(self.text.count("\n", 0, match.start(3)), *match.groups()) for match in _BLOCK.finditer(self.text)
        ]

    @cached_property
    def examples(self) -> list[tuple[int, str, str | None]]:
        """The line, the source and the expected output of each ``python`` block that shows no file."""
        following = [*self.blocks, Block(0, "", None, "")][1:]
        return [
            (block.line, block.text, after.text if after.kind == "text" else None)
            for block, after in zip(self.blocks, following, strict=True)
            if block.kind == "python" and block.file is None
        ]

    @cached_property
    def files(self) -> dict[str, str]:
        """The files that the page shows, by name."""
        return {block.file: block.text for block in self.blocks if block.file is not None}

    @cached_property
    def commands(self) -> list[str]:
        """The lines of its shell blocks, without the prompt."""
        return [
            line.removeprefix("$ ")
            for block in self.blocks
            if block.kind in ("sh", "console")
            for line in block.text.replace("\\\n", " ").splitlines()
        ]

    @cached_property
    def without_code(self) -> str:
        """The text without blocks of code."""
        return _BLOCK.sub("", self.text)

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub derives them."""
        headings = re.findall(r"^#+ (.+)$", self.without_code, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def table(self, heading: str) -> list[list[str]]:
        """Return the cells of the body rows of the tables in the section of a heading."""
        return list(_rows(self.section(heading)))

    def section(self, heading: str) -> str:
        """Return the text between a heading and the next one."""
        _, found, rest = self.without_code.partition(f"# {heading}\n")
        assert found, f"{self.name}: no heading {heading!r}"
        return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def _rows(text: str) -> Iterator[list[str]]:
    lines = text.splitlines()
    for before, line in pairwise(lines):
        if line.startswith("|") and before.startswith("|") and not line.startswith("|--"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def can_run(code: str) -> bool:
    """Return whether code of a page can run: that of the package beside the core only where it is in the checkout."""
    return SITE.exists() or not re.search(r"simmodel_site|simmodel (twin|slurm)|\bslurm\b", code)


_FIRST = [ROOT / "README.md", *ROOT.glob("CONTRIBUTING.md")]
PAGES = {page.name: page for page in map(Page, [*_FIRST, *sorted(ROOT.glob("docs/**/*.md"))])}
