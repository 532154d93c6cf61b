"""Snapshots of machines: unfinished tasks, locations and transfers of data, and the state of each processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Annotated, Any, ClassVar, NamedTuple

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.platform.machine import MachineSpec
from simmodel.platform.options import MachineOptions
from simmodel.resources.data.eviction import CandidateState
from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, one_of
from simmodel.work.taskset import LiveData, LiveTask

__all__ = [
    "DataState",
    "FlightState",
    "MachineSnapshot",
    "PoolState",
    "ProcessorState",
    "RankedTask",
    "RunningTaskState",
    "SetState",
    "TaskState",
    "data_in",
    "referred",
    "referring",
    "renumbered",
]

OPTIONS = MachineOptions()
_STAMPS = 7  # of a task that is not done
POLICY = PolicyState(name="hrr", known_as="hrr")


@attrs.frozen(repr=False)
class SetState(Fields):
    """A task set with unfinished tasks: its submission instant (s) and its fixed reconfiguration times (s)."""

    name: str
    at: float
    reconfiguration: Mapping[str, float] | None = None


class TaskState(NamedTuple):
    """An unfinished task; sets, parents, data and places are given by their numbers in the snapshot.

    ``run``: its nominal run time (s), if any; ``speeds``: expected seconds by kind of processor; ``error``: of the
    model, -1 to 1; ``load``: for a task without a family, the position of its reconfiguration time in the interval of a
    processor; ``share``: expected seconds in the queue of its processor; ``stamps``: the instants (s) at which its
    phases began; ``notes``: numbers by name that its processor has recorded.
    """

    id: int | str
    set: Count
    state: Annotated[str, one_of("to come", "blocked", "waiting", "assigned", "running", "stopping")]
    speeds: tuple[Seconds, ...]
    run: Seconds | None = None
    place: Count | None = None
    error: float = 0.0
    family: str | None = None
    load: float | None = None
    implementations: tuple[str, ...] | None = None
    inputs: tuple[Count, ...] = ()
    outputs: tuple[Count, ...] = ()
    parents: tuple[Count, ...] = ()
    cores: float = 1.0
    memory: float = 0.0
    priority: float = 0.0
    submit: Instant | None = None
    ready: Instant | None = None
    assigned: Instant | None = None
    share: float | None = None
    attempts: Count = 0
    done_share: float = 0.0
    stamps: tuple[Instant, ...] | None = None
    core: str | None = None
    core_since: Instant | None = None
    amounts: Mapping[str, float] | None = None
    notes: Mapping[str, float] | None = None


class DataState(NamedTuple):
    """A data object held in pools (``copies``) or used by tasks; ``given``: the set that has yet to bring it."""

    name: str
    size: float
    written: bool = False
    kept: bool = False
    copies: tuple[Count, ...] = ()
    given: Count | None = None


@attrs.frozen(repr=False)
class PoolState(Fields):
    """A memory pool: bytes used now and at peak; data held, leaving, stale and awaited, and data waiting for room.

    Of pools with another eviction rule than LRU: the arrivals and uses so far, and the past of each of the data held.
    ``parts``: data of which only some bytes are left, and these bytes; ``own``: the state of its model (see
    :mod:`simmodel.snapshots.machine`).
    """

    name: str
    used: float = 0.0
    peak: float = 0.0
    held: tuple[Count, ...] = ()
    leaving: tuple[Count, ...] = ()
    stale: tuple[Count, ...] = ()
    awaited: tuple[Count, ...] = ()
    awaits: tuple[Count, ...] = ()
    uses: Count = 0
    pasts: tuple[CandidateState, ...] = ()
    parts: tuple[tuple[Count, float], ...] = ()
    own: Any = None


class RunningTaskState(NamedTuple):
    """A task on a processor: its start and its expected end (s)."""

    task: Count
    started: Instant
    expected_end: float


class RankedTask(NamedTuple):
    """A task in a queue by priority, with its sort key."""

    priority: float
    rank: Count
    task: Count


@attrs.frozen(repr=False)
class ProcessorState(Fields):
    """A processor: its queue, the loaded family and the last family in the queue (a task number if it has no family).

    ``numbers``: how many tasks were ranked so far; ``queued``: expected seconds in the queue; ``since``, ``until``:
    start and expected end (s) of the running task; ``running``: the running tasks, if there may be several;
    ``own``: the state of its model (see :mod:`simmodel.snapshots.machine`).
    """

    name: str
    queue: tuple[Count, ...] = ()
    ranked: tuple[RankedTask, ...] = ()
    numbers: Count = 0
    queued: float = 0.0
    since: float = 0.0
    until: float = 0.0
    loaded: int | str | None = None
    last_family: int | str | None = None
    running: tuple[RunningTaskState, ...] = ()
    own: Any = None


@attrs.frozen(repr=False)
class FlightState(Fields):
    """Data bound for a pool, and the task responsible for the transfer; in flight once they have a source.

    ``left``, ``lag``: remaining bytes and remaining latency (s), over shared links; ``at``: the arrival instant (s),
    over links that are not shared; ``part``: the bytes that were there already.
    """

    data: Count
    pool: Count
    owner: Count | None = None
    stale: bool = False
    source: Count | None = None
    since: float = 0.0
    task: Count | None = None
    cause: str = ""
    left: float = 0.0
    lag: float = 0.0
    at: float | None = None
    part: float = 0.0


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class MachineSnapshot(Snapshot):
    """A machine at one instant, with the fields of every :class:`~simmodel.snapshots.snapshot.Snapshot` and:

    All other states refer to tasks and data by their numbers.

    Parameters
    ----------
    platform, options, stream
        the spec and options of the machine; the prefix of its random streams
    sets
        the task sets with unfinished tasks
    tasks
        the unfinished tasks
    data
        the data held in pools or used by these tasks
    pools, places
        the memory pools; the processors
    flights
        the data bound for pools, those in flight first, in the order of departure
    waiting, new
        the tasks without a place, in order, and how many of them came since the last decision
    order
        the tasks on processors, in the order of the events that they wait for; -1 - d: initial data d
    loads
        for each family, the position of its reconfiguration time in the interval of a processor
    alarms
        instants (s) at which the policy asked to decide
    links
        the state of the models of links, by link
    """

    system: ClassVar[str] = "machine"
    schema: ClassVar[int] = 2

    name: str = "machine"
    platform: MachineSpec
    options: MachineOptions = OPTIONS
    stream: str = "machine"
    policy: PolicyState = POLICY
    sets: tuple[SetState, ...] = ()
    tasks: Columns[TaskState]
    data: Columns[DataState] = ()
    pools: tuple[PoolState, ...] = ()
    places: tuple[ProcessorState, ...] = ()
    flights: tuple[FlightState, ...] = ()
    waiting: tuple[Count, ...] = ()
    new: Count = 0
    order: tuple[int, ...] = ()
    loads: tuple[tuple[str, float], ...] = ()
    alarms: tuple[Instant, ...] = ()
    links: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        running, _ = self.tally
        return (
            f"<MachineSnapshot of {self.name} at {self.now:g} s: {len(self.tasks)} tasks not done, "
            f"{running} of them on processors>"
        )

    @property
    def ids(self) -> list[int | str]:
        return [task.id for task in self.tasks]

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the tasks on processors, each with the instant (s) of its first phase."""
        return {(task.id, task.stamps[0]) for task in self.tasks if task.stamps}

    @property
    def tally(self) -> tuple[int, int]:
        """The numbers of tasks on processors and of waiting tasks."""
        running = sum(task.stamps is not None for task in self.tasks)
        return running, len(self.tasks) - running

    @property
    def unfinished(self) -> int:
        return len(self.tasks)

    def expected(self, *, actual: bool = False) -> MachineSnapshot:
        """Return the part that a what-if may see: no future arrivals, and run times without the model error.

        Running tasks end at their expected end, or now if that is past. With ``actual``, run times are kept.
        """
        here = [i for i, task in enumerate(self.tasks) if task.state != "to come"]
        number = {i: k for k, i in enumerate(here)}
        kept = dict.fromkeys(self.tasks[i].set for i in here)
        set_of = {s: k for k, s in enumerate(kept)}

        def seen(task: TaskState) -> TaskState:
            return task._replace(
                set=set_of[task.set],
                parents=tuple(number[i] for i in task.parents if i in number),
                error=task.error if actual else 0.0,
            )

        return attrs.evolve(
            self,
            sets=tuple(self.sets[s] for s in kept),
            tasks=tuple(seen(self.tasks[i]) for i in here),
            data=tuple(
                each._replace(given=None if each.given is None else set_of.get(each.given)) for each in self.data
            ),
            pools=tuple(attrs.evolve(pool, own=renumbered(pool.own, number)) for pool in self.pools),
            places=tuple(_renumbered(place, number) for place in self.places),
            flights=tuple(
                attrs.evolve(
                    flight,
                    owner=None if flight.owner is None else number[flight.owner],
                    task=None if flight.task is None else number[flight.task],
                )
                for flight in self.flights
            ),
            waiting=tuple(number[i] for i in self.waiting),
            order=tuple(number[i] if i >= 0 else i for i in self.order),
            streams=(),
        )

    def check(self) -> None:
        """Raise ``InputError``, with its place, if a number refers to a missing part."""
        tasks, data = len(self.tasks), len(self.data)
        self._check_parts()
        for i, task in enumerate(self.tasks):
            _check("tasks.set", i, (task.set,), len(self.sets), "task set")
            _check("tasks.parents", i, task.parents, tasks, "task")
            _check("tasks.inputs", i, (*task.inputs, *task.outputs), data, "data object")
            _check("tasks.place", i, () if task.place is None else (task.place,), len(self.places), "place")
        for i, each in enumerate(self.data):
            _check("data.copies", i, each.copies, len(self.pools), "pool")
            _check("data.given", i, () if each.given is None else (each.given,), len(self.sets), "task set")
        for i, pool in enumerate(self.pools):
            found = (*pool.held, *pool.leaving, *pool.stale, *pool.awaited, *pool.awaits, *(d for d, _ in pool.parts))
            _check("pools", i, found, data, "data object")
        for i, place in enumerate(self.places):
            found = (*place.queue, *(run.task for run in place.running), *(each.task for each in place.ranked))
            _check("places", i, found, tasks, "task")
        for i, number in enumerate(self.waiting):
            _check("waiting", i, (number,), tasks, "task")
        for i, number in enumerate(self.order):
            _check("order", i, (max(number, -1 - number),), data if number < 0 else tasks, "task")
        for i, flight in enumerate(self.flights):
            where = f"flights[{i}]"
            _check(f"{where}.data", None, (flight.data,), data, "data object")
            pools = [flight.pool] if flight.source is None else [flight.pool, flight.source]
            _check(f"{where}.pool", None, tuple(pools), len(self.pools), "pool")
            named = tuple(each for each in (flight.owner, flight.task) if each is not None)
            _check(f"{where}.task", None, named, tasks, "task")
            if flight.at is not None and not self.now <= flight.at < inf:
                raise InputError(f"must be an instant >= {self.now:g} s, got {flight.at:g}", place=f"{where}.at")
        self._check_data()

    def _check_data(self) -> None:
        """Check that the copies of data are those held in pools, and that each input of a task comes from somewhere."""
        coming = {d for pool in self.pools for d in pool.awaits} | {flight.data for flight in self.flights}
        coming |= {d for task in self.tasks for d in task.outputs}
        held = [set(pool.held) for pool in self.pools]
        current = [found.difference(pool.stale) for found, pool in zip(held, self.pools, strict=True)]
        for d, each in enumerate(self.data):
            for p, pool in enumerate(self.pools):
                if p in each.copies and d not in held[p]:
                    raise InputError(f"must hold data {d} ({shown(each.name)}), a copy of it", place=f"pools[{p}].held")
                if p not in each.copies and d in current[p]:
                    message = f"must be the pools that hold it, as {p} ({pool.name}), got {shown(each.copies)}"
                    raise InputError(message, place=f"data.copies[{d}]")
            if each.copies or each.given is not None:
                coming.add(d)
        for i, task in enumerate(self.tasks):
            for d in task.inputs:
                if d not in coming:
                    message = f"must be held, in flight or the output of a task, got data {d} of none of them"
                    raise InputError(message, place=f"tasks.inputs[{i}]")
        for i, flight in enumerate(self.flights):
            if flight.owner is not None and flight.data not in self.tasks[flight.owner].inputs:
                message = f"must be a task that reads data {flight.data}, got task {flight.owner}"
                raise InputError(message, place=f"flights[{i}].owner")

    def _check_parts(self) -> None:
        """Check that pools, places and tasks are those of the platform, and that instants fit."""
        pools = [each.name for each in self.platform.pools]
        if [each.name for each in self.pools] != pools:
            raise InputError(f"must be the pools {', '.join(pools)}", place="pools")
        for i, (spec, pool) in enumerate(zip(self.platform.pools, self.pools, strict=True)):
            expected = 0 if spec.evict == "lru" else len(pool.held)
            if len(pool.pasts) != expected:
                message = f"must be the pasts of {expected} data objects, got {len(pool.pasts)}"
                raise InputError(message, place=f"pools[{i}].pasts")
        places = {name for name, _ in self.platform.each_processor()}
        for i, place in enumerate(self.places):
            if place.name not in places:
                raise InputError(unknown("processor", place.name, sorted(places)).message, place=f"places[{i}].name")
        for i, task in enumerate(self.tasks):
            if task.state == "to come":
                if task.submit is None or not task.submit >= self.now:
                    raise InputError(
                        f"must be an instant >= {self.now:g} s, got {task.submit}", place=f"tasks.submit[{i}]"
                    )
            elif task.submit is not None and task.submit > self.now:
                raise InputError(
                    f"must be an instant <= {self.now:g} s, got {task.submit:g}", place=f"tasks.submit[{i}]"
                )
            if task.state in ("assigned", "running", "stopping") and task.place is None:
                raise InputError(f"must be a place, as the task is {task.state}", place=f"tasks.place[{i}]")
            if task.stamps is not None and not (0 < len(task.stamps) <= _STAMPS and max(task.stamps) <= self.now):
                message = f"must be 1 to {_STAMPS} instants <= {self.now:g} s, got {shown(task.stamps)}"
                raise InputError(message, place=f"tasks.stamps[{i}]")
            if task.core is not None and task.core not in places:
                raise InputError(f"must be a processor, got {shown(task.core)}", place=f"tasks.core[{i}]")


