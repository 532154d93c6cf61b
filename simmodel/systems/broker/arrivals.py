"""What comes to a broker: a queue that forgets what is handed over, and the jobs of a log, each at its instant."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.environment import Occurrence
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.broker.member import BrokeredJob
from simmodel.systems.cluster.replay import known_here, needs_specs, note_left_out, specs
from simmodel.systems.dependencies import Dependencies
from simmodel.work.prepare import prepare
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.systems.broker.member import Member
    from simmodel.systems.broker.system import Broker
    from simmodel.work.job import Job, LiveJob
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["BrokerQueue", "Source", "Values", "replay_workload"]

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


def replay_workload(broker: Broker, workload: Workload, home: Member | None) -> Prepared:
    """Have a broker submit the jobs of a workload, all of one home: see :meth:`Broker.replay`."""
    largest = max(pool.capacity for member in broker._allowed(home) for pool in member.cluster.places)
    prepared = prepare(workload, largest, "requested", "continue")
    platforms = [member.cluster.spec for member in broker.members]
    on_nodes = any(partition.nodes for spec in platforms for partition in spec.partitions)
    if not on_nodes:
        note_left_out(workload, platforms[0], prepared.report)
    first, family = broker.submitted, Dependencies(broker)  # type: ignore[arg-type]
    broker.submitted += len(workload)
    broker._active += len(prepared.rows)
    broker._families.append(family)
    for row, reason in prepared.rejected.items():
        broker._fates[first + row] = "rejected", float("nan"), reason
        family.rejected(workload["job"][row])
    columns = {"job": workload["job"], "submit": workload["submit"], "processors": prepared.processors}
    columns |= {"asked": prepared.requested, "origin": np.full(len(workload), "" if home is None else home.name)}
    columns |= {key: workload[key] for key in ("user", "group", "queue", "partition") if key in workload}
    broker._tables.append((first, Table(columns)))
    detailed = any(needs_specs(workload, spec) for spec in platforms)
    jobs = specs(workload, prepared, on_nodes) if detailed else None
    if jobs is not None and workload.specs is None:
        clusters = [member.cluster for member in broker.members]
        jobs = ((row, known_here(clusters, spec, prepared.report)) for row, spec in jobs)
    broker._expect(list(_values_of(workload, prepared, first, home, jobs)), family)
    broker.report += workload.report + prepared.report  # with what was found in each job
    return prepared


def _values_of(
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
