"""The base class of small systems that run jobs on pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import attrs

from simmodel.environment import Environment, Occurrence, heard
from simmodel.foundation.errors import InputError, SnapshotError
from simmodel.records.recorder import JobRecorder
from simmodel.records.streamed_recorder import EVERY
from simmodel.scheduling.protocol import Estimate, Load, View, work_units
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Scheduler, Withdrawn
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.snapshots.jobs import JobSystemSnapshot, RunningWork, expected_end
from simmodel.systems.arrivals import Arrivals, Block, Door, JobLife, check_specs, name_of, requests_of
from simmodel.systems.job_states import job_of, work_of
from simmodel.systems.policy_state import (
    check_instant,
    chosen_policy,
    policy_state,
    remember,
    restore_streams,
    stream_states,
)
from simmodel.work.job import Job, LiveJob, Refusal, Run, rule_of
from simmodel.work.prepare import prepare

if TYPE_CHECKING:
    from simmodel.records.streamed_recorder import Write
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.pool import Pool
    from simmodel.results.result import Result
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["Arrival", "JobSystem"]


class Arrival(NamedTuple):
    """A job that will be submitted at an instant (s)."""

    at: float
    job: Job


class _Request(Arrivals[tuple[int, float, Job]]):
    """Submits a request of a log to a small system, which numbers jobs as they come."""

    __slots__ = ("system",)

    def __init__(self, system: JobSystem, row: tuple[Any, ...]) -> None:
        self.system = system
        super().__init__(system.env, [[row]], system.timing.submits)

    def submit(self, row: tuple[int, float, Job]) -> None:
        found = self.system.live(row[2])
        self.system.submitted += 1
        self.system.come(*found)


class _SmallDoor(Door):
    """The door of a small system: each job is a request that it may refuse when it comes."""

    system: JobSystem

    def prepare(self, workload: Workload) -> Prepared:
        return prepare(workload, self.system.largest)

    notes = False

    def admit(self, workload: Workload, prepared: Prepared) -> Iterable[Block]:
        self.system.ids.update(job.id for job in workload.specs or ())
        rows = []
        for row, job in zip(prepared.rows.tolist(), requests_of(workload, prepared, None), strict=True):
            if job.dependencies and workload.specs is None:
                prepared.report.repaired["preceding job: dependency ignored"] += 1
                job = attrs.evolve(job, dependencies=())
            rows.append((row, float(prepared.submit[row]), job))
        return [rows]

    def plan(self, blocks: Iterable[Block]) -> None:
        self.system.sources += [_Request(self.system, row) for block in blocks for row in block]


class JobSystem(JobLife[LiveJob]):
    """A system that runs jobs on pools, with submission, replay, queue, scheduler, record and report.

    A small system only supplies its places; one whose jobs do more than run for a fixed time overrides :meth:`start`.

    Parameters
    ----------
    env
        the environment
    spec
        the spec of the system; has a ``name``
    policy
        a name, a policy, or a function of a view
    places
        the pools on which jobs start
    name, rank
        name in reports; turn among schedulers that decide at the same instant, lowest first
    record
        whether to keep a record, for :meth:`result`

    A subclass with snapshots sets ``snapshots`` to their class: see
    :class:`~simmodel.snapshots.jobs.JobSystemSnapshot`.

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
        super().__init__(env, name or spec.name)
        self.spec = spec
        self.places = tuple(places)
        self.waiting = WaitingQueue(env)
        for index in self.places[0].know_queue() if len(self.places) == 1 else ():
            self.waiting.keep(index)
        self.view = View(env, self.waiting, self.places, f"{self.name}.policy")
        self.rank = rank
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank)
        self._offset = 0  # number of a job minus its row in the record
        self.ids: set[object] = set()  # of the jobs of scripts
        self._planned: dict[LiveJob, list[Occurrence]] = {}  # pending calls of jobs that have not ended
        self._queued_work = 0  # expected work of self.waiting, in units of 2^-20 processor seconds
        self.recorder = JobRecorder(env, late=True, places=self.places) if record else None
        for place in self.places:
            place.tell = self.tell
        env.register_waits(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self.waiting)} waiting>"

    # ------------------------------------------------------------------ submission

    def submit(self, work: Job) -> LiveJob:
        """Submit a job now, ignoring its ``submit``; the returned job is an event that is triggered when it ends.

        Raises
        ------
        ImpossibleWork
            if no place can ever run it
        InputError
            if its id is in use
        """
        if isinstance(work, Job):
            check_specs([(work.id, work)], self.ids, self.check_names)
        return self.accept(work)

    def door(self, home: str | None = None) -> Door:
        """Return the door of its jobs, which have no home."""
        return _SmallDoor(self)

    def accept(self, work: Job) -> LiveJob:
        """Submit a job whose id may occur again, as that of a job from a broker."""
        if not isinstance(work, Job):
            raise InputError(f"must be a Job, got {work!r}", place="work")
        job = self.able(self.live(work))
        self.submitted += 1
        self._active += 1
        self.ids.add(job.id)
        self.take_in(job)
        return job

    def live(self, spec: Job) -> tuple[LiveJob, str | None]:
        """Return the live job, bound for the first place that can ever run it, and the reason if none can.

        Has no side effects: the job is not submitted.
        """
        number = self.submitted
        run = float("inf") if spec.run is None else float(spec.run)
        limit = run if spec.requested is None else float(spec.requested)
        name = name_of(spec, number + 1, self.ids)
        job = LiveJob(name, number - self._offset, float(self.env.now), spec.processors, limit, limit, min(run, limit))
        job.seq, job._job, job.user, job.priority = number, spec, spec.user, spec.priority
        job.end_as(cut=limit < run)
        job.unrequested = spec.requested is None
        if spec.own_end or spec.dependencies or spec.checkpoint is not None:
            what = "dependencies" if spec.dependencies else "checkpoints"
            what = "workflows" if spec.workflow else "bodies" if spec.has_body else "traffic" if spec.traffic else what
            return job, f"a {self.kind} does not support jobs with {what}"
        reasons = []
        for place in self.places:
            job.place = place
            job.request = place.request_of(spec)
            reason = place.why_not(job)
            if reason is None:
                return job, None
            reasons.append(reason)
        rules = "; ".join(dict.fromkeys(map(rule_of, reasons)))
        return job, Refusal("; ".join(dict.fromkeys(reasons)), rules)

    def came(self, job: LiveJob) -> None:
        """Notify observers of a job that is submitted now."""
        self.tell("job_submitted", job)

    def enqueue(self, job: LiveJob) -> None:
        """Put a job into the queue."""
        self.waiting.add(job)
        self._queued_work += work_units(job.processors, job.expected)

    def take_in(self, job: LiveJob) -> None:
        """Submit a live job, which joins the queue."""
        super().take_in(job)
        self.scheduler.wake()

    def expect(self, arrival: Arrival) -> None:
        """Plan the submission of a job."""
        self._active += 1
        self.sources.append(_Request(self, (0, *arrival)))

    def stream_record(self, write: Write, *, every: int = EVERY) -> None:
        """Write the rows of ended jobs by a function instead of keeping them, from the first job on.

        Raises
        ------
        InputError
            if jobs have been submitted, the system keeps no record, or its policy records its choices
        """
        recorder = self.streamed_recorder(self.recorder, self.submitted + len(self.sources), write, every)
        recorder.hear_submissions()
        self.recorder = recorder

    # ------------------------------------------------------------------ the life of a job

    def start(self, work: LiveJob, place: Pool, allocation: Allocation | None = None) -> None:
        """Start waiting work at a place and plan its end; the scheduler has checked that it fits."""
        if work._outcome == "withdrawn":
            self._drop(work, "withdrawn")
            raise Withdrawn
        run = self.begin(work, place, allocation)
        self.plan(work, self.env.now + work._duration, partial(self.end, run))

    def plan(self, job: LiveJob, at: float, call: Callable[[], object]) -> None:
        """Call at an instant (s), unless the job has ended by then."""
        self._planned.setdefault(job, []).append(self.env.call_at(at, call))

    def begin(self, job: LiveJob, place: Pool, allocation: Allocation | None = None) -> Run:
        """Take a job out of the queue and its request from the place; return its execution."""
        grant = place.take(job, allocation)  # raises a PolicyError if a policy has changed the job or the place
        self._leave(job)
        now = float(self.env.now)
        run = Run(job, place, now, now + job.expected, grant)
        place.running.add(run, job.width)
        job.state, job.run, job.started = "running", run, now
        job.attempts += 1
        self.tell("job_started", run)
        return run

    def _leave(self, job: LiveJob) -> None:
        self.waiting.remove(job)
        self._queued_work -= work_units(job.processors, job.expected)

    def end(self, run: Run, status: str | None = None) -> None:
        """End an execution and release its grant; has no effect if it has ended already."""
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
        """Finish a job that has ended: withdraw its pending calls, trigger its event and notify the systems above."""
        for planned in self._planned.pop(job, ()):
            if planned.callbacks is not None:
                self.env.withdraw(planned)
        super().over(job)

    def cancel(self, work: LiveJob) -> None:
        """Withdraw a waiting job or stop a running one; has no effect on a job that has ended."""
        if work.run is not None:
            self.end(work.run, "cancelled")
        elif work.state == "waiting":
            self._drop(work, "cancelled")

    def _drop(self, job: LiveJob, state: str) -> None:
        """End a job that has not started."""
        self._leave(job)
        job.state = state
        self.tell("job_cancelled", job)
        self.over(job)

    def tell(self, hook: str, *what: Any) -> None:
        """Notify observers and the system's own recorder."""
        super().tell(hook, *what)
        own = heard(self.recorder, hook)
        if own is not None:
            own(*what)

    # ------------------------------------------------------------------ as a place

    def why_not(self, work: Job) -> str | None:
        """Return why no place of the system can ever run the job, or ``None``; has no side effects."""
        return self.live(work)[1]

    def estimate(self, work: Job, by: EstimateBasis = "requested") -> Estimate:
        """Estimate when a job would start and how long it would run (s), from the expected ends of all earlier jobs.

        Assumes that jobs start in order of arrival, each as soon as it fits; a system with another policy may override
        this method. ``by`` is ignored.

        Raises
        ------
        ImpossibleWork
            if no place can ever run it

        >>> from types import SimpleNamespace
        >>> from simmodel.resources import CountPool
        >>> env = Environment()
        >>> slots = JobSystem(env, SimpleNamespace(name="slots"), places=[CountPool(env, "slots", 2)])
        >>> jobs = [slots.submit(Job(run=10, requested=20)) for _ in range(3)]; env.run(until=1)
        >>> slots.estimate(Job(processors=2, run=5))
        Estimate(start=40.0, setup=0.0, transfer=0.0, run=5.0)
        """
        job = self.able(self.live(work))
        profile = job.place.profile()
        at = self.env.now
        for before in self.waiting:
            if before.place is job.place:
                at, _ = profile.earliest(before, before.planned, at)
                profile.take(before, at, before.planned)
        at, _ = profile.earliest(job, job.planned, at)
        return Estimate(float(at), 0.0, 0.0, job.planned)

    @property
    def load(self) -> Load:
        """Load of the system."""
        return Load(self.free, len(self.waiting), self._queued_work, self.running.work(self.env.now))

    # ------------------------------------------------------------------ reports

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence per waiting job."""
        for job in self.waiting:
            place = job.place
            yield (
                f"job {job.id} has waited for {job.processors} processors of {place.name} since {job.submit:g} s; "
                f"{place.free} of {place.capacity} are free"
            )

    def result(self, name: str | None = None) -> Result:
        """Return the result so far; ``name`` is its name in tables and plots.

        Raises
        ------
        InputError
            if the system keeps no record
        """
        return self.result_of(self.recorder, name, self.report)

    # ------------------------------------------------------------------ snapshots

    def own_state(self) -> Mapping[str, Any]:
        """Return the additional fields of the class of ``snapshots``, by name."""
        return {}

    def snapshot(self) -> JobSystemSnapshot:
        """Return the state of the system as a plain value from which a simulation can continue.

        Raises
        ------
        SnapshotError
            if the system has no class of ``snapshots``, or its policy cannot be copied
        """
        if self.snapshots is None:
            raise SnapshotError(f"a {self.kind} does not support snapshots")
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
            arrivals=tuple(work_of(self.live(job)[0])._replace(submit=at) for at, job in self._coming()),
            **self.own_state(),
        )

    def _running_state(self, run: Run) -> RunningWork:
        end, attempt = self.planned_end(run), run.job.attempts
        return RunningWork(work_of(run.job), run.started, run.expected_end, end, run.grant.allocation, attempt)

    def _coming(self) -> list[tuple[float, Job]]:
        """Return the instants (s) of the submissions to come, in order, each with its job."""
        return sorted([row[1:] for source in self.sources for row in source.left()], key=itemgetter(0))

    def planned_end(self, run: Run) -> float:
        """Return the planned end of an execution (s)."""
        return run.started + run.job._duration

    @classmethod
    def from_snapshot(cls, env: Environment, snapshot: JobSystemSnapshot, policy: PolicyLike | None = None) -> Self:
        """Return a system that continues from a snapshot; its record holds the jobs that had not ended.

        Parameters
        ----------
        env
            an environment at the time of the snapshot
        policy
            default: that of the snapshot; a policy of the same name inherits its memory

        Raises
        ------
        InputError
            if the environment is at another time, or the policy is unknown or must be passed
        """
        check_instant(env, snapshot)
        system = cls(env, snapshot.platform, chosen_policy(snapshot, policy), name=snapshot.name)  # type: ignore[call-arg]
        restore_streams(env, snapshot)
        system.go_on(snapshot)
        remember(system.scheduler, snapshot.policy)
        return system

    def go_on(self, snapshot: JobSystemSnapshot) -> None:
        """Restore the running, waiting and arriving jobs of a snapshot."""
        works = sorted(snapshot.works, key=lambda work: work.number)
        places = {place.name: place for place in self.places}
        jobs = {work.number: job_of(work, row, places[work.place]) for row, work in enumerate(works)}
        self.submitted, self._offset = snapshot.submitted, snapshot.submitted - len(works)
        if self.recorder is not None:
            self.recorder.since = snapshot.now
        self._active += len(works)
        self.ids.update(job.id for job in jobs.values())
        for job in jobs.values():
            if self.recorder is not None:
                self.recorder.job_submitted(job)
            if job._job is not None and job._job.cancel is not None:
                self.cancel_at(job, job._job.cancel)
        for each in snapshot.running:
            job = jobs[each.work.number]
            ends = expected_end(snapshot.now, each.expected_end)
            run = Run(job, job.place, each.started, ends, job.place.take(job, each.held))
            run.place.running.add(run, job.width)
            job.state, job.run, job.started, job.attempts = "running", run, each.started, each.attempt
            if self.recorder is not None:
                self.recorder.carry_over((job,))
            self.plan(job, ends if each.end is None else each.end, partial(self.end, run))
        for work in snapshot.waiting:
            self.enqueue(jobs[work.number])
        self.waiting.forget_new()
        for work in snapshot.arrivals:
            assert work.spec is not None
            self.expect(Arrival(work.submit, work.spec))
