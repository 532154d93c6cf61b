"""When tasks got the bandwidth of links that they hold while they run."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel.resources.pools.consumables import Consumables
from simmodel.work.task import SHARE, shares_of

if TYPE_CHECKING:
    from simmodel.records.task_record import TaskRecord

__all__ = ["Grant", "bandwidth_grants"]


class Grant(NamedTuple):
    """A task has its bandwidths: the row of the task, from when to when (s), and its rates (bytes/s) by link."""

    row: int
    since: float
    until: float
    rates: dict[str, float]


class _Claim(NamedTuple):
    since: float
    place: int
    row: int
    start: float
    end: float
    rates: dict[str, float]


def bandwidth_grants(record: TaskRecord) -> list[Grant]:
    """Return when each task that holds bandwidths got them, in that order: one after another, once they are free.

    Tasks ask for them when their data are there, and give them back when they end; in between a task may wait for a
    CPU core, too. Executions that were stopped count.

    >>> from simmodel import Task, Workflow, simulate
    >>> from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="a"), MemoryPoolSpec(name="b")], architectures=[ArchitectureSpec(name="x")],
    ...     processors=[ProcessorSpec(name="p", count=3, type="CPU", architecture="x", pool="a")],
    ...     links=[LinkSpec(name="bus", bandwidth="10GB/s", between=("a", "b"))])
    >>> readers = [Task(id=i, run=5, bandwidth={"bus": "4GB/s"}) for i in range(3)]
    >>> [(grant.row, grant.since) for grant in bandwidth_grants(simulate(spec, Workflow(readers), "hrr"))]
    [(0, 0.0), (1, 0.0), (2, 5.0)]
    """
    there = Consumables({link.name: link.bandwidth for link in record.spec.links})
    claims = sorted(_claims(record), key=lambda each: each[:3])
    held: list[tuple[float, int, dict[str, float]]] = []  # until, number, rates
    found: list[Grant] = []
    now = -np.inf
    for number, claim in enumerate(claims):
        now = max(now, claim.since)
        while held and (held[0][0] <= now or not there.fits(claim.rates)):
            until, _, rates = heappop(held)
            there.give_back(rates)
            now = max(now, until)
        at = min(now, claim.start)  # of a cut run: its start is known better
        there.take(claim.rates)
        heappush(held, (claim.end, number, claim.rates))
        found.append(Grant(claim.row, at, claim.end, claim.rates))
    return found


def _claims(record: TaskRecord) -> list[_Claim]:
    """Return who asked for bandwidths, when and until when, those that never got them left out."""
    tasks = record.tasks
    columns = {name: tasks[name].astype(np.float64) for name in tasks.names if name.startswith(SHARE)}
    if not columns:
        return []
    asked = np.any([column > 0 for column in columns.values()], axis=0)
    rows = {str(task): row for row, task in enumerate(tasks["task"].tolist()) if asked[row]}
    index = {name: place for place, name in enumerate(record.processors["processor"].tolist())}
    claims = []
    stopped = record.stopped
    of_stopped = [rows.get(str(task), -1) for task in stopped["task"].tolist()]
    for table, those in ((tasks, np.where(asked, np.arange(len(tasks)), -1).tolist()), (stopped, of_stopped)):
        times = (table[name].astype(np.float64).tolist() for name in ("transfer_end", "start", "end"))
        for row, processor, since, start, end in zip(those, table["processor"].tolist(), *times, strict=True):
            if row >= 0 and start == start:
                rates = shares_of({name: float(column[row]) for name, column in columns.items() if column[row] > 0})
                claims.append(_Claim(since, index[processor], row, start, end if end == end else np.inf, rates))
    return claims
