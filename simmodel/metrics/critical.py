"""The critical path of a run of a machine: the chain of causes from the last end back to the first submission."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.records.task_record import PHASES
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.task_record import TaskRecord

__all__ = ["critical_path", "critical_shares"]

WAITS = ("blocked on dependencies", "blocked on setup", "waiting for setup", "waiting for memory", "waiting for core")
_END = len(PHASES)  # the position of a task's end among its moments


class _Cause(NamedTuple):
    """The cause of a wait: the row of the task that caused it, up to which of its moments, and the kind of cause."""

    row: int
    moment: int
    what: str


def critical_path(result: TaskRecord) -> Table:
    """Return the steps of the critical path from the first submission to the last end, in order of time.

    The path is followed backwards from the last end. A wait is replaced by its cause: the task that held the processor,
    the last parent to end, and so on. So each step is a phase of a task (or a wait of unknown cause) and begins when
    the step before it ends.

    Columns
    -------
    task, processor
        of the step
    phase
        of :data:`~simmodel.records.task_record.PHASES`
    start, end
        instants
    cause
        why it began then: ``"arrival"`` (its submission), ``"next phase"`` (of the same task), ``"dependency"``,
        ``"processor"`` (busy with another task until then), ``"core"`` (likewise the CPU core that it needed),
        ``"memory"`` (a task freed room in the pool), ``"write-back"``, or ``"decision"`` (no other cause)
    after
        the task that it waited for; empty if there was none

    >>> from simmodel.metrics._examples import two_kinds
    >>> for step in critical_path(two_kinds()).rows():
    ...     print(*step.values())
    a cpu execution 0.0 3.0 arrival
    b gpu setup 3.0 4.0 dependency a
    b gpu transfer 4.0 5.0 next phase
    b gpu execution 5.0 7.0 next phase
    """
    walk = _Walk(result)
    steps = walk.back()
    tasks = result.tasks
    rows = np.array([step[0] for step in steps], dtype=np.int64)
    after = [step[5] for step in steps]
    names = tasks["task"].tolist()
    return Table(
        {
            "task": tasks["task"][rows],
            "processor": tasks["processor"][rows],
            "phase": np.array([PHASES[step[1]] for step in steps], dtype=str),
            "start": np.array([step[2] for step in steps], dtype=np.float64),
            "end": np.array([step[3] for step in steps], dtype=np.float64),
            "cause": np.array([step[4] for step in steps], dtype=str),
            "after": np.array(["" if row < 0 else str(names[row]) for row in after], dtype=str),
        }
    )


def critical_shares(result: TaskRecord) -> dict[str, float]:
    """Return the time of each phase on the critical path, the longest first.

    >>> from simmodel.metrics._examples import two_kinds
    >>> critical_shares(two_kinds())
    {'execution': 5.0, 'setup': 1.0, 'transfer': 1.0}
    """
    path = critical_path(result)
    took = path["end"] - path["start"]
    totals = {phase: float(took[path["phase"] == phase].sum()) for phase in PHASES}
    return dict(sorted(((k, v) for k, v in totals.items() if v > 0), key=lambda pair: -pair[1]))


class _Ends:
    """Rows by a name and the instant at which they ended."""

    def __init__(self, names: NDArray[np.generic], ends: NDArray[np.float64]) -> None:
        known = np.flatnonzero(np.isfinite(ends))
        order = known[np.lexsort((known, ends[known], names[known]))] if len(known) else known
        self._ends, self._order = ends[order], order
        found, first = np.unique(names[order], return_index=True)
        last = np.append(first[1:], len(order))[: len(first)]
        self._of = dict(zip(found.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True))

    def at(self, name: str, instant: float) -> list[int]:
        """Return the rows of this name that ended at an instant, up to rounding."""
        first, last = self._of.get(name, (0, 0))
        slack = 1e-9 * max(1.0, abs(instant))
        low, high = np.searchsorted(self._ends[first:last], (instant - slack, instant + slack))
        return [int(row) for row in self._order[first + low : first + high]]


class _Walk:
    """The walk back from the last end."""

    def __init__(self, result: TaskRecord) -> None:
        self.result = result
        tasks = result.tasks
        self.processor: list[str] = tasks["processor"].tolist()
        self.pool: list[str] = tasks["pool"].tolist()
        self.core: list[str] = tasks["setup_core"].tolist()
        self.ends = _Ends(tasks["processor"], result.moments[-1])

    @cached_property
    def _row_of(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, task in enumerate(self.result.tasks["task"].tolist()):
            rows.setdefault(str(task), []).append(row)
        return rows

    @cached_property
    def _cores(self) -> _Ends:
        table = self.result.cpu_phases
        return _Ends(table["core"], table["end"].astype(np.float64))

    @cached_property
    def _pool_ends(self) -> _Ends:
        return _Ends(self.result.tasks["pool"], self.result.moments[-1])

    @cached_property
    def _moves(self) -> _Ends:
        table = self.result.transfers
        away = np.isin(table["cause"], ("write-back", "spill"))
        return _Ends(np.where(away, table["source"], ""), np.where(away, table["end"], np.nan))

    @cached_property
    def _parents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        edges = self.result.edges
        order = np.argsort(edges["child"], kind="stable")
        return edges["child"][order], edges["parent"][order]

    # ------------------------------------------------------------------ the walk

    def back(self) -> list[tuple[int, int, float, float, str, int]]:
        """Return the steps in order of time: row, phase, start, end, cause, and the row of the task that caused it."""
        moments = self.result.moments
        ends = moments[-1]
        if not np.isfinite(ends).any():
            return []
        row, moment = int(np.nanargmax(ends)), _END
        steps: list[list[Any]] = []
        followed: set[tuple[int, int]] = set()
        while moment > 0:
            phase = moment - 1
            start, end = float(moments[phase, row]), float(moments[moment, row])
            moment = phase
            if PHASES[phase] == "transfer" and end > start:
                begun = self._moved_from(row, start, end)
                if begun > start:  # until then it waited for the CPU core that moves the data
                    steps.append([row, phase, begun, end, "next phase", -1])
                    cause = self._who_moved(row, begun)
                    if cause is not None:
                        steps[-1][4:] = [cause.what, cause.row]
                        row, moment = cause.row, cause.moment
                    else:
                        steps.append([row, PHASES.index("waiting for core"), start, begun, "decision", -1])
                    continue
            if PHASES[phase] not in WAITS:
                if end > start or phase == _END - 1:
                    steps.append([row, phase, start, end, "next phase", -1])
                continue
            if end <= start:
                continue
            cause = None if (row, phase) in followed else self._cause(row, phase, end)
            followed.add((row, phase))
            if cause is not None and cause.row != row:
                steps[-1][4:] = [cause.what, cause.row]
                row, moment = cause.row, cause.moment
                continue
            steps[-1][4:] = ["next phase" if phase else "dependency", -1]
            steps.append([row, phase, start, end, "decision" if cause is None else cause.what, -1])
        if steps:
            steps[-1][4:] = ["arrival", -1]
        return [(each[0], each[1], each[2], each[3], each[4], each[5]) for each in reversed(steps)]

    def _cause(self, row: int, phase: int, at: float) -> _Cause | None:
        name = PHASES[phase]
        if name == "blocked on dependencies":
            return self._last_parent(row)
        if name == "blocked on setup":
            return self._who_left(self.processor[row], row, at, "processor")
        if name == "waiting for setup":
            return self._who_left(self.core[row], row, at, "core")
        if name == "waiting for core":
            return self._who_left(self.processor[row], row, at, "core")
        return self._who_made_room(row, at)

    def _last_parent(self, row: int) -> _Cause | None:
        children, parents = self._parents
        low, high = np.searchsorted(children, (row, row + 1))
        if low == high:
            return None
        found = parents[low:high]
        return _Cause(int(found[np.argmax(self.result.moments[-1][found])]), _END, "dependency")

    def _who_left(self, processor: str, row: int, at: float, what: str) -> _Cause | None:
        """Return the task that held a processor until this instant: it ran there, or was set up or fed by it."""
        for other in self.ends.at(processor, at):
            if other != row:
                return _Cause(other, _END, what)
        for served in self._cores.at(processor, at):
            found = self._served(served, row, at)
            if found is not None:
                return found
        return None

    def _served(self, served: int, row: int, at: float) -> _Cause | None:
        """Return the task that a core set up, or moved data for, until this instant."""
        table = self.result.cpu_phases
        moment = PHASES.index("setup" if str(table["what"][served]) == "setup" else "transfer") + 1
        others = [other for other in self._row_of.get(str(table["task"][served]), []) if other != row]
        close = [other for other in others if abs(self.result.moments[moment, other] - at) <= 1e-9 * max(1.0, abs(at))]
        return _Cause(close[0], moment, "core") if close else None

    def _who_made_room(self, row: int, at: float) -> _Cause | None:
        """Return the cause of a wait for room in a pool: data that had to leave it, or a task that used it."""
        if self._moves.at(self.pool[row], at):
            return _Cause(row, 0, "write-back")
        for other in self._pool_ends.at(self.pool[row], at):
            if other != row:
                return _Cause(other, _END, "memory")
        return None

    @cached_property
    def _moved_by_core(self) -> dict[str, list[int]]:
        table = self.result.cpu_phases
        found: dict[str, list[int]] = {}
        for i in np.flatnonzero(table["what"] == "transfer").tolist():
            found.setdefault(str(table["task"][i]), []).append(i)
        return found

    def _moves_of(self, row: int) -> list[int]:
        return self._moved_by_core.get(str(self.result.tasks["task"][row]), [])

    def _moved_from(self, row: int, start: float, end: float) -> float:
        """Return the instant from which a CPU core moved the data of a task; if none did, the start."""
        table = self.result.cpu_phases
        begun = [float(table["start"][i]) for i in self._moves_of(row)]
        return min((each for each in begun if start <= each <= end), default=start)

    def _who_moved(self, row: int, at: float) -> _Cause | None:
        """Return the task that held the CPU core that moves the data of a task until this instant."""
        table = self.result.cpu_phases
        for i in self._moves_of(row):
            if float(table["start"][i]) == at:
                return self._who_left(str(table["core"][i]), row, at, "core")
        return None
