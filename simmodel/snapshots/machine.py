"""Snapshots of machines: the tasks that are not done, where data lie and move, and what each processor is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple

import attrs

from simmodel.errors import InputError
from simmodel.platform.machine import MachineSpec
from simmodel.platform.options import MachineOptions
from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, one_of

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
]

OPTIONS = MachineOptions()
POLICY = PolicyState(name="hrr", known_as="hrr")


@attrs.frozen
class SetState:
    """A task set of which tasks are not done: when it was submitted (s), and the reconfiguration times it fixes."""

    name: str
    at: float
    reconfiguration: Mapping[str, float] | None = None


class TaskState(NamedTuple):
    """A task that is not done, and where it stands; sets, parents, data and places are numbers in the snapshot.

    ``run``: its nominal seconds, where it has any; ``speeds``: expected seconds by kind of processor; ``error``: of the
    model, -1 to 1; ``load``: where in the interval of a processor the reconfiguration of a task without a family lies;
    ``share``: expected seconds in the queue of its processor; ``stamps``: the instants (s) at which its phases began.
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


class DataState(NamedTuple):
    """Data that lie in pools (``copies``), or that tasks read or write; ``given``: the set still to bring them."""

    name: str
    size: float
    written: bool = False
    kept: bool = False
    copies: tuple[Count, ...] = ()
    given: Count | None = None


@attrs.frozen
class PoolState:
    """A memory pool: bytes used now and at most; the data in it, leaving, out of date, awaited, and those that wait."""

    name: str
    used: float = 0.0
    peak: float = 0.0
    held: tuple[Count, ...] = ()
    leaving: tuple[Count, ...] = ()
    stale: tuple[Count, ...] = ()
    awaited: tuple[Count, ...] = ()
    awaits: tuple[Count, ...] = ()


class RunningTaskState(NamedTuple):
    """A task that a processor works on: since when, and until when it is expected to (s)."""

    task: Count
    started: Instant
    expected_end: float


class RankedTask(NamedTuple):
    """A task in a queue by priority: what it is ordered by."""

    priority: float
    rank: Count
    task: Count


@attrs.frozen
class ProcessorState:
    """A processor: its queue, the family loaded and the last of its queue (or the task that is one of its own).

    ``numbers``: of what was ranked so far; ``queued``: expected seconds in the queue; ``since``, ``until``: s, of what
    it works on; ``running``: what it works on, where that may be several.
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


@attrs.frozen
class FlightState:
    """Data that are to come to a pool, and the task that has to bring them; on their way, once they have a source.

    ``left``, ``lag``: bytes still to move and s before they do, over links that are shared; ``at``: the instant (s) of
    their arrival, over links that are not.
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


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class MachineSnapshot(Snapshot):
    """A machine at one instant; beside what all snapshots have (see :class:`~simmodel.snapshots.snapshot.Snapshot`):

    Tasks and data are numbered, and everything else speaks of them by their numbers.

    Parameters
    ----------
    platform, options, stream
        as built; what its random streams are called
    sets
        the task sets of which tasks are not done
    tasks
        the tasks that are not done
    data
        the data that lie somewhere, or that such tasks read or write
    pools, places
        each memory pool and each processor
    flights
        the data on their way, in the order in which they left
    waiting, new
        the tasks without a place, in order, and how many of them came since the last decision
    order
        the tasks that processors work on, in the order in which what they wait for comes; -1 - d: data d of a set
    loads
        where in the interval of a processor the reconfiguration of each family lies
    alarms
        instants at which the policy asked to decide
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

    def __repr__(self) -> str:
        running, _ = self.tally
        return (
            f"<MachineSnapshot of {self.name} at {self.now:g} s: {len(self.tasks)} tasks not done, "
            f"{running} of them on processors>"
        )

    @property
    def ids(self) -> list[int | str]:
        """The ids of the tasks that are not done."""
        return [task.id for task in self.tasks]

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the tasks that are on processors, each with the instant (s) since when."""
        return {(task.id, task.stamps[0]) for task in self.tasks if task.stamps}

    @property
    def tally(self) -> tuple[int, int]:
        """How many tasks are on processors and how many wait."""
        running = sum(task.stamps is not None for task in self.tasks)
        return running, len(self.tasks) - running

    @property
    def unfinished(self) -> int:
        """How many tasks it holds."""
        return len(self.tasks)

    def expected(self, *, actual: bool = False) -> MachineSnapshot:
        """Return what a what-if may see: no work to come, and run times without the error of their model.

        What runs is expected to end when a policy expects it to, and now where that is past. With ``actual`` run times
        stay what they are.
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
        """Raise ``InputError``, with its place, where a number names something that is not there."""
        tasks, data = len(self.tasks), len(self.data)
        for i, task in enumerate(self.tasks):
            _check("tasks.set", i, (task.set,), len(self.sets), "task set")
            _check("tasks.parents", i, task.parents, tasks, "task")
            _check("tasks.inputs", i, (*task.inputs, *task.outputs), data, "data object")
            _check("tasks.place", i, () if task.place is None else (task.place,), len(self.places), "place")
        for i, each in enumerate(self.data):
            _check("data.copies", i, each.copies, len(self.pools), "pool")
            _check("data.given", i, () if each.given is None else (each.given,), len(self.sets), "task set")
        for i, pool in enumerate(self.pools):
            found = (*pool.held, *pool.leaving, *pool.stale, *pool.awaited, *pool.awaits)
            _check("pools", i, found, data, "data object")
        for i, place in enumerate(self.places):
            found = (*place.queue, *(run.task for run in place.running), *(each.task for each in place.ranked))
            _check("places", i, found, tasks, "task")
        for i, number in enumerate(self.waiting):
            _check("waiting", i, (number,), tasks, "task")
        for i, number in enumerate(self.order):
            _check("order", i, (max(number, -1 - number),), data if number < 0 else tasks, "task")


def _check(name: str, i: int, numbers: tuple[int, ...], count: int, kind: str) -> None:
    for number in numbers:
        if number >= count:
            raise InputError(f"the number of a {kind}, below {count}, expected, found {number}", place=f"{name}[{i}]")


def _renumbered(place: ProcessorState, number: Mapping[int, int]) -> ProcessorState:
    """Return a processor whose tasks have other numbers."""

    def family(found: int | str | None) -> int | str | None:
        return number[found] if isinstance(found, int) else found

    return attrs.evolve(
        place,
        queue=tuple(number[i] for i in place.queue),
        ranked=tuple(each._replace(task=number[each.task]) for each in place.ranked),
        running=tuple(run._replace(task=number[run.task]) for run in place.running),
        loaded=family(place.loaded),
        last_family=family(place.last_family),
    )
