"""A system: places under one scheduler, and the life of work between them.

Clusters, machines and brokers are systems, and so is whatever a user derives from :class:`System`. A system is a place
itself: a broker stands over systems of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

from simpy.events import Event

from simmodel.errors import InputError, SnapshotError

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.protocol import View
    from simmodel.scheduling.scheduler import Carry, Scheduler
    from simmodel.snapshots.cluster import SystemSnapshot
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["System"]

Live = TypeVar("Live")
"""Live work: jobs or tasks."""


class System(Generic[Live]):
    """Places under one scheduler, and the life of work between them: what every kind of system has.

    A small system that runs jobs derives from :class:`~simmodel.systems.jobs.JobSystem`, which has all of it.

    Attributes
    ----------
    kind
        the name of the kind of system, as descriptions and snapshots give it
    work
        what it runs: ``"jobs"`` or ``"tasks"``
    env, spec, name
        the environment; what the system was built from; what reports call it
    places
        where work can start
    view, scheduler
        what its policy sees; who asks it
    known_as
        the name under which the policy can be made again; ``None``: it was given as an object
    changed
        functions without arguments, called when work has started or ended: a system above may decide anew
    """

    kind: ClassVar[str]
    work: Literal["jobs", "tasks"] = "jobs"
    queues = True  # as a place

    env: Environment
    spec: Any
    name: str
    places: Sequence[Any]
    view: View
    scheduler: Scheduler
    known_as: str | None
    changed: list[Callable[[], object]]
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

    def why_not(self, work: Any) -> str | None:
        """Say why no place of the system can ever run the work, or ``None``; a pure question."""
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
    def carries(self) -> Mapping[type, Carry]:
        """What carries out each type of decision beside ``Start``, ``Reserve`` and ``WakeAt``: nothing else.

        A function takes the decision and returns ``None``, or says why it cannot be carried out; a system that stops
        running work has ``{Preempt: partial(carry_preempt, self)}``.
        """
        return {}

    def can_run(self, work: Any) -> bool:
        """Whether the system could ever run the work; a pure question."""
        return self.why_not(work) is None

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

    def snapshot(self) -> SystemSnapshot:
        """Return the state of the system as a plain value, from which a simulation can go on.

        Raises
        ------
        SnapshotError
            where it cannot be copied
        """
        raise SnapshotError(f"a {self.kind} has no snapshots")

    @classmethod
    def from_snapshot(cls, env: Environment, snapshot: Any, policy: Any = None) -> Self:
        """Return a system that goes on where a snapshot was taken.

        Raises
        ------
        SnapshotError
            where its kind has no snapshots
        """
        raise SnapshotError(f"a {cls.kind} has no snapshots")
