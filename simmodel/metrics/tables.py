"""Cells of text as a table for people: in a terminal and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_table", "text_table"]


def text_table(rows: Sequence[Sequence[str]], left: int = 1, indent: int = 0) -> list[str]:
    """Return rows of cells as lines of text, the columns two spaces apart.

    Parameters
    ----------
    rows
        the head and the rows, each with a text for every column
    left
        how many columns, from the first on, stand to the left of their width; the others stand to the right
    indent
        how many spaces stand before each line

    >>> text_table([["", "score"], ["easy", "1"]])
    ['      score', 'easy      1']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        padded = [f"{text:<{width}}" if i < left else f"{text:>{width}}" for i, (text, width) in cells]
        lines.append((" " * indent + "  ".join(padded)).rstrip())
    return lines


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a table of HTML; the first row is the head, the first cell of each other one its label.

    >>> html_table([["", "score"], ["easy", "1"]]).endswith("<td style='text-align:right'>1</td></tr></tbody></table>")
    True
    """
    head, *others = rows
    cells = "".join(f"<th style='text-align:right'>{html.escape(text)}</th>" for text in head)
    body = "".join(
        f"<tr><th style='text-align:left'>{html.escape(row[0])}</th>"
        + "".join(f"<td style='text-align:right'>{html.escape(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in others
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
