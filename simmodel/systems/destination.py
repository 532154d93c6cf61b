"""A system as a place of a broker: what can run there, when it would start, and how work is handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from simmodel.entries import load
from simmodel.errors import ImpossibleWork, InputError
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.system import Live
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.protocol import Load
    from simmodel.systems.dependencies import Dependencies
    from simmodel.systems.system import EstimateBasis, RunningBelow, System
    from simmodel.work.live import LiveWork
    from simmodel.work.taskset import TaskSet

__all__ = ["BrokeredJob", "BrokeredSet", "Destination", "destination_of"]

INFINITY = float("inf")


class BrokeredJob(LiveJob):
    """A job that a broker hands to one of several systems.

    ``requested`` is what was asked for, until a cluster takes it over: then it is what it is planned with there.

    Attributes
    ----------
    came
        the instant at which it was submitted to the broker, in s
    row
        its row in the broker's record
    limit
        seconds asked for, where there is no slowdown
    home, destination
        the place it belongs to, and the one it was handed to, or ``None``
    family
        the dependencies among the jobs it came with
    below
        the live work of the system it was handed to, where that has one of its own
    above
        the job of a broker above that this one stands for, or ``None``
    estimates
        what the policy was told of places, where it asked
    """

    __slots__ = ("_length", "above", "below", "came", "destination", "estimates", "family", "home", "limit", "row")

    def __init__(
        self, id: int | str, row: int, submit: float, processors: int, limit: float, length: float, family: Dependencies
    ) -> None:
        super().__init__(id, row, submit, processors, limit, limit, length)
        self.row = row
        self.came = submit
        self.limit = limit
        self._length = length  # seconds that it will run, where there is no slowdown: no policy sees them
        self.family = family
        self.home: Destination | None = None
        self.destination: Destination | None = None
        self.below: LiveWork | None = None
        self.above: BrokeredJob | None = None
        self.estimates: dict[Destination, Estimate] | None = None

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of the broker."""
        return self.family.env

    def follow(self, live: Any) -> None:
        """Stand as the live job of the system that it was handed to."""
        self.state, self.attempts = live.state, live.attempts
        self.started, self.run = live.started, live.run


class BrokeredSet(BrokeredJob):
    """A set of tasks that a broker hands to one of several systems; among jobs it counts as one of one processor.

    Attributes
    ----------
    tasks
        what was submitted
    ended
        the instant (s) at which all of its tasks were over, or ``None``
    """

    __slots__ = ("ended", "tasks")

    def __init__(self, row: int, submit: float, tasks: TaskSet, family: Dependencies) -> None:
        seconds = float(sum(each for each in tasks.run if each == each))
        super().__init__(tasks.name, row, submit, 1, seconds, seconds, family)
        self.tasks = tasks
        self.ended: float | None = None

    def follow(self, live: LiveWork) -> None:
        """Stand as the live work of the system that it was handed to."""
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
        whether its estimates go by ``"requested"`` or by ``"actual"`` run times

    Attributes
    ----------
    name, system, by
        of the system, the system, as given
    slowdowns
        what multiplies run and requested times, by the name of the home (``None``: of any other)
    handed
        (row in the system's record, row in the broker's) of what was handed over
    """

    queues = True

    def __init__(self, system: System[Live], by: EstimateBasis = "requested") -> None:
        if by not in ("requested", "actual"):
            raise InputError(f"by 'requested' or 'actual' expected, found {by!r}")
        self.system: System[Any] = system
        self.name = system.name
        self.by = by
        self.slowdowns: dict[str | None, float] = {None: 1.0}
        self.handed: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<{self.name}: {self.queued} waiting, {self.free} of {self.capacity} processors free>"

    # ------------------------------------------------------------------ the state, for policies

    @property
    def capacity(self) -> int:
        """Processors in all."""
        return self.system.capacity

    @property
    def free(self) -> int:
        """Processors free now."""
        return self.system.free

    @property
    def version(self) -> int:
        """A number that changes with what is free or waits."""
        return self.system.version

    @property
    def load(self) -> Load:
        """How loaded the system is."""
        return self.system.load

    @property
    def running(self) -> RunningBelow:
        """What runs there."""
        return self.system.running

    @property
    def queued(self) -> int:
        """Pieces of work that wait."""
        return self.load.queued

    @property
    def runs(self) -> int:
        """Pieces of work that run."""
        return len(self.running)

    @property
    def queued_processors(self) -> int:
        """Processors that waiting jobs ask for."""
        return sum(int(job.processors) for job in self.system.present() if job.state == "waiting")

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs and waits is still expected to take."""
        return self.load.backlog

    # ------------------------------------------------------------------ what can run here

    def slowdown(self, job: BrokeredJob) -> float:
        """Return what multiplies the run and requested times of a job here."""
        slowdowns = self.slowdowns
        if len(slowdowns) == 1 or job.home is None:
            return slowdowns[None]
        return self.factor(job.home.name)

    def factor(self, home: str) -> float:
        """Return what multiplies the run and requested times of jobs of a home (by its name; empty: none) here."""
        return self.slowdowns.get(home, self.slowdowns[None])

    def request(self, job: BrokeredJob) -> Job | TaskSet:
        """Return the job as it would be submitted here; of tasks, the set as it is."""
        if isinstance(job, BrokeredSet):
            return job.tasks
        slowdown = self.slowdown(job)
        if job._job is None:
            run, requested = job._length * slowdown, job.limit * slowdown
            return Job(id=job.id, processors=job.processors, run=run, requested=requested or None, user=job.user)
        spec = job._job
        changed: dict[str, Any] = {"dependencies": ()} if spec.dependencies else {}
        if slowdown != 1.0:
            changed["run"] = None if spec.run is None else spec.run * slowdown
            changed["requested"] = None if spec.requested is None else spec.requested * slowdown
        return attrs.evolve(spec, **changed) if changed else spec

    def why_not(self, job: BrokeredJob) -> str | None:
        """Say why the system can never run the job, or ``None``; a pure question."""
        try:
            return self.system.why_not(self.request(job))
        except InputError as error:
            return error.message

    def can_run(self, job: BrokeredJob) -> bool:
        """Whether the system could ever run the job."""
        return self.why_not(job) is None

    def fits(self, job: BrokeredJob) -> bool:
        """Whether the job could start now; a pure question."""
        return self.can_run(job) and self.estimate(job).start <= self.system.env.now

    # ------------------------------------------------------------------ estimates, and handing over

    def estimate(self, job: BrokeredJob) -> Estimate:
        """Return when the job would start and how long it would run here, were it handed over now; a pure question."""
        request = self.request(job)
        try:
            return self.system.estimate(request, self.by)
        except ImpossibleWork:
            return Estimate(INFINITY, 0.0, 0.0, job.limit * self.slowdown(job))

    def take(self, job: BrokeredJob) -> LiveWork:
        """Hand a job over; return the live work of the system, which may be the job itself."""
        live: LiveWork = self.system.submit(self.request(job))
        self.handed.append((self.system.row_of(live), job.row))
        self.system.settle()
        return live

    def cancel(self, job: BrokeredJob) -> None:
        """Withdraw a job that was handed over, or stop it."""
        self.system.cancel(job if job.below is None else job.below)


def destination_of(system: System[Any], by: EstimateBasis = "requested") -> Destination:
    """Return a system as a place of a broker: an instance of its ``destination_class``.

    Parameters
    ----------
    system
        any system
    by
        whether its estimates use ``"requested"`` or ``"actual"`` run times
    """
    made: Destination = load(system.destination_class)(system, by)
    return made
