"""Values as people see them: one-line reprs, tables of text, and HTML for notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence, Sized
from contextvars import ContextVar
from itertools import zip_longest
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel.foundation.writing import write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "WIDTH",
    "Cells",
    "Fields",
    "Shown",
    "counted",
    "html_notes",
    "html_page",
    "html_table",
    "latex_table",
    "markdown_table",
    "plus_minus",
    "short",
    "shown_rows",
    "text_table",
    "texts",
]

Cells: TypeAlias = "Sequence[Sequence[str]]"
"""A head and rows of texts."""

WIDTH: ContextVar[int | None] = ContextVar("width", default=None)
"""The columns of the terminal that texts are written to, which the command line sets; ``None``: lines stay whole."""

_WHOLE = 100  # up to so many characters a repr has every value in full
_WIDE, _NARROW = 60, 32  # longest value in a table and in a shortened repr


def text_table(rows: Cells, left: int | range = 1, indent: int = 0, most: int | None = None) -> list[str]:
    """Return rows of cells as lines of text, the columns two spaces apart.

    A table that is wider than the terminal (:data:`WIDTH`) is folded into blocks of columns, each with labels. Cells
    that are still too wide go on in lines below.

    Parameters
    ----------
    rows
        the head and the rows, all of one length
    left
        the columns that are aligned to the left, or how many of the first; the others are aligned to the right
    indent
        spaces before each line
    most
        columns that lines have at most on a wider terminal, or on none; default: no limit

    >>> text_table([["", "score"], ["easy", "1"]])
    ['      score', 'easy      1']
    """
    to_left = range(left) if isinstance(left, int) else left
    room, widths = min(filter(None, (WIDTH.get(), most)), default=None), _widths(rows)
    blocks: Sequence[Sequence[int]] = [range(len(widths))]
    if room is not None and indent + sum(widths) + 2 * len(widths) - 2 > room:
        labels = max(1, min(left, len(widths) - 1)) if isinstance(left, int) else 1
        rows = list(_narrowed(rows, labels, room - indent))
        widths = _widths(rows)
        blocks = _blocks(widths, labels, room - indent)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        for row in rows:
            padded = [f"{row[i]:<{widths[i]}}" if i in to_left else f"{row[i]:>{widths[i]}}" for i in block]
            lines.append((" " * indent + "  ".join(padded)).rstrip())
    return lines


def _widths(rows: Cells) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def _narrowed(rows: Cells, labels: int, room: int) -> Iterator[Sequence[str]]:
    """Yield rows in which labels take at most half of the room, and any other column the rest: cells go on below."""
    from textwrap import wrap

    most = max(room // (2 * labels) - 2, 1)
    rest = max(room - sum(min(width, most) + 2 for width in _widths(rows)[:labels]), 1)
    for row in rows:
        limits = [most if i < labels else rest for i in range(len(row))]
        parts = [wrap(text, width) or [""] for text, width in zip(row, limits, strict=True)]
        yield from zip_longest(*parts, fillvalue="")


def _blocks(widths: Sequence[int], labels: int, room: int) -> list[list[int]]:
    """Return the columns of each block: the labels, and as many others as there is room for."""
    blocks: list[list[int]] = []
    for i in range(labels, len(widths)):
        if blocks and sum(widths[j] + 2 for j in blocks[-1]) + widths[i] <= room:
            blocks[-1].append(i)
        else:
            blocks.append([*range(labels), i])
    return blocks or [list(range(labels))]


def figures(value: float, most: int = 3, sign: str = "") -> str:
    """Return a number with at most some figures, or as a whole number if that has more; with separators.

    >>> figures(2.03456), figures(61_742.5), figures(999.7), figures(1475.37, 6), figures(0.000123456, 4)
    ('2.03', '61,742', '1,000', '1,475.37', '0.0001235')
    """
    whole = 10.0**most - 0.5 <= abs(value) < 1e15
    return f"{value:{sign},.0f}" if whole else f"{value:{sign},.{most}g}"


def texts(values: Iterable[object]) -> list[str]:
    """Return the values of a row as cells: floats with four figures, other values as they print.

    >>> texts(["easy", 3, 0.123456])
    ['easy', '3', '0.1235']
    """
    return [figures(value, 4) if isinstance(value, float) else str(value) for value in values]


def plus_minus(mean: float, half_width: float) -> str:
    """Return a mean and the half width of its interval, which has two figures, and the mean as many decimals.

    >>> plus_minus(34.234, 1.26), plus_minus(15_145.2, 1240.0), plus_minus(0.51234, float("nan"))
    ('34.2 ± 1.3', '15,100 ± 1,200', '0.5123')
    """
    if not (isfinite(mean) and isfinite(half_width) and half_width > 0):
        return figures(mean, 4) if isfinite(mean) else "-"
    places = 1 - floor(log10(float(f"{half_width:.1e}")))
    if not -15 < places < 13:
        return f"{figures(mean, 4)} ± {figures(half_width, 2)}"
    return " ± ".join(f"{round(value, places) + 0.0:,.{max(places, 0)}f}" for value in (mean, half_width))


def counted(count: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "job"), counted(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def are_free(count: float | str, noun: str = "") -> str:
    """Return how much is free: a number of things, or an amount.

    >>> are_free(1, "processor"), are_free(2), are_free(1), are_free("2GBps")
    ('1 processor is free', '2 are free', '1 is free', '2GBps are free')
    """
    what = counted(int(count), noun) if noun else count if isinstance(count, str) else f"{count:,}"
    return f"{what} {'is' if count in (1, '1') else 'are'} free"


def shown_rows(count: int, most: int = 20, last: int = 5) -> tuple[list[int], int]:
    """Return the rows that a table of this length shows, and the number of rows left out before the last ones.

    >>> shown_rows(3), shown_rows(100, most=4, last=1)
    (([0, 1, 2], 0), ([0, 1, 99], 97))
    """
    if count <= most:
        return list(range(count)), 0
    first = most // 2
    return [*range(first), *range(count - last, count)], count - first - last


def html_table(rows: Cells, left: int = 1, *, bold: int | None = None, most: int = 20, left_out: int = 0) -> str:
    """Return rows of cells as an escaped HTML table; the first row is the head.

    Parameters
    ----------
    left
        the number of columns, from the first on, that are labels
    bold
        the number of a row to emphasise, after the head
    most
        of more rows, the middle ones are left out
    left_out
        rows that the caller left out, after the first half of ``most``

    >>> print(html_table([["", "score"], ["a & b", "1"]]).partition("<tbody>")[2])
    <tr><th style='text-align:left'>a &amp; b</th><td style='text-align:right'>1</td></tr></tbody></table>
    """
    from html import escape

    head, *others = rows
    numbers, more = shown_rows(len(others), most)
    more += left_out

    def cell(kind: str, i: int, text: str) -> str:
        return f"<{kind} style='text-align:{'left' if i < left else 'right'}'>{escape(text)}</{kind}>"

    lines = []
    for at, number in enumerate(numbers):
        if more and at == most // 2:
            lines.append(f"<tr><td colspan='{len(head)}'>… {more:,} more …</td></tr>")
        style = " style='font-weight:bold'" if number == bold else ""
        cells = (cell("th" if i < left else "td", i, text) for i, text in enumerate(others[number]))
        lines.append(f"<tr{style}>{''.join(cells)}</tr>")
    top = "".join(cell("th", i, text) for i, text in enumerate(head))
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


_SYMBOLS = {"±": r"\pm", "×": r"\times", "μ": r"\mu", "µ": r"\mu", "σ": r"\sigma", "→": r"\to", "·": r"\cdot"}
_SYMBOLS |= {"<": "<", ">": ">", "|": "|", "−": "-", "≤": r"\leq", "≥": r"\geq"}
_IN_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {sign: f"${symbol}$" for sign, symbol in _SYMBOLS.items()}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " ", "…": r"\dots{}"}
)
_IN_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_<[|"} | {"\n": "<br>"})
_NUMERIC = tuple("0123456789+-.")  # how cells of numbers begin
_NUMBERS = re.compile(r"([+-]?[\d.,]+) ± ([\d.,]+)|-[\d.,]+")


def _latex(cell: str) -> str:
    if _NUMBERS.fullmatch(cell):
        return f"${cell.replace(',', '{,}').replace('±', chr(92) + 'pm')}$"
    return cell.translate(_IN_LATEX)


def latex_table(rows: Cells, left: Collection[int] = (0,), *, caption: str = "", label: str = "") -> str:
    """Return rows of cells as a LaTeX table that needs no package; the first row is the head.

    Parameters
    ----------
    left
        the columns that are aligned to the left; the others are aligned to the right
    caption, label
        of a floating table; default: a tabular alone

    >>> print(latex_table([["policy", "wait_mean"], ["easy & sjf", "34.2 ± 1.3"]]))
    \\begin{tabular}{lr}
    \\hline
    policy & wait\\_mean \\\\
    \\hline
    easy \\& sjf & $34.2 \\pm 1.3$ \\\\
    \\hline
    \\end{tabular}
    """
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
    form = "".join("l" if i in left else "r" for i in range(len(rows[0])))
    table = [rf"\begin{{tabular}}{{{form}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"]
    if caption or label:
        head = [r"\begin{table}", r"\centering", *([rf"\caption{{{caption.translate(_IN_LATEX)}}}"] if caption else [])]
        table = [*head, *([rf"\label{{{label}}}"] if label else []), *table, r"\end{table}"]
    return "\n".join(table)


def markdown_table(rows: Cells, left: Collection[int] = (0,)) -> str:
    """Return rows of cells as a Markdown table; the first row is the head.

    >>> print(markdown_table([["policy", "wait_mean"], ["easy", "34.2 ± 1.3"]]))
    | policy | wait\\_mean |
    |:---|---:|
    | easy | 34.2 ± 1.3 |
    """
    head, *others = (f"| {' | '.join(cell.translate(_IN_MARKDOWN) for cell in row)} |" for row in rows)
    form = f"|{'|'.join(':---' if i in left else '---:' for i in range(len(rows[0])))}|"
    return "\n".join([head, form, *others])


def html_page(title: str, rows: Cells, left: int = 1, notes: Sequence[str] = ()) -> str:
    """Return an escaped title, a table (if it has rows) and lines of text as HTML."""
    from html import escape

    table = html_table(rows, left) if len(rows) > 1 else ""
    return f"<div><b>{escape(title)}</b></div>{table}{html_notes(notes)}"


def html_notes(lines: Sequence[str]) -> str:
    from html import escape

    return "".join(f"<div>{escape(line)}</div>" for line in lines)


class Shown:
    """A value that notebooks show as HTML: its repr as a title and, below, the table of :meth:`_cells`."""

    __slots__ = ()

    def _cells(self) -> Cells:
        """Return the head and the rows of the table; default: none."""
        return ()

    def to_latex(self, path: str | Path | None = None, *, caption: str = "", label: str = "") -> str:
        """Return the table in LaTeX, and write it to a file if a path is given.

        Parameters
        ----------
        path
            a file, or ``"-"`` for standard output
        caption, label
            of a floating table; default: a tabular alone
        """
        return self._printed(latex_table, path, ".tex", caption=caption, label=label)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the table in Markdown, and write it to a file (``"-"``: standard output) if a path is given."""
        return self._printed(markdown_table, path, ".md")

    def _printed(self, write: Callable[..., str], path: str | Path | None, ending: str, **options: str) -> str:
        rows = self._cells() or [[repr(self)]]
        words = [i for i in range(len(rows[0])) if i == 0 or not any(row[i][:1] in _NUMERIC for row in rows[1:])]
        text = write(rows, words, **options)
        if path is not None:
            write_text(path, text + "\n", ending)
        return text

    def _repr_html_(self) -> str:
        return html_page(repr(self).removeprefix("<").removesuffix(">"), self._cells())


