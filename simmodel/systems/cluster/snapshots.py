"""Snapshots of a live cluster, taken and continued: its parts hand over their states, and take them back, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import inf
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simmodel.environment import ToCome
from simmodel.foundation.errors import SnapshotError
from simmodel.records.recorder import JobRecorder
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Planned, Wait, WorkState, expected_plans, seen_work
from simmodel.systems.cluster.intake import PlainArrivals, Submission
from simmodel.systems.job_states import history_of, past_of, work_of
from simmodel.systems.policy_state import (
    check_instant,
    chosen_policy,
    policy_state,
    remember,
    restore_streams,
    stream_states,
)
from simmodel.work.job import Job, LiveJob, Run
from simmodel.work.malleable import MalleableJob
from simmodel.work.prepare import planned_seconds
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.environment import Environment
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.platform.options import ClusterOptions
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import View
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.systems.cluster.calendar import Calendar
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.execution import JobExecution
    from simmodel.systems.cluster.intake import Intake, PlainJob
    from simmodel.systems.cluster.queueing import Queueing
    from simmodel.systems.cluster.run_times import Predictions
    from simmodel.systems.dependencies import Dependencies

__all__ = ["LiveCluster", "capture", "restore", "to_come"]

_ORDER = itemgetter(0, 1, 2)


class LiveCluster(Protocol):
    """A :class:`~simmodel.systems.cluster.system.Cluster` as its snapshots and its simulated futures see it."""

    env: Environment
    spec: ClusterSpec
    name: str
    options: ClusterOptions
    core: ClusterCore
    pools: dict[str, Pool]
    places: tuple[Pool, ...]
    queueing: Queueing
    dependencies: Dependencies
    intake: Intake
    execution: JobExecution
    scheduler: Scheduler
    view: View
    predictions: Predictions | None

    @property
    def calendar(self) -> Calendar:
        """The part that carries out its outages, failures and reservations."""

    @property
    def submitted(self) -> int:
        """Number of submitted and arriving jobs."""

    @property
    def rules(self) -> Mapping[str, Any]:
        """The limits of its queues, by name."""

    def present(self) -> Iterator[LiveJob]:
        """Yield the jobs that run or wait."""

    def count_coming(self, jobs: int, /) -> None:
        """Count jobs that have not ended."""

    def live(self, spec: Job, /) -> tuple[LiveJob, str | None]:
        """Return the live job of a request, and why it can never run or ``None``."""

    def idle(self) -> Event:
        """Return an event that is triggered once all work has ended."""

    def forget_ended(self) -> None:
        """Forget the work that has ended."""

    def snapshot(self, *, actual: bool = True) -> ClusterSnapshot:
        """Return its state, or the part of it that policies see."""

    def from_snapshot(
        self, env: Environment, snapshot: ClusterSnapshot, policy: PolicyLike | None = None, *, record: bool = True
    ) -> LiveCluster:
        """Return a cluster that continues from a snapshot."""


C = TypeVar("C", bound=LiveCluster)


def capture(cluster: LiveCluster, actual: bool, *, predictor: bool = True) -> ClusterSnapshot:
    """Return the snapshot of a cluster; unless ``actual``, it holds only the information available to policies.

    ``predictor``: whether to save the learned state of its predictor, without which no more jobs may arrive.
    """
    env = cluster.env
    now = float(env._now)
    work_of = _actual if actual else _seen
    if actual:
        _refuse_claims(cluster)
    running, ends = cluster.execution.state(work_of, ends=actual)
    coming = [*cluster.calendar.to_come(), *cluster.dependencies.to_come(), *cluster.scheduler.to_come(), *ends]
    arrivals: list[WorkState] = []
    if actual:
        coming += cluster.intake.cancellations()
        arrivals = _arrivals(cluster, coming)
    planned = [Planned(at, priority, what, about) for at, priority, _, what, about in sorted(coming, key=_ORDER)]
    held = [work_of(job) for job in cluster.queueing.held()]
    waiting = [work_of(job) for job in cluster.view.waiting]
    blocked = [work_of(job) for job in cluster.dependencies.blocked_jobs()]
    new, choices = cluster.queueing.state()
    submitted = cluster.submitted
    if not actual:
        planned = expected_plans(planned, cluster.spec, now, actual=False)
        known = (*[run.work.number for run in running], *[work.number for work in (*waiting, *held, *blocked)])
        submitted = max(known, default=-1) + 1
    predictions = cluster.predictions if predictor else None
    needed = [each.job for work in arrivals if work.spec is not None for each in work.spec.dependencies]
    return ClusterSnapshot(
        name=cluster.name,
        now=now,
        seed=env.seed if actual else 0,
        platform=cluster.spec,
        options=cluster.options,
        policy=policy_state(cluster.scheduler),
        running=running,
        waiting=tuple(waiting),
        held=tuple(held),
        blocked=tuple(blocked),
        new=new,
        arrivals=tuple(arrivals),
        places=cluster.calendar.state(actual=actual),
        consumables=cluster.places[0].consumables.state(),
        waits=_waits(cluster) if blocked else (),
        over=tuple(cluster.dependencies.ended(needed)),
        usage=tuple(usage.state() for usage in cluster.core.usages),
        streams=stream_states(env, f"{cluster.name}.") if actual else (),
        planned=tuple(planned),
        submitted=submitted,
        choices=choices,
        prediction=None if predictions is None else predictions.state(cluster.present()),
    )


def _refuse_claims(cluster: LiveCluster) -> None:
    if cluster.intake.chunks is not None:
        raise SnapshotError(f"{cluster.name} cannot be copied: it reads its workload in chunks")
    for job in cluster.execution.checkpoints.jobs():
        raise _shares(job)
    cluster.core.io.check_copy()
    for pool in cluster.places:
        for claim in (*pool.claims.waiting, *pool.claims.held):
            who = f"process {claim.process.name}" if claim.process is not None else "an unknown process"
            raise SnapshotError(f"{who}, which has {claim.describe()}, cannot be copied: it is a generator")


def _whole(job: LiveJob) -> WorkState:
    """Return the snapshot state of a job, cached until the job changes."""
    if job._work is None:
        job._work = work_of(job, past_of(job))
    return job._work  # type: ignore[no-any-return]


def _actual(job: LiveJob) -> WorkState:
    if job._job is not None and job._job.has_body:
        raise SnapshotError(
            f"job {job.id} cannot be copied: {job._job.program} (snapshot(actual=False) has what policies know of it)"
        )
    if job.history is not None and job.history.progress is not None:  # suspended
        raise _shares(job)
    return _whole(job)


def _shares(job: LiveJob) -> SnapshotError:
    """Return the error of a job that is in the midst of an execution whose end depends on who else saves."""
    assert job._job is not None
    assert job._job.checkpoint is not None
    return SnapshotError(
        f"job {job.id} cannot be copied before it ends: it saves to {job._job.checkpoint.to}, which others share "
        "(snapshot(actual=False) has what policies know of it)"
    )


def _seen(job: LiveJob) -> WorkState:
    if job._seen is None:
        job._seen = seen_work(_whole(job))
    return job._seen  # type: ignore[no-any-return]


def _arrivals(cluster: LiveCluster, coming: list[ToCome]) -> list[WorkState]:
    """Return the jobs that have not been submitted; add the position of each source's jobs to ``coming``."""
    works: list[WorkState] = []
    intake, core = cluster.intake, cluster.core
    found: list[tuple[float, float, float, PlainArrivals | Submission]] = [
        *((*source.order, source) for source in intake.sources if source.pending),
        *((call.at, call.priority, call.number, each) for call, each in intake.submissions.items()),
    ]
    for at, priority, number, source in sorted(found, key=_ORDER):
        first = len(works)
        if isinstance(source, PlainArrivals):
            works += _plain_works(source, core)
            coming.append(ToCome(at, priority, number, "arrivals", (first, len(works) - first)))
        else:
            works.append(_submission(cluster, source))
            coming.append(ToCome(at, priority, number, "submission", (first,)))
    return works


