"""The section of docs/reference/slurm.md with every setting of Slurm, written from the tables of the package.

``python -m tests.site.helpers.slurm_keys`` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simmodel_site.policy.keys import (
    NODE,
    PARTITION,
    SHOW_CONFIG,
    SHOW_NODE,
    SHOW_PARTITION,
    SHOW_TOPOLOGY,
    SLURM_CONF,
    TABLES,
    TOPOLOGY,
    Keys,
)
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs/reference/slurm.md"
BEGIN, END = "<!-- the tables of simmodel_site/policy/keys.py -->", "<!-- end of the tables -->"
WORDS = {
    "": "",
    "\\d+": "a number",
    "1?\\d{1,3}|2000": "up to 2000",
    "0(\\.0*)?|1(\\.0*)?": "0 or 1",
    "ondemand.*": "ondemand",
}
"""Patterns in words."""
BASES = ((SHOW_CONFIG, SLURM_CONF), (SHOW_NODE, NODE), (SHOW_PARTITION, PARTITION), (SHOW_TOPOLOGY, TOPOLOGY))
"""Reports, and the files whose keys they have as well."""


def section() -> str:
    """Return the tables as Markdown, between two marks: of all keys but the harmless ones."""
    return "\n\n".join([BEGIN, *(part for table in TABLES for part in _table(table)), END])


def _table(table: Keys) -> Iterator[str]:
    base = next((base for report, base in BASES if report is table), None)
    rows = [*_rows(table, base)]
    for names, (usual, why) in table.changes.items() if base is None else ():
        values = WORDS[usual] if usual in WORDS else ", ".join(re.findall(r"[\w/.-]+(?:,\w+)?", usual))
        rows.append(f"| named | {_code(names)} | {why}{f'; not if {values}' if values else ''} |")
    if table.flags and base is None:
        rows.append(f"| by its words | {_code(' '.join(table.flags))} | see below |")
    if not rows:
        return
    yield f"### {table.title}"
    if base is not None:
        yield f"The keys of {base.title}, and:"
    yield "\n".join(["| list | keys | |", "|---|---|---|", *rows])


def _rows(table: Keys, base: Keys | None) -> Iterator[str]:
    for what, names in table.modelled.items():
        if base is None or what not in base.modelled:
            yield f"| modelled | {_code(names)} | {what} |"


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split())


def written() -> str:
    """Return the page with the section."""
    text = PAGE.read_text("utf-8")
    return text[: text.index(BEGIN)] + section() + text[text.index(END) + len(END) :]


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
