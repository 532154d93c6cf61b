"""The state of a machine: its parts, its tasks and its record."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from simpy.events import Event

from simmodel.resources.data.memory import MemoryPool
from simmodel.systems.system import System
from simmodel.work.live import LiveWork
from simmodel.work.livetask import LiveData, LiveTask
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from array import array

    from simmodel.environment import Environment
    from simmodel.platform.machine import MachineSpec, ProcessorSpec
    from simmodel.platform.options import MachineOptions
    from simmodel.resources.network.network import Network
    from simmodel.resources.processors.processor import Processor
    from simmodel.resources.processors.services import Shares
    from simmodel.scheduling.ready_tasks import ReadyTasks
    from simmodel.systems.machine.mover import DataMover

__all__ = ["CoreUse", "CutExecution", "LiveSet", "MachineState", "TaskSpeedKey"]


class TaskSpeedKey(NamedTuple):
    """The properties of a processor that determine whether, and how long, a task runs on it.

    ``own``: the position of its spec, if its model has run times of its own.
    """

    architecture: str
    type: str
    cores: int
    pool: str
    own: int | None = None


class CutExecution(NamedTuple):
    """An execution stopped before its end, with the instants (s) of its phases."""

    task: LiveTask
    place: Processor
    stamps: tuple[float, ...]


class CoreUse(NamedTuple):
    """A CPU core held without a task running on it: for which task and purpose, from when until when (s)."""

    core: str
    task: LiveTask
    what: str
    start: float
    end: float


class MachineState(System[LiveTask]):
    """The parts of a machine and the record of its run; :class:`Machine` adds the behaviour.

    Attributes
    ----------
    spec, options, stream
        its spec and options; the prefix of the names of its random streams
    network, pools, home, mover
        its links, its memory pools by name, the pool of initial data, the mover of data between pools
    shares
        the bandwidth of links that its tasks hold; ``None`` until a task asks for some
    processors, places, kinds
        its processors by name and in order, and their distinct kinds
    waiting
        tasks that no decision has placed yet
    decides_when_ready
        whether its policy decides on tasks once they are ready, not when they are submitted
    tasks, sets
        all submitted tasks and task sets, in order
    done, phases
        the done tasks, and the instants of their phases (s), one after the other
    cut, core_use
        stopped executions; CPU cores held without a task running on them
    loads
        for each family, the position of its reconfiguration time in the interval of a processor, 0 to 1
    notes
        the numbers that processors recorded about tasks, by name
    """

    kind = "machine"
    work = "tasks"

    spec: MachineSpec
    options: MachineOptions
    stream: str
    network: Network
    shares: Shares | None
    pools: dict[str, MemoryPool]
    home: MemoryPool
    mover: DataMover
    processors: Mapping[str, Processor]
    places: tuple[Processor, ...]
    kinds: list[TaskSpeedKey]
    waiting: ReadyTasks
    decides_when_ready: bool
    tasks: list[LiveTask]
    sets: list[LiveSet]
    done: list[LiveTask]
    phases: array[float]
    cut: list[CutExecution]
    core_use: list[CoreUse]
    loads: dict[Any, float]
    notes: dict[str, dict[LiveTask, float]]

    def arrive(self, tasks: Sequence[LiveTask]) -> None:
        """Accept submitted tasks that arrive now."""
        raise NotImplementedError

    def take(self, live: LiveSet) -> None:
        """Register a task set."""
        raise NotImplementedError

    def release(self, task: LiveTask) -> None:
        """Release the children of a done task that have no other parent left."""
        raise NotImplementedError

    def note(self, task: LiveTask, name: str, value: float) -> None:
        """Record a number about a task, a column of that name in the result."""
        self.notes.setdefault(name, {})[task] = value

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task; drawn once per family."""
        fixed = task.set.reconfiguration.get(task.family) if task.set.reconfiguration else None
        if fixed is not None:
            return fixed
        least, most = spec.reconfiguration
        return least if least == most else least + (most - least) * self.loads[task.family]

    def draw_loads(self, tasks: Sequence[LiveTask]) -> None:
        """Draw, for each new family, the position of its reconfiguration time in the interval of a processor."""
        if all(spec.reconfiguration[0] == spec.reconfiguration[1] for spec in self.spec.processors):
            return
        new = [family for family in dict.fromkeys(task.family for task in tasks) if family not in self.loads]
        draws = self.env.rng(f"{self.stream}.reconfiguration").random(len(new))
        self.loads.update(zip(new, draws.tolist(), strict=True))


class _Coming:
    """Data of a set that wait for room; the pool treats them as a task that only occupies their bytes."""

    inputs: tuple[LiveData, ...] = ()
    outputs: tuple[LiveData, ...] = ()

    def __init__(self, data: LiveData, pool: MemoryPool, readers: list[LiveTask]) -> None:
        self.data = data
        self.pool = pool
        self.memory = data.size
        self.children = readers