def _plain_works(source: PlainArrivals, core: ClusterCore) -> Iterator[WorkState]:
    assert core.only_pool is not None
    place = core.only_pool.name
    numbers = source.numbers
    for row, submit, processors, planned, expected, duration, name, user, outcome, blind, more in source.left():
        number = row if numbers is None else numbers[row]
        spec = elastic = None
        if isinstance(more, float):  # cancelled while it waited
            limit = None if planned == inf else planned
            spec = Job(id=name, submit=submit, processors=processors, requested=limit, user=user, cancel=more)
        else:
            elastic = more
        about = name, number, submit, processors, planned, expected, duration, user, 0.0, place, outcome or "completed"
        yield WorkState(*about, spec, elastic=elastic, unrequested=blind)


def to_come(cluster: LiveCluster) -> Iterator[tuple[int | str, float]]:
    """Yield the ids of the jobs that have not been submitted, each with the instant of its submission (s)."""
    intake = cluster.intake
    for source in intake.sources:
        yield from ((name, at) for _, at, _, _, _, _, name, *_ in source.left())
    for call, submission in intake.submissions.items():
        yield _id_of(submission), float(call.at)


def _id_of(submission: Submission) -> int | str:
    spec = submission.job
    return spec.id if spec.id is not None else spec.name or submission.number + 1


