"""Clusters: pools of nodes, queues, a scheduler, and the life of jobs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from math import inf
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel.environment import Environment, ToCome
from simmodel.foundation.entries import load
from simmodel.foundation.errors import InputError, NoProcessors, shown, unknown
from simmodel.platform.cluster import ClusterSpec
from simmodel.platform.options import ESTIMATES, ClusterOptions
from simmodel.platform.signals import NO_SIGNALS, GivenSignals
from simmodel.records.recorder import JobRecorder
from simmodel.records.streamed_recorder import EVERY, StreamedRecorder
from simmodel.scheduling.prediction import PredictorLike, predictor
from simmodel.scheduling.protocol import Estimate, Hold, Load, Preempt, Release, Sleep, View, Wake
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.scheduler import Handler, Scheduler, handle_preempt
from simmodel.systems.arrivals import JobLife, as_queue, check_specs, name_of
from simmodel.systems.cluster.core import ClusterCore
from simmodel.systems.cluster.execution import JobExecution
from simmodel.systems.cluster.intake import ClusterDoor, adds_nothing, live_job
from simmodel.systems.cluster.queueing import Queueing
from simmodel.systems.dependencies import Dependencies
from simmodel.systems.job_states import shares
from simmodel.systems.kinds import Kind
from simmodel.systems.submissions import Logs, read_submissions
from simmodel.systems.system import Offers, Timing
from simmodel.work.job import ANY, OVER, Job, LiveJob
from simmodel.work.prepare import Estimates, Overrun, Sharing
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from simmodel.environment import Call
    from simmodel.records.streamed_recorder import Write
    from simmodel.resources.pools.pool import Pool
    from simmodel.results.result import Result
    from simmodel.scheduling.usage import Usage
    from simmodel.scheduling.waiting import MergedQueues, WaitingQueue
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.jobs import WorkState
    from simmodel.systems.arrivals import Door
    from simmodel.systems.cluster.calendar import Calendar
    from simmodel.systems.cluster.future.guest import Forecast
    from simmodel.systems.cluster.run_times import Predictions
    from simmodel.systems.submissions import GivenWork, Submissions
    from simmodel.systems.system import EstimateBasis
    from simmodel.work.chunks import ChunkedWorkload
    from simmodel.work.time_limits import TooLong

__all__ = ["CLUSTER", "Cluster", "ClusterKind"]

_PREDICTIONS: Any = "simmodel.systems.cluster.run_times:Predictions"
_MIRRORED: Any = "simmodel.systems.cluster.mirrored:MirroredExecution"


class Cluster(JobLife[LiveJob]):
    """Nodes under one batch scheduler that runs jobs.

    Parameters
    ----------
    env
        the environment
    platform
        a :class:`~simmodel.platform.cluster.ClusterSpec`, or a number of processors
    policy
        a name, a policy, or a function of a view
    decide_on
        ``"instant"``: one decision after all ends and submissions of an instant; ``"event"``: one after each of them
    event_order
        with ``decide_on="event"``, the order within an instant: ``"submits-first"`` or ``"ends-first"``. Submissions
        first is the order of the classic simulators: a submission brings a decision only if the job fits now (or the
        policy tries every submission), and a job at its expected end counts as ended before its end is handled
    estimates
        the times that policies plan with: see :func:`~simmodel.work.prepare.planned_seconds`; or a predictor of run
        times by name (``"predicted"``: the default one) or as an object, which then learns from the jobs that end
    overrun
        ``"stop"``: a job is stopped at its requested time; ``"continue"``: it continues to its end
    sharing
        how jobs with traffic share links: ``"fair-bottleneck"``, as SimGrid's parallel tasks, or ``"max-min"``
    signals
        by name: each a :class:`~simmodel.platform.signals.Signal`, or its CSV file
    name, rank
        name in reports; turn among schedulers that decide at the same instant, lowest first
    record
        whether to keep a record, for :meth:`result`
    execution
        ``"planned"``: jobs started by the policy end after their run time; ``"mirrored"``: starts and ends are reported
        from outside (see :class:`~simmodel.systems.cluster.mirrored.MirroredExecution`), and the policy is not asked
    begin
        whether to plan the outages, failures and reservations of the spec now; ``False`` when restoring a snapshot

    Attributes
    ----------
    queueing, execution, calendar, dependencies
        its parts: queues and limits, executions, capacity changes, dependencies
    submitted, offset
        number of submitted and arriving jobs, which is also the number of the next one; number of a job minus its row
        in the record
    core
        the state shared by the parts
    rules
        the limits of its queues, by name
    storages, network
        the storages of the spec by name, and the network of its links, or ``None``
    predictions
        the planner of jobs with predicted run times, or ``None``

    Hooks of observers: ``job_submitted(job)``, ``job_eligible(job)``, ``job_rejected(job, reason)``,
    ``job_started(run)``, ``job_ended(run, status)``, ``job_suspended(run)``, ``job_resumed(run)``,
    ``job_checkpointed(run, kept, lost)``,
    ``job_cancelled(job)``, ``job_promised(job, place, at)``, ``place_changed(place, cause)`` and
    ``decided(scheduler, seconds, decisions)``.

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
    places: tuple[Pool, ...]

    def __init__(
        self,
        env: Environment,
        platform: ClusterSpec | int,
        policy: PolicyLike = "fcfs",
        *,
        decide_on: Literal["instant", "event"] = "instant",
        event_order: Literal["submits-first", "ends-first"] = "submits-first",
        estimates: Estimates | PredictorLike = "requested",
        overrun: Overrun = "stop",
        sharing: Sharing = "fair-bottleneck",
        signals: GivenSignals = NO_SIGNALS,
        name: str | None = None,
        rank: int = 1,
        record: bool = True,
        execution: Literal["planned", "mirrored"] = "planned",
        begin: bool = True,
    ) -> None:
        options = ClusterOptions(
            decide_on=decide_on,
            event_order=event_order,
            estimates=estimates,
            overrun=overrun,
            sharing=sharing,
            signals=signals,
        )
        if execution not in ("planned", "mirrored"):
            raise InputError(f"must be 'planned' or 'mirrored', got {execution!r}", place="execution")
        self.spec = platform if isinstance(platform, ClusterSpec) else ClusterSpec.simple(platform)
        super().__init__(env, name or self.spec.name)
        self.options = options
        self.core = core = ClusterCore(env, self.spec, self.name, self.options)
        self.predictions: Predictions | None = None
        if options.estimates not in ESTIMATES:
            self.predictions = core.predictions = load(_PREDICTIONS)(core, predictor(options.estimates))
        self.pools = core.pools
        self.places = core.places
        self.storages = core.io.storages
        self.network = core.io.network
        self.timing = Timing(core.by_event, core.submit_priority, core.end_priority)
        self.rank = rank
        self.offset = 0
        self.queueing = Queueing(core)
        self.rules: Mapping[str, Any] = self.queueing.rules
        self.enqueue = self.queueing.enqueue  # type: ignore[method-assign]
        self.tell = core.tell  # type: ignore[method-assign]
        self.ids = core.known
        kind: type[JobExecution] = load(_MIRRORED) if execution == "mirrored" else JobExecution
        self.execution = kind(core, self.queueing, self.over, self.changed)
        self.start = self.execution.start  # type: ignore[method-assign] # the scheduler calls it once a job
        self.view = View(env, self.queueing.waiting, self.places, f"{self.name}.policy")
        self.view.choices = self.queueing.choices
        self.view.estimator = _estimate
        self.view.simulate = self._simulate
        self.view.signals = self.options.signals
        self._forecasts: dict[str, Forecast] = {}
        self.scheduler = Scheduler(env, policy, self.view, self, self.name, rank, core.by_event)
        if self.execution.plans:
            core.ask(self.scheduler)
        env.register_waits(self)
        self.scheduler.policy.attach(self)
        for pool in core.places:
            pool.calendar_priority = core.calendar_priority
            pool.tell = core.tell
        # From the first change of a place on, which may precede the first job:
        core.hear(JobRecorder(env, late=False, places=self.places) if record else None)
        spec = self.spec
        sleeps = False
        for sleeping in [pool.sleeping for pool in core.places if pool.sleeping is not None]:
            sleeps = True
            if begin and sleeping.asleep:
                sleeping.retell()
        if begin and (sleeps or spec.outages or spec.failures or spec.reservations):
            self.calendar.begin()

    @cached_property
    def calendar(self) -> Calendar:
        """The part that carries out its outages, failures and reservations."""
        from simmodel.systems.cluster.calendar import Calendar

        return Calendar(self.core, self.execution, self.cancel)

    @property
    def dependencies(self) -> Dependencies:
        """The part that holds jobs back until others have started or ended."""
        if self.core.dependencies is None:
            self.core.dependencies = Dependencies(self, self.core.known)
        return self.core.dependencies

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """The handlers of its decision types except ``Reserve``, ``WakeAt`` and plain ``Start``."""
        own: dict[type, Handler] = {Hold: self._handle_hold, Release: self._handle_release}
        own |= {Sleep: self._handle_sleep, Wake: self._handle_sleep}
        return {Preempt: partial(handle_preempt, self), **own, **self.execution.handlers}

    def _handle_hold(self, decision: Hold) -> str | None:
        job, now = self.queueing.choices.get(decision.work, (decision.work,))[0], self.env._now
        if not now < decision.until:
            return f"until: must be an instant after {now:g} s, got {decision.until!r}"
        if getattr(job, "state", None) != "waiting" or self.ids.get(job.id, job) is not job:
            return f"only work that waits here can be held, got {decision.work!r}"
        self.hold(job, decision.until)
        return None

    def _handle_release(self, decision: Release) -> str | None:
        job = decision.work
        if not isinstance(job, LiveJob) or not self.dependencies.release(job):
            return f"only work that is held without an instant can be released, got {job!r}"
        self.queueing.enqueue(job)
        return None

    def _handle_sleep(self, decision: Sleep | Wake) -> str | None:
        pool = decision.place
        if not any(pool is each for each in self.places):
            return f"place: must be a place of {self.name}, got {shown(pool)}"
        if pool.sleeping is None:
            return f"place: must have nodes with a boot in their power, got {pool.name}"
        try:
            if isinstance(decision, Sleep):
                pool.sleep(decision.nodes)
            else:
                pool.wake(decision.nodes, None if decision.work is None else decision.work.id)
        except InputError as error:
            return str(error)
        return None

    def hold(self, work: LiveJob, until: float) -> None:
        """Take a waiting job out of the queue until an instant (s), or a release; it keeps its place there."""
        self.queueing.leave(work)
        work.watched = True
        self.dependencies.hold(work)
        if until < inf:
            self.dependencies.think_again(work, until)

    def __repr__(self) -> str:
        return f"<Cluster {self.name}: {len(self.view.waiting)} waiting, {self._active} unfinished>"

    # ------------------------------------------------------------------ submission

    def submit(self, work: Job, *, since: float | None = None, number: int | None = None) -> LiveJob:
        """Submit a job now, ignoring its ``submit``; the returned job is an event that is triggered when it ends.

        Parameters
        ----------
        work
            the job
        since
            the instant (s) from which it waits, now or in the past: its place in the queue; default: now
        number
            its number in snapshots and, among jobs that wait from the same instant, in the queue; only without a
            record. Default: the next one

        Raises
        ------
        ImpossibleWork
            if no place of the cluster can ever run it; jobs that are mirrored may exceed the limits of queues and
            partitions
        InputError
            if its id is in use, it names an unknown queue or partition, or ``since`` is in the future
        """
        now, mirrored = self.env._now, not self.execution.plans
        if not isinstance(work, Job):
            raise InputError(f"must be a Job, got {work!r}", place="work")
        if since is not None and not since <= now:
            raise InputError(f"must be an instant <= {now:g} s, got {since!r}", place="since")
        if number is not None and self.core.recorder is not None:
            raise InputError(f"must be None for a cluster that keeps a record, got {number!r}", place="number")
        check_specs([(name_of(work, self.submitted + 1, self.ids), work)], self.ids, self.check_names)
        job, reason = self.live(work)
        if not mirrored or job.place.why_not(job) is not None:
            self.able((job, reason))
        if since is not None:
            job.submit = since
        self.receive(job, number)
        self.take_in(job)
        if mirrored and job.rules is None and job.request is None and adds_nothing(work):
            job._job = None  # its copies in what-ifs cost as little as those of jobs of a log
        return job

    def receive(self, job: LiveJob, number: int | None = None) -> None:
        """Assign a number, by default the next one, and a row in the record to a job that is about to be submitted."""
        self.check_receives()
        self.core.record_submissions()
        job.seq = seq = self.submitted if number is None else number
        job.index = seq - self.offset
        if seq >= self.submitted:
            self.submitted = seq + 1
        self._active += 1

    def check_names(self, job: Job, label: object) -> None:
        """Check that the queue and the partitions of a job exist here, and that it names reservations alone."""
        job = as_queue(job, self.rules, self.pools)
        several = () if job.partitions == (ANY,) else job.partitions
        named = [("partition", name, self.pools) for name in (job.partition, *several)]
        for kind, name, names in (("queue", job.queue, self.rules), *named):
            if name is not None and str(name) not in names:
                raise InputError(f"job {label}: {unknown(kind, str(name), names).message}")
        for name in job.partitions if len(job.partitions) > 1 else ():
            if self.pools[str(name)].part_of is not None:
                message = f"must name reservation {name} alone, got {job.partition_text}"
                raise InputError(f"job {label}: partitions: {message}")

    def live(self, spec: Job, number: int | None = None, row: int | None = None) -> tuple[LiveJob, str | None]:
        """Return the live job, by default the next one, and why it can never run or ``None``; has no side effects."""
        number = self.submitted if number is None else number
        row = number - self.offset if row is None else row
        return live_job(spec, number, row, self.core, self.rules, self.ids)

    def door(self, home: str | None = None) -> Door:
        """Return the door of its jobs, which have no home."""
        if home is not None:
            raise InputError(f"must be None for a cluster, whose jobs have no home, got {home!r}", place="home")
        return ClusterDoor(self)

    def reject(self, job: LiveJob, reason: str) -> None:
        """Record a job of a log that no place can ever run."""
        super().reject(job, reason)
        self.dependencies.rejected(job.id)

    reads_in_chunks = True

    @property
    def streams(self) -> bool:
        """Whether the rows of its record are written as the run goes on."""
        return isinstance(self.core.recorder, StreamedRecorder)

    def replay_in_chunks(self, workload: ChunkedWorkload) -> None:
        """Submit the jobs of a workload as they are read; they must be sorted by submit time.

        Raises
        ------
        InputError
            if the record is not streamed, jobs have been submitted, or a job comes too late or waits for another
        """
        self.dependencies.forgets = self.streams and not self.submitted
        super().replay_in_chunks(workload)

    def stream_record(self, write: Write, *, every: int = EVERY) -> None:
        """Write the rows of ended jobs by a function instead of keeping them, from the first job on.

        Raises
        ------
        InputError
            if jobs have been submitted, the cluster keeps no record, or its policy records its choices
        """
        self.core.hear(self.streamed_recorder(self.core.recorder, self.submitted, write, every))

    # ------------------------------------------------------------------ the life of a job

    def came(self, job: LiveJob) -> None:
        """Notify observers of a job that is submitted now."""
        self.ids[job.id] = job
        for hook in self.core.on_submitted:
            hook(job)

    def family(self, job: LiveJob) -> Dependencies:
        """Return the dependencies among its jobs."""
        return self.dependencies

    def eligible(self, job: LiveJob) -> None:
        """Put a blocked job whose dependencies are met into the queue."""
        if job.state == "blocked":
            if self.env._now > job.submit:
                job.remember().eligible = float(self.env._now)
            self.tell("job_eligible", job)
            self.queueing.enqueue(job)

    def over(self, job: LiveJob) -> None:
        """Finish a job that has ended: release its dependents and trigger its event (hot path)."""
        self._active -= 1
        if job.watched:
            if self.core.dependencies is not None:
                self.core.dependencies.happened(job, "end")
            if self._cancellations:
                self.forget_cancellation(job)
        if job.event is not None:
            job.event.succeed(job)
        if self._idle is not None and not self._active and not self._idle.triggered:
            self._idle.succeed()

    def forget_ended(self) -> None:
        """Forget the jobs that have ended, of a simulation that is over: no later job can depend on them."""
        self.core.known.clear()

    def rebind(self, work: LiveJob, place: Pool) -> None:
        """Move a waiting job to another partition."""
        self.queueing.move(work, place)

    def cancel(self, work: LiveJob) -> None:
        """Withdraw a waiting job or stop a running one; has no effect on a job that has ended."""
        if work.state in OVER:
            return
        work = self.queueing.choices.get(work, (work,))[0]
        if work.run is not None:
            self.execution.stop(work.run, "cancelled")
        else:
            self.execution.drop(work, "cancelled")
            self.core.wake()

    def why_not_preempt(self, work: LiveJob, mode: str) -> str | None:
        """Return why a running job cannot be preempted in this mode, or ``None``."""
        return self.execution.why_not_preempt(work, mode)

    def preempt(self, work: LiveJob, mode: str = "requeue") -> None:
        """Preempt a running job: it starts again from the queue or, with ``suspend``, continues later."""
        self.execution.preempt(work, mode)

    def keep_usage(self, usage: Usage) -> None:
        """Record the consumption of users from now on (for fair share)."""
        self.core.usages.append(usage)
        self.view.usage = usage

    def plan(self, at: float, call: Callable[[], object]) -> Call:
        """Call at an instant (s), among the job ends of that instant."""
        return self.env.call_at(at, call, self.core.end_priority)

    # ------------------------------------------------------------------ as a place

    def forecast(self, by: EstimateBasis = "requested") -> Forecast:
        """Return the cached forecast of the cluster by requested or by actual run times."""
        from simmodel.systems.cluster.future.guest import Forecast

        if by not in self._forecasts:
            self._forecasts[by] = Forecast(self, by)
        return self._forecasts[by]

    def estimate(self, work: Job, by: EstimateBasis = "requested") -> Estimate:
        """Estimate when a job submitted now would start, and how long it would run (s); has no side effects.

        Raises
        ------
        ImpossibleWork
            if no place of the cluster can ever run it

        >>> cluster = Cluster(Environment(), 4)
        >>> _ = cluster.submit(Job(processors=4, run=10, requested=60))
        >>> cluster.estimate(Job(run=5)).start
        60.0
        """
        return self.forecast(by).of(work)

    def why_not(self, work: Job) -> str | None:
        """Return why no place of the cluster can ever run the job, or ``None``; has no side effects."""
        return self.live(work)[1]

    @property
    def offers(self) -> Offers:
        """The requests that it supports in addition to processors and time."""
        return self.core.offers

    @property
    def largest(self) -> int:
        """The most processors that one job can have."""
        return self.core.largest

    @property
    def capacity(self) -> int:
        """Total number of processors; those of reservations count in their partitions."""
        return sum(int(pool.capacity) for pool in self.places if pool.part_of is None)

    @property
    def free(self) -> int:
        """Number of free processors outside reservations."""
        return sum(int(pool.free) for pool in self.places if pool.part_of is None)

    @property
    def endless(self) -> bool:
        """Whether events may continue after all jobs have ended: failures, outages, reservations."""
        return bool(self.spec.failures) or bool(self.spec.outages or self.spec.reservations)

    def present(self) -> Iterator[LiveJob]:
        """Yield the submitted jobs that have not ended: running, waiting, held by a limit, blocked."""
        yield from super().present()
        yield from self.queueing.held()
        yield from self.dependencies.blocked_jobs()

    @property
    def waiting(self) -> WaitingQueue | MergedQueues:
        """The waiting jobs, in the order of the queue."""
        return self.queueing.waiting

    def waiting_by_place(self) -> dict[str, int]:
        """Return how many jobs wait for each partition, by name."""
        return {str(each.name): len(self.waiting.at(each)) for each in self.places}

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence per waiting job."""
        yield from self.queueing.waiting_report()
        yield from self.dependencies.waiting_report()

    @property
    def load(self) -> Load:
        """Load of the cluster, in O(1): updated incrementally from the first access on."""
        now = self.env.now
        left = sum(pool.running.left.at(now) for pool in self.places)
        return Load(self.free, len(self.view.waiting), self.queueing.queued.work, left)

    # ------------------------------------------------------------------ record

    def result(self, name: str | None = None) -> Result:
        """Return the result so far; ``name`` is its name in tables and plots.

        Raises
        ------
        InputError
            if the cluster keeps no record
        """
        if self.chunks is not None:
            self.chunks.read_the_rest()
        self.core.record_submissions()
        notes = (
            *self.scheduler.policy.notes(self),
            *self.execution.notes(),
            *(self.calendar.failures.notes() if self.spec.failures else ()),
        )
        return self.result_of(self.core.recorder, name, self.report + Report(notes=notes))

    # ------------------------------------------------------------------ snapshots

    def check_copy(self) -> None:
        """Raise a :class:`SnapshotError` if a copy would lose work: jobs that are read, shared saves, claims."""
        self.check_whole()
        for job in self.execution.checkpoints.jobs():
            raise shares(job)
        self.core.check_copy()

    def arrivals(self) -> tuple[list[WorkState], list[ToCome]]:
        """Return the jobs to come, and the planned submissions, each with the position of its jobs, and cancellations.

        Raises
        ------
        SnapshotError
            if a job to come has a body
        """
        works: list[WorkState] = []
        coming = self.cancellations()
        for source in sorted((each for each in self.sources if each.pending), key=lambda source: source.order):
            jobs = source.state()
            at, rank, number = map(float, source.order)
            coming.append(ToCome(at, rank, int(number), "arrivals", (len(works), len(jobs))))
            works += jobs
        return works, coming

    def begin_with(self, snapshot: ClusterSnapshot) -> None:
        """Count the jobs of a snapshot from which it continues."""
        self._active = snapshot.unfinished
        self.submitted = max(snapshot.submitted, max(snapshot.rows, default=-1) + 1)
        self.offset = self.submitted - self._active

    def seen(self) -> ClusterSnapshot:
        """Return the state of the cluster as policies see it, without the jobs to come."""
        return self.snapshot(actual=False)

    def snapshot(self, *, actual: bool = True) -> ClusterSnapshot:
        """Return the state of the cluster as a plain value from which a simulation can continue.

        Best taken between events, after the decisions of the instant. With ``actual`` it includes all that is needed to
        continue exactly: actual run times, arrivals and failures. Without, it holds only the information available to
        policies (see :meth:`ClusterSnapshot.expected <simmodel.snapshots.cluster.ClusterSnapshot.expected>`).

        Raises
        ------
        SnapshotError
            if the memory of the policy does not consist of plain values; with ``actual`` also if a process holds or
            waits for part of the cluster, or a job has a body: generators cannot be copied

        >>> from simmodel import Cluster, Environment, Job
        >>> env = Environment()
        >>> cluster = Cluster(env, 4)
        >>> for _ in range(3): _ = cluster.submit(Job(processors=2, run=10, requested=20))
        >>> env.run(until=5)
        >>> cluster.snapshot()
        <ClusterSnapshot of cluster at 5 s: 2 running, 1 waiting, 0 to arrive>
        """
        from simmodel.systems.cluster.snapshots import capture

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
        """Return a cluster that continues from a snapshot.

        Parameters
        ----------
        env
            an environment at the time of the snapshot
        policy
            default: that of the snapshot; a policy of the same name inherits its memory
        record, rank
            as for the class

        Raises
        ------
        InputError
            if the environment is at another time, the policy is unknown or must be passed, or the snapshot is
            inconsistent

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
        from simmodel.systems.cluster.snapshots import restore

        return restore(Cluster, env, snapshot, policy, record=record, rank=rank)

    def _simulate(self, policy: PolicyLike, **options: Any) -> Any:
        from simmodel.systems.cluster.future.replay import simulate_from

        return simulate_from(self, policy, **options)


