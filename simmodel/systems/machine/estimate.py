"""Estimate when a machine would finish work submitted now, from expected run times and without submitting it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simmodel.foundation.errors import ImpossibleWork
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.machine.arrivals import why_not
from simmodel.systems.machine.run_times import expected_speeds
from simmodel.work.precedence import topological_order
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from simmodel.systems.machine.state import MachineState

__all__ = ["estimate_set"]


def estimate_set(machine: MachineState, tasks: TaskSet) -> Estimate:
    """Return when the first task of a set would start, and how long the whole set would take from then on.

    Tasks are taken in topological order; each goes to the processor with the earliest expected finish, including
    setup and the work already queued there. Transfers and reconfiguration are ignored; the work of tasks that wait for
    a decision is shared evenly among the processors.

    Raises
    ------
    ImpossibleWork
        if the machine can never run the whole set
    """
    reason = why_not(machine, tasks)
    if reason is not None:
        raise ImpossibleWork(f"{machine.name}: {reason}")
    now = machine.env.now
    speeds = expected_speeds(machine, tasks).tolist()
    cores = tasks.cores
    waiting = sum(task.planned * task.cores for task in machine.waiting) / machine.capacity
    free = [max(now, place.available) + waiting for place in machine.places]
    ends = [now] * len(tasks)
    first, last = inf, now
    for i in _order(tasks):
        ready = max([ends[parent] for parent in tasks.parents[i]], default=now) if tasks.parents is not None else now
        wide = 1.0 if cores is None else float(cores[i])
        best, chosen = (inf, inf), 0
        for p, place in enumerate(machine.places):
            start = max(ready, free[p])
            end = start + place.spec.setup + speeds[i][place.kind]
            if (end, start) < best:
                best, chosen = (end, start), p
        ends[i], start = best
        free[chosen] += (ends[i] - start) * wide / machine.places[chosen].capacity
        if machine.places[chosen].capacity == 1:
            free[chosen] = ends[i]
        first, last = min(first, start), max(last, ends[i])
    first = min(first, last)
    return Estimate(first, 0.0, 0.0, last - first)


def _order(tasks: TaskSet) -> list[int]:
    """Return the rows of a set in topological order."""
    if tasks.parents is None or tasks.children is None:
        return list(range(len(tasks)))
    return list(topological_order(dict(enumerate(tasks.parents)), dict(enumerate(tasks.children))))
