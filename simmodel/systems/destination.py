"""A system as a place of a broker: whether it can run a job, when the job would start, and how it is handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from simmodel.foundation.entries import load
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.system import Live
from simmodel.work.job import Brokered, Job

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.results.result import Result
    from simmodel.scheduling.protocol import Load
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.system import EstimateBasis, RunningBelow, System
    from simmodel.work.live import LiveWork
    from simmodel.work.taskset import TaskSet

__all__ = ["BrokeredJob", "BrokeredSet", "Destination", "destination_of"]

INFINITY = float("inf")


class BrokeredJob(Brokered):
    """A job that a broker hands to one of several systems.

    ``planned`` is ``limit`` until a cluster takes the job over, and from then on the time that this cluster plans with.

    Attributes
    ----------
    below
        the live work that the destination created for it, or ``None``
    above
        the job of a broker above that this one stands for, or ``None``
    estimates
        the estimates that the policy requested, by place, or ``None``
    """

    __slots__ = (
        *("_length", "_limit", "_origin", "above", "below", "came", "destination", "estimates", "family", "home"),
        *("limit", "plain", "row"),
    )
    _limit: float  # as it joined the broker's queue
    _origin: Destination | None

    def __init__(
        self, id: int | str, row: int, submit: float, processors: int, limit: float, length: float, family: Dependencies
    ) -> None:
        super().__init__(id, row, submit, processors, limit, limit, length)
        self.row = row
        self.came = submit
        self.limit = limit
        self._length = length  # actual run time in s, without any slowdown factor; hidden from policies
        self.family = family
        self.home: Destination | None = None
        self.destination: Destination | None = None
        self.below: LiveWork | None = None
        self.above: BrokeredJob | None = None
        self.estimates: dict[Destination, Estimate] | None = None
        self.plain = True

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of the broker."""
        env: Environment = self.family.env
        return env

    @property
    def past(self) -> Any:
        """Its earlier executions: in a grid a tuple of its earlier attempts, each with its site and the reason."""
        broker: Any = self.family.owner
        return broker.earlier(self)

    def diverted(self) -> str | None:
        """Return how a policy has changed its requested time or its home since it joined the broker's queue."""
        if self.limit != self._limit:
            return f"cannot change limit from {self._limit:g} to {self.limit!r} s: jobs are read-only"
        if self.home is not self._origin:
            return f"cannot change home from {self._origin!r} to {self.home!r}: jobs are read-only"
        return None

    def follow(self, live: Any) -> None:
        """Take on the state of the live job in the destination."""
        self.state, self.attempts = live.state, live.attempts
        self.started, self.run = live.started, live.run


class BrokeredSet(BrokeredJob):
    """A task set that a broker hands to one of several systems; counts as a job of one processor.

    Attributes
    ----------
    tasks
        the submitted task set
    ended
        instant (s) at which the last of its tasks ended, or ``None``
    """

    __slots__ = ("ended", "tasks")

    def __init__(self, row: int, submit: float, tasks: TaskSet, family: Dependencies) -> None:
        seconds = float(sum(each for each in tasks.run if each == each))
        super().__init__(tasks.name, row, submit, 1, seconds, seconds, family)
        self.tasks = tasks
        self.ended: float | None = None

    def follow(self, live: LiveWork) -> None:
        """Take on the state of the live work in the destination."""
        now = float(self.env.now)
        self.state = "completed" if live.over else "running"
        if self.started is None:
            self.started = now
        if live.over and self.ended is None:
            self.ended = now


