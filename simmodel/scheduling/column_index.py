"""An index of waiting jobs as numpy columns, for orders with time-dependent keys."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.work.job import not_a_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.environment import Environment
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["ColumnIndex"]

_ARRIVAL = attrgetter("submit", "seq")
_DEAD = 64  # removed rows tolerated before the columns are compacted


def _as_scores(keys: list[Any]) -> NDArray[np.float64]:
    """Return keys of any kind, such as tuples, as numbers in the same order; equal keys get equal numbers."""
    if not keys or keys[0] is None or isinstance(keys[0], Real):
        return np.array(keys, dtype=np.float64)
    scores = np.zeros(len(keys))
    rows = sorted(range(len(keys)), key=keys.__getitem__)
    scores[rows] = [0, *accumulate(int(keys[a] != keys[b]) for a, b in pairwise(rows))]
    return scores


class ColumnIndex:
    """Waiting jobs as columns in order of arrival; an order scores all of them at once, the lowest score goes first.

    Scores are computed at most once per instant. An order without ``scores`` is evaluated job by job with its
    ``key(job, now)``.

    Attributes
    ----------
    submit, requested, divisor, processors, width, priority, user
        arrays of shape (rows,): submission (s), requested time (s), the same with 1 s for 0, processors requested and
        taken, priority, and the index in ``users``
    part
        array of that shape: ``order.part(job)``, the part of the key that stays the same while a job waits, if the
        order defines it
    scratch
        two arrays of that shape for intermediate results, either of which may be returned as the scores: at these sizes
        new memory costs more than the arithmetic
    users
        the users, in the order of their first jobs, with their indexes
    jobs
        the jobs of the rows; ``None`` for a removed job
    """

    def __init__(self, order: OrderLike, env: Environment) -> None:
        self.order = order
        self._env = env
        self.jobs: list[LiveJob | None] = []
        self._rows: dict[LiveJob, int] = {}
        self._part: Callable[[LiveJob], float] | None = getattr(order, "part", None)
        self._columns: NDArray[np.float64] = np.empty((7, 256))
        self._user: NDArray[np.intp] = np.empty(256, dtype=np.intp)
        self._scratch: NDArray[np.float64] = np.empty((2, 256))
        self._dead: list[int] = []
        self.users: dict[Any, int] = {}
        self._scores: NDArray[np.float64] | None = None
        self._scored_at = float("nan")
        self._sizes: list[int] = []
        self._of_size: dict[int, int] = {}
        self._priorities = False
        self._latest = (-float("inf"), -1)  # the arrival of the latest row, also of one that was removed
        self._unsorted = False

    def _column(self, i: int) -> NDArray[np.float64]:
        return self._columns[i, : len(self.jobs)]

    @property
    def submit(self) -> NDArray[np.float64]:
        """Instants of submission, in seconds."""
        return self._column(0)

    @property
    def requested(self) -> NDArray[np.float64]:
        """Requested times, in seconds."""
        return self._column(1)

    @property
    def divisor(self) -> NDArray[np.float64]:
        """Requested times as divisors, in seconds: 0 counts as 1."""
        return self._column(4)

    @property
    def scratch(self) -> NDArray[np.float64]:
        """Two arrays for intermediate results; their contents are undefined."""
        return self._scratch[:, : len(self.jobs)]

    @property
    def processors(self) -> NDArray[np.float64]:
        return self._column(2)

    @property
    def width(self) -> NDArray[np.float64]:
        """Processors of the place that they take."""
        return self._column(5)

    @property
    def part(self) -> NDArray[np.float64]:
        """Parts of the keys that stay the same."""
        return self._column(6)

    @property
    def priority(self) -> NDArray[np.float64]:
        """Priorities; higher goes first."""
        return self._column(3)

    @property
    def user(self) -> NDArray[np.intp]:
        """Indexes in ``users``."""
        return self._user[: len(self.jobs)]

    # ------------------------------------------------------------------ changes

    def fill(self, jobs: Iterable[LiveJob]) -> None:
        """Add the first jobs, as :meth:`add` does, but column by column: a fifth of the time."""
        added = list(jobs)
        count = len(added)
        size = max(256, 1 << (count - 1).bit_length()) if count else 256
        self._columns = columns = np.empty((7, size))
        self._user, self._scratch = np.empty(size, dtype=np.intp), np.empty((2, size))
        requested = [job.planned for job in added]
        widths = [job.width for job in added]
        columns[0, :count] = [job.submit for job in added]
        columns[1, :count] = requested
        columns[2, :count] = [job.processors for job in added]
        columns[3, :count] = [job.priority for job in added]
        columns[4, :count] = [each if each > 0 else 1.0 for each in requested]
        columns[5, :count] = widths
        if self._part is not None:
            columns[6, :count] = [self._part(job) for job in added]
        users = self.users
        self._user[:count] = [users.setdefault(job.user, len(users)) for job in added]
        self.jobs = [*added]
        self._rows = dict(zip(added, range(count), strict=True))
        self._priorities = bool(columns[3, :count].any())
        self._of_size = dict(Counter(widths))
        self._sizes = sorted(self._of_size)
        arrivals = [(job.submit, job.seq) for job in added]
        self._unsorted = any(after < before for before, after in pairwise(arrivals))
        self._latest = max(arrivals, default=self._latest)

    def add(self, job: LiveJob) -> None:
        """Add a job."""
        row = len(self.jobs)
        if row == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
            self._user = np.concatenate([self._user, np.empty_like(self._user)])
            self._scratch = np.empty((2, 2 * row))
        columns = self._columns
        columns[0, row] = job.submit
        columns[1, row] = job.planned
        columns[2, row] = job.processors
        columns[4, row] = job.planned if job.planned > 0 else 1.0
        columns[3, row] = job.priority
        columns[5, row] = job.width
        if self._part is not None:
            columns[6, row] = self._part(job)
        self._user[row] = self.users.setdefault(job.user, len(self.users))
        self.jobs.append(job)
        self._rows[job] = row
        self._priorities = self._priorities or job.priority != 0
        self._scores = None
        count = self._of_size.get(job.width, 0)
        if not count:
            insort(self._sizes, job.width)
        self._of_size[job.width] = count + 1
        arrival = (job.submit, job.seq)
        if arrival < self._latest:
            self._unsorted = True
        else:
            self._latest = arrival

    def remove(self, job: LiveJob) -> None:
        """Remove a job."""
        row = self._rows.pop(job)
        if row == len(self.jobs) - 1:
            self.jobs.pop()
            self._scores = None if self._scores is None else self._scores[:row]
        else:
            self.jobs[row] = None
            self._dead.append(row)
            if self._scores is not None:
                self._scores[row] = np.inf
        count = self._of_size[job.width] = self._of_size[job.width] - 1
        if not count:
            del self._sizes[bisect_left(self._sizes, job.width)]
        if len(self._dead) > max(_DEAD, len(self.jobs) // 8):
            self._pack()

    def _pack(self) -> None:
        """Compact the rows and sort them by arrival, so that ties go to the lowest row."""
        left = [job for job in self.jobs if job is not None]
        if self._unsorted:
            left.sort(key=_ARRIVAL)
        rows = [self._rows[job] for job in left]
        self._columns[:, : len(rows)] = self._columns[:, rows]
        self._user[: len(rows)] = self._user[rows]
        self.jobs = [*left]
        self._rows = dict(zip(left, range(len(left)), strict=True))
        self._dead = []
        self._scores = None
        self._unsorted = False
        self._latest = (left[-1].submit, left[-1].seq) if left else (-float("inf"), -1)

    # ------------------------------------------------------------------ questions

    def _ranked(self) -> NDArray[np.float64]:
        if self._unsorted:
            self._pack()
        now = self._env._now
        if self._scores is None or self._scored_at != now:
            scores = getattr(self.order, "scores", None)
            if scores is not None:
                found = scores(now, self)
                self._scores = found if found.base is self._scratch else np.array(found, dtype=np.float64)
            else:
                key: Any = self.order.key
                self._scores = np.full(len(self.jobs), np.inf)
                rows = [row for row, job in enumerate(self.jobs) if job is not None]
                self._scores[rows] = _as_scores([key(self.jobs[row], now) for row in rows])
            if self._dead:
                self._scores[self._dead] = np.inf
            self._scored_at = now
        return self._scores

    def _best(self, rows: NDArray[np.intp] | None = None) -> LiveJob | None:
        """Return the first job of these rows (ascending), or of all; removed rows have an infinite score."""
        scores = self._ranked()
        if rows is None and self._priorities:
            rows = np.arange(len(self.jobs))
        if rows is not None:
            scores = scores[rows]
            if self._priorities:
                rows = rows[scores < np.inf]
                rows = rows[self.priority[rows] == self.priority[rows].max(initial=-np.inf)]
                scores = self._ranked()[rows]
        if not len(scores):
            return None
        best = int(scores.argmin())
        job = self.jobs[best if rows is None else int(rows[best])]
        if scores[best] < np.inf:
            return job
        if np.isnan(scores[best]) and job is not None:
            raise not_a_key(job, "None or nan")
        return None

    @property
    def narrowest(self) -> float:
        """The smallest width of a waiting job; infinite if none waits."""
        return self._sizes[0] if self._sizes else float("inf")

    def head(self) -> LiveJob | None:
        """Return the first job, or ``None``."""
        return self._best()

    def first_fitting(self, free: int, limit: float, extra: int) -> LiveJob | None:
        """Return the first job that fits in ``free`` and requests at most ``limit`` s, or fits in ``extra`` as well."""
        if free < self.narrowest:
            return None
        if self._unsorted:
            self._pack()
        width = self.width
        narrow = np.flatnonzero(width <= free)
        return self._best(narrow[(self.requested[narrow] <= limit) | (width[narrow] <= extra)])

    def widest_fitting(self, free: int) -> LiveJob | None:
        """Return the first of the jobs that leave the fewest processors free, or ``None`` if none fits."""
        i = bisect_left(self._sizes, free + 1) - 1
        if i < 0:
            return None
        if self._unsorted:
            self._pack()
        return self._best(np.flatnonzero(self.width == self._sizes[i]))

    def __iter__(self) -> Iterator[LiveJob]:
        """Iterate in order, each job once; jobs started meanwhile are skipped."""
        scores = self._ranked()
        rows = np.lexsort((scores, -self.priority)) if self._priorities else scores.argsort(kind="stable")
        for job in [self.jobs[row] for row in rows.tolist()]:
            if job is not None and job.state == "waiting":
                yield job
