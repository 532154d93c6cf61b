"""Parts of explanations: changes, holders, tables, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from simmodel.foundation.display import text_table
from simmodel.work.table import Table

__all__ = ["PROMISES", "Change", "Holder", "instant_text", "listed", "span_table", "table_lines", "told_of"]

PROMISES = ("since", "at", "cause", "by")
"""The columns of the starts that a job could expect."""

_SHOWN = 5  # in lists of texts
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("reason", "cause", "by", "decision", "place"), str),
    **dict.fromkeys(("free", "waiting"), np.int64),
}
_MOST = 12  # rows of a table in texts


def instant_text(at: float, *, dated: bool = False) -> str:
    """Return an instant (s) as text; ``dated``: as date and time of this computer, of seconds since 1970.

    >>> instant_text(90.5)
    '90.5 s'
    """
    return datetime.fromtimestamp(at).isoformat(" ", "seconds") if dated else f"{at:.10g} s"


class Change(NamedTuple):
    """A change with which work would start now, or earlier: the field changed, its value, and a sentence."""

    what: str
    value: float | str
    text: str


class Holder(NamedTuple):
    """A holder of capacity that a job waits for: a running job or a window, its processors, its expected end (s)."""

    job: int | str
    processors: int
    until: float


def listed(texts: Sequence[str]) -> str:
    """Return texts as a list of which only the first are shown.

    >>> listed(["a", "b"]), listed(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def span_table(rows: Sequence[Sequence[Any]], names: Sequence[str] = ("since", "until", "reason")) -> Table:
    """Return rows as a table; columns of instants are numbers, others are texts.

    >>> list(span_table([(0, 5, "order")]).rows())
    [{'since': 0.0, 'until': 5.0, 'reason': 'order'}]
    """
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return Table(
        {
            name: np.array(column, dtype=_TYPES.get(name, np.float64))
            for name, column in zip(names, columns, strict=True)
        }
    )


def told_of(reasons: Iterable[Mapping[str, Any]], work: int | str) -> Table:
    """Return the reasons that a policy gave about a job or task, of rows of the record.

    >>> row = {"time": 5.0, "decision": "Start", "work": "7", "place": "a", "at": 0.0, "reason": "it fits"}
    >>> list(told_of([row], 7).rows())
    [{'time': 5.0, 'decision': 'Start', 'reason': 'it fits'}]
    """
    mine = [(each["time"], each["decision"], each["reason"]) for each in reasons if str(each["work"]) == str(work)]
    return span_table(mine, ("time", "decision", "reason"))


def table_lines(head: str, table: Table, called: Mapping[str, str]) -> Iterator[str]:
    """Yield a table of texts with a head; of a long one the first and the last rows."""
    if not len(table):
        return
    yield f"  {head}:"
    rows = [[_cell(row[name]) for name in table.names] for row in table.rows()]
    if len(rows) > _MOST:
        gap = ["..."] * len(table.names)
        rows = [*rows[: _MOST // 2], gap, *rows[-_MOST // 2 :]]
    yield from text_table([[called.get(name, name) for name in table.names], *rows], left=0, indent=4)


def _cell(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