class Fields(Shown):
    """An attrs value whose repr and table have the fields that differ from their defaults.

    The repr is the call that makes the value if that is short; long values in it are abbreviated.
    """

    __slots__ = ()

    def _cells(self) -> Cells:
        return [["field", "value"], *([name, short(value)] for name, value in _given(self))]

    def _repr_html_(self) -> str:
        return html_page(type(self).__name__, self._cells(), left=2)

    def __repr__(self) -> str:
        given = list(_given(self))
        for width in (_WHOLE, _NARROW, _NARROW // 2):
            parts = [f"{name}={short(value, width)}" for name, value in given]
            if sum(map(len, parts)) <= _WHOLE:
                break
        while len(parts) > 1 and sum(map(len, parts)) > 2 * _WHOLE:
            parts = [*parts[: len(parts) - 1 - (parts[-1] == "...")], "..."]
        return f"{type(self).__name__}({', '.join(parts)})"


def _given(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of an attrs value that differ from their defaults."""
    for field in attrs.fields(type(value)):
        if not field.init or field.repr is False:
            continue
        found, default = getattr(value, field.name), field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = attrs.NOTHING if default.takes_self else default.factory()
        if found is not default and not _same(found, default):
            yield field.alias, found


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # arrays
        return False


def short(value: Any, width: int = _WIDE) -> str:
    """Return a value's repr, or of a longer one its size or its beginning."""
    if isinstance(value, type):
        return value.__name__
    several = isinstance(value, Sized) and not isinstance(value, (str, bytes, Fields))
    if not several or len(value) <= width // 2:
        text = " ".join(repr(value).split())
        if len(text) <= width:
            return text
        if not several:
            return f"{text[: width - 3]}..."
    return f"<{len(value)} item{'' if len(value) == 1 else 's'}>"
