"""Sentences about the waiting tasks of a machine: their reasons, and the contents of memory that they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simmodel.records.task_moments import PHASES

if TYPE_CHECKING:
    from simmodel.resources.data.memory import MemoryPool
    from simmodel.systems.machine.state import MachineState
    from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["waiting_report"]

_NAMED = 3  # data objects, and readers of each, that a sentence names


def waiting_report(machine: MachineState) -> Iterator[str]:
    """Yield one sentence for each task that has not ended, and for data that wait for room."""
    readers: dict[LiveData, list[LiveTask]] = {}
    for task in machine.tasks:
        if task.state not in ("done", "cancelled"):
            for data in task.inputs:
                readers.setdefault(data, []).append(task)
    for submission in machine.sets:
        for coming in submission.coming:
            filled = _filled(coming.pool, readers)
            yield f"data {coming.data.name} of {submission.set.name} wait for room in {coming.pool}{filled}"
    for task in machine.tasks:
        if task.state in ("done", "cancelled"):
            continue
        where = f" on {task.place.name}" if task.place is not None else ""
        held = task.place.held_by(task) if task.place is not None and not task.missing else ""
        why = f": {held}" if held else ""
        stamps = task.stamps or [task.ready]
        phase = PHASES[1 + len(stamps)]
        if task.state == "running" and phase != "waiting for memory":
            yield f"task {task.id}{where}: {phase} since {stamps[-1]:g}{f' ({held})' if held else ''}"
        elif task.state == "running":
            pool = task.place.pool
            needs = f"{pool.needs(task):g} more bytes, {pool.used:g} of {pool.size:g} are used"
            yield f"task {task.id} waits for room in pool {pool.name}{where}: {needs}{_filled(pool, readers)}"
        elif task.missing:
            yield f"task {task.id} waits for {task.missing} tasks{where}"
        else:
            yield f"task {task.id} waits{where or ' for a decision'} since {task.ready:g}{why}"


def _filled(pool: MemoryPool, readers: dict[LiveData, list[LiveTask]]) -> str:
    """Return the contents of a full pool, the largest data first, and which tasks will read them."""
    held = sorted((data for data in pool.held if data.size), key=lambda data: -data.size)
    parts = [f"{data.name} ({data.size:g} bytes, {_use(data, readers)})" for data in held[:_NAMED]]
    if rest := held[_NAMED:]:
        parts.append(f"{len(rest)} more data objects ({sum(data.size for data in rest):g} bytes)")
    reserved = pool.used - sum(data.size for data in held)
    if reserved > pool.size * 1e-12:
        parts.append(f"{reserved:g} bytes reserved by tasks and transfers")
    return f", by {', '.join(parts)}" if parts else ""


def _use(data: LiveData, readers: dict[LiveData, list[LiveTask]]) -> str:
    """Return which tasks will read data."""
    found = readers.get(data, [])
    if not found:
        return "a result" if data.kept else "not read any more"
    names = [f"{task.id}{f' on {task.place.name}' if task.place is not None else ''}" for task in found[:_NAMED]]
    more = f" and {len(found) - _NAMED} more tasks" if len(found) > _NAMED else ""
    return f"read by {', '.join(names)}{more}"
