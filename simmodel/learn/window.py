"""What an agent sees of a cluster: the first waiting jobs as rows, free processors, and when running jobs will end."""

from __future__ import annotations

from bisect import bisect_left
from math import inf, log1p
from typing import TYPE_CHECKING

import numpy as np
from gymnasium import spaces

from simmodel.foundation.errors import InputError
from simmodel.learn.coding import Columns, Observe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.running import Entry
    from simmodel.scheduling.protocol import View
    from simmodel.work.job import LiveJob

__all__ = ["JOB_COLUMNS", "JobWindow"]

JOB_COLUMNS = ("waits", "processors", "requested", "work", "waited", "fits")
"""Of each row: 1 (0: no job); share of the processors; requested time and processor seconds, -1 without a request;
time waited; whether it fits in the free processors. Times are on a logarithmic scale from 0 to 1, which stands for 30
days and more, work on half of it."""
_LOWEST = (0.0, 0.0, -1.0, -1.0, 0.0, 0.0)
_LONGEST = 30 * 86400.0
_TIME, _CROWD = 1 / log1p(_LONGEST), 1 / log1p(100_000)
_SPANS = 16
_FIGURES = ("free", "waiting", *(f"ends {i}" for i in range(_SPANS)))
_RESERVATION = ("reserved", "reserved processors", "reserved for", "left beside")
_EDGES = np.geomspace(60.0, _LONGEST, _SPANS)[:-1]


class JobWindow(Observe):
    """Shows the first waiting jobs of a cluster with one place, its free processors and the ends of running jobs.

    The arrays are ``jobs``, of shape (window, 6) with :data:`JOB_COLUMNS`, and ``cluster``: the free share of the
    processors, the number of waiting jobs, and the shares that running jobs are expected to free within each of 16
    spans of time, from a minute to 30 days; the last one has no end and includes jobs without a request. An index
    that follows the queue keeps the rows, so that an observation costs the same for any number of jobs.

    Parameters
    ----------
    window
        rows
    reserves
        whether ``cluster`` has the reservation of :class:`~simmodel.learn.games.ReserveAndFill` too: whether there is
        one, its share of the processors, the time until it can start as expected, and the share left free then

    Attributes
    ----------
    reserved
        the job that is next and does not fit, if any

    >>> from simmodel import Job, start
    >>> view = start(4, [Job(processors=3, run=5, requested=60), Job(processors=1, run=9)]).next_decision()
    >>> JobWindow(3)(view)["jobs"].astype(float).round(2).tolist()[:2]
    [[1.0, 0.75, 0.28, 0.18, 0.0, 1.0], [1.0, 0.25, -1.0, -1.0, 0.0, 1.0]]
    """

    def __init__(self, window: int = 128, *, reserves: bool = False) -> None:
        if not (isinstance(window, int) and window > 0):
            raise InputError(f"must be a whole number >= 1, got {window!r}", place="window")
        self.window, self.reserves = window, reserves
        figures = len(_FIGURES) + len(_RESERVATION) * reserves
        self._cluster, self._most = np.zeros(figures, dtype=np.float32), np.ones(figures, dtype=np.float32)
        self._view: View | None = None
        self.reserved: LiveJob | None = None

    def space(self) -> spaces.Dict:
        """Return the space of the arrays."""
        figures = Columns((*_FIGURES, *_RESERVATION) if self.reserves else _FIGURES)
        return spaces.Dict({"cluster": figures, "jobs": Columns(JOB_COLUMNS, self.window, _LOWEST)})

    def _follow(self, view: View) -> None:
        """Fill the rows from a view, and keep them up to date from now on."""
        if len(view.places) != 1 or view.places[0].queues:
            raise InputError("must have one place: a cluster without partitions", place="system")
        self._view = view
        self._place: Pool = view.places[0]
        self._capacity = max(1, self._place.capacity)
        self._rows = _Rows(self.window, self._capacity)
        self._ends = _Ends(self._place, self._capacity)
        view.waiting.keep(self._rows)

    def jobs(self, view: View) -> list[LiveJob]:
        """Return the jobs of the rows, in order of arrival."""
        if view is not self._view:
            self._follow(view)
        return self._rows.jobs

    def __call__(self, view: View) -> dict[str, NDArray[np.float32]]:
        """Return the arrays."""
        n, now, place, rows, cluster = len(self.jobs(view)), view.now, self._place, self._rows, self._cluster
        cluster[0] = max(0, place.free) / self._capacity
        cluster[1] = log1p(view.waiting.count) * _CROWD
        cluster[2 : 2 + _SPANS] = self._ends.histogram(now)
        if self.reserves:
            cluster[-4:] = self._reservation(now)
        return {"cluster": np.minimum(cluster, self._most), "jobs": rows.at(now, place.free, n)}

    def _reservation(self, now: float) -> tuple[float, float, float, float]:
        job = self.reserved
        if job is None:
            return 0.0, 0.0, 0.0, 0.0
        at, extra = self.earliest(job)
        width = min(1.0, job.width / self._capacity)
        return 1.0, width, min(1.0, log1p(max(0.0, at - now)) * _TIME), min(1.0, extra / self._capacity)

    def earliest(self, job: LiveJob) -> tuple[float, int]:
        """Return when a job that does not fit now will (s), by the requests of running jobs, and the processors left.

        Running jobs without a request may not end: the instant is infinite if too few others do.
        """
        place = self._place
        return self._ends.when_free(job.width - place.free, place.env.now)

    def backfillable(self, view: View) -> NDArray[np.bool_]:
        """Return which rows have a job that fits now and does not delay the reserved one, by their requests."""
        n, job = len(self.jobs(view)), self.reserved
        found = np.zeros(self.window, dtype=np.bool_)
        if job is not None and n:
            at, extra = self.earliest(job)
            widths = self._rows.widths[:n]
            beside = (self._rows.requests[:n] <= at - view.now) | (widths <= extra)
            found[:n] = beside & (widths <= self._place.free)
        return found


