"""Systems that run jobs on pools: all that a small one needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.environment import SUBMIT, Environment, heard
from simmodel.errors import ImpossibleWork, InputError
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.protocol import View
from simmodel.scheduling.registry import policy as policy_named
from simmodel.scheduling.scheduler import Scheduler
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.systems.cluster.replay import specs
from simmodel.systems.system import System
from simmodel.work.job import Job, LiveJob, Run
from simmodel.work.prepare import prepare
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.resources.allocation import Allocation
    from simmodel.resources.pool import Pool
    from simmodel.results.result import Result
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrival", "JobSystem"]


class Arrival(NamedTuple):
    """A job that is still to be submitted, at an instant (s)."""

    at: float
    job: Job


class JobSystem(System[LiveJob]):
    """A system that runs jobs on pools: submission, replay, queue, scheduler, record and report are here.

    A small system gives its places and, to be copied, writes ``snapshot`` and ``from_snapshot``; one whose jobs do more
    than run for their time overrides :meth:`start`.

    Parameters
    ----------
    env
        the environment
    spec
        the description of the system; it has a ``name``
    policy
        a name, a policy, or a function of a view
    places
        pools, where jobs start
    name, rank
        what reports call it; its turn among schedulers that share an instant
    record
        whether to keep what happens, for :meth:`result`

    >>> from types import SimpleNamespace
    >>> from simmodel.resources.counts import CountPool
    >>> env = Environment()
    >>> slots = JobSystem(env, SimpleNamespace(name="slots"), "fcfs", places=[CountPool(env, "slots", 2)])
    >>> jobs = [slots.submit(Job(run=10)) for _ in range(3)]; env.run()
    >>> slots.result().jobs["end"]
    array([10., 10., 20.])
    """

    def __init__(
        self,
        env: Environment,
        spec: Any,
        policy: Any = "fcfs",
        *,
        places: Sequence[Pool],
        name: str | None = None,
        rank: int = 1,
        record: bool = True,
    ) -> None:
        if not isinstance(env, Environment):
            raise InputError(f"an environment of simmodel expected, found {type(env).__module__}.{type(env).__name__}")
        self.env = env
        self.spec = spec
        self.name = name or spec.name
        self.places = tuple(places)
        self.waiting = WaitingQueue(env)
        self.view = View(env, self.waiting, self.places, f"{self.name}.policy")
        self.known_as = policy if isinstance(policy, str) else None
        self.scheduler = Scheduler(env, policy_named(policy), self.view, self, self.name, rank)
        self.changed = []
        self.report = Report()
        self.submitted = 0
        self.arrivals: list[Arrival] = []  # still to be submitted by a replay
        self.recorder = JobRecorder(env, late=True, places=self.places) if record else None
        self._active = 0
        env.register_waits(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self.waiting)} waiting>"

    # ------------------------------------------------------------------ submission

    def submit(self, work: Job) -> LiveJob:
        """Submit a job now, whatever its ``submit`` says; the job is an event that happens when it is over.

        Raises
        ------
        ImpossibleWork
            where no place can ever run it
        """
        if not isinstance(work, Job):
            raise InputError(f"a Job expected, found {work!r}")
        job, reason = self.live(work, self.submitted)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        self.submitted += 1
        self._active += 1
        self.take_in(job)
        return job

    def live(self, spec: Job, index: int) -> tuple[LiveJob, str | None]:
        """Return the live job, bound for the first place that can run it, and why none ever can."""
        run = float("inf") if spec.run is None else float(spec.run)
        limit = run if spec.requested is None else float(spec.requested)
        name = spec.id if spec.id is not None else spec.name or index + 1
        job = LiveJob(name, index, float(self.env.now), spec.processors, limit, limit, min(run, limit))
        job.spec, job.user, job.priority = spec, spec.user, spec.priority
        job._outcome = "timeout" if limit < run else "completed"
        reasons = []
        for place in self.places:
            job.place = place
            reason = place.why_not(job)
            if reason is None:
                return job, None
            reasons.append(reason)
        return job, "; ".join(dict.fromkeys(reasons))

    def take_in(self, job: LiveJob) -> None:
        """Put a live job into the queue."""
        self.tell("job_submitted", job)
        self.waiting.add(job)
        self.scheduler.wake()

    def replay(self, workload: Workload, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected."""
        prepared = prepare(workload, max(int(place.capacity) for place in self.places))
        self.report += workload.report + prepared.report
        for row, job in specs(workload, prepared):
            self._active += 1
            arrival = Arrival(float(prepared.submit[row]), job)
            self.arrivals.append(arrival)
            self.env.call_at(arrival.at, partial(self._arrive, arrival), SUBMIT)
        return prepared

    def _arrive(self, arrival: Arrival) -> None:
        self.arrivals.remove(arrival)
        job, reason = self.live(arrival.job, self.submitted)
        self.submitted += 1
        if reason is None:
            self.take_in(job)
            return
        job.state = "rejected"
        self.report.rejected[reason] += 1
        self.tell("job_rejected", job, reason)
        self.over(job)

    # ------------------------------------------------------------------ the life of a job

    def start(self, work: LiveJob, place: Pool, allocation: Allocation | None = None) -> None:
        """Start waiting work at a place, which the scheduler has found to fit, and plan its end."""
        run = self.begin(work, place, allocation)
        self.env.call_at(self.env.now + work._duration, partial(self.end, run))

    def begin(self, job: LiveJob, place: Pool, allocation: Allocation | None = None) -> Run:
        """Take a job out of the queue, and what it asks for from the place; returns its execution."""
        self.waiting.remove(job)
        now = float(self.env.now)
        run = Run(job, place, now, now + job._expected, place.take(job, allocation))
        place.running.add(run, job.processors)
        job.state, job._run, job._started = "running", run, now
        job.attempts += 1
        self.tell("job_started", run)
        return run

    def end(self, run: Run, status: str | None = None) -> None:
        """End an execution: give back what it holds; nothing happens where it has ended already."""
        job = run.job
        if job._run is not run:
            return
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        job._run = None
        job.state = job._outcome if status is None else status
        self.tell("job_ended", run, job.state)
        self.over(job)
        self.scheduler.wake()

    def over(self, job: LiveJob) -> None:
        """Note that a job is over, however it ended."""
        if job.event is not None:
            job.event.succeed(job)
        self._one_over()
        for call in self.changed:
            call()

    def cancel(self, work: LiveJob) -> None:
        """Withdraw a job that waits, or stop one that runs; one that is over stays as it is."""
        if work._run is not None:
            self.end(work._run, "cancelled")
        elif work.state == "waiting":
            self.waiting.remove(work)
            work.state = "cancelled"
            self.tell("job_cancelled", work)
            self.over(work)

    def tell(self, hook: str, *what: Any) -> None:
        """Tell observers, and the system's own record."""
        for call in self.env.hooks(hook):
            call(*what)
        own = heard(self.recorder, hook)
        if own is not None:
            own(*what)

    # ------------------------------------------------------------------ as a place

    def why_not(self, work: LiveJob) -> str | None:
        """Say why no place of the system can ever run the work, or ``None``; a pure question."""
        return None if work.spec is None else self.live(work.spec, self.submitted)[1]

    # ------------------------------------------------------------------ who is stuck, and what happened

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits."""
        for job in self.waiting:
            place = job.place
            yield (
                f"job {job.id} waits for {job.processors} processors of {place.name} since {job.submit:g}; "
                f"{place.free} of {place.capacity} are free"
            )

    def result(self, name: str | None = None) -> Result:
        """Return what has happened so far; ``name`` is what tables and plots call it.

        Raises
        ------
        InputError
            where the system was told to keep no record
        """
        if self.recorder is None:
            raise InputError(f"{self.name} keeps no record: record=True expected")
        scheduler = self.scheduler
        from simmodel.results.result import Result

        return self.recorder.record(
            Result,
            name=name or scheduler.policy_name,
            report=self.report,
            decisions=scheduler.timing(),
            policy=scheduler.policy,
        )
