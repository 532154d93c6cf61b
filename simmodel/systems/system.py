"""A system: places under one scheduler, and the life of work between them.

Clusters, machines and brokers are systems, and so is whatever a user derives from :class:`System`. A system is a place
itself: a broker stands over systems of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from simpy.events import Event

from simmodel.environment import END, SUBMIT
from simmodel.errors import InputError, SnapshotError
from simmodel.scheduling.protocol import Load, work_units

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.protocol import Estimate, View
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Handler, Scheduler
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["EstimateBasis", "Offers", "RunningBelow", "System", "Timing"]

Live = TypeVar("Live")
"""Live work: jobs or tasks."""

EstimateBasis = Literal["requested", "actual"]
"""Whether estimates go by the run times that were requested, which a scheduler can know, or by those to come."""


class Timing(NamedTuple):
    """When a system decides and takes work in; systems that decide once an instant go with all others.

    ``by_event``: inside each submission and each end, not once an instant; ``submits`` and ``ends``: the priorities in
    SimPy's queue of submissions and ends of one instant, lower first.
    """

    by_event: bool = False
    submits: float = SUBMIT
    ends: float = END


class Offers(NamedTuple):
    """What jobs may ask for beside processors and time: identified nodes, and these queues and partitions by name.

    What a log says of others is left out; where there are no names, all of it is ignored.
    """

    nodes: bool = False
    queues: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class RunningBelow:
    """What runs in several places, as one place shows it: ordered by expected end."""

    __slots__ = ("_places",)

    def __init__(self, places: Iterable[Any]) -> None:
        self._places = tuple(places)

    def entries(self) -> list[tuple[float, int, Any, Any]]:
        """Return (expected end in s, start number, processors, run) of each, in order."""
        return sorted((entry for place in self._places for entry in place.running.entries()), key=lambda e: e[:2])

    def work(self, now: float) -> int:
        """Return what is expected of it from an instant (s) on, in units of 2^-20 processor seconds."""
        entries = (entry for place in self._places for entry in place.running.entries())
        return sum(work_units(processors, end - now) for end, _, processors, _ in entries)

    def __iter__(self) -> Iterator[Any]:
        return iter([entry[3] for entry in self.entries()])

    def __len__(self) -> int:
        return sum(1 for place in self._places for _ in place.running.entries())


class System(Generic[Live]):
    """Places under one scheduler, and the life of work between them: what every kind of system has.

    A small system that runs jobs derives from :class:`~simmodel.systems.jobs.JobSystem`, which has all of it.

    Attributes
    ----------
    kind
        the name of the kind of system, as descriptions and snapshots give it
    work
        what it runs: ``"jobs"`` or ``"tasks"``
    timing, rank
        when in an instant it decides and takes work in; its turn among schedulers that share an instant
    env, spec, name
        the environment; what the system was built from; what reports call it
    places
        where work can start
    view, scheduler
        what its policy sees; who asks it
    changed
        functions without arguments, called when work has started or ended: a system above may decide anew
    submitted
        the number of the next submission
    """

    kind: ClassVar[str]
    work: Literal["jobs", "tasks"] = "jobs"
    destination_class: ClassVar[Any] = "simmodel.systems.destination:Destination"
    """The class, or its ``"module:Class"``, that makes the system a place of a broker."""
    queues = True  # as a place
    timing = Timing()
    rank = 1

    env: Environment
    spec: Any
    name: str
    places: Sequence[Any]
    view: View
    scheduler: Scheduler
    changed: list[Callable[[], object]]
    submitted: int
    _active: int  # submitted or still to arrive, and not over
    _idle: Event | None = None

    # ------------------------------------------------------------------ what a kind of system writes

    submit: Callable[..., Any]
    """``submit(work)``: submit work now; what is returned is an event that happens when the work is over."""

    def replay(self, workload: Workload, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected.

        Parameters
        ----------
        home
            the place that they belong to, by name, where places are systems

        Raises
        ------
        InputError
            where the system runs no jobs, or has no such place
        """
        raise InputError(f"{self.name} is a {self.kind}, which runs {self.work}; found a workload of jobs")

    def start(self, work: Live, place: Any, allocation: Any = None) -> None:
        """Start waiting work at a place, which the scheduler has found to fit."""
        raise NotImplementedError

    def cancel(self, work: Live) -> None:
        """Withdraw work that waits, or stop what runs; what is over stays as it is."""
        raise NotImplementedError

    def rebind(self, work: Live, place: Any) -> None:
        """Let waiting work wait for another of the places."""
        live: Any = work
        live.place = place

    def why_not(self, work: Any) -> str | None:
        """Say why no place of the system can ever run the work, were it submitted, or ``None``; a pure question."""
        raise NotImplementedError

    def estimate(self, work: Any, by: EstimateBasis = "requested") -> Estimate:
        """Return when the work would start and how long it would run (s), were it submitted now; a pure question.

        Raises
        ------
        ImpossibleWork
            where no place can ever run it
        """
        raise NotImplementedError

    def result(self, name: str | None = None) -> Any:
        """Return what has happened so far; ``name`` is what tables and plots call it.

        Raises
        ------
        InputError
            where the system was told to keep no record
        """
        raise NotImplementedError

    def waiting_report(self) -> Iterable[str]:
        """Yield one sentence for each piece of work that waits: who, for what, since when, and who holds it."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what follows

    @property
    def known_as(self) -> str | None:
        """The name under which the policy can be made again; ``None``: it was given as an object."""
        return self.scheduler.known_as

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """What carries out each type of decision beside ``Start``, ``Reserve`` and ``WakeAt``: by default none."""
        return {}

    def withdraw(self, work: Live) -> None:
        """Take back work that has not started.

        Raises
        ------
        InputError
            where it has
        """
        live: Any = work
        if live.state not in ("waiting", "blocked", "held"):
            raise InputError(f"{self.name}: cannot withdraw {work!r}: it has started or ended")
        self.cancel(work)

    def idle(self) -> Event:
        """Return an event that happens once all work that was submitted or is still to arrive is over."""
        if self._idle is None:
            self._idle = Event(self.env)
            if not self._active:
                self._idle.succeed()
        return self._idle

    def _one_over(self) -> None:
        """Count a piece of work that is over."""
        self._active -= 1
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    @property
    def unfinished(self) -> int:
        """How many jobs or tasks were submitted, or are still to arrive, and are not over."""
        return self._active

    def policies_below(self) -> dict[str, str | None]:
        """Return the names of the policies of the places, where these are systems; ``None``: given as objects."""
        return {}

    def present(self) -> Iterator[Live]:
        """Yield the live work that was submitted and is not over: what runs, then what waits."""
        for run in self.view.running:
            yield run.work  # type: ignore[misc]
        yield from self.view.waiting

    @property
    def endless(self) -> bool:
        """Whether events go on though all work is over: failures, outages, reservations."""
        return False

    # ------------------------------------------------------------------ as a place

    def can_run(self, work: Any) -> bool:
        """Whether the system could ever run the work; a pure question."""
        return self.why_not(work) is None

    @property
    def capacity(self) -> int:
        """Processors in all."""
        return sum(int(place.capacity) for place in self.places)

    @property
    def free(self) -> int:
        """Processors free now."""
        return sum(int(place.free) for place in self.places)

    @property
    def version(self) -> int:
        """A number that changes with what is free or waits."""
        return int(sum(place.version for place in self.places) + self.submitted)

    @property
    def running(self) -> RunningBelow:
        """What runs in its places."""
        return RunningBelow(self.places)

    @property
    def load(self) -> Load:
        """How loaded it is."""
        waiting = list(self.view.waiting)
        queued = sum(work_units(job.processors, job.expected) for job in waiting)
        return Load(self.free, len(waiting), queued, self.running.work(self.env.now))

    @property
    def offers(self) -> Offers:
        """What jobs may ask for beside processors and time."""
        return Offers()

    @property
    def largest(self) -> int:
        """The processors that one piece of work can have at most."""
        return max(int(place.capacity) for place in self.places)

    def all_below(self) -> Iterator[System[Any]]:
        """Iterate over the systems below this one, those at the bottom first, and last of all this one."""
        yield self

    # ------------------------------------------------------------------ under a system above

    def settle(self) -> None:
        """Decide at once, where that says more about the next estimate: a system above has just handed work over."""

    def row_of(self, work: Live) -> int:
        """Return the row of submitted work in the table of the system's result."""
        live: Any = work
        return int(live.index)

    def number_of(self, work: Live) -> int:
        """Return the number by which snapshots of a system above speak of submitted work."""
        live: Any = work
        return int(live.seq)

    def numbered(self) -> Mapping[int, Live]:
        """Return the work that is not over by the numbers of the snapshot that the system was made from."""
        return {self.number_of(work): work for work in self.present()}

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> Snapshot:
        """Return the state of the system as a plain value, from which a simulation can go on.

        Raises
        ------
        SnapshotError
            where it cannot be copied
        """
        raise SnapshotError(f"a {self.kind} has no snapshots")

    @classmethod
    def from_snapshot(cls, env: Environment, snapshot: Any, policy: PolicyLike | None = None) -> Self:
        """Return a system that goes on where a snapshot was taken.

        Raises
        ------
        SnapshotError
            where its kind has no snapshots
        """
        raise SnapshotError(f"a {cls.kind} has no snapshots")
