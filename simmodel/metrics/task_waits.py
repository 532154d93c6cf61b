"""The waits of a task of a machine from its submission to its execution: reasons, and holders of the resources."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.records.task_record import PHASES
from simmodel.resources.pools.pool import Consumables
from simmodel.work.table import Table
from simmodel.work.task import SHARE, shares_of

if TYPE_CHECKING:
    from simmodel.records.task_record import TaskRecord

__all__ = ["Grant", "bandwidth_grants", "row_of_task", "task_waits"]

_NAMED = 3  # of who held it, in one row
_AWAY = ("write-back", "spill")


class _Span(NamedTuple):
    since: float
    until: float
    reason: str
    by: str


def row_of_task(record: TaskRecord, task: int | str) -> int:
    """Return the row of a task; raises ``InputError`` if it is unknown."""
    found = np.flatnonzero(record.tasks["task"].astype(str) == str(task))
    if not len(found):
        raise InputError(f"must be one of the {len(record.tasks):,} tasks, got {task!r}", place="task")
    return int(found[0])


def task_waits(record: TaskRecord, task: int | str) -> Table:
    """Return the waits of a task in order: ``since``, ``until``, ``reason`` and ``by``, the holder.

    The reasons: ``dependencies`` (by the parent that ended last), ``decision`` of the policy, ``order`` (a task that
    was ready later had its processor, or it was kept for the one before it), ``processor`` (busy with other tasks),
    ``setup core`` (the CPU core for its setup was busy), ``setup``, ``reconfiguration``, ``memory`` (room in the pool),
    ``data`` (the transfer of its inputs), ``bandwidth`` (that it holds while it runs, see
    :attr:`Task.bandwidth <simmodel.work.task.Task.bandwidth>`) and ``core`` (a CPU core that it needs to run was busy).

    Raises
    ------
    InputError
        the task is unknown

    >>> from simmodel.metrics._examples import two_kinds
    >>> for span in task_waits(two_kinds(), "b").rows(): print(*span.values())
    0.0 3.0 dependencies a
    3.0 4.0 setup cpu
    4.0 5.0 data d0
    """
    found = [each for each in _Waits(record, row_of_task(record, task)).spans() if each.until > each.since]
    joined: list[_Span] = []
    for each in found:
        if joined and joined[-1][2:] == each[2:] and joined[-1].until == each.since:
            each = each._replace(since=joined.pop().since)
        joined.append(each)
    since, until, reason, by = zip(*joined, strict=True) if joined else ((), (), (), ())
    return Table(
        {
            "since": np.array(since, dtype=np.float64),
            "until": np.array(until, dtype=np.float64),
            "reason": np.array(reason, dtype=str),
            "by": np.array(by, dtype=str),
        }
    )


class _Waits:
    """The waits of the task of one row."""

    def __init__(self, record: TaskRecord, row: int) -> None:
        self.record = record
        self.row = row
        tasks = record.tasks
        self.names = tasks["task"].astype(str)
        self.name = str(self.names[row])
        self.processor, self.pool = str(tasks["processor"][row]), str(tasks["pool"][row])
        self.core = str(tasks["setup_core"][row])
        self.assigned = tasks["assigned"].astype(np.float64)
        self.ended = np.where(np.isnan(record.moments[-1]), np.inf, record.moments[-1])
        self.taken = record.moments[PHASES.index("waiting for setup")]

    def spans(self) -> Iterator[_Span]:
        """Yield the waits in order; some may be empty."""
        start, end = (each[:, self.row] for each in self.record.spans)
        for phase, since, until in zip(PHASES[:-1], start.tolist(), end.tolist(), strict=False):
            if until > since:
                yield from _PHASES[phase](self, since, until)

    # ------------------------------------------------------------------ one phase each

    def dependencies(self, since: float, until: float) -> Iterator[_Span]:
        edges = self.record.edges
        parents = edges["parent"][edges["child"] == self.row]
        by = str(self.names[parents[np.argmax(self.ended[parents])]]) if len(parents) else ""
        yield _Span(since, until, "dependencies", by)

    def queue(self, since: float, until: float) -> Iterator[_Span]:
        """Yield the wait for the processor: for a decision, then for the tasks that have it."""
        decided = float(np.nan_to_num(self.assigned[self.row], nan=until))
        if decided > since:
            yield _Span(since, min(decided, until), "decision", "")
        yield from self._busy(self.processor, max(since, decided), until, "processor")

    def setup_core(self, since: float, until: float) -> Iterator[_Span]:
        yield from self._busy(self.core or self.processor, since, until, "setup core")

    def setup(self, since: float, until: float) -> Iterator[_Span]:
        yield _Span(since, until, "setup", self.core)

    def reconfiguration(self, since: float, until: float) -> Iterator[_Span]:
        yield _Span(since, until, "reconfiguration", self.processor)

    def memory(self, since: float, until: float) -> Iterator[_Span]:
        """Yield the wait for room in the pool, by those who left it then."""
        slack = 1e-9 * max(1.0, abs(until))
        there = (self.record.tasks["pool"] == self.pool) & (np.abs(self.ended - until) <= slack)
        there[self.row] = False
        names = self.names[there].tolist()
        if not names:
            moves = self.record.transfers
            gone = np.isin(moves["cause"], _AWAY) & (moves["source"] == self.pool)
            gone &= np.abs(moves["end"].astype(np.float64) - until) <= slack
            names = [f"{moves['cause'][i]} of {moves['object'][i]}" for i in np.flatnonzero(gone).tolist()]
        yield _Span(since, until, "memory", _named(names))

    def data(self, since: float, until: float) -> Iterator[_Span]:
        moves = self.record.transfers
        mine = (moves["task"].astype(str) == self.name) & (moves["start"].astype(np.float64) < until)
        mine &= (moves["end"].astype(np.float64) > since) & ~np.isin(moves["cause"], _AWAY)
        yield _Span(since, until, "data", _named([str(each) for each in moves["object"][mine].tolist()]))

    def run_core(self, since: float, until: float) -> Iterator[_Span]:
        """Yield the wait for the bandwidth that the task holds, by those who gave it back then, and for a core."""
        grants = bandwidth_grants(self.record)
        mine = next((each for each in reversed(grants) if each.row == self.row), None)
        given = since if mine is None else min(max(since, mine.since), until)
        if mine is not None and given > since:
            before = [each for each in grants if each.until == given]  # of other links, if one ahead waited for those
            before = [each for each in before if each.rates.keys() & mine.rates.keys()] or before
            yield _Span(since, given, "bandwidth", _named([str(self.names[each.row]) for each in before]))
        yield from self._busy(self.processor, given, until, "core")

    # ------------------------------------------------------------------ who held a processor

    def _held(self, processor: str) -> list[tuple[float, float, float, str]]:
        """Return who had a processor: from, until, since when ready, and its name."""
        tasks = self.record.tasks
        rows = np.flatnonzero((tasks["processor"] == processor) & np.isfinite(self.taken))
        ready = np.fmax(tasks["ready"].astype(np.float64), self.assigned)
        found = [
            (float(self.taken[i]), float(self.ended[i]), float(ready[i]), str(self.names[i]))
            for i in rows.tolist()
            if i != self.row
        ]
        for table, place in ((self.record.cpu_phases, "core"), (self.record.stopped, "processor")):
            begun = "taken" if place == "processor" else "start"
            found += [
                (float(table[begun][i]), float(table["end"][i]), -np.inf, str(table["task"][i]))
                for i in np.flatnonzero(table[place] == processor).tolist()
                if str(table["task"][i]) != self.name
            ]
        return sorted(found)

    def _busy(self, processor: str, since: float, until: float, reason: str) -> Iterator[_Span]:
        """Yield by whom a processor was held; in between it is kept for the next one."""
        if not until > since:
            return
        held = [each for each in self._held(processor) if each[0] < until and each[1] > since]
        cuts = sorted({since, until, *(at for each in held for at in each[:2] if since < at < until)})
        mine = float(np.fmax(self.record.tasks["ready"][self.row], self.assigned[self.row]))
        for begin, end in pairwise(cuts):
            now = [each for each in held if each[0] <= begin and each[1] >= end]
            after = next((each for each in held if each[0] >= end), None)
            names = _named(list(dict.fromkeys(each[3] for each in now)))
            if now:
                later = reason == "processor" and all(each[2] > mine for each in now)
                yield _Span(begin, end, "order" if later else reason, names)
            else:
                yield _Span(begin, end, "order" if reason == "processor" else reason, "" if after is None else after[3])


_PHASES = {
    "blocked on dependencies": _Waits.dependencies,
    "blocked on setup": _Waits.queue,
    "waiting for setup": _Waits.setup_core,
    "setup": _Waits.setup,
    "reconfiguration": _Waits.reconfiguration,
    "waiting for memory": _Waits.memory,
    "transfer": _Waits.data,
    "waiting for core": _Waits.run_core,
}


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


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
