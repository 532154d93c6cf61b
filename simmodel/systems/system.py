"""The base class of systems: places under one scheduler, and the life of work on them.

Clusters, machines and brokers are systems, and so is any user's subclass of :class:`System`. A system is itself a
place: a broker distributes work over systems of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, NoReturn, Self, TypeVar

from simpy.events import Event

from simmodel.environment import END, SUBMIT
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.records.recorder import Chooser
from simmodel.records.streamed_recorder import EVERY, StreamedRecorder
from simmodel.records.tables import place_table
from simmodel.scheduling.protocol import Load, work_units

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.records.recorder import JobRecorder
    from simmodel.records.streamed_recorder import Write
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.scheduling.protocol import Estimate, View
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Handler, Scheduler
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.job import Job
    from simmodel.work.prepare import JobsGiven, Prepared
    from simmodel.work.table import Table

__all__ = ["EstimateBasis", "Offers", "RunningBelow", "System", "Timing"]

Live = TypeVar("Live")
"""Live work: jobs or tasks."""

EstimateBasis = Literal["requested", "actual"]
"""The run times that estimates use: requested ones, which a scheduler knows, or actual ones, which it does not."""


class Timing(NamedTuple):
    """When a system decides and handles events within an instant.

    ``by_event``: after each submission and each end, instead of once per instant; ``submits`` and ``ends``: the
    priorities of submissions and ends in SimPy's event queue, lowest first. Systems that decide once per instant
    combine with all others.
    """

    by_event: bool = False
    submits: float = SUBMIT
    ends: float = END


class Offers(NamedTuple):
    """Requests that jobs may make in addition to processors and time: nodes, queues, partitions, shares of bandwidth,
    types of GPUs.

    Unknown queues, partitions and shares in a log are ignored; all are, if there are no names. So are types of GPUs
    where no node has any.
    """

    nodes: bool = False
    queues: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    types: bool = False


class RunningBelow:
    """The running work of several places, ordered by expected end, with the interface of one place's."""

    __slots__ = ("_places",)

    def __init__(self, places: Iterable[Any]) -> None:
        self._places = tuple(places)

    def entries(self) -> list[tuple[float, int, Any, Any]]:
        """Return (expected end in s, start number, processors, run) of each execution, in order."""
        return sorted((entry for place in self._places for entry in place.running.entries()), key=lambda e: e[:2])

    def work(self, now: float) -> int:
        """Return the expected work from an instant (s) on, in units of 2^-20 processor seconds."""
        entries = (entry for place in self._places for entry in place.running.entries())
        return sum(work_units(processors, end - now) for end, _, processors, _ in entries)

    def __iter__(self) -> Iterator[Any]:
        return iter([entry[3] for entry in self.entries()])

    def __len__(self) -> int:
        parts = (place.running for place in self._places)
        return sum(len(each) if isinstance(each, Sized) else len(each.entries()) for each in parts)


