"""Capture: the snapshot of a live machine."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.errors import SnapshotError
from simmodel.resources.data.data_arrival import RoomClaim
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.network.links import Link
from simmodel.resources.network.transfer import Transfer
from simmodel.resources.processors.cores import CoreTicket
from simmodel.resources.processors.taskplace import Family
from simmodel.snapshots.machine import (
    DataState,
    FlightState,
    MachineSnapshot,
    PoolState,
    ProcessorState,
    RankedTask,
    RunningTaskState,
    SetState,
    TaskState,
)
from simmodel.snapshots.references import data_in, referring
from simmodel.systems.policy_state import policy_state, stream_states
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from simmodel.resources.processors.processor import Processor
    from simmodel.systems.machine.arrivals import LiveSet
    from simmodel.systems.machine.state import MachineState

__all__ = ["capture_machine"]


def capture_machine(machine: MachineState) -> MachineSnapshot:
    """Return the snapshot of a machine, complete enough to continue from.

    Raises
    ------
    SnapshotError
        if a custom processor is inside one of its own phases, or the policy cannot be copied
    """
    _check_models(machine)
    machine.network.settle()
    tasks = [task for task in machine.tasks if task.state not in ("done", "cancelled")]
    number = {task: i for i, task in enumerate(tasks)}
    data = _data(machine, tasks)
    of = {each: d for d, each in enumerate(data)}
    sets = [each for each in machine.sets if each.left]
    set_of = {each: s for s, each in enumerate(sets)}
    for task in tasks:
        phase = None if task.stamps is None else task.place.inside_own_phase(task)
        if phase is not None:
            place = task.place
            raise SnapshotError(
                f"task {task.id} cannot be copied: it is inside {type(place).__name__}.{phase} of {place.name}"
            )
    return MachineSnapshot(
        name=machine.name,
        now=float(machine.env.now),
        seed=machine.env.seed,
        platform=machine.spec,
        options=machine.options,
        stream=machine.stream,
        policy=policy_state(machine.scheduler),
        sets=tuple(SetState(each.set.name, each.at, each.set.reconfiguration) for each in sets),
        tasks=_tasks(tasks, number, of, set_of),
        data=tuple(
            DataState(
                each.name,
                each.size,
                each.written,
                each.kept,
                tuple(pool.index for pool in each.copies),
                None if live is None else set_of[live],
            )
            for each, live in zip(data, _brought_by(machine, data), strict=True)
        ),
        pools=tuple(_pool(pool, sets, number, of) for pool in machine.pools.values()),
        places=tuple(_place(place, number, of) for place in machine.places),
        flights=_flights(machine, number, of),
        waiting=tuple(number[task] for task in machine.waiting),
        new=machine.waiting.new,
        order=_order(machine, tasks, number, of),
        loads=tuple((family, share) for family, share in machine.loads.items() if isinstance(family, str)),
        streams=stream_states(machine.env),
        submitted=len(machine.tasks),
        alarms=tuple(sorted(machine.scheduler.alarms)),
        links=machine.network.own_states(),
    )


def _check_models(machine: MachineState) -> None:
    """Raise ``SnapshotError`` if a model of the machine says that it cannot be copied."""
    parts: list[Processor | MemoryPool | Link] = [
        *machine.places,
        *machine.pools.values(),
        *machine.network.links.values(),
    ]
    for each in parts:
        if not each.snapshots:
            raise SnapshotError(f"{each.name} cannot be copied: {type(each).__name__} has snapshots = False")


def _data(machine: MachineState, tasks: list[LiveTask]) -> list[LiveData]:
    """Return the data to keep, set by set: data of tasks, data held in pools, data in flight or being written."""
    wanted: dict[LiveData, None] = {}
    for task in tasks:
        wanted.update(dict.fromkeys((*task.inputs, *task.outputs)))
    for pool in machine.pools.values():
        wanted.update(
            dict.fromkeys((*pool.held, *pool.arriving, *pool.writing, *pool.parts, *data_in(pool.own_state())))
        )
    ordered = [data for live in machine.sets for data in live.data if data in wanted]
    return list(dict.fromkeys([*ordered, *wanted]))


def _brought_by(machine: MachineState, data: list[LiveData]) -> list[LiveSet | None]:
    """Return, for each data object, the task set that has yet to bring it, or ``None``."""
    now = machine.env.now
    bring = {each: live for live in machine.sets if live.at > now for each in live.given}
    bring.update({coming.data: live for live in machine.sets for coming in live.coming})
    return [bring.get(each) for each in data]


def _tasks(
    tasks: list[LiveTask], number: dict[LiveTask, int], of: dict[LiveData, int], set_of: dict[LiveSet, int]
) -> tuple[TaskState, ...]:
    parents: list[list[int]] = [[] for _ in tasks]
    for task in tasks:
        for child in task.children:
            if child in number:
                parents[number[child]].append(number[task])
    return tuple(
        TaskState(
            id=task.id,
            set=set_of[task.submission],
            state=task.state,
            speeds=tuple(task.speeds),
            run=_known(float(task.set.run[task.row])),
            place=None if task.place is None else task.place.index,
            error=task._error,
            family=None if task.family is task else task.family,
            load=task.submission.machine.loads.get(task),
            implementations=None if task.set.implementations is None else task.set.implementations[task.row],
            inputs=tuple(of[data] for data in task.inputs),
            outputs=tuple(of[data] for data in task.outputs),
            parents=tuple(before),
            cores=float(task.cores),
            memory=task.memory,
            priority=task.priority,
            submit=_known(task.submit),
            ready=_known(task.ready),
            assigned=_known(task.assigned),
            share=task.share,
            attempts=task.attempts,
            done_share=task.done_share,
            stamps=None if task.stamps is None else tuple(task.stamps),
            core=None if task.core is None else task.core.name,
            core_since=_known(task.core_since),
            amounts=task.amounts or None,
            notes={name: found[task] for name, found in task.submission.machine.notes.items() if task in found} or None,
        )
        for task, before in zip(tasks, parents, strict=True)
    )


def _known(value: float) -> float | None:
    return None if isnan(value) else value


def _pool(pool: MemoryPool, sets: list[LiveSet], number: dict[LiveTask, int], of: dict[LiveData, int]) -> PoolState:
    clock, pasts = pool.order.state() if pool.order is not None else (0, {})
    return PoolState(
        pool.name,
        pool.used,
        pool.peak,
        held=tuple(of[each] for each in pool.held),
        leaving=tuple(of[each] for each in pool.leaving),
        stale=tuple(of[each] for each in pool.stale),
        awaited=tuple(of[each] for each in pool.awaited if each in of),
        awaits=tuple(of[coming.data] for live in sets for coming in live.coming if coming.pool is pool),
        uses=clock,
        pasts=tuple(pasts[data] for data in pool.held) if pasts else (),
        parts=tuple((of[data], left) for data, left in pool.parts.items()),
        own=referring(pool.own_state(), number, of),
    )


def _place(place: Processor, number: dict[LiveTask, int], of: dict[LiveData, int]) -> ProcessorState:
    state = place.state()
    return ProcessorState(
        place.name,
        tuple(number[task] for task in state.queue),
        tuple(RankedTask(priority, rank, number[task]) for priority, rank, task in state.ranked),
        state.numbers,
        state.queued,
        state.since,
        state.until,
        _family(state.loaded, number),
        _family(state.last_family, number),
        tuple(RunningTaskState(number[run.work], run.started, run.expected_end) for run in state.running),
        referring(place.own_state(), number, of),
    )


def _family(family: Family, number: dict[LiveTask, int]) -> int | str | None:
    """Return a family name; for a task without a family its number, or ``None`` once it is done."""
    return family if family is None or isinstance(family, str) else number.get(family)


def _flights(machine: MachineState, number: dict[LiveTask, int], of: dict[LiveData, int]) -> tuple[FlightState, ...]:
    """Return the data bound for pools: those in flight, in the order of departure, then those still to be sent."""
    found: list[tuple[tuple[bool, int, int], FlightState]] = []
    for pool in machine.pools.values():
        for data, arrival in pool.arriving.items():
            owner = None if arrival.owner is None else number[arrival.owner]
            state = FlightState(of[data], pool.index, owner, arrival.stale, part=arrival.part)
            flight = arrival.flight
            if flight is not None:
                moving = flight.moving
                shared = isinstance(moving, Transfer)
                again = shared and moving.status == "failed"  # to be sent again once its links are up
                state = attrs.evolve(
                    state,
                    source=flight.source.index,
                    since=flight.since,
                    task=None if flight.task is None else number[flight.task],
                    cause=flight.cause,
                    left=moving.size - (0.0 if again else moving.bytes_done) if shared else 0.0,
                    lag=(moving.way.wait if again else moving.lag) if shared else 0.0,
                    at=None if shared else flight.ends,
                )
            found.append(((flight is None, 0 if flight is None else flight.number, len(found)), state))
    return tuple(state for _, state in sorted(found, key=lambda entry: entry[0]))


def _order(
    machine: MachineState, tasks: list[LiveTask], number: dict[LiveTask, int], of: dict[LiveData, int]
) -> tuple[int, ...]:
    """Return the tasks on processors, ordered by the creation of the event, ticket or claim that each waits for.

    Initial data that wait for room are among them: ``-1 - d`` for data d.
    """
    made = {id(entry[3]): entry[2] for entry in machine.env._queue}
    found = []
    for task in tasks:
        if task.stamps is None:
            continue
        target: Any = task.place.process_of(task).target
        if isinstance(target, CoreTicket):
            key = (1, target.number)
        elif isinstance(target, RoomClaim):
            continue
        else:
            key = (0, made[id(target)]) if id(target) in made else (3, task.index)
        found.append((key, number[task]))
    for pool in machine.pools.values():
        for place, claim in enumerate(pool.claims):
            waiter: Any = claim.task
            waits = number[waiter] if isinstance(waiter, LiveTask) else -1 - of[waiter.data]
            found.append(((2, place), waits))
    return tuple(i for _, i in sorted(found, key=lambda entry: entry[0]))
