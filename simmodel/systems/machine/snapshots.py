"""Snapshots of a live machine, taken and continued."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np
from simpy.events import URGENT

from simmodel.foundation.errors import InputError, SnapshotError, clipped
from simmodel.resources.data.memory import MemoryPool, RoomClaim
from simmodel.resources.network.links import Link
from simmodel.resources.network.transfer import Transfer
from simmodel.resources.processors.services import CoreTicket
from simmodel.resources.processors.taskplace import Family, QueueState, RunningTask
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
    data_in,
    referred,
    referring,
)
from simmodel.systems.machine.mover import Flight
from simmodel.systems.machine.state import LiveSet, MachineState
from simmodel.systems.policy_state import (
    check_instant,
    chosen_policy,
    policy_state,
    remember,
    restore_streams,
    stream_states,
)
from simmodel.work.taskset import LiveData, LiveTask, TaskSet

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.resources.processors.processor import Processor
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["capture_machine", "restore_machine"]

M = TypeVar("M", bound=MachineState)


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
        referring(place.kept_state(), number, of),
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


def restore_machine(
    make: Callable[..., M],
    env: Environment,
    snapshot: MachineSnapshot,
    policy: PolicyLike | None = None,
    *,
    record: bool = True,
    rank: int = 2,
) -> M:
    """Return a machine that continues from a snapshot (see ``Machine.from_snapshot``); ``make``: its class."""
    check_instant(env, snapshot)
    policy = chosen_policy(snapshot, policy)
    options = snapshot.options.values()
    machine = make(env, snapshot.platform, policy, **options, name=snapshot.name, rank=rank, record=record, begin=False)
    machine.stream = snapshot.stream
    if [place.name for place in machine.places] != [state.name for state in snapshot.places]:
        raise InputError("must be the places of the platform, in their order", place="places")
    for i, task in enumerate(snapshot.tasks):
        if len(task.speeds) != len(machine.kinds):
            message = f"must have {len(machine.kinds)} values, one per kind of processor, got {len(task.speeds)}"
            raise InputError(message, place=f"tasks.speeds[{i}]")
    try:
        _Restored(machine, snapshot).run()
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the parts of the snapshot contradict each other: {clipped(error)}") from None
    return machine


class _Restored:
    """A new machine whose state is rebuilt from a snapshot, part by part."""

    def __init__(self, machine: MachineState, snapshot: MachineSnapshot) -> None:
        self.machine = machine
        self.snapshot = snapshot
        self.pools = list(machine.pools.values())

    def run(self) -> None:
        """Rebuild the state."""
        machine, snapshot = self.machine, self.snapshot
        restore_streams(machine.env, snapshot)
        machine.loads.update(snapshot.loads)
        machine.network.restore_own(snapshot.links)
        self._data()
        self._tasks()
        self._pools()
        self._places()
        for flight in snapshot.flights:
            self._flight(flight)
        self._use()
        awaited_in = {d: pool for pool, state in zip(self.pools, snapshot.pools, strict=True) for d in state.awaits}
        for i in snapshot.order:
            if i < 0:
                d = -1 - i
                live = machine.sets[snapshot.data[d].given or 0]
                # Scheduled, to stay in order with the processes, which begin once the environment runs.
                machine.env.call_at(snapshot.now, partial(live.await_room, self.data[d], awaited_in[d]), URGENT)
            else:
                task = self.tasks[i]
                task.place.go_on(task)
        for place in machine.places:
            place.begin()
        self._waiting()
        self._arrivals()
        for at in snapshot.alarms:
            machine.scheduler.plan_alarm(at)
        remember(machine.scheduler, snapshot.policy)

    def _data(self) -> None:
        self.data: list[LiveData] = []
        for state in self.snapshot.data:
            data = LiveData(state.name, state.size)
            data.written = state.written
            data.kept = state.kept
            data.copies = tuple(self.pools[pool] for pool in state.copies)
            self.data.append(data)

    def _tasks(self) -> None:
        machine = self.machine
        states = self.snapshot.tasks
        numbers_of: list[list[int]] = [[] for _ in self.snapshot.sets]
        for i, state in enumerate(states):
            numbers_of[state.set].append(i)
        made: dict[int, LiveTask] = {}
        for described, numbers in zip(self.snapshot.sets, numbers_of, strict=True):
            live = LiveSet(machine, self._set(described, numbers), described.at)
            live.speeds = np.array([states[i].speeds for i in numbers]).reshape(len(numbers), len(machine.kinds))
            for row, i in enumerate(numbers):
                made[i] = task = self._task(states[i], live, row, len(machine.tasks) + row)
                live.tasks.append(task)
            live.rows = [task.speeds for task in live.tasks]
            live.inputs = [task.inputs for task in live.tasks]
            live.outputs = [task.outputs for task in live.tasks]
            live.data = [self.data[d] for d in sorted({d for i in numbers for d in _touched(states[i])})]
            machine.tasks += live.tasks
            machine.take(live)
        self.tasks = [made[i] for i in range(len(made))]
        children: dict[int, list[LiveTask]] = {}
        for task, state in zip(self.tasks, states, strict=True):
            for parent in state.parents:
                children.setdefault(parent, []).append(task)
        for i, found in children.items():
            self.tasks[i].children = found

    def _set(self, described: SetState, numbers: list[int]) -> TaskSet:
        """Return the remaining tasks of a set as columns."""
        states = [self.snapshot.tasks[i] for i in numbers]
        row = {i: r for r, i in enumerate(numbers)}
        used = dict.fromkeys(d for state in states for d in _touched(state))
        position = {d: p for p, d in enumerate(used)}
        return TaskSet(
            [min(state.speeds) if state.run is None else state.run for state in states],
            ids=[state.id for state in states],
            families=[state.family for state in states],
            implementations=[state.implementations for state in states],
            inputs=[tuple(position[d] for d in state.inputs) for state in states],
            outputs=[tuple(position[d] for d in state.outputs) for state in states],
            sizes=[self.data[d].size for d in used],
            names=[self.data[d].name for d in used],
            parents=[tuple(row[parent] for parent in state.parents) for state in states],
            cores=[state.cores for state in states],
            memory=[state.memory for state in states],
            priority=[state.priority for state in states],
            amounts=[state.amounts for state in states] if any(state.amounts for state in states) else None,
            reconfiguration=described.reconfiguration,
            name=described.name,
        )

    def _task(self, state: TaskState, live: LiveSet, row: int, index: int) -> LiveTask:
        """Return a task in its captured state, and count it as a reader of its inputs."""
        machine = self.machine
        inputs, outputs = (tuple(self.data[d] for d in numbers) for numbers in (state.inputs, state.outputs))
        missing = len(state.parents)
        task = LiveTask(state.id, live.set, row, index, state.speeds, state.error, inputs, outputs, missing, live)
        for data in inputs:
            data.readers += 1
        task.state = state.state
        if state.place is not None:
            task.place = machine.places[state.place]
        for name in ("submit", "ready", "assigned", "share", "core_since"):
            value = getattr(state, name)
            if value is not None:
                setattr(task, name, value)
        for name in ("cores", "memory", "priority", "attempts", "done_share"):
            setattr(task, name, getattr(state, name))
        if state.family is not None:
            task.family = state.family
        if state.load is not None:
            machine.loads[task] = state.load
        for name, value in (state.notes or {}).items():
            machine.note(task, name, value)
        task.stamps = None if state.stamps is None else list(state.stamps)
        if state.core is not None:
            task.core = machine.processors[state.core].core
        return task

    def _pools(self) -> None:
        for pool, state in zip(self.pools, self.snapshot.pools, strict=True):
            for d in state.held:
                pool.held[self.data[d]] = None
            if pool.order is not None:
                pool.order.restore(
                    state.uses, {self.data[d]: past for d, past in zip(state.held, state.pasts, strict=True)}
                )
            for d in state.leaving:
                pool.leaving[self.data[d]] = None
            for d in state.stale:
                pool.stale[self.data[d]] = None
            pool.awaited.update((self.data[d], None) for d in state.awaited)
            pool.parts = {self.data[d]: left for d, left in state.parts}
            if state.own is not None:
                pool.restore_own(referred(state.own, self.tasks, self.data))

    def _places(self) -> None:
        tasks = self.tasks
        for place, given in zip(self.machine.places, self.snapshot.places, strict=True):
            place.restore(
                QueueState(
                    [tasks[i] for i in given.queue],
                    [(priority, rank, tasks[i]) for priority, rank, i in given.ranked],
                    given.numbers,
                    given.queued,
                    given.since,
                    given.until,
                    self._family(given.loaded),
                    self._family(given.last_family),
                    [RunningTask(tasks[i], place, started, end) for i, started, end in given.running],
                )
            )
            if given.own is not None:
                place.restore_kept(referred(given.own, tasks, self.data))

    def _family(self, given: int | str | None) -> Family:
        return self.tasks[given] if isinstance(given, int) else given

    def _flight(self, state: FlightState) -> None:
        """Put data back in flight, or reserve room for data still to be sent."""
        pool, data = self.pools[state.pool], self.data[state.data]
        arrival = pool.expect(data)
        arrival.stale, arrival.part = state.stale, state.part
        if state.owner is not None:
            arrival.owner = self.tasks[state.owner]
        if state.source is None:
            return
        task = None if state.task is None else self.tasks[state.task]
        source = self.pools[state.source]
        mover = self.machine.mover
        if state.at is not None:
            moving = mover.env.event_at(state.at)
        else:
            moving = mover.network.transfer(state.left, source=source.name, destination=pool.name, lag=state.lag)
        flight = Flight(mover, pool, task, state.cause)
        flight.data, flight.source, flight.since, flight.ends = data, source, state.since, state.at or 0.0
        flight.number = mover.next_number()
        mover.send(flight, moving, arrival)
        if data in source.leaving:
            mover.leaves(data, source, arrival.event)

    def _use(self) -> None:
        """Restore the use of memory and cores by running tasks; the bytes used are those of the snapshot."""
        for task in self.tasks:
            if task.stamps is None:
                continue
            if task.core is not None:
                task.core.busy = True
            if len(task.stamps) == 7 and task.place.core is not None:
                task.place.core.busy = True
            if len(task.stamps) >= 5 and (task.inputs or task.outputs or task.memory):
                task.place.pool.take_again(task)
        for pool, state in zip(self.pools, self.snapshot.pools, strict=True):
            pool.set_used(state.used, state.peak)

    def _waiting(self) -> None:
        """Restore the waiting tasks; another policy may decide at a different moment (ready or submit)."""
        machine = self.machine
        waiting = [self.tasks[i] for i in self.snapshot.waiting]
        if machine.decides_when_ready:
            waiting = [task for task in waiting if task.state == "waiting"]
        machine.waiting.extend(waiting)
        if not machine.decides_when_ready:
            known = dict.fromkeys(waiting)
            for live in machine.sets:
                shown = [task for task in live.tasks if task.state == "blocked" and task.place is None]
                machine.waiting.extend(live.queueable([task for task in shown if task not in known]))
        machine.waiting.new = self.snapshot.new

    def _arrivals(self) -> None:
        """Schedule the arrivals still to come, of tasks and of the initial data of their sets."""
        machine = self.machine
        for data, described in zip(self.data, self.snapshot.data, strict=True):
            s = described.given
            if s is not None and machine.sets[s].at > self.snapshot.now:
                machine.sets[s].given.append(data)
        coming: dict[tuple[float, int], list[LiveTask]] = {}
        for live in machine.sets:
            if live.at > self.snapshot.now:
                coming[live.at, machine.sets.index(live)] = []
        for task, state in zip(self.tasks, self.snapshot.tasks, strict=True):
            if task.state == "to come":
                coming.setdefault((task.submit, state.set), []).append(task)
        for (at, s), tasks in sorted(coming.items(), key=lambda entry: entry[0]):
            live = machine.sets[s]
            machine.env.call_at(at, lambda live=live, at=at, tasks=tasks: live.arrive(at, tasks))  # type: ignore[misc]


def _touched(state: TaskState) -> tuple[int, ...]:
    """Return the data that a task reads and writes."""
    return (*state.inputs, *state.outputs)
