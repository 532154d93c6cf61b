"""Systems that run jobs on pools: all that a small one needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import attrs

from simmodel.environment import SUBMIT, Environment, Occurrence, heard
from simmodel.errors import ImpossibleWork, InputError, SnapshotError
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.protocol import Estimate, Load, View, work_units
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Scheduler
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.snapshots.job_system import JobSystemSnapshot
from simmodel.snapshots.jobs import RunningWork, WorkState, expected_end
from simmodel.systems.cluster.replay import specs
from simmodel.systems.job_states import job_of, work_of
from simmodel.systems.policy_state import check_instant, chosen_policy, policy_state, remember, stream_states
from simmodel.systems.system import System
from simmodel.work.job import Job, LiveJob, Run
from simmodel.work.prepare import prepare
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.resources.allocation import Allocation
    from simmodel.resources.pool import Pool
    from simmodel.results.result import Result
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrival", "JobSystem"]


class Arrival(NamedTuple):
    """A job that is still to be submitted, at an instant (s)."""

    at: float
    job: Job


class JobSystem(System[LiveJob]):
    """A system that runs jobs on pools: submission, replay, queue, scheduler, record and report are here.

    A small system gives its places; one whose jobs do more than run for their time overrides :meth:`start`.

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

    A subclass that can be copied names the class of its ``snapshots``: see
    :class:`~simmodel.snapshots.job_system.JobSystemSnapshot`.

    >>> from types import SimpleNamespace
    >>> from simmodel.resources import CountPool
    >>> env = Environment()
    >>> slots = JobSystem(env, SimpleNamespace(name="slots"), "fcfs", places=[CountPool(env, "slots", 2)])
    >>> jobs = [slots.submit(Job(run=10)) for _ in range(3)]; env.run()
    >>> slots.result().jobs["end"]
    array([10., 10., 20.])
    """

    snapshots: ClassVar[type[JobSystemSnapshot] | None] = None
    places: tuple[Pool, ...]

    def __init__(
        self,
        env: Environment,
        spec: Any,
        policy: PolicyLike = "fcfs",
        *,
        places: Sequence[Pool],
        name: str | None = None,
        rank: int = 1,
        record: bool = True,
    ) -> None:
        if not isinstance(env, Environment):
            raise InputError(f"env: must be a simmodel Environment, got {type(env).__module__}.{type(env).__name__}")
        self.env = env
        self.spec = spec
        self.name = name or spec.name
        self.places = tuple(places)
        self.waiting = WaitingQueue(env)
        self.view = View(env, self.waiting, self.places, f"{self.name}.policy")
        self.rank = rank
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank)
        self.changed = []
        self.report = Report()
        self.submitted = 0
        self.arrivals: dict[int, Arrival] = {}  # still to be submitted by a replay
        self._offset = 0  # of the numbers of jobs to their rows in the record
        self._since: float | None = None  # when it went on from a snapshot
        self._coming = 0  # how many there have been
        self._planned: dict[LiveJob, list[Occurrence]] = {}  # what is to come of jobs that are not over
        self._queued_work = 0  # what self.waiting asks for, in units of 2^-20 processor seconds
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
        job, reason = self.live(work)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        self.submitted += 1
        self._active += 1
        self.take_in(job)
        return job

    def live(self, spec: Job) -> tuple[LiveJob, str | None]:
        """Return the job as it would be, were it submitted now, bound for the first place that can run it, and why none
        ever can; nothing changes.
        """
        number = self.submitted
        run = float("inf") if spec.run is None else float(spec.run)
        limit = run if spec.requested is None else float(spec.requested)
        name = spec.id if spec.id is not None else spec.name or number + 1
        job = LiveJob(name, number - self._offset, float(self.env.now), spec.processors, limit, limit, min(run, limit))
        job.seq, job._job, job.user, job.priority = number, spec, spec.user, spec.priority
        job._outcome = "timeout" if limit < run else "completed"
        if spec.body is not None or spec.dependencies:
            what = "has a body" if spec.body is not None else "waits for other jobs"
            return job, f"a {self.kind} takes no job that {what}"
        reasons = []
        for place in self.places:
            job.place = place
            job.request = place.request_of(spec)
            reason = place.why_not(job)
            if reason is None:
                return job, None
            reasons.append(reason)
        return job, "; ".join(dict.fromkeys(reasons))

    def take_in(self, job: LiveJob) -> None:
        """Put a live job into the queue."""
        self.tell("job_submitted", job)
        spec = job._job
        if spec is not None and spec.cancel is not None:
            self.plan(job, spec.cancel, partial(self.cancel, job))
        self.enqueue(job)
        self.scheduler.wake()

    def enqueue(self, job: LiveJob) -> None:
        """Have a job wait."""
        self.waiting.add(job)
        self._queued_work += work_units(job.processors, job.expected)

    def replay(self, workload: Workload, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected."""
        prepared = prepare(workload, max(int(place.capacity) for place in self.places))
        for row, job in specs(workload, prepared, on_nodes=False):
            if job.dependencies and workload.specs is None:
                prepared.report.repaired["preceding job: not waited for"] += 1
                job = attrs.evolve(job, dependencies=())
            self.expect(Arrival(float(prepared.submit[row]), job))
        self.report += workload.report + prepared.report
        return prepared

    def expect(self, arrival: Arrival) -> None:
        """Have a job submitted at its instant."""
        self._active += 1
        number = self._coming = self._coming + 1
        self.arrivals[number] = arrival
        self.env.call_at(arrival.at, partial(self._arrive, number), SUBMIT)

    def _arrive(self, number: int) -> None:
        job, reason = self.live(self.arrivals.pop(number).job)
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
        self.plan(work, self.env.now + work._duration, partial(self.end, run))

    def plan(self, job: LiveJob, at: float, call: Callable[[], object]) -> None:
        """Call at an instant (s), unless the job is over by then."""
        self._planned.setdefault(job, []).append(self.env.call_at(at, call))

    def begin(self, job: LiveJob, place: Pool, allocation: Allocation | None = None) -> Run:
        """Take a job out of the queue, and what it asks for from the place; returns its execution."""
        self._leave(job)
        now = float(self.env.now)
        run = Run(job, place, now, now + job.expected, place.take(job, allocation))
        place.running.add(run, job.processors)
        job.state, job.run, job.started = "running", run, now
        job.attempts += 1
        self.tell("job_started", run)
        return run

    def _leave(self, job: LiveJob) -> None:
        self.waiting.remove(job)
        self._queued_work -= work_units(job.processors, job.expected)

    def end(self, run: Run, status: str | None = None) -> None:
        """End an execution: give back what it holds; nothing happens where it has ended already."""
        job = run.job
        if job.run is not run:
            return
        run.place.running.remove(run)
        run.place.give_back(job, run.grant)
        job.run = None
        job.state = job._outcome if status is None else status
        self.tell("job_ended", run, job.state)
        self.over(job)
        self.scheduler.wake()

    def over(self, job: LiveJob) -> None:
        """Note that a job is over, however it ended."""
        for planned in self._planned.pop(job, ()):
            if planned.callbacks is not None:
                self.env.withdraw(planned)
        if job.event is not None:
            job.event.succeed(job)
        self._one_over()
        for call in self.changed:
            call()

    def cancel(self, work: LiveJob) -> None:
        """Withdraw a job that waits, or stop one that runs; one that is over stays as it is."""
        if work.run is not None:
            self.end(work.run, "cancelled")
        elif work.state == "waiting":
            self._leave(work)
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

    def why_not(self, work: Job) -> str | None:
        """Say why no place of the system can ever run the job, or ``None``; a pure question."""
        return self.live(work)[1]

    def estimate(self, work: Job, by: EstimateBasis = "requested") -> Estimate:
        """Return when a job would start and how long it would run (s), by the expected ends of what runs and waits.

        Every job is taken to start as soon as it fits, none before those that came before it; a kind of system whose
        policy goes otherwise says so in a method of its own. ``by`` changes nothing here.

        Raises
        ------
        ImpossibleWork
            where no place can ever run it

        >>> from types import SimpleNamespace
        >>> from simmodel.resources import CountPool
        >>> env = Environment()
        >>> slots = JobSystem(env, SimpleNamespace(name="slots"), places=[CountPool(env, "slots", 2)])
        >>> jobs = [slots.submit(Job(run=10, requested=20)) for _ in range(3)]; env.run(until=1)
        >>> slots.estimate(Job(processors=2, run=5))
        Estimate(start=40.0, setup=0.0, transfer=0.0, run=5.0)
        """
        job, reason = self.live(work)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        profile = job.place.profile()
        at = self.env.now
        for before in self.waiting:
            if before.place is job.place:
                at, _ = profile.earliest(before, before.requested, at)
                profile.take(before, at, before.requested)
        at, _ = profile.earliest(job, job.requested, at)
        return Estimate(float(at), 0.0, 0.0, job.requested)

    @property
    def load(self) -> Load:
        """How loaded it is."""
        return Load(self.free, len(self.waiting), self._queued_work, self.running.work(self.env.now))

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
            raise InputError(f"{self.name}: cannot return a result: built with record=False")
        scheduler = self.scheduler
        from simmodel.results.result import Result

        return self.recorder.record(
            Result,
            name=name or scheduler.policy_name,
            report=self.report,
            decisions=scheduler.timing(),
            policy=scheduler.policy,
            started=self._since,
        )

    # ------------------------------------------------------------------ snapshots

    def own_state(self) -> Mapping[str, Any]:
        """Return what the class of snapshots has beside the fields of a system of jobs, by name."""
        return {}

    def snapshot(self) -> JobSystemSnapshot:
        """Return the state of the system as a plain value, from which a simulation can go on.

        Raises
        ------
        SnapshotError
            where the kind of system has no class of ``snapshots``, or the policy cannot be copied
        """
        if self.snapshots is None:
            raise SnapshotError(f"a {self.kind} has no snapshots")
        runs = sorted([run for place in self.places for run in place.running], key=lambda run: (run.started, run.entry))
        return self.snapshots(
            name=self.name,
            now=float(self.env.now),
            seed=self.env.seed,
            policy=policy_state(self.scheduler),
            streams=stream_states(self.env, f"{self.name}."),
            submitted=self.submitted,
            platform=self.spec,
            running=tuple(map(self._running_state, runs)),
            waiting=tuple(map(work_of, self.waiting)),
            arrivals=tuple(map(self._arrival_state, sorted(self.arrivals.values(), key=lambda arrival: arrival.at))),
            **self.own_state(),
        )

    def _running_state(self, run: Run) -> RunningWork:
        end, attempt = self.planned_end(run), run.job.attempts
        return RunningWork(work_of(run.job), run.started, run.expected_end, end, run.grant.allocation, attempt)

    def _arrival_state(self, arrival: Arrival) -> WorkState:
        return work_of(self.live(arrival.job)[0])._replace(submit=arrival.at)

    def planned_end(self, run: Run) -> float:
        """Return the instant (s) at which an execution will end, where nothing comes between."""
        return run.started + run.job._duration

    @classmethod
    def from_snapshot(cls, env: Environment, snapshot: JobSystemSnapshot, policy: PolicyLike | None = None) -> Self:
        """Return a system that goes on where a snapshot was taken; its record has what was not over then.

        Parameters
        ----------
        env
            an environment whose time is that of the snapshot
        policy
            default: that of the snapshot; one of the same name remembers what that one did

        Raises
        ------
        InputError
            where the time is another, or the policy is not known by a name
        """
        check_instant(env, snapshot)
        system = cls(env, snapshot.platform, chosen_policy(snapshot, policy), name=snapshot.name)  # type: ignore[call-arg]
        for name, state in snapshot.streams:
            env.rng(name).bit_generator.state = state
        system.go_on(snapshot)
        remember(system.scheduler, snapshot.policy)
        return system

    def go_on(self, snapshot: JobSystemSnapshot) -> None:
        """Take in what runs, waits and is to come in a snapshot."""
        works = sorted(snapshot.works, key=lambda work: work.number)
        places = {place.name: place for place in self.places}
        jobs = {work.number: job_of(work, row, places[work.place]) for row, work in enumerate(works)}
        self._since, self.submitted, self._offset = snapshot.now, snapshot.submitted, snapshot.submitted - len(works)
        self._active += len(works)
        for job in jobs.values():
            if self.recorder is not None:
                self.recorder.job_submitted(job)
            if job._job is not None and job._job.cancel is not None:
                self.plan(job, job._job.cancel, partial(self.cancel, job))
        for each in snapshot.running:
            job = jobs[each.work.number]
            ends = expected_end(snapshot.now, each.expected_end)
            run = Run(job, job.place, each.started, ends, job.place.take(job, each.held))
            run.place.running.add(run, job.processors)
            job.state, job.run, job.started, job.attempts = "running", run, each.started, each.attempt
            if self.recorder is not None:
                self.recorder.carry_over(job)
            self.plan(job, ends if each.end is None else each.end, partial(self.end, run))
        for work in snapshot.waiting:
            self.enqueue(jobs[work.number])
        self.waiting.forget_new()
        for work in snapshot.arrivals:
            assert work.spec is not None
            self.expect(Arrival(work.submit, work.spec))
