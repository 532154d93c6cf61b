"""The state of a machine: its parts and how they are built, its tasks, and what planners and reports see of it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from simpy.events import Event

from simmodel.foundation.errors import InputError
from simmodel.platform.machine import MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.records.task_record import PHASES
from simmodel.resources.data.memory import MemoryPool
from simmodel.resources.models import check_model, model_named
from simmodel.resources.processors.processor import Processor
from simmodel.resources.processors.serving import ManyCores
from simmodel.scheduling.problem import Problem
from simmodel.systems.system import System
from simmodel.work.live import LiveWork
from simmodel.work.taskset import LiveData, LiveTask, TaskSet

if TYPE_CHECKING:
    from array import array

    from simmodel.environment import Environment
    from simmodel.platform.options import MachineOptions
    from simmodel.resources.network.network import Network
    from simmodel.resources.processors.services import ProcessorServices, Shares
    from simmodel.scheduling.ready_tasks import ReadyTasks
    from simmodel.systems.machine.mover import DataMover

__all__ = [
    "CoreUse",
    "CutExecution",
    "LiveSet",
    "MachineState",
    "TaskSpeedKey",
    "build_pools",
    "build_processors",
    "problem_of",
    "waiting_report",
]


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


# ---------------------------------------------------------------------- building


Made = TypeVar("Made")


def build_processors(
    machine: ProcessorServices,
    spec: MachineSpec,
    pools: Mapping[str, MemoryPool],
    options: MachineOptions,
    of_node: Mapping[str, Processor],
) -> tuple[dict[str, Processor], list[TaskSpeedKey]]:
    """Return the processors of a machine by name, and their kinds.

    Parameters
    ----------
    machine, spec, pools
        the services that processors use; the spec; the pools by name
    options
        of the machine; a processor's own ``overlap`` takes precedence
    of_node
        processors of another machine, with which those of the same names share their core

    Raises
    ------
    InputError
        if the class of a processor cannot be imported, is not a subclass of Processor, or does not support its spec
    """
    found: dict[str, Processor] = {}
    numbers: dict[TaskSpeedKey, int] = {}
    for i, each in enumerate(spec.processors):
        model = _model(each)
        models_own = i if model.amounts or model.run_time is not Processor.run_time else None
        kind = TaskSpeedKey(each.architecture, each.type, each.cores, each.pool, models_own)
        number = numbers.setdefault(kind, len(numbers))
        for name in each.names:
            found[name] = model(machine, name, each, pools[each.pool], index=len(found), kind=number)
    for name in found.keys() & of_node:
        found[name].core = of_node[name].core
    cores = {each.name: each.core for each in found.values() if each.core is not None}
    first = next(iter(cores.values()), None)
    for processor in found.values():
        own = processor.spec
        processor.overlap = (options.overlap if own.overlap is None else own.overlap) and own.dma
        processor.holds_core_early = processor.core is not None and options.core_held == "transfer"
        named = [cores[name] for name in own.setup_on] or ([first] if first is not None else [])
        processor.setup_cores = [processor.core] if processor.core in named and processor.core is not None else named
    return found, list(numbers)


def _model(spec: ProcessorSpec) -> type[Processor]:
    plain = ManyCores if spec.cores > 1 else Processor
    return _checked(plain if spec.model is None else spec.model, Processor, spec, f"processor {spec.name}")


def build_pools(env: Environment, spec: MachineSpec) -> dict[str, MemoryPool]:
    """Return the memory pools of a machine by name.

    Raises
    ------
    InputError
        if the class of a pool cannot be imported, is not a subclass of MemoryPool, or does not support its spec
    """
    found: dict[str, MemoryPool] = {}
    for each in spec.pools:
        model = _checked(each.model or MemoryPool, MemoryPool, each, f"memory pool {each.name}")
        found[each.name] = model(env, each, len(found))
    for pool in found.values():
        pool.spill = found[str(spec.home) if pool.spec.spill is None else pool.spec.spill]
    return found


def _checked(given: str | type[Made], base: type[Made], spec: ProcessorSpec | MemoryPoolSpec, place: str) -> type[Made]:
    """Return the class of a model that supports a spec."""
    if spec.model is None and spec.options:
        raise InputError(f"must be empty without a model, got {dict(spec.options)}", place=f"options of {place}")
    model = model_named(given, base, f"model of {place}")
    check_model(model, spec, f"model of {place}")
    return model


# ---------------------------------------------------------------------- for planners


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


# ---------------------------------------------------------------------- for reports


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
