"""What comes to a broker: a queue that forgets what is handed over, and the source that submits the jobs of a log."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush
from typing import TYPE_CHECKING, Any

from simmodel.environment import Occurrence
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.member import BrokeredJob

if TYPE_CHECKING:
    from simmodel.systems.broker import Broker
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.member import Member
    from simmodel.work.job import Job, LiveJob
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["BrokerQueue", "Source", "Values", "values_of"]

Values = tuple[Any, ...]
"""row of the record, submit, processors, requested, run (s), job, user, home, spec"""


class BrokerQueue(WaitingQueue):
    """What waits for a broker: what is handed over joins another queue at once, and is linked there."""

    __slots__ = ()

    def __iter__(self) -> Iterator[LiveJob]:
        for job in list(super().__iter__()):
            if job.state == "waiting" and job.destination is None:  # type: ignore[attr-defined]
                yield job


class Source(Occurrence):
    """Submits jobs to a broker; one event an instant, or one a job where each is decided on."""

    __slots__ = ("_i", "_values", "broker", "family")

    def __init__(self, broker: Broker, values: list[Values], family: Dependencies) -> None:
        self.broker = broker
        self.family = family
        self._values = values
        self._i = 0
        self._push(values[0][1])

    def to_come(self) -> list[Values]:
        """Return what is still to be submitted."""
        return self._values[self._i :]

    def _push(self, at: float) -> None:
        env = self.broker.env
        self.callbacks = (self._fire,)
        heappush(env._queue, (max(at, env._now), self.broker._submit_priority, next(env._eid), self))  # type: ignore[misc]

    def _fire(self, _event: object) -> None:
        broker, values, i = self.broker, self._values, self._i
        at = values[i][1]
        each = broker._by_event
        while True:
            row, _, processors, limit, length, name, user, home, spec = values[i]
            if spec is not None:
                job = broker._live(spec, row, home, self.family)
                job.processors = processors
            else:
                job = BrokeredJob(name, row, at, processors, limit, length)
                job.user, job.home, job._others = user, home, self.family
            i += 1
            self._i = i
            broker._arrive(job)
            if i == len(values):
                return
            then = values[i][1]
            if then != at or each:
                break
        self._push(then)


def values_of(
    workload: Workload, prepared: Prepared, first: int, home: Member | None, jobs: Iterator[tuple[int, Job]] | None
) -> Iterator[Values]:
    """Return the rows that can run as plain values, in order of submission; ``first`` is the row of the first one.

    ``jobs`` where they ask for more than processors and time.
    """
    rows = prepared.rows
    count = len(rows)
    numbers = (prepared.submit, prepared.processors, prepared.requested, prepared.duration)
    columns: list[Any] = [(rows + first).tolist(), *(column[rows].tolist() for column in numbers)]
    columns += [workload[name][rows].tolist() if name in workload else [None] * count for name in ("job", "user")]
    columns += [[home] * count, [None] * count if jobs is None else [spec for _, spec in jobs]]
    return zip(*columns, strict=True)
