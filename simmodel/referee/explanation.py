"""Why a job of a cluster waits, as a value: in text, as JSON, and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel.foundation.display import Cells, text_table
from simmodel.metrics.report import duration
from simmodel.results.stored import Told
from simmodel.work.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from simmodel.view.style import Size
    from simmodel.work.table import Table

__all__ = [
    "PROMISES",
    "Change",
    "Explanation",
    "Holder",
    "instant_text",
    "listed",
    "span_table",
    "table_lines",
    "told_of",
]

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


@attrs.frozen(eq=False, repr=False)
class Explanation(Told):
    """Why a job waits at an instant.

    Attributes
    ----------
    job, at, place
        the job, the instant (s), and the partition that it waits for
    reason
        ``"processors"``: they are not free; ``"nodes"``: nodes of the kind that it needs are not free;
        ``"licences"``; ``"bandwidth"`` of a storage or a link; ``"power"`` under a cap; ``"reservation"``: it would
        run into a reservation or maintenance, or its own has not begun; ``"order"``: it would fit, but the policy
        keeps the room for others; ``"limit"`` of its queue; ``"dependencies"``; ``"policy"``: it holds the job, for
        instance for quota; ``"held"`` by a scheduler outside; ``"due"``: the policy starts it at this instant
    detail
        the same as a clause: what it needs, and what there is
    needs, free
        its processors, and those that are free
    ahead
        the waiting jobs that the policy plans to start before it, in that order
    holders
        the running jobs whose ends make room for it, in the order of their expected ends; a reservation or maintenance
        by its name
    expected
        its start (s) if no more jobs come and all run as long as expected; ``None``: never
    changes
        changes of its request, each of which alone would start it now, confirmed by asking the policy
    spans
        from a simulation, what it waited for: ``since``, ``until`` (s) and ``reason``
    promises
        the start that it could expect: ``since`` (s), the start ``at`` (s), the ``cause`` of the change, and who says
        so, ``by``: a ``"promise"`` of the policy, before that a ``"what-if"``, at last its ``"start"``; in a snapshot
        only a promise
    told
        the reasons that the policy gave with its decisions on the job until it started: ``time`` (s), ``decision``,
        ``reason``
    said
        what a scheduler outside says of it
    slowed
        of a job with traffic, who slowed it once it ran, and where
    cautions
        why its start may be another: what is not modelled, or that the scheduler outside expects another
    dated
        whether instants are seconds since 1970, told as dates
    """

    job: int | str
    at: float
    place: str
    reason: str
    needs: int
    free: int
    detail: str = ""
    ahead: tuple[int | str, ...] = ()
    holders: tuple[Holder, ...] = ()
    expected: float | None = None
    changes: tuple[Change, ...] = ()
    spans: Table = attrs.field(factory=lambda: span_table([]))
    promises: Table = attrs.field(factory=lambda: span_table([], PROMISES))
    told: Table = attrs.field(factory=lambda: told_of([], ""))
    said: str = ""
    slowed: str = ""
    cautions: tuple[str, ...] = ()
    dated: bool = False

    def _lines(self) -> Iterator[str]:
        yield f"job {self.job} at {self._instant(self.at)}: {self.detail or self.reason}"
        if self.ahead:
            yield f"  ahead of it: {listed([f'job {each}' for each in self.ahead])}"
        if self.holders:
            yield f"  held by: {listed([self._held_by(each) for each in self.holders])}"
        if self.expected is not None:
            left = duration(max(0.0, self.expected - self.at))
            yield f"  expected to start at {self._instant(self.expected)}, in {left}{self._as_promised()}"
        for change in self.changes:
            yield f"  it would start now {change.text}"
        if self.said:
            yield f"  the scheduler says: {self.said}"
        if self.slowed:
            yield f"  once it ran: {self.slowed}"
        for caution in self.cautions:
            yield f"  caution: {caution}"
        yield from table_lines("what it waited for", self.spans, {"since": "since (s)", "until": "until (s)"})
        if len(self.promises) > 1:
            called = {"since": "since (s)", "at": "start (s)"}
            yield from table_lines("the start that it could expect", self.promises, called)
        yield from table_lines("what the policy said", self.told, {"time": "at (s)"})

    def _instant(self, at: float) -> str:
        return instant_text(at, dated=self.dated)

    def _held_by(self, holder: Holder) -> str:
        name = holder.job if isinstance(holder.job, str) and " " in holder.job else f"job {holder.job}"
        size = f"{holder.processors} " if holder.processors else ""
        until = f"until {self._instant(holder.until)}" if isfinite(holder.until) else "without an end"
        return f"{name} ({size}{until})"

    def _as_promised(self) -> str:
        promised = [row["at"] for row in self.promises.rows() if row["by"] == "promise" and row["since"] <= self.at]
        return ", as promised" if promised[-1:] == [self.expected] else ""

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        tables = ("spans", "promises", "told")
        plain = attrs.asdict(self, filter=lambda field, _: field.name not in (*tables, "holders", "changes"))
        plain["holders"] = [each._asdict() for each in self.holders]
        plain["changes"] = [each._asdict() for each in self.changes]
        return plain | {name: list(getattr(self, name).rows()) for name in tables}

    def _cells(self) -> Cells:
        rows = [["", ""], ["job", str(self.job)], ["at (s)", f"{self.at:.10g}"], ["reason", self.reason]]
        rows += [["needs", f"{self.needs}"], ["free", f"{self.free}"], ["jobs ahead", f"{len(self.ahead)}"]]
        rows += [[f"change of {each.what}", each.text] for each in self.changes]
        return rows

    def __repr__(self) -> str:
        return f"<Explanation of job {self.job} at {self.at:g} s: {self.reason}>"

    def plot(
        self,
        *,
        title: str | None = None,
        figsize: Size | None = None,
        style: str | None = None,
        save: str | Path | None = None,
    ) -> Figure:
        """Draw what stood in the way over time, the start that it could expect, and the holders."""
        from simmodel.view.referee_plots import in_the_way

        spans = [(float(row["since"]), float(row["until"]), str(row["reason"])) for row in self.spans.rows()]
        since = "since its submission" if spans else "from now"
        if not spans and self.expected is not None and self.expected > self.at:
            spans = [(self.at, self.expected, self.reason)]
        promises = [(float(row["since"]), float(row["at"])) for row in self.promises.rows()]
        steps = promises if len(promises) > 1 else ()
        name = f"Why job {self.job} waits" if title is None else title
        return in_the_way(
            spans, self.holders, self.at, steps, since=since, title=name, figsize=figsize, style=style, save=save
        )