def _submission(cluster: LiveCluster, submission: Submission) -> WorkState:
    spec = submission.job
    number = submission.number
    name = _id_of(submission)
    if spec.has_body:
        raise SnapshotError(f"job {name} (not yet submitted) cannot be copied: {spec.program}")
    run = cluster.core.io.timed_job(spec).seconds()
    limit = spec.requested if spec.requested is not None else run
    seconds = planned_seconds(run, limit, cluster.core.estimates, cluster.core.overrun)
    planned, expected, duration = map(float, seconds if spec.traffic is None else (limit, limit, run))
    unrequested = spec.requested is None and cluster.core.estimates == "requested"
    about = name, number, submission.at, spec.processors, planned, expected, duration, spec.user
    return WorkState(*about, spec=spec, unrequested=unrequested)


def _waits(cluster: LiveCluster) -> tuple[Wait, ...]:
    found = [(job.submit, job.seq, which, other, what) for job, which, other, what in cluster.dependencies.waits()]
    return tuple(Wait(other, what, number, which) for _, number, which, other, what in sorted(found, key=_ORDER))


def restore(
    make: Callable[..., C],
    env: Environment,
    snapshot: ClusterSnapshot,
    policy: PolicyLike | None = None,
    *,
    record: bool = True,
    rank: int = 1,
    made: Mapping[int, LiveJob] = MappingProxyType({}),
    unplanned: Collection[int] = (),
) -> C:
    """Return a cluster that continues from a snapshot (see ``Cluster.from_snapshot``); ``make``: its class.

    ``made``: live jobs of a system above, by number; ``unplanned``: the numbers of running jobs whose ends that system
    plans.
    """
    check_instant(env, snapshot)
    chosen = chosen_policy(snapshot, policy)
    about = {"name": snapshot.name, "rank": rank, "record": record, "begin": False}
    cluster = make(env, snapshot.platform, chosen, **snapshot.options.values(), **about)
    restored = _Restored(cluster, snapshot, made, unplanned)
    restored.run()
    if record:
        cluster.core.hear(restored.recorder())
    return cluster


