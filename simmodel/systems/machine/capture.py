"""From a live machine to its snapshot."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from simmodel.errors import SnapshotError
from simmodel.resources.cores import CoreTicket
from simmodel.resources.memory import Claim
from simmodel.resources.transfer import Transfer
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.policy_state import policy_state
from simmodel.work.livetask import LiveData, LiveTask

if TYPE_CHECKING:
    from simmodel.resources.processor import Processor
    from simmodel.systems.machine.arrivals import LiveSet
    from simmodel.systems.machine.system import Machine

__all__ = ["capture_machine"]


def capture_machine(machine: Machine) -> MachineSnapshot:
    """Return the snapshot of a machine, with what continuing needs.

    Raises
    ------
    SnapshotError
        where a processor of one's own is in the middle of a phase of its own, or the policy cannot be copied
    """
    machine.network.settle()
    tasks = [task for task in machine.tasks if task.state != "done"]
    number = {task: i for i, task in enumerate(tasks)}
    data = _data(machine, tasks)
    of = {each: d for d, each in enumerate(data)}
    sets = [each for each in machine.sets if each.left]
    set_of = {each: s for s, each in enumerate(sets)}
    for task in tasks:
        if task.stamps is not None:
            _refuse_own_phases(task)
    return MachineSnapshot(
        name=machine.name,
        now=float(machine.env.now),
        seed=machine.env.seed,
        platform=machine.spec,
        options={**machine.options, "stream": machine.stream},
        policy=policy_state(machine.scheduler, machine.known_as),
        sets=tuple(
            {"name": each.set.name, "at": each.at, "reconfiguration": each.set.reconfiguration} for each in sets
        ),
        tasks=_tasks(tasks, number, of, set_of),
        data={
            "name": [each.name for each in data],
            "size": [each.size for each in data],
            "written": [each.written for each in data],
            "kept": [each.kept for each in data],
            "copies": [[pool.index for pool in each.copies] for each in data],
            "given": [None if live is None else set_of[live] for live in _brought_by(machine, data)],
        },
        pools=tuple(
            {
                "name": pool.name,
                "used": pool.used,
                "peak": pool.peak,
                "held": [of[each] for each in pool.held],
                "leaving": [of[each] for each in pool.leaving],
                "stale": [of[each] for each in pool.stale],
                "awaited": [of[each] for each in pool.awaited if each in of],
                "awaits": [of[coming.data] for live in sets for coming in live.coming if coming.pool is pool],
            }
            for pool in machine.pools.values()
        ),
        places=tuple(_place(place, number) for place in machine.places),
        flights=_flights(machine, number, of),
        waiting=tuple(number[task] for task in machine.waiting),
        new=machine.waiting.new,
        order=_order(machine, tasks, number, of),
        loads=tuple((family, share) for family, share in machine.loads.items() if isinstance(family, str)),
        streams=tuple((name, dict(each.bit_generator.state)) for name, each in sorted(machine.env._streams.items())),
        alarms=tuple(sorted(machine.scheduler.alarms)),
    )


def _data(machine: Machine, tasks: list[LiveTask]) -> list[LiveData]:
    """Return the data that matter, set by set: those of tasks, those that lie somewhere, those that are to come."""
    wanted: dict[LiveData, None] = {}
    for task in tasks:
        wanted.update(dict.fromkeys((*task.inputs, *task.outputs)))
    for pool in machine.pools.values():
        wanted.update(dict.fromkeys((*pool.held, *pool.arriving, *pool.writing)))
    ordered = [data for live in machine.sets for data in live.data if data in wanted]
    return list(dict.fromkeys([*ordered, *wanted]))


def _brought_by(machine: Machine, data: list[LiveData]) -> list[LiveSet | None]:
    """Return of each data object the task set that is still to bring it, or ``None``."""
    now = machine.env.now
    bring = {each: live for live in machine.sets if live.at > now for each in live.given}
    bring.update({coming.data: live for live in machine.sets for coming in live.coming})
    return [bring.get(each) for each in data]


def _tasks(
    tasks: list[LiveTask], number: dict[LiveTask, int], of: dict[LiveData, int], set_of: dict[Any, int]
) -> dict[str, list[Any]]:
    rows = [(task, task.set, task.row) for task in tasks]
    parents: list[list[int]] = [[] for _ in tasks]
    for task in tasks:
        for child in task._children:
            if child in number:
                parents[number[child]].append(number[task])
    return {
        "id": [task.id for task in tasks],
        "set": [set_of[task.submission] for task in tasks],
        "state": [task.state for task in tasks],
        "place": [None if task.place is None else task.place.index for task in tasks],
        "run": [None if isnan(each.run[row]) else float(each.run[row]) for _, each, row in rows],
        "speeds": [task.speeds for task in tasks],
        "error": [task._error for task in tasks],
        "family": [None if task.family is task else task.family for task in tasks],
        "load": [task.submission.machine.loads.get(task) for task in tasks],
        "implementations": [
            None if each.implementations is None else each.implementations[row] for _, each, row in rows
        ],
        "inputs": [[of[data] for data in task.inputs] for task in tasks],
        "outputs": [[of[data] for data in task.outputs] for task in tasks],
        "parents": parents,
        "cores": [task.cores for task in tasks],
        "memory": [task.memory for task in tasks],
        "priority": [task.priority for task in tasks],
        "submit": [getattr(task, "submit", None) for task in tasks],
        "ready": [getattr(task, "ready", None) for task in tasks],
        "assigned": [getattr(task, "assigned", None) for task in tasks],
        "share": [getattr(task, "_share", None) for task in tasks],
        "attempts": [task.attempts for task in tasks],
        "done_share": [task.done_share for task in tasks],
        "stamps": [task.stamps for task in tasks],
        "core": [None if task.core is None else task.core.name for task in tasks],
        "core_since": [getattr(task, "core_since", None) for task in tasks],
    }


def _place(place: Processor, number: dict[LiveTask, int]) -> dict[str, Any]:
    return {
        "name": place.name,
        "queue": [number[task] for task in place._queue],
        "ranked": [[priority, rank, number[task]] for priority, rank, task in place._ranked],
        "numbers": place._numbers,
        "queued": place._queued,
        "since": place._since,
        "until": place._until,
        "loaded": _family(place.loaded, number),
        "last_family": _family(place._last_family, number),
        "running": [[number[run.work], run.started, run.expected_end] for _, _, _, run in place.entries()],
    }


def _family(family: Any, number: dict[LiveTask, int]) -> Any:
    """Return a family as a text; of a task that is one of its own its number, or ``None`` once it is done."""
    return family if isinstance(family, str) else number.get(family)


def _flights(machine: Machine, number: dict[LiveTask, int], of: dict[LiveData, int]) -> tuple[dict[str, Any], ...]:
    """Return the data that are to come to pools: on their way, in the order in which they left, or still to be sent."""
    found: list[tuple[bool, int, int, dict[str, Any]]] = []
    for pool in machine.pools.values():
        for data, arrival in pool.arriving.items():
            owner = None if arrival.owner is None else number[arrival.owner]
            flight = arrival.flight
            each: dict[str, Any] = {"data": of[data], "pool": pool.index, "owner": owner, "stale": arrival.stale}
            if flight is not None:
                each |= {
                    "source": flight.source.index,
                    "since": flight.since,
                    "task": None if flight.task is None else number[flight.task],
                    "cause": flight.cause,
                }
                moving = flight.moving
                if isinstance(moving, Transfer):
                    each |= {"left": moving.size - moving.bytes_done, "lag": moving.lag}
                else:
                    each["at"] = flight.ends
            found.append((flight is None, 0 if flight is None else flight.number, len(found), each))
    return tuple(each for *_, each in sorted(found, key=lambda entry: entry[:3]))


def _refuse_own_phases(task: LiveTask) -> None:
    """Raise where a task is in a phase that the class of its processor has rewritten."""
    place = task.place
    phase = len(task.stamps or ())
    own = {
        2: ("setup", place._plain_setup),
        3: ("reconfigure", place._plain_reconfiguration),
        5: ("transfer", not place._always_transfers),
        7: ("execute", place._plain_execution),
    }
    name, plain = own.get(phase, ("", True))
    if not plain:
        raise SnapshotError(
            f"task {task.id} cannot be copied: it is inside {type(place).__name__}.{name} of {place.name}"
        )


def _order(
    machine: Machine, tasks: list[LiveTask], number: dict[LiveTask, int], of: dict[LiveData, int]
) -> tuple[int, ...]:
    """Return the tasks that processors work on: by when their event was made, or their ticket or claim.

    Among those that wait for room there are data that come with a set: ``-1 - d`` for data d.
    """
    made = {id(entry[3]): entry[2] for entry in machine.env._queue}
    found = []
    for task in tasks:
        if task.stamps is None:
            continue
        target: Any = task.place.process_of(task).target
        if isinstance(target, CoreTicket):
            key = (1, target.number)
        elif isinstance(target, Claim):
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