class LiveSet(LiveWork):
    """A task set submitted to a machine: an event that happens when all its tasks have ended.

    Attributes
    ----------
    set, tasks
        the submitted task set, and its live tasks, row by row
    at
        submission instant, s
    speeds, rows
        tasks x kinds of processors: expected seconds, ``inf`` if a task cannot run; the same as a tuple per task
    inputs, outputs
        the data that each task reads and writes
    left, withdrawn
        number of tasks that have not ended; whether any task has been withdrawn
    """

    def __init__(self, machine: MachineState, tasks: TaskSet, at: float) -> None:
        self.machine = machine
        self.set = tasks
        self.at = at
        self.tasks: list[LiveTask] = []
        self.data: list[LiveData] = []
        self.given: list[LiveData] = []  # initial data: they exist before any task writes them
        self.speeds = np.zeros((0, len(machine.kinds)))
        self.rows: Sequence[tuple[float, ...]] = ()
        self.inputs: Sequence[tuple[LiveData, ...]] = ()
        self.outputs: Sequence[tuple[LiveData, ...]] = ()
        self.coming: list[_Coming] = []  # initial data that wait for room
        self.left = len(tasks)
        self.event = None
        self.withdrawn = False
        self._above: dict[LiveTask, int] | None = None

    def __repr__(self) -> str:
        return f"<LiveSet {self.set.name}: {len(self.tasks) - self.left} of {len(self.tasks)} tasks done>"

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of the machine."""
        return self.machine.env

    @property
    def over(self) -> bool:
        """Whether all its tasks are done or withdrawn."""
        return not self.left

    @cached_property
    def units(self) -> list[int]:
        """The work of each task in units of 2^-20 core seconds: its least expected run time times its cores."""
        least = self.speeds.min(axis=1, initial=inf)
        cores = np.array([task.cores for task in self.tasks], dtype=float)
        found: list[int] = np.rint(least * cores * 2.0**20).astype(np.int64).tolist()
        return found

    def begin(self) -> None:
        """Schedule the arrival of each task at its instant."""
        env = self.machine.env
        groups: dict[float, list[LiveTask]] = {self.at: []}
        if self.set.submit is None:
            groups[self.at] = self.tasks
        else:
            for task, after in zip(self.tasks, self.set.submit, strict=True):
                groups.setdefault(self.at + after, []).append(task)
        for at in sorted(groups):
            if at <= env.now:
                self.arrive(at, groups[at])
            else:
                for task in groups[at]:
                    task.submit = at
                env.call_at(at, lambda at=at, tasks=groups[at]: self.arrive(at, tasks))  # type: ignore[misc]

    def arrive(self, at: float, tasks: list[LiveTask]) -> None:
        """Let tasks arrive; at the instant of the submission, place the initial data too."""
        if self.withdrawn:
            tasks = [task for task in tasks if task.state == "to come"]
        if at == self.at and (tasks or self.left):
            for data in self.given:
                self._give(data)
        self.machine.arrive(tasks)

    def queueable(self, arrived: Sequence[LiveTask]) -> list[LiveTask]:
        """Return the tasks that can be queued before they are ready, in topological order.

        A task is held back until all its ancestors have arrived: otherwise both could enter one queue in the wrong
        order.
        """
        if self.set.parents is None:
            return list(arrived)
        if self._above is None:
            self._above = self._count_above()
        above = self._above
        free = [(task.index, task) for task in arrived if not above.get(task)]
        heapq.heapify(free)
        found = []
        while free:
            task = heapq.heappop(free)[1]
            found.append(task)
            for child in task.children:
                above[child] -= 1
                if not above[child] and child.state == "blocked":  # otherwise it has not arrived
                    heapq.heappush(free, (child.index, child))
        return found

    def _count_above(self) -> dict[LiveTask, int]:
        """Return, for each task, how many of its parents cannot be queued yet."""
        known = dict.fromkeys(self.machine.waiting)
        above: dict[LiveTask, int] = {}
        for task in self.tasks:
            if task.place is None and task.state != "done" and task not in known:
                for child in task.children:
                    above[child] = above.get(child, 0) + 1
        return above

    def _give(self, data: LiveData) -> None:
        """Put initial data into the home pool, else into another pool with room, else wait for room."""
        home = self.machine.home
        for pool in (home, *(pool for pool in self.machine.pools.values() if pool is not home)):
            pool.forget_unneeded(data.size)
            if pool.room_for(data.size):
                pool.put(data)
                data.written = True
                return
        pool = home if data.size <= home.size else next(p for p in self.machine.pools.values() if data.size <= p.size)
        self.await_room(data, pool)

    def await_room(self, data: LiveData, pool: MemoryPool) -> None:
        """Make initial data wait for room in a pool, and their readers wait for the data."""
        coming: Any = _Coming(data, pool, [task for task in self.tasks if data in task.inputs])
        for task in coming.children:
            task.missing += 1
        self.coming.append(coming)
        claim = self.machine.mover.room.claim(pool, coming)

        def landed(_: Event) -> None:
            self.coming.remove(coming)
            if data.copies:  # rewritten meanwhile
                pool.give_back(coming, True)
            else:
                pool.land(data)
                data.written = True
            self.machine.release(coming)

        assert claim.callbacks is not None
        claim.callbacks.append(landed)