class _Rows:
    """The first waiting jobs in order of arrival, as columns."""

    def __init__(self, size: int, capacity: int) -> None:
        self._size, self._capacity = size, capacity
        self.jobs: list[LiveJob] = []
        self.table = np.zeros((size, len(JOB_COLUMNS)), dtype=np.float32)
        self.submits, self.requests, self.widths, self._waited = np.zeros((4, size))
        self._fits = np.zeros(size, dtype=np.bool_)
        # Arrays instead of numbers: numpy converts these anew at each call, which takes longer than the arithmetic.
        self._now, self._free, self._unit, self._one = np.array(0.0), np.array(0.0), np.array(_TIME), np.array(1.0)
        self._at = -inf

    def at(self, now: float, free: int, n: int) -> NDArray[np.float32]:
        """Return the table at an instant (s), with so many free processors and rows."""
        if now != self._at:
            self._at = self._now[()] = now
            waited = self._waited[:n]
            np.subtract(self._now, self.submits[:n], out=waited)
            np.log1p(waited, out=waited)
            np.multiply(waited, self._unit, out=waited)
            np.minimum(waited, self._one, out=waited)
            self.table[:n, 4] = waited
        self._free[()] = free
        self.table[:n, 5] = np.less_equal(self.widths[:n], self._free, out=self._fits[:n])
        return self.table.copy()

    def _put(self, row: int, job: LiveJob) -> None:
        requested, width = job.requested, job.width
        known = requested < inf
        self.table[row] = (
            1.0,
            min(1.0, width / self._capacity),
            min(1.0, log1p(requested) * _TIME) if known else -1.0,
            min(1.0, log1p(requested * width) * 0.5 * _TIME) if known else -1.0,
            min(1.0, log1p(job.place.env.now - job.submit) * _TIME),
            0.0,
        )
        self.submits[row] = job.submit
        self.requests[row] = requested
        self.widths[row] = width

    def _move(self, begin: int, end: int, by: int) -> None:
        for column in (self.table, self.submits, self.requests, self.widths):
            column[begin + by : end + by] = column[begin:end]

    def add(self, job: LiveJob) -> None:
        """Add a job of the queue."""
        jobs, n = self.jobs, len(self.jobs)
        key = (job.submit, job.seq)
        if not n or (jobs[-1].submit, jobs[-1].seq) < key:
            if n < self._size:
                jobs.append(job)
                self._put(n, job)
            return
        row = bisect_left(jobs, key, key=lambda each: (each.submit, each.seq))
        jobs.insert(row, job)
        del jobs[self._size :]
        self._move(row, len(jobs) - 1, 1)
        self._put(row, job)

    def remove(self, job: LiveJob) -> None:
        """Remove a job of the queue, which has left it."""
        jobs, n = self.jobs, len(self.jobs)
        last = jobs[-1]
        if n == self._size and (last.submit, last.seq) < (job.submit, job.seq):
            return
        row = jobs.index(job)
        del jobs[row]
        self._move(row + 1, n, -1)
        after = last.later if n == self._size else None
        if after is None:
            self.table[n - 1] = 0.0
        else:
            jobs.append(after)
            self._put(n - 1, after)


class _Ends:
    """The expected ends of running jobs and their processors, as columns in no order."""

    def __init__(self, place: Pool, capacity: int) -> None:
        self._share, self._now = np.array(1.0 / capacity), np.array(0.0)
        self._rows: dict[int, int] = {}
        self._numbers: list[int] = []
        self._ends, self._processors = np.zeros((2, 64))
        for entry in place.running.entries():
            self.started(entry)
        place.running.watch(self)

    def started(self, entry: Entry) -> None:
        """Add an execution."""
        end, number, processors, run = entry
        row = self._rows[number] = len(self._numbers)
        if row == len(self._ends):
            self._ends, self._processors = (np.concatenate([each, each]) for each in (self._ends, self._processors))
        self._numbers.append(number)
        self._ends[row] = end if run.job.requested < inf else inf  # else the end is that of the run, the future
        self._processors[row] = processors

    def ended(self, entry: Entry) -> None:
        """Remove an execution."""
        row, last = self._rows.pop(entry[1]), self._numbers.pop()
        if last != entry[1]:
            end = len(self._numbers)
            self._numbers[row], self._rows[last] = last, row
            self._ends[row], self._processors[row] = self._ends[end], self._processors[end]

    def histogram(self, now: float) -> NDArray[np.float64]:
        """Return the share of the processors that comes free within each span of time (s) from now on."""
        n = len(self._numbers)
        self._now[()] = now
        spans = _EDGES.searchsorted(self._ends[:n] - self._now)
        found: NDArray[np.float64] = np.bincount(spans, self._processors[:n], _SPANS) * self._share
        return found

    def when_free(self, missing: int, now: float) -> tuple[float, int]:
        """Return the instant (s) at which so many more processors are free, and the surplus then."""
        n = len(self._numbers)
        ends = np.maximum(self._ends[:n], now)
        order = ends.argsort()
        ends, gathered = ends[order], self._processors[:n][order].cumsum()
        i = int(gathered.searchsorted(missing))
        if i == n or ends[i] == inf:
            return inf, 0
        last = int(ends.searchsorted(ends[i], "right")) - 1
        return float(ends[i]), int(gathered[last]) - missing
