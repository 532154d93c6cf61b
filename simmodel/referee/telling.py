"""What all explanations share: a report, a document, a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.display import Shown
from simmodel.results.stores import json_text
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Change", "Holder", "Told", "listed", "span_table"]

_SHOWN = 5  # in lists of texts


class Change(NamedTuple):
    """A change with which work would start now, or earlier: what changes, to which value, and a sentence."""

    what: str
    value: float | str
    text: str


class Holder(NamedTuple):
    """Who holds what a job waits for: a running job or a window, its processors, and its expected end (s)."""

    job: int | str
    processors: int
    until: float


class Told(Shown):
    """The base class of explanations, which say why work waits."""

    def report(self) -> str:
        """Return the explanation as lines of text."""
        return "\n".join(self._lines())

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        raise NotImplementedError

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the document as JSON, and write it to a file if a path is given."""
        return json_text(self.document(), path)

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.report()


def listed(texts: Sequence[str]) -> str:
    """Return texts as a list of which only the first are told.

    >>> listed(["a", "b"]), listed(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def span_table(rows: Sequence[Sequence[Any]], names: Sequence[str] = ("since", "until", "reason")) -> Table:
    """Return rows as a table; columns of instants (s) are numbers, others are texts.

    >>> list(span_table([(0, 5, "order")]).rows())
    [{'since': 0.0, 'until': 5.0, 'reason': 'order'}]
    """
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    numbers = {"since", "until", "at", "time"}
    return Table(
        {
            name: np.array(column, dtype=np.float64 if name in numbers else str)
            for name, column in zip(names, columns, strict=True)
        }
    )
