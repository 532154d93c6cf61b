"""A cluster: pools of nodes, a queue, a scheduler, and the life of jobs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from simmodel.entries import load
from simmodel.environment import Environment
from simmodel.errors import ImpossibleWork, InputError
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ClusterOptions
from simmodel.records.recorder import JobRecorder
from simmodel.scheduling.protocol import Estimate, Load, View
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Handler, Scheduler
from simmodel.systems.cluster.core import ClusterCore
from simmodel.systems.cluster.execution import JobExecution
from simmodel.systems.cluster.intake import Intake
from simmodel.systems.cluster.queueing import Queueing
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.system import Offers, System, Timing
from simmodel.work.job import OVER, Job, LiveJob
from simmodel.work.prepare import Estimates, Overrun, Prepared
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.environment import Call
    from simmodel.resources.pool import Pool
    from simmodel.results.result import Result
    from simmodel.scheduling.usage import Usage
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.cluster.calendar import Calendar
    from simmodel.systems.cluster.forecast import Forecast
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.workload import Workload

__all__ = ["Cluster"]


_MIRRORED: Any = "simmodel.systems.cluster.mirrored:MirroredExecution"


class Cluster(System[LiveJob]):
    """Nodes under one batch scheduler, which runs jobs.

    Parameters
    ----------
    env
        the environment
    platform
        a :class:`~simmodel.platform.cluster.ClusterSpec`, or a number of processors
    policy
        a name, a policy, or a function of a view
    decide_on
        ``"instant"``: one decision after all ends and all submissions of an instant; ``"event"``: one after each
    event_order
        with ``decide_on="event"``: whether ``"submits-first"`` or ``"ends-first"`` at one instant. Submissions first
        follows the classic simulators: a submission brings a decision only if the job fits now (or the policy tries
        every submission), and a job whose expected end has come counts as ended even before its end is handled
    estimates
        what policies plan with: see :func:`~simmodel.work.prepare.planned_seconds`
    overrun
        ``"stop"``: a job is stopped at its requested time; ``"continue"``: it runs on
    name, rank
        what reports call it; its turn among schedulers that share an instant
    record
        whether to keep what happens to its jobs, for :meth:`result`
    execution
        ``"planned"``: jobs that the policy starts end when their time is over; ``"mirrored"``: starts and ends come
        from outside (see :class:`~simmodel.systems.cluster.mirrored.MirroredExecution`), and the policy is not asked
    begin
        whether outages, failures and reservations of its description begin now; a snapshot's are there already

    Attributes
    ----------
    queueing, execution, calendar, dependencies, intake
        its parts: where jobs wait, how they run, what changes its places, who waits for whom, what is submitted
    core
        what the parts share

    Observers hear ``job_submitted(job)``, ``job_eligible(job)``, ``job_rejected(job, reason)``, ``job_started(run)``,
    ``job_ended(run, status)``, ``job_suspended(run)``, ``job_resumed(run)``, ``job_cancelled(job)``,
    ``job_promised(job, place, at)``, ``place_changed(place, cause)`` and ``decided(scheduler, seconds, decisions)``.

    >>> env = Environment()
    >>> cluster = Cluster(env, 4, policy="fcfs")
    >>> def user(env):
    ...     first = cluster.submit(Job(processors=3, run=10))
    ...     second = cluster.submit(Job(processors=2, run=5))
    ...     yield second
    ...     print(first.state, second.started, env.now)
    >>> _ = env.process(user(env)); env.run()
    completed 10.0 15.0
    >>> cluster.result().metrics()["wait_mean"]
    5.0
    """

    kind = "cluster"
    destination_class = "simmodel.systems.cluster.destination:ClusterDestination"

    def __init__(
        self,
        env: Environment,
        platform: ClusterSpec | int,
        policy: PolicyLike = "fcfs",
        *,
        decide_on: Literal["instant", "event"] = "instant",
        event_order: Literal["submits-first", "ends-first"] = "submits-first",
        estimates: Estimates = "requested",
        overrun: Overrun = "stop",
        name: str | None = None,
        rank: int = 1,
        record: bool = True,
        execution: Literal["planned", "mirrored"] = "planned",
        begin: bool = True,
    ) -> None:
        options = ClusterOptions(decide_on=decide_on, event_order=event_order, estimates=estimates, overrun=overrun)
        if execution not in ("planned", "mirrored"):
            raise InputError(f"execution 'planned' or 'mirrored' expected, found {execution!r}")
        if not isinstance(env, Environment):
            raise InputError(f"env: must be a simmodel Environment, got {type(env).__module__}.{type(env).__name__}")
        self.env = env
        self.spec = platform if isinstance(platform, ClusterSpec) else ClusterSpec.simple(platform)
        self.name = name or self.spec.name
        self.options = options
        self.core = core = ClusterCore(env, self.spec, self.name, self.options)
        self.pools = core.pools
        self.places = core.places
        self.timing = Timing(core.by_event, core.submit_priority, core.end_priority)
        self.rank = rank
        self.changed = []
        self._active = 0
        self.queueing = Queueing(core)
        self.dependencies = Dependencies(self)
        self.intake = Intake(core, self.queueing, self.dependencies, self.cancel, self.over)
        kind: type[JobExecution] = load(_MIRRORED) if execution == "mirrored" else JobExecution
        self.execution = kind(core, self.queueing, self.dependencies, self.over, self.changed)
        self.start = self.execution.start  # type: ignore[method-assign] # the scheduler calls it once a job
        self.view = View(env, self.queueing.waiting, self.places, f"{self.name}.policy")
        self.view.estimator = _estimate
        self.view.simulate = self._simulate
        self._record = record
        self._recorder: JobRecorder | None = None
        self._since: float | None = None
        self._reports: list[Report] = []  # of replays
        self._forecasts: dict[str, Forecast] = {}
        self.report = Report()  # of jobs that a snapshot had still to arrive
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank, core.by_event)
        self._find_out_when_to_decide()
        env.register_waits(self)
        self.scheduler.policy.attach(self)
        for pool in core.places:
            pool.calendar_priority = core.calendar_priority
        spec = self.spec
        if begin and (spec.outages or spec.failures or spec.reservations):
            self.calendar.begin()

    @cached_property
    def calendar(self) -> Calendar:
        """What carries out its outages, failures and reservations."""
        from simmodel.systems.cluster.calendar import Calendar

        return Calendar(self.core, self.execution, self.dependencies, self.cancel)

    def _find_out_when_to_decide(self) -> None:
        core, scheduler = self.core, self.scheduler
        self.queueing.settle = self.execution.settle
        self.queueing.tries_every_submission = scheduler.policy.tries_every_submission
        if not self.execution.plans:
            core.wake = core.decide = _nothing
            return
        core.decide = scheduler.decide
        core.wake = self._decide_now if core.by_event else scheduler.wake
        for pool in self.places:
            pool.changed.append(core.wake)

    def _decide_now(self) -> None:
        if self.core.submits_first:
            self.execution.settle()
        self.scheduler.decide()

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """What it carries out beside starts: ``Preempt``."""
        return self.execution.handlers

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: {len(self.view.waiting)} waiting, {self._active} jobs not over>"

    # ------------------------------------------------------------------ submission

    @property
    def submitted(self) -> int:  # type: ignore[override]
        """How many jobs have been, or are still to be, submitted."""
        return self.intake.submitted

    @property
    def rules(self) -> Mapping[str, Any]:
        """The limits of its queues, by name."""
        return self.queueing.rules

    def submit(self, work: Job) -> LiveJob:
        """Submit a job now, whatever its ``submit`` says; the job is an event that happens when it is over.

        Raises
        ------
        ImpossibleWork
            where no place of the cluster can ever run it
        InputError
            where it names a queue or a partition that is not there
        """
        if not isinstance(work, Job):
            raise InputError(f"a Job expected, found {work!r}")
        job, reason = self.intake.live(work)
        if reason is not None:
            raise ImpossibleWork(f"{self.name}: job {job.id}: {reason}")
        self.receive(job)
        self.intake.take_in(job)
        return job

    def live(self, spec: Job) -> tuple[LiveJob, str | None]:
        """Return the job as it would be, were it submitted now, and why it can never run; nothing changes."""
        return self.intake.live(spec)

    def receive(self, job: LiveJob) -> None:
        """Give a job that is about to be submitted its number here, and its row in the record."""
        self._begin_record()
        job.seq = self.intake.submitted
        job.index = job.seq - self.intake.offset
        self.intake.submitted += 1
        self._active += 1

    def take_over(self, job: LiveJob) -> int:
        """Take a live job over that says what it is planned with here and where it waits; return its row.

        How brokers hand jobs to clusters: one that asks for processors and time alone costs what one of a log does.
        """
        self.receive(job)
        job.submit = self.env._now
        if job._job is None:
            self.queueing.admit(job)
        else:
            self.intake.take_in(job)
        return job.index

    def replay(self, workload: Workload, home: str | None = None) -> Prepared:
        """Submit the jobs of a workload, each at its instant; returns what was repaired and rejected.

        Jobs that can never run are recorded as rejected and counted. A job whose row names a preceding job waits for
        the end of that one and then its think time.
        """
        if home is not None:
            raise InputError(f"{self.name} is a cluster, whose jobs have no home; found {home!r}")
        prepared = self.intake.prepare(workload)
        self._reports += [workload.report, prepared.report]
        self._begin_record(_columns_of(workload, prepared))
        self._active += len(prepared.rows)
        self.intake.replay(workload, prepared)
        return prepared

    # ------------------------------------------------------------------ the life of a job

    def eligible(self, job: LiveJob) -> None:
        """Note that all that a blocked job had to come after has come."""
        if job.state == "blocked":
            if self.env._now > job.submit:
                job.remember().eligible = float(self.env._now)
            self.core.tell("job_eligible", job)
            self.queueing.enqueue(job)

    def over(self, job: LiveJob) -> None:
        """Note that nothing more will happen to a job, however it ended."""
        self._active -= 1
        if job.watched:
            self.dependencies.happened(job, "end")
            self.intake.forget_cancellation(job)
        if job.event is not None:
            job.event.succeed(job)
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    def rebind(self, work: LiveJob, place: Pool) -> None:
        """Let a waiting job wait for another partition."""
        self.queueing.move(work, place)

    def cancel(self, work: LiveJob) -> None:
        """Withdraw a job that waits, or stop one that runs; one that is over stays as it is."""
        if work.state in OVER:
            return
        if work.run is not None:
            self.execution.stop(work.run, "cancelled")
            return
        self.queueing.leave(work)
        self.dependencies.unblock(work)
        work.state = "cancelled"
        self.core.tell("job_cancelled", work)
        self.over(work)
        self.core.wake()

    def why_not_preempt(self, work: LiveJob, mode: str) -> str | None:
        """Say why a running job cannot be stopped so, or ``None``."""
        return self.execution.why_not_preempt(work, mode)

    def preempt(self, work: LiveJob, mode: str = "requeue") -> None:
        """Stop a running job: it starts again from the queue, or (``suspend``) goes on where it was."""
        self.execution.preempt(work, mode)

    def keep_usage(self, usage: Usage) -> None:
        """Keep the consumption of users in this record from now on (for fair share)."""
        self.core.usages.append(usage)
        self.view.usage = usage

    def plan(self, at: float, call: Callable[[], object]) -> Call:
        """Call at an instant (s), with the ends of that instant."""
        return self.env.call_at(at, call, self.core.end_priority)

    # ------------------------------------------------------------------ as a place

    @property
    def plain_pool(self) -> Pool | None:
        """Where jobs go that ask for processors and time alone: the only place, where no queue has rules."""
        return None if self.rules else self.core.only_pool

    def forecast(self, by: EstimateBasis = "requested") -> Forecast:
        """Return the forecast of the cluster, which is kept, by requested or by actual run times."""
        from simmodel.systems.cluster.forecast import Forecast

        if by not in self._forecasts:
            self._forecasts[by] = Forecast(self, by)
        return self._forecasts[by]

    def estimate(self, work: Job, by: EstimateBasis = "requested") -> Estimate:
        """Return when a job would start and how long it would run (s), were it submitted now; a pure question.

        Raises
        ------
        ImpossibleWork
            where no place of the cluster can ever run it

        >>> cluster = Cluster(Environment(), 4)
        >>> _ = cluster.submit(Job(processors=4, run=10, requested=60))
        >>> cluster.estimate(Job(run=5)).start
        60.0
        """
        return self.forecast(by).of(work)

    def why_not(self, work: Job) -> str | None:
        """Say why no place of the cluster can ever run the job, or ``None``; a pure question."""
        return self.intake.live(work)[1]

    @property
    def offers(self) -> Offers:
        """What jobs may ask for beside processors and time."""
        return self.core.offers

    @property
    def capacity(self) -> int:
        """Processors in all; those of reservations are those of their partitions."""
        return sum(int(pool.capacity) for pool in self.places if pool.part_of is None)

    @property
    def free(self) -> int:
        """Processors free now."""
        return sum(int(pool.free) for pool in self.places if pool.part_of is None)

    @property
    def endless(self) -> bool:
        """Whether events go on though all jobs are over: failures, outages, reservations."""
        return bool(self.spec.failures) or bool(self.spec.outages or self.spec.reservations)

    def present(self) -> Iterator[LiveJob]:
        """Yield the jobs that were submitted and are not over: running, waiting, held by a limit, blocked."""
        yield from super().present()
        yield from self.queueing.held()
        yield from self.dependencies.blocked_jobs()

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits."""
        yield from self.queueing.waiting_report()
        yield from self.dependencies.waiting_report()

    @property
    def load(self) -> Load:
        """How loaded it is; kept at events from the first question on, so that asking costs O(1)."""
        now = self.env.now
        left = sum(pool.running.left.at(now) for pool in self.places)
        return Load(self.free, len(self.view.waiting), self.queueing.queued.work, left)

    @property
    def endless_work(self) -> bool:
        """Whether something that runs or waits has no expected end."""
        return bool(self.queueing.queued.endless or any(pool.running.left.endless for pool in self.places))

    # ------------------------------------------------------------------ its record

    def _begin_record(self, expected: Mapping[str, Any] | None = None) -> None:
        """Keep what happens to jobs, from the first of them on; of a workload, ``expected`` are its columns."""
        if not self._record:
            return
        if self._recorder is None:
            self._recorder = self.core.recorder = JobRecorder(self.env, late=False, places=self.places)
            self.core.find_hooks()
        if (expected is None or not self._recorder.expect(expected)) and not self._recorder.hears_submissions:
            self._recorder.hear_submissions()
            self.core.find_hooks()

    def keep_record(self, recorder: JobRecorder) -> None:
        """Go on with a record that begins now, of jobs that are known already."""
        self._recorder, self._since = recorder, float(self.env.now)
        self.core.recorder = recorder
        self.core.find_hooks()

    def result(self, name: str | None = None) -> Result:
        """Return what has happened so far to the jobs of this cluster; ``name`` is what tables and plots call it.

        Raises
        ------
        InputError
            where the cluster was told to keep no record
        """
        if not self._record:
            raise InputError(f"{self.name}: cannot return a result: built with record=False")
        self._begin_record()
        assert self._recorder is not None
        scheduler = self.scheduler
        from simmodel.results.result import Result

        return self._recorder.record(
            Result,
            name=name or scheduler.policy_name,
            report=sum(self._reports, Report()) + self.report,
            decisions=scheduler.timing(),
            policy=scheduler.policy,
            started=self._since,
        )

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, *, actual: bool = True) -> ClusterSnapshot:
        """Return the state of the cluster as a plain value, from which a simulation can be started.

        Best taken between events, after the decisions of the instant. With ``actual`` it holds what continuing needs:
        how long jobs will run, what is still to arrive and to fail. Without, only what a policy may know (see
        :meth:`ClusterSnapshot.expected <simmodel.snapshots.cluster.ClusterSnapshot.expected>`).

        Raises
        ------
        SnapshotError
            with ``actual``, where a process holds or waits for part of the cluster, or a job is a process: a generator
            cannot be copied; and where the memory of the policy is not of plain values

        >>> from simmodel import Cluster, Environment, Job
        >>> env = Environment()
        >>> cluster = Cluster(env, 4)
        >>> for _ in range(3): _ = cluster.submit(Job(processors=2, run=10, requested=20))
        >>> env.run(until=5)
        >>> cluster.snapshot()
        <ClusterSnapshot of cluster at 5 s: 2 running, 1 waiting, 0 to arrive>
        """
        from simmodel.systems.cluster.capture import capture

        return capture(self, actual)

    @classmethod
    def from_snapshot(
        cls,
        env: Environment,
        snapshot: ClusterSnapshot,
        policy: PolicyLike | None = None,
        *,
        record: bool = True,
        rank: int = 1,
    ) -> Cluster:
        """Return a cluster that goes on where a snapshot was taken.

        Parameters
        ----------
        env
            an environment whose time is that of the snapshot
        policy
            default: that of the snapshot; one of the same name remembers what that one did
        record, rank
            as of the class

        Raises
        ------
        InputError
            where the time is another, the policy is not known by a name, or the snapshot contradicts itself

        >>> from simmodel import Cluster, Environment, Job
        >>> env = Environment()
        >>> cluster = Cluster(env, 4)
        >>> for _ in range(3): _ = cluster.submit(Job(processors=2, run=10, requested=20))
        >>> env.run(until=5)
        >>> later = Environment(5)
        >>> again = Cluster.from_snapshot(later, cluster.snapshot())
        >>> later.run(); again.result().jobs["end"]
        array([10., 10., 20.])
        """
        from simmodel.systems.cluster.restore import restore

        return restore(env, snapshot, policy, record=record, rank=rank)

    def _simulate(self, policy: PolicyLike, **options: Any) -> Any:
        from simmodel.systems.cluster.prediction import simulate_from

        return simulate_from(self, policy, **options)


def _estimate(view: View, job: LiveJob, place: Pool) -> Estimate:
    """Estimate by the expected ends of what runs, as if the job were next."""
    at, _ = place.profile().earliest(job, job.requested)
    return Estimate(at, 0.0, 0.0, job.requested)


def _columns_of(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return what the record keeps of the jobs of a workload."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    return columns | {
        "processors": prepared.processors,
        "requested": prepared.requested,
        "recorded_run": workload["run"],
    }


def _nothing() -> None:
    """Do nothing."""