class _Restored:
    """Restores the state of a new cluster from a snapshot, part by part.

    Attributes
    ----------
    cluster, snapshot
        the new cluster, and its snapshot
    runs, jobs
        the executions of running jobs; all other jobs by number
    """

    def __init__(
        self, cluster: LiveCluster, snapshot: ClusterSnapshot, made: Mapping[int, LiveJob], unplanned: Collection[int]
    ) -> None:
        self.cluster = cluster
        self.snapshot = snapshot
        self.made = made
        self.unplanned = unplanned
        self.jobs: dict[int, LiveJob] = {}  # not running, by number
        self.own = cluster.scheduler.policy_name == snapshot.policy.name
        self.runs: list[Run] = []

    def run(self) -> None:
        """Restore all parts."""
        cluster, snapshot = self.cluster, self.snapshot
        parts = snapshot.running, snapshot.waiting, snapshot.held, snapshot.blocked, snapshot.arrivals
        works = sum(map(len, parts))
        cluster.count_coming(works)
        intake = cluster.intake
        intake.submitted = max(snapshot.submitted, max(snapshot.rows, default=-1) + 1)
        intake.offset = intake.submitted - works
        restore_streams(cluster.env, snapshot)
        cluster.calendar.restore(snapshot.places)
        running = snapshot.running
        self.runs = cluster.execution.restore(running, self._live([each.work for each in running]))
        cluster.places[0].consumables.restore(snapshot.consumables)
        self._waiting()
        self._usages()
        self._plans()
        if snapshot.prediction is not None and cluster.predictions is not None:
            jobs = (*(run.job for run in self.runs), *self.jobs.values())
            cluster.predictions.restore(snapshot.prediction, jobs, self.runs)
        remember(cluster.scheduler, snapshot.policy)

    def recorder(self) -> JobRecorder:
        """Return a recorder that begins now and has the running and waiting jobs."""
        recorder = JobRecorder(self.cluster.env, late=False, places=self.cluster.places)
        recorder.since = float(self.snapshot.now)
        recorder.expect(self.snapshot.columns)
        recorder.carry_over([run.job for run in self.runs])
        recorder.carry_over(self.jobs.values())
        return recorder

    def _live(self, works: Iterable[WorkState]) -> Iterator[LiveJob]:
        """Yield the live jobs of saved states (hot path)."""
        core, rows = self.cluster.core, self.snapshot.rows
        only, pools, watched = core.only_pool, core.pools, bool(core.usages)
        made = self.made
        for work in works:
            name, number, submit, size, requested, expected, seconds, user, priority, place = work[:10]
            outcome, spec, past, elastic, unrequested = work[10:]
            if spec is not None:
                elastic = spec.elastic
            duration = expected if seconds is None else seconds
            if number in made:
                job = made[number]
                job.index, job.submit = rows[number], submit
                job.plan(requested, expected, duration)
            else:
                kind = LiveJob if elastic is None else MalleableJob
                job = kind(name, rows[number], submit, size, requested, expected, duration)
            job.seq = number
            job.user = user
            job.priority = priority
            job._outcome = outcome
            job.place = only or pools[place]
            job.watched = watched
            job.unrequested = unrequested
            if seconds is None:
                job._seen = work
            else:
                job._work = work
            if spec is not None:
                self._give_spec(job, spec)
            if elastic is not None and isinstance(job, MalleableJob):
                job.elastic, job.watched = elastic, True
                job.resume_at(size)
            if past is not None:
                job.attempts = past.attempts
                job.started = past.last_start
                job.history = history_of(past)
            yield job

    def _give_spec(self, job: LiveJob, spec: Job) -> None:
        job._job = spec
        job.watched = True
        job.request = job.place.request_of(spec)
        if spec.queue is not None and self.cluster.rules:
            job.rules = self.cluster.rules[str(spec.queue)]

    def _waiting(self) -> None:
        cluster, snapshot = self.cluster, self.snapshot
        waiting, held, blocked = map(list, map(self._live, (snapshot.waiting, snapshot.held, snapshot.blocked)))
        self.jobs = jobs = {job.seq: job for job in (*waiting, *held, *blocked)}
        cluster.queueing.restore(waiting, held, snapshot.choices)
        for job in blocked:
            job.state = "blocked"
        if self.own:
            cluster.queueing.restore_new([jobs[number] for number in snapshot.new])
        waits = [(other, what, jobs[n], which) for other, what, n, which in snapshot.waits]
        cluster.dependencies.restore(list(jobs.values()), waits, snapshot.over)

    def _usages(self) -> None:
        records = list(self.snapshot.usage)
        for usage in self.cluster.core.usages:
            same = [record for record in records if record[0] == usage.half_life]
            if same:
                records.remove(same[0])
                usage.restore(same[0][1])
            else:
                for run in self.runs:
                    usage.change(run.job.user, run.job.processors, self.snapshot.now)

    # ------------------------------------------------------------------ planned events

    def _plans(self) -> None:
        cluster, snapshot, jobs = self.cluster, self.snapshot, self.jobs
        cluster.execution.expect_ends(
            run
            for run, each in zip(self.runs, snapshot.running, strict=True)
            if each.end is None and run.job.seq not in self.unplanned
        )
        arrivals, report = snapshot.arrivals, Report()
        cluster.intake.reports.append(report)
        running = {**{job.seq: job for job in (run.job for run in self.runs)}, **jobs}
        for at, _, what, about in snapshot.planned:
            if what == "end":
                cluster.execution.plan_end(self.runs[about[0]], at)
            elif what == "arrivals":
                first, count = about
                works = arrivals[first : first + count]
                numbers = {snapshot.rows[work.number]: work.number for work in works}
                rows = [_plain_job(work, row) for work, row in zip(works, numbers, strict=True)]
                cluster.intake.expect([rows] if rows else [], numbers)
            elif what == "submission":
                work = arrivals[about[0]]
                assert work.spec is not None
                row = snapshot.rows[work.number]
                cluster.intake.expect_one(Submission(at, row, work.number, work.spec, report))
            elif what == "cancel":
                cluster.intake.cancel_at(running[about[0]], at)
            elif what == "eligible":
                cluster.dependencies.think_again(jobs[about[0]], at)
            elif what == "alarm":
                if self.own:
                    cluster.scheduler.plan_alarm(at)
            else:
                cluster.calendar.plan_again(at, what, *about)


def _plain_job(work: WorkState, row: int) -> PlainJob:
    """Return a job of a log that is still to be submitted, with its row in the record."""
    return (
        row,
        work.submit,
        work.processors,
        work.requested,
        work.expected,
        work.expected if work.duration is None else work.duration,
        work.id,
        work.user,
        None if work.outcome == "completed" else work.outcome,
        work.unrequested,
        work.elastic if work.spec is None or work.spec.cancel is None else float(work.spec.cancel),
    )