class Destination:
    """A system as a place of a broker.

    Parameters
    ----------
    system
        any system
    by
        the run times that estimates use: ``"requested"`` or ``"actual"``

    Attributes
    ----------
    name, system, by
        name of the system; the system; as passed
    slowdowns
        slowdown factors of run and requested times, by name of the home (``None``: any other home)
    handed
        (row in the system's record, row in the broker's record) of all work handed over
    elsewhere
        the result of the system, if another process has simulated it
    top_speed, basis
        the highest speed of a job; on what run times depend, or ``None``: they may exceed those that are expected
    """

    queues = True
    top_speed: float = 1.0
    basis: object = None

    def __init__(self, system: System[Live], by: EstimateBasis = "requested") -> None:
        if by not in ("requested", "actual"):
            raise InputError(f"must be 'requested' or 'actual', got {by!r}", place="by")
        self.system: System[Any] = system
        self.name = system.name
        self.by = by
        self.slowdowns: dict[str | None, float] = {None: 1.0}
        self.handed: list[tuple[int, int]] = []
        self.elsewhere: Result | None = None

    def __repr__(self) -> str:
        return f"<{self.name}: {self.queued} waiting, {self.free} of {self.capacity} processors free>"

    # ------------------------------------------------------------------ the state, for policies

    @property
    def capacity(self) -> int:
        """Total number of processors."""
        return self.system.capacity

    @property
    def free(self) -> int:
        """Number of free processors."""
        return self.system.free

    @property
    def version(self) -> int:
        """A number that changes whenever free capacity or the queue does."""
        return self.system.version

    @property
    def load(self) -> Load:
        """Load of the system."""
        return self.system.load

    @property
    def running(self) -> RunningBelow:
        """The executions that are running, ordered by expected end."""
        return self.system.running

    @property
    def queued(self) -> int:
        """Number of waiting jobs or tasks."""
        return self.load.queued

    @property
    def runs(self) -> int:
        """Number of running jobs or tasks."""
        return len(self.running)

    @property
    def queued_processors(self) -> int:
        """Processors requested by waiting jobs."""
        return sum(int(job.processors) for job in self.system.present() if job.state == "waiting")

    @property
    def backlog(self) -> float:
        """Expected remaining work of running and waiting jobs, in processor seconds."""
        return self.load.backlog

    @property
    def assigned(self) -> int:
        """Number of jobs on their way to the queue."""
        return 0

    @property
    def speed(self) -> float:
        """Speed relative to the run times of jobs, apart from slowdowns."""
        return 1.0

    def held(self, job: BrokeredJob) -> float:
        """Return how many bytes of the inputs of a job are here."""
        return 0.0

    def transfer(self, job: BrokeredJob) -> float:
        """Return how long the missing inputs of a job take to here on idle links (s)."""
        return 0.0

    # ------------------------------------------------------------------ eligibility

    def slowdown(self, job: BrokeredJob) -> float:
        """Return the slowdown factor of a job here."""
        slowdowns = self.slowdowns
        if len(slowdowns) == 1 or job.home is None:
            return slowdowns[None]
        return self.factor(job.home.name)

    def factor(self, home: str | None) -> float:
        """Return the slowdown factor here for jobs of a home (its name; empty or ``None``: no home)."""
        return self.slowdowns.get(home, self.slowdowns[None])

    def request(self, job: BrokeredJob) -> Job | TaskSet:
        """Return the job as it would be submitted here; a task set is returned unchanged."""
        if isinstance(job, BrokeredSet):
            return job.tasks
        slowdown = self.slowdown(job)
        if job._job is None:
            run = job._length * slowdown
            requested = None if job.unrequested else job.limit * slowdown or None
            return Job(id=job.id, processors=job.processors, run=run, requested=requested, user=job.user)
        spec = job._job
        changed: dict[str, Any] = {"dependencies": ()} if spec.dependencies else {}
        if slowdown != 1.0:
            changed["run"] = None if spec.run is None else spec.run * slowdown
            changed["requested"] = None if spec.requested is None else spec.requested * slowdown
        return attrs.evolve(spec, **changed) if changed else spec

    def why_not(self, job: BrokeredJob) -> str | None:
        """Return why the system can never run the job, or ``None``; has no side effects."""
        try:
            return self.system.why_not(self.request(job))
        except InputError as error:
            return error.message

    def can_run(self, job: BrokeredJob) -> bool:
        """Whether the system could ever run the job."""
        return self.why_not(job) is None

    def fits(self, job: BrokeredJob) -> bool:
        """Whether the job could start now; has no side effects."""
        return self.can_run(job) and self.estimate(job).start <= self.system.env.now

    # ------------------------------------------------------------------ estimates and handover

    def estimate(self, job: BrokeredJob) -> Estimate:
        """Estimate when the job would start here if handed over now, and how long it would run; has no side effects."""
        request = self.request(job)
        try:
            return self.system.estimate(request, self.by)
        except ImpossibleWork:
            return Estimate(INFINITY, 0.0, 0.0, job.limit * self.slowdown(job))

    def expected_wait(self, processors: int) -> float:
        """Return a quick estimate of the wait of a job (s): none if it can start, else the backlog per processor."""
        if not self.queued and not self.assigned and self.free >= processors:
            return 0.0
        return self.backlog / self.capacity if self.capacity else INFINITY

    def earliest_start(self, job: BrokeredJob) -> float:
        """Return an instant (s) before which no estimate by simulation has the job start."""
        return float(self.system.env.now)

    def nominal_run(self, job: BrokeredJob) -> float:
        """Return how long a job would run here at speed 1 (s), as estimates expect."""
        return self.unslowed_run(job) * self.slowdown(job)

    def unslowed_run(self, job: BrokeredJob) -> float:
        """Return the same without the slowdown factor (s)."""
        return job._length if self.by == "actual" else job.limit

    def quick_estimate(self, job: BrokeredJob) -> Estimate:
        """Estimate, without a simulation, when the job would start and end here: wait, transfers and run."""
        start = self.system.env.now + self.expected_wait(job.processors)
        return Estimate(start, 0.0, self.transfer(job), self.nominal_run(job) / self.speed)

    def take(self, job: BrokeredJob) -> LiveWork:
        """Hand a job over; return the live work of the system, which may be the job itself."""
        live: LiveWork = self.system.accept(self.request(job))
        self.handed.append((self.system.row_of(live), job.row))
        self.system.settle()
        return live

    def cancel(self, job: BrokeredJob) -> None:
        """Cancel a job that was handed over: withdraw it if it waits, stop it if it runs."""
        self.system.cancel(job if job.below is None else job.below)


def destination_of(system: System[Live], by: EstimateBasis = "requested") -> Destination:
    """Return a system as a place of a broker: an instance of its ``destination_class``.

    Parameters
    ----------
    system
        any system
    by
        the run times that estimates use: ``"requested"`` or ``"actual"``
    """
    made: Destination = load(system.destination_class)(system, by)
    return made