def _check(name: str, i: int | None, numbers: tuple[int, ...], count: int, kind: str) -> None:
    for number in numbers:
        if number >= count:
            raise InputError(
                f"must be the number of a {kind}, below {count}, got {number}",
                place=name if i is None else f"{name}[{i}]",
            )


def _renumbered(place: ProcessorState, number: Mapping[int, int]) -> ProcessorState:
    """Return a processor with its tasks renumbered."""

    def family(found: int | str | None) -> int | str | None:
        return number[found] if isinstance(found, int) else found

    return attrs.evolve(
        place,
        queue=tuple(number[i] for i in place.queue),
        ranked=tuple(each._replace(task=number[each.task]) for each in place.ranked),
        running=tuple(run._replace(task=number[run.task]) for run in place.running),
        loaded=family(place.loaded),
        last_family=family(place.last_family),
        own=renumbered(place.own, number),
    )


# ---------------------------------------------------------------------- tasks by number


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return plain values with each leaf, and each reference, changed."""
    if isinstance(value, Mapping) and value.keys() not in ({"task"}, {"data"}):
        return {key: _mapped(each, change) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(each, change) for each in value]
    return change(value)


def data_in(value: Any) -> Iterator[LiveData]:
    """Yield the data objects in the state of a model."""
    if isinstance(value, LiveData):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from data_in(each)
    elif isinstance(value, Mapping):
        yield from data_in(list(value.values()))


def referring(value: Any, tasks: Mapping[LiveTask, int], data: Mapping[LiveData, int]) -> Any:
    """Return the state of a model with the numbers of its tasks and data."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, LiveTask):
            return {"task": tasks[leaf]} if leaf in tasks else None
        return {"data": data[leaf]} if isinstance(leaf, LiveData) else leaf

    return _mapped(value, change)


def referred(value: Any, tasks: Sequence[LiveTask], data: Sequence[LiveData]) -> Any:
    """Return the state of a model with the tasks and data of its numbers.

    >>> referred([[{"task": 1}, 2.5], {"left": None}], ["a", "b"], [])
    [['b', 2.5], {'left': None}]
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Mapping):
            return tasks[leaf["task"]] if "task" in leaf else data[leaf["data"]]
        return leaf

    return _mapped(value, change)


def renumbered(value: Any, number: Mapping[int, int]) -> Any:
    """Return the state of a model with its references to tasks renumbered; tasks without a number become ``None``.

    >>> renumbered({"left": [[{"task": 2}, 1.5]]}, {2: 0})
    {'left': [[{'task': 0}, 1.5]]}
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Mapping) and "task" in leaf:
            return {"task": number[leaf["task"]]} if leaf["task"] in number else None
        return leaf

    return _mapped(value, change)
