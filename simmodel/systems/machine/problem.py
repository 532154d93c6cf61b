"""A machine as planners see it: tasks and processors as plain lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simmodel.scheduling.problem import Problem
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from simmodel.systems.machine.state import MachineState

__all__ = ["problem_of"]


def problem_of(machine: MachineState, tasks: Sequence[LiveTask] | None = None) -> Problem:
    """Return the planning problem of some tasks (default: all that wait) on all places."""
    planned = list(machine.waiting) if tasks is None else list(tasks)
    places = machine.places
    mover = machine.mover
    mover.follow()
    kinds = [place.kind for place in places]
    position = {task: i for i, task in enumerate(planned)}
    writer = {data: i for i, task in enumerate(planned) for data in task.outputs}
    parents: list[dict[int, float]] = [{} for _ in planned]
    for i, task in enumerate(planned):
        for child in task.children:
            j = position.get(child)
            if j is not None:
                parents[j][i] = 0.0
    now = machine.env._now
    arrival: list[list[float]] | None = None
    for i, task in enumerate(planned):
        for data in task.inputs:
            parent = writer.get(data)
            if parent is not None and parent in parents[i]:
                parents[i][parent] += data.size
            elif data.copies or parent is None:
                if arrival is None:
                    arrival = [[now] * len(places) for _ in planned]
                row = arrival[i]
                for p, place in enumerate(places):
                    row[p] = max(row[p], now + mover.transfer_time(data, place.pool))
    owner = {id(place.core): place.index for place in places if place.core is not None}
    objects = list(dict.fromkeys(each for task in planned for each in (*task.inputs, *task.outputs)))
    number = {each: i for i, each in enumerate(objects)}
    return Problem(
        [[task.speeds[kind] for kind in kinds] for task in planned],
        [tuple(found.items()) for found in parents],
        mover.latency,
        mover.per_byte,
        pools=[place.pool.index for place in places],
        now=now,
        available=[place.available for place in places],
        arrival=arrival,
        cores=[task.cores for task in planned],
        capacity=[place.capacity for place in places],
        setup=[place.spec.setup for place in places],
        setup_core=[[owner[id(core)] for core in place.setup_cores] for place in places],
        reconfiguration=[_longest_load(machine, task) for task in planned],
        family=[task.family for task in planned],
        loaded=[place.last_family for place in places],
        reconfigures=[place.reconfigures for place in places],
        dma=[place.spec.dma or place.core is not None for place in places],
        overlap=[place.overlap for place in places],
        parallel=mover.parallel,
        sizes=[each.size for each in objects],
        reads=[[number[each] for each in task.inputs] for task in planned],
        writes=[[number[each] for each in task.outputs] for task in planned],
        copies=[_where(each, now) for each in objects],
        tasks=planned,
        places=places,
    )


def _where(data: LiveData, now: float) -> dict[int, float]:
    """Return the pools that hold data, or will hold them once written, each with the instant (s) from which it does."""
    copies = data.copies or ((data.coming,) if data.coming is not None else ())
    return {pool.index: now for pool in copies}


def _longest_load(machine: MachineState, task: LiveTask) -> float:
    return max(
        (machine.reconfiguration_time(place.spec, task) for place in machine.places if place.reconfigures), default=0.0
    )