def _estimate(view: View, job: LiveJob, place: Pool) -> Estimate:
    """Estimate from the expected ends of running jobs, as if the job were next."""
    at, _ = place.profile().earliest(job, job.planned)
    return Estimate(at, 0.0, 0.0, job.planned)


@attrs.frozen(kw_only=True, repr=False)
class ClusterKind(Kind):
    """The kind of clusters; the platform may come from the log, and its number of processors may be replaced."""

    def of_nodes(self, spec: Any) -> frozenset[str]:
        """Return ``"cores"`` if all partitions have nodes, and ``"memory"`` if any of these has some."""
        if spec is None or not all(partition.nodes for partition in spec.partitions):
            return frozenset()
        memory = any(node.memory for partition in spec.partitions for node in partition.nodes)
        return frozenset({"cores", "memory"} if memory else {"cores"})

    def read_work(
        self, given: GivenWork, spec: Any, seed: int, inputs: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Submissions, Any]:
        """Return the submissions and the cluster's spec, by default that of the log.

        Jobs that request more time than they may are changed as ``too_long`` among the inputs says.
        """
        work = read_submissions("jobs", given, of_nodes=self.of_nodes(spec), seed=seed)
        assert isinstance(work, Logs)
        spec = self._completed(work, spec, inputs)
        return _within_limits(work, spec, inputs.get("too_long", "reject")), spec

    def _completed(self, work: Logs, spec: ClusterSpec | None, inputs: Mapping[str, Any]) -> ClusterSpec:
        processors = inputs.get("processors")
        if processors is not None:
            if isinstance(processors, bool) or not isinstance(processors, Integral) or int(processors) <= 0:
                raise InputError(f"must be a whole number > 0, got {processors!r}", place="processors")
            processors = int(processors)
        elif spec is None:
            log = work.logs[0].workload
            processors = log.processors
            if processors is None:
                raise NoProcessors(f"missing processors: log {log.name!r} does not specify those of its machine")
        if spec is None:
            assert processors is not None
            return ClusterSpec.simple(int(processors))
        return spec if processors is None else spec.with_processors(processors)


def _within_limits(work: Logs, spec: ClusterSpec, too_long: TooLong) -> Logs:
    if too_long == "reject":
        return work
    from simmodel.systems.cluster.time_limits import time_limits
    from simmodel.work.time_limits import within_limits

    logs = []
    for log in work.logs:
        if not isinstance(log.workload, Workload):
            raise InputError("must be 'reject' where a log is read in chunks (stream=)", place="too_long")
        jobs = within_limits(log.workload, time_limits(log.workload, spec), too_long)
        logs.append(attrs.evolve(log, workload=jobs))
    return Logs(logs)


CLUSTER = ClusterKind(
    name="cluster",
    spec=ClusterSpec,
    system=Cluster,
    snapshot="simmodel.snapshots.cluster:ClusterSnapshot",
    options=ClusterOptions,
    inputs=("processors", "too_long"),
    kept_inputs=("too_long",),
)
