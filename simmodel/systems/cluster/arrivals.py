"""The source that submits the plain jobs of a log, each at its instant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.environment import Occurrence
from simmodel.work.job import LiveJob
from simmodel.work.malleable import MalleableJob
from simmodel.work.rows import elastics_of

if TYPE_CHECKING:
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.work.elastic import Elastic
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrivals", "PlainJobs", "chunks_of"]

_CHUNK = 16_384


class PlainJobs(NamedTuple):
    """Future jobs that request only processors and time, as columns in order of submission.

    ``rows``: in the record; ``submit``, ``planned``, ``expected`` and ``duration``: in s (see
    :class:`~simmodel.work.job.LiveJob`); ``cut``: whether the job is stopped at its requested time; ``unrequested``:
    whether it has none; ``elastics``: the sizes of jobs that may have several.
    """

    rows: list[int]
    submit: list[float]
    processors: list[int]
    planned: list[float]
    expected: list[float]
    duration: list[float]
    ids: list[Any]
    users: list[Any]
    cut: list[bool]
    unrequested: list[bool]
    elastics: list[Elastic | None]

    def after(self, i: int) -> PlainJobs:
        """Return the jobs from a position on."""
        return PlainJobs._make(column[i:] for column in self)


class Arrivals(Occurrence):
    """Submits plain jobs, with one event per submit time (per job, if each submission brings a decision).

    Live jobs are created on submission only, so that a log of a million jobs does not need a million objects. The
    number of a job in the order of submission is its row, unless ``numbers`` maps the row to another.

    Attributes
    ----------
    number
        event number of the next submission; infinite while it submits, since the rest follows all planned events
    """

    __slots__ = (
        "_callbacks",
        "_chunks",
        "_fixed",
        "_i",
        "_jobs",
        "_plan",
        "_priority",
        "_queueing",
        "_rows",
        "number",
        "numbers",
    )

    def __init__(
        self, core: ClusterCore, queueing: Queueing, chunks: Iterable[PlainJobs], numbers: Mapping[int, int] | None
    ) -> None:
        self._queueing = queueing
        self._plan = core.env.plan
        self._priority = core.submit_priority
        self._callbacks = (self._fire,)
        assert queueing.only_queue is not None
        each = core.by_event or bool(core.on_submitted)
        self.numbers = numbers
        self._fixed = (core, queueing.only_queue.add, core.only_pool, each, numbers)  # for each event
        self._chunks = iter(chunks)
        self._i = 0
        self.number: float = inf
        self._next_chunk()
        if self._jobs is not None:
            self._push(self._jobs.submit[0])

    def _next_chunk(self) -> None:
        """Load the next jobs, as columns and, for speed, as rows."""
        self._jobs: PlainJobs | None = next(self._chunks, None)
        self._rows: list[tuple[Any, ...]] = [] if self._jobs is None else list(zip(*self._jobs, strict=True))

    def _push(self, at: float) -> None:
        self.callbacks = self._callbacks
        self.number = self._plan(self, at, self._priority)

    @property
    def at(self) -> float | None:
        """Instant of the next submission, in s; ``None`` if no jobs are left."""
        return None if self._jobs is None else self._jobs.submit[self._i]

    def left(self) -> list[PlainJobs]:
        """Return the jobs that have not been submitted."""
        if self._jobs is None:
            return []
        later = list(self._chunks)
        self._chunks = iter(later)
        return [self._jobs.after(self._i), *later]

    def _fire(self, _event: object) -> None:
        core, admit, pool, each, numbers = self._fixed
        one_by_one = core.by_event or core.on_submitted
        if one_by_one:
            admit = self._queueing.admit
        watched = bool(core.usages)
        jobs, i = self._rows, self._i
        at = jobs[i][1]
        self.number = inf
        while True:
            row, _, processors, planned, expected, duration, name, user, cut, blind, elastic = jobs[i]  # see PlainJobs
            if elastic is None:
                job = LiveJob(name, row, at, processors, planned, expected, duration, user, pool, watched)
            else:
                job = MalleableJob(name, row, at, processors, planned, expected, duration, user, pool, True)
                job.elastic = elastic
            if numbers is not None:
                job.seq = numbers[row]
            if cut:
                job._outcome = "timeout"
            if blind:
                job.unrequested = True
            i += 1
            if i == len(jobs):
                self._next_chunk()
                jobs = self._rows
                i = 0
            self._i = i
            admit(job)
            if not jobs:
                break
            then = jobs[i][1]
            if each or then != at:
                self._push(then)
                break
        if not one_by_one:
            core.wake_last()


def chunks_of(workload: Workload, prepared: Prepared, first: int = 0) -> Iterator[PlainJobs]:
    """Yield the rows that can run as lists of plain Python values, in order of submission.

    ``first`` is the record's row of the workload's first job.
    """
    for begin in range(0, len(prepared.rows), _CHUNK):
        rows = prepared.rows[begin : begin + _CHUNK]
        ids, users = (
            workload[name][rows].tolist() if name in workload else [None] * len(rows) for name in ("job", "user")
        )
        yield PlainJobs(
            (rows + first).tolist(),
            prepared.submit[rows].tolist(),
            prepared.processors[rows].tolist(),
            prepared.requested[rows].tolist(),
            prepared.expected[rows].tolist(),
            prepared.duration[rows].tolist(),
            ids,
            users,
            prepared.cut[rows].tolist(),
            prepared.unrequested[rows].tolist(),
            elastics_of(workload.table, rows, prepared.processors),
        )
