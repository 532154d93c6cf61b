"""The record of a machine as tables."""

from __future__ import annotations

from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.display import counted
from simmodel.records.tables import reason_table
from simmodel.records.task_record import CPU_USE, STOPPED, TRANSFERS
from simmodel.resources.processors.services import STAMPS
from simmodel.results.machine import MachineResult
from simmodel.systems.machine.recorded import assumed
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.systems.machine.state import MachineState
    from simmodel.work.taskset import LiveTask

__all__ = ["machine_result"]

_MOMENTS = ("submit", "ready", "assigned")


def machine_result(machine: MachineState, name: str) -> MachineResult:
    """Return the result of a machine so far.

    >>> from simmodel import Environment, Machine, TaskSet
    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(
    ...     pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="core", type="CPUCore", architecture="x86", pool="ram")])
    >>> env = Environment()
    >>> machine = Machine(env, spec)
    >>> env.run(machine.submit(TaskSet([3.0, 4.0])))
    <LiveSet tasks: 2 of 2 tasks done>
    >>> machine_result(machine, "two").tasks["end"]
    array([3., 7.])
    """
    tasks = machine.tasks
    n = len(tasks)
    columns: dict[str, NDArray[Any]] = {each: np.full(n, np.nan) for each in STAMPS}
    done = np.array(list(map(attrgetter("index"), machine.done)), dtype=np.int64)
    for each, values in zip(STAMPS, np.array(machine.phases).reshape(-1, len(STAMPS)).T, strict=True):
        columns[each][done] = values
    status = np.array([task.state for task in tasks], dtype=str)
    placed = np.array([-1 if task.place is None else task.place.index for task in tasks], dtype=np.int64)
    for each in _MOMENTS:
        columns[each] = _instants(tasks, each)
    speeds = (
        np.concatenate([each.speeds for each in machine.sets]) if machine.sets else np.zeros((0, len(machine.kinds)))
    )
    kinds = np.array([place.kind for place in machine.places])
    names = np.array(["", *(place.name for place in machine.places)])
    pools = np.array(["", *(place.pool.name for place in machine.places)])
    setup_core = np.full(n, "", dtype=names.dtype)
    for core, task, what, _, _ in machine.core_use:
        if what == "setup":
            setup_core[task.index] = core
    table = Table(
        {
            **_noted(machine),
            "task": _labels([name for each in machine.sets for name in each.set.ids]),
            "processor": names[placed + 1],
            **columns,
            "set": np.repeat(np.arange(len(machine.sets)), [len(each.set) for each in machine.sets]),
            "status": status,
            "attempts": np.array([task.attempts for task in tasks], dtype=np.int64),
            "expected_run": np.where(placed >= 0, speeds[np.arange(n), kinds[placed]], np.nan),
            "run_best": speeds.min(axis=1, initial=inf),
            "setup_core": setup_core,
            "family": _families(machine),
            "pool": pools[placed + 1],
            "cores": _filled(machine, "cores", 1.0),
        }
    )
    report = Report()
    for submission in machine.sets:
        report = report + submission.set.report
        over = not submission.left and not submission.withdrawn and bool(submission.tasks)
        rows = [task.index for task in submission.tasks] if over else []
        took = float(columns["end"][rows].max()) - submission.at if over else None
        for sentence in assumed(submission.set, machine.spec, took):
            report.note(sentence)
    if machine.mover.failures:
        report.note(f"{counted(machine.mover.failures, 'transfer')} failed with a link; the data were sent again")
    return MachineResult(
        tasks=table,
        spec=machine.spec,
        transfers=_table(machine.mover.moved, TRANSFERS),
        memory={pool.name: pool.steps() for pool in machine.pools.values()},
        peaks={pool.name: pool.peak for pool in machine.pools.values()},
        cpu_phases=_table(machine.core_use, CPU_USE),
        stopped=_stopped(machine),
        sets=[each.set for each in machine.sets],
        plan=_plan(machine),
        speeds=_by_architecture(machine, speeds),
        started=min((each.at for each in machine.sets), default=0.0),
        ended=float(machine.env.now),
        decisions=machine.scheduler.timing(),
        reasons=reason_table(machine.scheduler.reasons),
        report=report,
        name=name,
    )


def _noted(machine: MachineState) -> dict[str, NDArray[np.float64]]:
    """Return the amounts of tasks, and the notes of processors on them; nan where a task has none."""
    columns: dict[str, NDArray[np.float64]] = {}
    for task in machine.tasks if any(each.set.amounts is not None for each in machine.sets) else ():
        for name, value in task.amounts.items():
            columns.setdefault(name, np.full(len(machine.tasks), np.nan))[task.index] = value
    for name, found in machine.notes.items():
        column = columns.setdefault(name, np.full(len(machine.tasks), np.nan))
        for task, value in found.items():
            column[task.index] = value
    return columns


def _instants(tasks: list[LiveTask], moment: str) -> NDArray[np.float64]:
    """Return one moment of each task (s); nan if it has not happened."""
    return np.array(list(map(attrgetter(moment), tasks)), dtype=float)


def _labels(names: list[Any]) -> NDArray[Any]:
    if set(map(type, names)) <= {int}:
        return np.array(names, dtype=np.int64)
    return np.array(list(map(str, names)), dtype=str)


def _families(machine: MachineState) -> NDArray[Any]:
    found: list[NDArray[Any]] = [np.zeros(0, dtype=str)]
    for each in machine.sets:
        names = each.set.families
        found.append(np.array([""] * len(each.set) if names is None else [name or "" for name in names], dtype=str))
    return np.concatenate(found)


def _filled(machine: MachineState, column: str, default: float) -> NDArray[np.float64]:
    """Return a column of the task sets; sets without it get a default."""
    found: list[NDArray[np.float64]] = [np.zeros(0)]
    for each in machine.sets:
        values = getattr(each.set, column)
        found.append(np.full(len(each.set), default) if values is None else np.array(values, dtype=float))
    return np.concatenate(found)


def _table(rows: list[Any], names: tuple[str, ...]) -> Table | None:
    if not rows:
        return None
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    made = {name: np.array(column) for name, column in columns.items() if name != "task"}
    made["task"] = _labels(["" if task is None else task.id for task in columns["task"]])
    return Table({name: made[name] for name in names})


def _stopped(machine: MachineState) -> Table | None:
    """Return the stopped executions."""
    if not machine.cut:
        return None
    tasks, places, stamps = zip(*machine.cut, strict=True)
    instants = np.array(stamps, dtype=float).T
    return Table(
        {
            "task": _labels([task.id for task in tasks]),
            "processor": np.array([place.name for place in places], dtype=str),
            **dict(zip(STOPPED[2:-1], instants, strict=True)),
            "cores": np.array([task.cores for task in tasks], dtype=float),
        }
    )


def _plan(machine: MachineState) -> Table | None:
    planned = getattr(machine.scheduler.policy, "planned", None)
    if not planned:
        return None
    tasks, places, start, end = zip(*planned, strict=True)
    return Table(
        {
            "task": _labels([task.id for task in tasks]),
            "processor": [place.name for place in places],
            "start": np.array(start, dtype=float),
            "end": np.array(end, dtype=float),
        }
    )


def _by_architecture(machine: MachineState, speeds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected seconds of tasks on each architecture: the minimum over its kinds of processors."""
    found = np.full((len(speeds), len(machine.spec.architectures)), inf)
    for a, architecture in enumerate(machine.spec.architectures):
        kinds = [k for k, kind in enumerate(machine.kinds) if kind.architecture == architecture.name]
        if kinds:
            found[:, a] = speeds[:, kinds].min(axis=1)
    return found
