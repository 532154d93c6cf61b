"""The ledger of a grid: the history of each of its jobs, by its line."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.broker_record import joined
from simmodel.snapshots.grid import TraceState, TryState
from simmodel.systems.broker.ledger import Ledger
from simmodel.work.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from simmodel.systems.destination import BrokeredJob

__all__ = ["INSTANTS", "GridLedger", "StreamedLedger", "Try"]

Try = tuple[int, int, float, float, int, str]
"""An execution that was not the last: row, attempt, start, end, site, status."""

NAN = float("nan")

INSTANTS: tuple[str, ...] = ("assigned", "queued", "start", "executing", "end", "finished")
"""Instants (s) of a job: assigned to a site, in its queue, start and end of holding cores, of executing, the end."""


class GridLedger(Ledger):
    """Data about the jobs of a grid, by line: each job has one from its first assignment on; line 0 is that of none.

    Attributes
    ----------
    assigned, queued, start, executing, end, finished
        the instants of :data:`INSTANTS` of the latest attempt
    site
        the number of the site, -1: none
    status, attempts
        the final state, a number of :attr:`words`, -1: none yet; how often it was assigned
    bytes_in, bytes_out
        bytes that were moved for it to and from the site
    errors
        the reason of a failure, by row
    tries
        the executions that were not the last: row, attempt, start, end, site, status
    """

    def __init__(self) -> None:
        super().__init__()
        for name, (kind, empty) in _COLUMNS.items():
            setattr(self, name, array(kind, (empty,)))
        self.words: dict[str, int] = {}
        self.errors: dict[int, str] = {}
        self.tries: list[Try] = []
        self.rows = 0

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

    def grow(self, rows: int, lines: int | None = None) -> None:
        """Prepare for more rows, by default with a line for each."""
        for name, (kind, empty) in _COLUMNS.items():
            getattr(self, name).extend(array(kind, (empty,)) * (rows if lines is None else lines))
        self.rows += rows

    def enter(self, job: BrokeredJob) -> int:
        """Give a job its line, and return it."""
        job.line = line = job.row + 1
        return line

    def word(self, status: str) -> int:
        """Return the number of a final state."""
        return self.words.setdefault(status, len(self.words))

    # ------------------------------------------------------------------ snapshots

    def state(self, jobs: Iterable[BrokeredJob]) -> tuple[tuple[TraceState, ...], tuple[TryState, ...]]:
        """Return the entries of jobs that have been assigned and have not ended, and their earlier executions."""
        there = {job.row: job for job in jobs}
        traces = tuple(self._trace(job) for job in there.values() if self.attempts[job.line])
        return traces, tuple(TryState(*each) for each in self.tries if each[0] in there)

    def _trace(self, job: BrokeredJob) -> TraceState:
        line = job.line
        return TraceState(
            job.row,
            self.site[line],
            self.attempts[line],
            _known(self.assigned[line]),
            _known(self.queued[line]),
            _known(self.start[line]),
            _known(self.executing[line]),
            _known(self.end[line]),
            self.bytes_in[line],
            self.bytes_out[line],
            None if job.started is None else float(job.started),
            job.attempts,
        )

    def restore(self, traces: Iterable[TraceState], tries: Iterable[TryState], jobs: Mapping[int, BrokeredJob]) -> None:
        """Restore the entries of unfinished jobs, which are given by their rows in the snapshot."""
        for each in traces:
            job = jobs[each.row]
            line = self.enter(job)
            columns = self.assigned, self.queued, self.start, self.executing, self.end
            instants = each.assigned, each.queued, each.start, each.executing, each.end
            for column, at in zip(columns, instants, strict=True):
                if at is not None:
                    column[line] = at
            self.site[line], self.attempts[line] = each.site, each.attempts
            self.bytes_in[line], self.bytes_out[line] = each.bytes_in, each.bytes_out
            job.started, job.attempts = each.started, each.starts
        for row, attempt, start, end, site, status in tries:
            self.tries.append((jobs[row].row, attempt, start, end, site, status))

    # ------------------------------------------------------------------ columns

    def column(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a column of some rows as an array, a copy."""
        kind, _ = _COLUMNS[name]
        return np.frombuffer(getattr(self, name), dtype=_TYPES[kind])[rows + 1]


_COLUMNS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(INSTANTS, ("d", NAN)),
    "bytes_in": ("d", 0.0),
    "bytes_out": ("d", 0.0),
    "site": ("h", -1),
    "status": ("b", -1),
    "attempts": ("h", 0),
}
"""The columns: the type of each, and its value in a new line."""
_LINES = 64  # by which a ledger without free ones grows
_TYPES = {"d": np.float64, "h": np.int16, "b": np.int8}


def _known(at: float) -> float | None:
    return at if at == at else None


class StreamedLedger(GridLedger):
    """The ledger of a grid whose record is streamed: the rows of ended jobs are taken out, and their lines used again.

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
        self._jobs: list[BrokeredJob | None] = [None]  # the job of each line
        self._free: list[int] = []
        self._lines: dict[int, int] = {}  # by row, of the jobs that are to be written
        self._at: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # the rows asked for last, and their lines

    def grow(self, rows: int, lines: int | None = 0) -> None:
        """Prepare for more rows, which take no lines before something happens to them."""
        super().grow(rows, lines)

    def enter(self, job: BrokeredJob) -> int:
        """Give a job a line that is free, and return it."""
        free = self._free
        if not free:
            free += range(len(self._jobs), len(self._jobs) + _LINES)
            self.grow(0, _LINES)
            self._jobs += [None] * _LINES
        job.line = line = free.pop()
        self._jobs[line] = job
        return line

    def column(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return a column of some rows, given by :meth:`ended` or :meth:`rest`, as an array, a copy."""
        if self._at is None or self._at[0] is not rows:
            lines = [self._lines.get(row, 0) for row in rows.tolist()]
            self._at = rows, np.array(lines, dtype=np.int64)
        return np.frombuffer(getattr(self, name), dtype=_TYPES[_COLUMNS[name][0]])[self._at[1]]

    def ended(self) -> NDArray[np.int64]:
        """Return the rows of the jobs that have ended, in order."""
        self._add_new()
        over = np.flatnonzero(np.frombuffer(self.status, dtype=np.int8) >= 0)
        self._lines = {job.row: line for line in over.tolist() if (job := self._jobs[line]) is not None}
        return np.array(sorted({*self._lines, *self.fates}), dtype=np.int64)

    def rest(self) -> NDArray[np.int64]:
        """Return the rows of all jobs that are left, in order."""
        self._lines = {job.row: line for line, job in enumerate(self._jobs) if job is not None}
        return self.open

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
        """Forget rows of jobs that have ended: their lines, fates, errors, eligible instants and estimates."""
        lines = [line for row in rows if (line := self._lines.get(row))]
        for name, (kind, empty) in _COLUMNS.items():
            np.frombuffer(getattr(self, name), dtype=_TYPES[kind])[lines] = empty
        for line in lines:
            self._jobs[line].line, self._jobs[line] = 0, None  # type: ignore[union-attr]
        self._free += lines
        for kept in (self.fates, self.errors, self.eligible, self.expected):
            if kept:
                for row in rows:
                    kept.pop(row, None)