class System(Generic[Live]):
    """Places under one scheduler, and the life of work on them: the base class of every kind of system.

    To write a small system that runs jobs, derive from :class:`~simmodel.systems.jobs.JobSystem`, which is complete.

    Attributes
    ----------
    kind
        name of the kind of system in specs and snapshots
    work
        the work that it runs: ``"jobs"`` or ``"tasks"``
    timing, rank
        when it decides and handles events within an instant; its turn among schedulers that decide at the same
        instant, lowest first
    env, spec, name
        the environment; the spec that the system was built from; its name in reports
    places
        the places on which work starts
    view, scheduler
        the view that its policy gets; the process that asks the policy
    of_nodes
        what the tasks of workflows that run as jobs request: see :meth:`Kind.of_nodes <simmodel.systems.kinds.Kind>`
    changed
        functions without arguments, called when work has started or ended or capacity has changed, so that a system
        above may decide again
    submitted
        number of the next submission
    """

    kind: ClassVar[str]
    work: Literal["jobs", "tasks"] = "jobs"
    destination_class: ClassVar[Any] = "simmodel.systems.destination:Destination"
    """The class, or its ``"module:Class"``, that makes the system a place of a broker."""
    queues = True  # as a place
    timing = Timing()
    rank = 1
    of_nodes: frozenset[str] = frozenset()

    env: Environment
    spec: Any
    name: str
    places: Sequence[Any]
    view: View
    scheduler: Scheduler
    changed: list[Callable[[], object]]
    submitted: int
    _active: int  # submitted or still to arrive, and not ended
    _idle: Event | None = None

    # ------------------------------------------------------------------ to be written by each kind of system

    submit: Callable[..., Any]
    """``submit(work)``: submit work now; return an event that is triggered when the work ends."""

    def accept(self, work: Any) -> Any:
        """Submit work that a broker hands over: its id may occur again, in another workload of the broker."""
        return self.submit(work)

    def check_names(self, job: Job, label: object) -> None:
        """Check the queue and the partition of a job of a script, which errors call by a label; any are accepted here.

        Raises
        ------
        InputError
            if one is unknown
        """

    def replay(self, workload: JobsGiven, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its submit time; return them as prepared, with repairs and rejects.

        Parameters
        ----------
        home
            the home of the jobs, by name, if places are systems

        Raises
        ------
        InputError
            if the system runs no jobs, or has no such place
        """
        raise InputError(f"{self.name}: cannot replay a workload of jobs: a {self.kind} runs {self.work}")

    def start(self, work: Live, place: Any, allocation: Allocation | None = None) -> None:
        """Start waiting work at a place; the scheduler has checked that it fits."""
        raise NotImplementedError

    def cancel(self, work: Live) -> None:
        """Withdraw waiting work or stop running work; has no effect on work that has ended."""
        raise NotImplementedError

    def rebind(self, work: Live, place: Any) -> None:
        """Move waiting work to another place."""
        live: Any = work
        live.place = place

    def why_not(self, work: Any) -> str | None:
        """Return why no place of the system can ever run the work, or ``None``; has no side effects."""
        raise NotImplementedError

    def estimate(self, work: Any, by: EstimateBasis = "requested") -> Estimate:
        """Estimate when work submitted now would start, and how long it would run (s); has no side effects.

        Raises
        ------
        ImpossibleWork
            if no place can ever run it
        """
        raise NotImplementedError

    def result(self, name: str | None = None) -> Any:
        """Return the result so far; ``name`` is its name in tables and plots.

        Raises
        ------
        InputError
            if the system keeps no record
        """
        raise NotImplementedError

    def waiting_report(self) -> Iterable[str]:
        """Yield one sentence per waiting job or task: what it waits for, since when, and what holds it."""
        raise NotImplementedError

    # ------------------------------------------------------------------ defaults

    @property
    def known_as(self) -> str | None:
        """The registered name of the policy, or ``None`` if it was passed as an object."""
        return self.scheduler.known_as

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """The handlers of the decision types that it supports besides ``Start``, ``Reserve`` and ``WakeAt``."""
        return {}

    def withdraw(self, work: Live) -> None:
        """Withdraw work that has not started.

        Raises
        ------
        InputError
            if it has started or ended
        """
        live: Any = work
        if live.state not in ("waiting", "blocked", "held"):
            raise InputError(f"{self.name}: cannot withdraw {work!r}: it has started or ended")
        self.cancel(work)

    def idle(self) -> Event:
        """Return an event that is triggered once all submitted and arriving work has ended."""
        if self._idle is None or (self._idle.triggered and self._active):
            self._idle = Event(self.env)
            if not self._active:
                self._idle.succeed()
        return self._idle

    def count_coming(self, works: int) -> None:
        """Count jobs or tasks that will be submitted; a negative number takes them back."""
        self._active += works

    def _one_over(self) -> None:
        """Count a job or task that has ended."""
        self._active -= 1
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    def forget_ended(self) -> None:
        """Forget the work that has ended: its memory is free at once, instead of when the collector next looks."""

    @property
    def unfinished(self) -> int:
        """Number of submitted and arriving jobs or tasks that have not ended."""
        return self._active

    def policies_below(self) -> dict[str, str | None]:
        """Return the policies of the places that are systems, by name; ``None`` for those passed as objects."""
        return {}

    def present(self) -> Iterator[Live]:
        """Yield the submitted live work that has not ended: running, then waiting."""
        for run in self.view.running:
            yield run.work  # type: ignore[misc]
        yield from self.view.waiting

    reads_in_chunks: ClassVar[bool] = False
    """Whether workloads of a simulation with a streamed record are read in chunks; else they are in memory."""

    def replay_in_chunks(self, workload: ChunkedWorkload) -> None:
        """Submit the jobs of a workload that is read in chunks; raises ``InputError`` if it cannot."""
        raise InputError(f"must be in memory for a {self.kind}, got {workload!r}", place="workload")

    def stream_record(self, write: Write, *, every: int = EVERY) -> None:
        """Write the rows of the record by a function as they are complete; raises ``InputError`` if it cannot.

        Parameters
        ----------
        write
            takes ``"jobs"`` or ``"runs"``, the rows in the record, and the table; jobs before their executions
        every
            after how many jobs that come one by one rows are written
        """
        raise InputError(f"must be None for a {self.kind}, whose record is kept in memory", place="stream")

    def streamed_recorder(self, kept: JobRecorder | None, jobs: int, write: Write, every: int) -> StreamedRecorder:
        """Return a recorder for :meth:`stream_record`, given the present one and the number of jobs so far.

        Raises
        ------
        InputError
            if there are jobs, the system keeps no record, or its policy records its choices
        """
        if jobs or kept is None:
            raise InputError(f"must be None for {self!r}, which has jobs or keeps no record", place="stream")
        if isinstance(self.scheduler.policy, Chooser):
            message = f"must be None under {self.scheduler.policy_name}, whose choices are kept in memory"
            raise InputError(message, place="stream")
        recorder = StreamedRecorder(self.env, write, places=self.places, every=every)
        recorder.since = kept.since
        return recorder

    def place_table(self) -> Table:
        """Return the places of the record, as they are now."""
        return place_table(self.places)

    @property
    def endless(self) -> bool:
        """Whether events may continue after all work has ended: failures, outages, reservations."""
        return False

    # ------------------------------------------------------------------ as a place

    def can_run(self, work: Any) -> bool:
        """Whether the system could ever run the work; has no side effects."""
        return self.why_not(work) is None

    @property
    def capacity(self) -> int:
        """Total number of processors."""
        return sum(int(place.capacity) for place in self.places)

    @property
    def free(self) -> int:
        """Number of free processors."""
        return sum(int(place.free) for place in self.places)

    @property
    def version(self) -> int:
        """A number that changes whenever free capacity or the queue does."""
        return int(sum(place.version for place in self.places) + self.submitted)

    @property
    def running(self) -> RunningBelow:
        """The executions in its places, ordered by expected end."""
        return RunningBelow(self.places)

    @property
    def load(self) -> Load:
        """Load of the system."""
        waiting = list(self.view.waiting)
        queued = sum(work_units(job.processors, job.expected) for job in waiting)
        return Load(self.free, len(waiting), queued, self.running.work(self.env.now))

    @property
    def offers(self) -> Offers:
        """The requests that it supports in addition to processors and time."""
        return Offers()

    @property
    def largest(self) -> int:
        """The largest number of processors that one job or task can use."""
        return max(int(place.capacity) for place in self.places)

    def waiting_by_place(self) -> dict[str, int]:
        """Return how much work waits at each of its places, by name; without places that have no queue of their own."""
        return {str(each.name): len(each.view.waiting) for each in self.all_below() if each is not self}

    def all_below(self) -> Iterator[System[Any]]:
        """Yield the systems below this one, lowest first, then this one."""
        yield self

    # ------------------------------------------------------------------ under a system above

    def settle(self) -> None:
        """Decide at once, if that improves the next estimate: a system above has just handed work over."""

    def row_of(self, work: Live) -> int:
        """Return the row of submitted work in the table of the system's result."""
        live: Any = work
        return int(live.index)

    def number_of(self, work: Live) -> int:
        """Return the number of submitted work in snapshots of a system above."""
        live: Any = work
        return int(live.seq)

    def numbered(self) -> Mapping[int, Live]:
        """Return the work that has not ended, by its number in the snapshot that the system continues from."""
        return {self.number_of(work): work for work in self.present()}

    # ------------------------------------------------------------------ snapshots

    def __deepcopy__(self, _memo: dict[int, Any]) -> NoReturn:
        raise SnapshotError(f"{self.name} cannot be deep-copied: use snapshot(), and from_snapshot() to continue")

    def snapshot(self) -> Snapshot:
        """Return the state of the system as a plain value from which a simulation can continue.

        Raises
        ------
        SnapshotError
            if the system cannot be copied
        """
        raise SnapshotError(f"a {self.kind} does not support snapshots")

    def seen(self) -> Snapshot:
        """Return the state of the system as policies see it, where that costs less than a :meth:`snapshot`."""
        return self.snapshot()

    @classmethod
    def from_snapshot(cls, env: Environment, snapshot: Any, policy: PolicyLike | None = None) -> Self:
        """Return a system that continues from a snapshot.

        Raises
        ------
        SnapshotError
            if its kind does not support snapshots
        """
        raise SnapshotError(f"a {cls.kind} does not support snapshots")
