"""The ledger of a grid: the history of each of its jobs, by row."""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.records.broker_record import joined
from simmodel.snapshots.grid import TraceState, TryState
from simmodel.systems.broker.ledger import Ledger
from simmodel.work.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from simmodel.systems.destination import BrokeredJob
    from simmodel.systems.grid.site import Site

__all__ = ["INSTANTS", "GridLedger", "StreamedLedger", "Try"]

NAN = float("nan")

INSTANTS: tuple[str, ...] = ("assigned", "queued", "start", "executing", "end", "finished")
"""Instants (s) of a job: assigned to a site, in its queue, start and end of holding cores, of executing, the end."""


class Try(NamedTuple):
    """An attempt of a job at a site after which it was assigned again.

    ``attempt``: how often it had been assigned; ``site``: the name of the site; ``reason``: why it ended; ``start``,
    ``end``: of holding cores (s); without a start (``None``) ``end`` is when the attempt ended.
    """

    attempt: int
    site: str
    reason: str
    start: float | None
    end: float


class GridLedger(Ledger):
    """Data about the jobs of a grid, by row.

    Attributes
    ----------
    assigned, queued, start, executing, end, finished
        the instants of :data:`INSTANTS` of the latest attempt
    site
        the number of the site, -1: none
    status, attempts
        the final state, a number of :attr:`words`, -1: none yet; how often it was assigned
    bytes_in, bytes_out
        bytes that were moved between sites for it, whoever began that; bytes that it wrote
    errors
        the reason of a failure, by row
    past
        the attempts that were not the last, by row
    """

    def __init__(self) -> None:
        super().__init__()
        for name, (kind, empty) in _COLUMNS.items():
            setattr(self, name, self._empty(kind, empty))
        self.words: dict[str, int] = {}
        self.errors: dict[int, str] = {}
        self.past: dict[int, tuple[Try, ...]] = {}
        self.rows = 0

    def _empty(self, kind: str, _empty: float) -> Any:
        return array(kind)

    assigned: array[float]
    queued: array[float]
    start: array[float]
    executing: array[float]
    end: array[float]
    finished: array[float]
    bytes_in: array[float]
    bytes_out: array[float]
    site: array[int]
    status: array[int]
    attempts: array[int]

    def grow(self, rows: int) -> None:
        for name, (kind, empty) in _COLUMNS.items():
            getattr(self, name).extend(array(kind, (empty,)) * rows)
        self.rows += rows

    def word(self, status: str) -> int:
        """Return the number of a final state."""
        return self.words.setdefault(status, len(self.words))

    # ------------------------------------------------------------------ snapshots

    def state(
        self, jobs: Iterable[BrokeredJob], sites: Sequence[Site]
    ) -> tuple[tuple[TraceState, ...], tuple[TryState, ...]]:
        """Return the entries of unfinished jobs that have been assigned or sent files, and their earlier attempts."""
        there = {job.row: job for job in jobs}
        traces = tuple(self._trace(job) for row, job in there.items() if self.attempts[row] or self.bytes_in[row])
        number = {site.name: site.number for site in sites}
        return traces, tuple(
            TryState(row, each.attempt, each.start, each.end, number[each.site], "requeued", each.reason)
            for row in there
            for each in self.past.get(row, ())
        )

    def _trace(self, job: BrokeredJob) -> TraceState:
        row = job.row
        return TraceState(
            row,
            max(0, self.site[row]),
            self.attempts[row],
            _known(self.assigned[row]),
            _known(self.queued[row]),
            _known(self.start[row]),
            _known(self.executing[row]),
            _known(self.end[row]),
            self.bytes_in[row],
            self.bytes_out[row],
            None if job.started is None else float(job.started),
            job.attempts,
        )

    def add(self, row: int, given: Try) -> None:
        """Note an attempt of a job that was not its last."""
        self.past[row] = (*self.past.get(row, ()), given)

    def restore(
        self,
        traces: Iterable[TraceState],
        tries: Iterable[TryState],
        jobs: Mapping[int, BrokeredJob],
        sites: Sequence[Site],
    ) -> None:
        """Restore the entries of unfinished jobs, which are given by their rows in the snapshot."""
        for each in traces:
            job = jobs[each.row]
            row = job.row
            columns = self.assigned, self.queued, self.start, self.executing, self.end
            instants = each.assigned, each.queued, each.start, each.executing, each.end
            for column, at in zip(columns, instants, strict=True):
                if at is not None:
                    column[row] = at
            self.site[row], self.attempts[row] = each.site if each.attempts else -1, each.attempts
            self.bytes_in[row], self.bytes_out[row] = each.bytes_in, each.bytes_out
            job.started, job.attempts = each.started, each.starts
        for of, attempt, start, end, site, _, reason in tries:
            self.add(jobs[of].row, Try(attempt, sites[site].name, reason, start, end))

    # ------------------------------------------------------------------ columns

    def column(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a column of some rows as an array, a copy."""
        kind, _ = _COLUMNS[name]
        return np.array(getattr(self, name), dtype=_TYPES[kind])[rows]


_COLUMNS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(INSTANTS, ("d", NAN)),
    "bytes_in": ("d", 0.0),
    "bytes_out": ("d", 0.0),
    "site": ("h", -1),
    "status": ("b", -1),
    "attempts": ("h", 0),
}
"""The columns: the type of each, and its value in a new row."""
_TYPES = {"d": np.float64, "h": np.int16, "b": np.int8}


def _known(at: float) -> float | None:
    return at if at == at else None


class _Sparse(dict[int, Any]):
    """A column with values of some rows only; the others are empty."""

    def __init__(self, empty: float) -> None:
        self.empty = empty

    def __missing__(self, row: int) -> float:
        return self.empty


class StreamedLedger(GridLedger):
    """The ledger of a grid whose record is streamed: the rows of ended jobs are taken out.

    Attributes
    ----------
    open
        the rows that are in it, in order
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._known = Table({})
        self._come = 0  # rows so far

    def _empty(self, kind: str, empty: float) -> Any:
        return defaultdict(int) if kind == "h" and not empty else _Sparse(empty)

    def grow(self, rows: int) -> None:
        """Append empty rows, which take no room before something happens to them."""
        self.rows += rows

    def column(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        kind, empty = _COLUMNS[name]
        taken = map(getattr(self, name).pop, rows.tolist(), repeat(empty))
        return np.fromiter(taken, dtype=_TYPES[kind], count=len(rows))

    def ended(self) -> NDArray[np.int64]:
        """Return the rows of the jobs that have ended, in order."""
        self._add_new()
        return np.array(sorted({*self.status, *self.fates}), dtype=np.int64)

    def _add_new(self) -> None:
        if not (self.tables or self.alone):
            return
        new = Table(super().submitted())
        self.tables, self.alone = [], []
        self._known = joined([self._known, new]) if len(self.open) else new
        self.open = np.append(self.open, np.arange(self._come, self._come + len(new)))
        self._come += len(new)

    def submitted(self) -> dict[str, NDArray[Any]]:
        """Return the columns known at submission of the rows that are in it."""
        self._add_new()
        return dict(self._known.items()) or super().submitted()

    def take(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Take rows out; return their columns known at submission."""
        self._add_new()
        here = np.zeros(len(self.open), dtype=bool)
        here[np.searchsorted(self.open, rows)] = True
        taken = self._known.where(here)
        self.open, self._known = self.open[~here], self._known.where(~here)
        return dict(taken.items())

    def forget(self, rows: Iterable[int]) -> None:
        """Forget the fates, errors, eligible instants and estimates of single rows."""
        for kept in (self.fates, self.errors, self.eligible, self.expected):
            if kept:
                for row in rows:
                    kept.pop(row, None)
