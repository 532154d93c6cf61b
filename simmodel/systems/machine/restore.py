"""From a snapshot to a live machine that goes on from there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from simpy.events import URGENT

from simmodel.errors import InputError
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.cluster.restore import chosen_policy
from simmodel.systems.machine.arrivals import LiveSet
from simmodel.systems.machine.mover import Flight
from simmodel.systems.machine.system import Machine
from simmodel.work.livetask import LiveData, LiveTask
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["restore_machine"]


def restore_machine(
    env: Environment, snapshot: MachineSnapshot, policy: Any = None, *, record: bool = True, rank: int = 2
) -> Machine:
    """Return a machine that goes on where a snapshot was taken (see :meth:`Machine.from_snapshot`)."""
    if env.now != snapshot.now:
        raise InputError(f"an environment at {snapshot.now:g} s expected, as the snapshot, found one at {env.now:g} s")
    known_as = snapshot.policy.known_as if policy is None else policy if isinstance(policy, str) else None
    policy = chosen_policy(snapshot, policy)
    options = dict(snapshot.options)
    stream = options.pop("stream")
    machine = Machine(
        env, snapshot.platform, policy, **options, name=snapshot.name, rank=rank, record=record, begin=False
    )
    machine.stream = stream
    machine.known_as = known_as
    _Restored(machine, snapshot).run()
    return machine


class _Restored:
    """A new machine whose state is built up, part by part, from a snapshot."""

    def __init__(self, machine: Machine, snapshot: MachineSnapshot) -> None:
        self.machine = machine
        self.snapshot = snapshot
        self.pools = list(machine.pools.values())

    def run(self) -> None:
        """Build it up."""
        machine, snapshot = self.machine, self.snapshot
        for name, state in snapshot.streams:
            machine.env.rng(name).bit_generator.state = state
        machine.loads.update(snapshot.loads)
        self._data()
        self._tasks()
        self._pools()
        self._places()
        for flight in snapshot.flights:
            self._flight(flight)
        self._use()
        awaited_in = {d: pool for pool, state in zip(self.pools, snapshot.pools, strict=True) for d in state["awaits"]}
        for i in snapshot.order:
            if i < 0:
                d = -1 - i
                live = machine.sets[snapshot.data["given"][d]]
                # In turn with the processes, which begin once the environment runs.
                machine.env.call_at(snapshot.now, partial(live.await_room, self.data[d], awaited_in[d]), URGENT)
            else:
                task = self.tasks[i]
                task.place.go_on(task)
        for place in machine.places:
            place.begin()
        self._waiting()
        self._arrivals()
        self._policy()

    def _data(self) -> None:
        columns = self.snapshot.data
        self.data = [LiveData(name, size) for name, size in zip(columns["name"], columns["size"], strict=True)]
        for data, written, kept, copies in zip(
            self.data, columns["written"], columns["kept"], columns["copies"], strict=True
        ):
            data.written = written
            data.kept = kept
            data.copies = tuple(self.pools[pool] for pool in copies)

    def _tasks(self) -> None:
        machine, columns = self.machine, self.snapshot.tasks
        self.tasks: list[LiveTask] = []
        rows_of: list[list[int]] = [[] for _ in self.snapshot.sets]
        for i, s in enumerate(columns["set"]):
            rows_of[s].append(i)
        made: dict[int, LiveTask] = {}
        for described, rows in zip(self.snapshot.sets, rows_of, strict=True):
            live = LiveSet(machine, self._set(described, rows), described["at"])
            live.speeds = np.array([columns["speeds"][i] for i in rows]).reshape(len(rows), len(machine.kinds))
            for row, i in enumerate(rows):
                task = LiveTask(
                    columns["id"][i],
                    live.set,
                    row,
                    len(machine.tasks) + row,
                    columns["speeds"][i],
                    columns["error"][i],
                    tuple(self.data[d] for d in columns["inputs"][i]),
                    tuple(self.data[d] for d in columns["outputs"][i]),
                    len(columns["parents"][i]),
                    live,
                )
                made[i] = task
                live.tasks.append(task)
                self._state(task, i)
                for data in task.inputs:
                    data.readers += 1
            live.data = [self.data[d] for d in sorted({d for i in rows for d in self._touched(i)})]
            machine.tasks += live.tasks
            machine.sets.append(live)
        self.tasks = [made[i] for i in range(len(made))]
        children: dict[int, list[LiveTask]] = {}
        for i, parents in enumerate(columns["parents"]):
            for parent in parents:
                children.setdefault(parent, []).append(self.tasks[i])
        for i, found in children.items():
            self.tasks[i]._children = found

    def _set(self, described: Any, rows: list[int]) -> TaskSet:
        """Return what is left of a task set as columns."""
        columns = self.snapshot.tasks
        row = {i: r for r, i in enumerate(rows)}
        used = dict.fromkeys(d for i in rows for d in self._touched(i))
        position = {d: p for p, d in enumerate(used)}
        runs = [columns["run"][i] for i in rows]
        return TaskSet(
            [min(columns["speeds"][i]) if run is None else run for i, run in zip(rows, runs, strict=True)],
            ids=[columns["id"][i] for i in rows],
            families=[columns["family"][i] for i in rows],
            implementations=[
                None if columns["implementations"][i] is None else tuple(columns["implementations"][i]) for i in rows
            ],
            inputs=[tuple(position[d] for d in columns["inputs"][i]) for i in rows],
            outputs=[tuple(position[d] for d in columns["outputs"][i]) for i in rows],
            sizes=[self.data[d].size for d in used],
            names=[self.data[d].name for d in used],
            parents=[tuple(row[parent] for parent in columns["parents"][i]) for i in rows],
            cores=[columns["cores"][i] for i in rows],
            memory=[columns["memory"][i] for i in rows],
            priority=[columns["priority"][i] for i in rows],
            reconfiguration=described["reconfiguration"],
            name=described["name"],
        )

    def _touched(self, i: int) -> tuple[int, ...]:
        """Return the data that a task reads or writes."""
        columns = self.snapshot.tasks
        return (*columns["inputs"][i], *columns["outputs"][i])

    def _state(self, task: LiveTask, i: int) -> None:
        columns = self.snapshot.tasks
        task.state = columns["state"][i]
        if columns["place"][i] is not None:
            task.place = self.machine.places[columns["place"][i]]
        for name, slot in (
            ("submit", "submit"),
            ("ready", "ready"),
            ("assigned", "assigned"),
            ("share", "_share"),
            ("core_since", "core_since"),
        ):
            value = columns[name][i]
            if value is not None:
                setattr(task, slot, value)
        for name in ("cores", "memory", "priority", "attempts", "done_share"):
            setattr(task, name, columns[name][i])
        if columns["family"][i] is not None:
            task.family = columns["family"][i]
        if columns["load"][i] is not None:
            self.machine.loads[task] = columns["load"][i]
        stamps = columns["stamps"][i]
        task.stamps = None if stamps is None else list(stamps)
        if columns["core"][i] is not None:
            task.core = self.machine.processors[columns["core"][i]].core

    def _pools(self) -> None:
        for pool, state in zip(self.pools, self.snapshot.pools, strict=True):
            for d in state["held"]:
                pool.held[self.data[d]] = 0
            for d in state["leaving"]:
                pool.leaving[self.data[d]] = None
            for d in state["stale"]:
                pool.stale[self.data[d]] = None
            pool.awaited.update((self.data[d], None) for d in state["awaited"])

    def _places(self) -> None:
        tasks = self.tasks
        for place, state in zip(self.machine.places, self.snapshot.places, strict=True):
            place._queue.extend(tasks[i] for i in state["queue"])
            place._ranked += [(priority, rank, tasks[i]) for priority, rank, i in state["ranked"]]
            place._numbers = state["numbers"]
            place._queued = state["queued"]
            place._since = state["since"]
            place._until = state["until"]
            place.loaded = self._family(state["loaded"])
            place._last_family = self._family(state["last_family"])
            place.restore_running([(tasks[i], started, end) for i, started, end in state["running"]])

    def _family(self, given: Any) -> Any:
        return self.tasks[given] if isinstance(given, int) else given

    def _flight(self, given: Any) -> None:
        """Let data be on their way again, or have room kept for those that are still to be sent."""
        pool, data = self.pools[given["pool"]], self.data[given["data"]]
        arrival = pool.expect(data)
        arrival.stale = given["stale"]
        if given["owner"] is not None:
            arrival.owner = self.tasks[given["owner"]]
        if "source" not in given:
            return
        task = None if given["task"] is None else self.tasks[given["task"]]
        source = self.pools[given["source"]]
        mover = self.machine.mover
        if "at" in given:
            moving = mover.env.event_at(given["at"])
        else:
            moving = mover.network.transfer(given["left"], source=source.name, destination=pool.name, lag=given["lag"])
        mover.send(Flight(data, source, pool, given["since"], task, given["cause"], moving, given.get("at", 0.0)))
        if data in source.leaving:
            mover.leaves(data, source, arrival)

    def _use(self) -> None:
        """Let tasks that have taken what they need use it, and cores be held; bytes are as they were."""
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
            pool.set_used(state["used"], state["peak"])

    def _waiting(self) -> None:
        """Have those wait that the policy decides about: it may be another that decides at another time."""
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
        """Have tasks arrive that are still to come, and the data of their sets with them."""
        machine, columns = self.machine, self.snapshot.tasks
        for d, s in enumerate(self.snapshot.data["given"]):
            if s is not None and machine.sets[s].at > self.snapshot.now:
                machine.sets[s].given.append(self.data[d])
        coming: dict[tuple[float, int], list[LiveTask]] = {}
        for live in machine.sets:
            if live.at > self.snapshot.now:
                coming[live.at, machine.sets.index(live)] = []
        for i, task in enumerate(self.tasks):
            if task.state == "to come":
                coming.setdefault((task.submit, columns["set"][i]), []).append(task)
        for (at, s), tasks in sorted(coming.items(), key=lambda entry: entry[0]):
            live = machine.sets[s]
            machine.env.call_at(at, lambda live=live, at=at, tasks=tasks: live.arrive(at, tasks))  # type: ignore[misc]

    def _policy(self) -> None:
        scheduler, given = self.machine.scheduler, self.snapshot.policy
        for at in self.snapshot.alarms:
            scheduler.plan_alarm(at)
        if scheduler.policy_name != given.name:
            scheduler.wake()
            return
        if given.state is not None and hasattr(scheduler.policy, "restore"):
            scheduler.policy.restore(given.state)
        scheduler.asked_for = given.asked
        if given.due:
            scheduler.wake()
