"""The source that submits the jobs of a log, each at its instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Any

from simmodel.environment import Occurrence
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.systems.cluster.system import Cluster
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrivals", "Values", "chunks_of"]

_CHUNK = 16_384

Values = tuple[Any, ...]
"""row of the record, submit, processors, requested, expected, duration (s), job, user, whether it is cut"""


class Arrivals(Occurrence):
    """Submits rows of prepared columns; one event an instant of submission (one a job, where each is decided on).

    A live job is made when it is submitted and not before: a log of a million jobs needs no million objects. Its number
    in the order of submission is its row, unless ``numbers`` says otherwise.
    """

    __slots__ = ("_chunks", "_each", "_i", "_priority", "_values", "cluster", "numbers")

    def __init__(
        self, cluster: Cluster, chunks: Iterator[list[Values]], each: bool, numbers: Mapping[int, int] | None
    ) -> None:
        self.cluster = cluster
        self._priority = cluster._submit_priority
        self._each = each
        self.numbers = numbers
        self._chunks = chunks
        self._i = 0
        self._values: list[Values] = next(chunks, [])
        if self._values:
            self._push(self._values[0][1])

    def _push(self, at: float) -> None:
        env = self.cluster.env
        self.callbacks = (self._fire,)
        heappush(env._queue, (at, self._priority, next(env._eid), self))  # type: ignore[misc]

    def to_come(self) -> list[Values]:
        """Return what is still to be submitted."""
        later = list(self._chunks)
        self._chunks = iter(later)
        return [values for chunk in (self._values[self._i :], *later) for values in chunk]

    def _fire(self, _event: object) -> None:
        cluster = self.cluster
        admit = cluster._admit
        pool = cluster._only_pool
        values = self._values
        i = self._i
        at = values[i][1]
        each = self._each
        numbers = self.numbers
        watched = bool(cluster.usages)
        while True:
            row, _, processors, requested, expected, duration, name, user, cut = values[i]
            job = LiveJob(name, row, at, processors, requested, expected, duration)
            if numbers is not None:
                job.seq = numbers[row]
            job.user = user
            job.place = pool
            job._watched = watched
            if cut:
                job._outcome = "timeout"
            i += 1
            if i == len(values):
                values = self._values = next(self._chunks, [])
                i = 0
            self._i = i
            admit(job)
            if not values:
                return
            then = values[i][1]
            if then != at or each:
                break
        self._push(then)


def chunks_of(workload: Workload, prepared: Prepared, first: int = 0) -> Iterator[list[Values]]:
    """Yield the rows that can run as lists of plain Python values, in order of submission.

    ``first`` is the row that the first of the workload has in the record.
    """
    columns = (prepared.submit, prepared.processors, prepared.requested, prepared.expected, prepared.duration)
    for begin in range(0, len(prepared.rows), _CHUNK):
        rows = prepared.rows[begin : begin + _CHUNK]
        values: list[Sequence[Any]] = [(rows + first).tolist(), *(column[rows].tolist() for column in columns)]
        values += [
            workload[name][rows].tolist() if name in workload else [None] * len(rows) for name in ("job", "user")
        ]
        values.append(prepared.cut[rows].tolist())
        yield list(zip(*values, strict=True))
