"""The source that submits the jobs of a log, each at its instant."""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Any

from simmodel.environment import Occurrence
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.systems.cluster import Cluster
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrivals"]

_CHUNK = 16_384


class Arrivals(Occurrence):
    """Submits rows of prepared columns; one event an instant of submission (one a job, where each is decided on).

    A live job is made when it is submitted and not before: a log of a million jobs needs no million objects.
    """

    __slots__ = ("_cluster", "_cut", "_each", "_i", "_priority", "_rows", "_values", "_workload", "left", "prepared")

    def __init__(self, cluster: Cluster, workload: Workload, prepared: Prepared, priority: int, each: bool) -> None:
        self._cluster = cluster
        self._workload = workload
        self.prepared = prepared
        self._priority = priority
        self._each = each
        self._rows = prepared.rows
        self._i = 0
        self.left = len(prepared.rows)
        self._values: list[Any] = []
        self._cut = bool(prepared.cut.any())
        self._next_chunk()
        if self.left:
            self._push(self._values[0][1])

    def _push(self, at: float) -> None:
        env = self._cluster.env
        self.callbacks = (self._fire,)
        heappush(env._queue, (at, self._priority, next(env._eid), self))  # type: ignore[misc]

    def _next_chunk(self) -> None:
        """Turn the next rows into plain Python values, last first, so that the next one is popped at the end."""
        prepared = self.prepared
        rows = self._rows[:_CHUNK]
        self._rows = self._rows[_CHUNK:]
        columns = [rows.tolist()]
        columns += [
            column[rows].tolist()
            for column in (
                prepared.submit,
                prepared.processors,
                prepared.requested,
                prepared.expected,
                prepared.duration,
            )
        ]
        for name in ("job", "user"):
            columns.append(self._workload[name][rows].tolist() if name in self._workload else [None] * len(rows))
        columns.append(prepared.cut[rows].tolist())
        self._values = list(zip(*columns, strict=True))
        self._i = 0

    def _fire(self, _event: object) -> None:
        cluster = self._cluster
        admit = cluster._admit
        pool = cluster._only_pool
        values = self._values
        i = self._i
        at = values[i][1]
        each = self._each
        watched = bool(cluster.usages)
        while True:
            row, _, processors, requested, expected, duration, name, user, cut = values[i]
            job = LiveJob(name, row, at, processors, requested, expected, duration)
            job.user = user
            job.place = pool
            job._watched = watched
            if cut:
                job._outcome = "timeout"
            self.left -= 1
            admit(job)
            i += 1
            if i == len(values):
                if not self.left:
                    return
                self._next_chunk()
                values = self._values
                i = 0
            then = values[i][1]
            if then != at or each:
                break
        self._i = i
        self._push(then)
