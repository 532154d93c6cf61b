"""Restores a live cluster from a snapshot."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from simmodel.records.recorder import JobRecorder
from simmodel.resources.pools.claims import Grant
from simmodel.resources.pools.counts import COUNTED
from simmodel.resources.pools.windows import CapacityWindow, Purpose
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Past, WorkState, expected_end
from simmodel.systems.cluster.intake import Submission
from simmodel.systems.cluster.reservations import Reserved
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.policy_state import check_instant, chosen_policy, remember, restore_streams
from simmodel.work.job import History, Job, LiveJob, Run
from simmodel.work.malleable import MalleableJob

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.systems.cluster.intake import PlainJob

__all__ = ["Restored", "restore", "restoring"]


def restore(
    env: Environment, snapshot: ClusterSnapshot, policy: PolicyLike | None = None, *, record: bool = True, rank: int = 1
) -> Cluster:
    """Return a cluster that continues from a snapshot (see :meth:`Cluster.from_snapshot`)."""
    restored = restoring(env, snapshot, policy, record=record, rank=rank)
    if record:
        restored.cluster.keep_record(restored.recorder())
    return restored.cluster


def restoring(
    env: Environment,
    snapshot: ClusterSnapshot,
    policy: PolicyLike | None = None,
    *,
    record: bool = False,
    rank: int = 1,
    made: Mapping[int, LiveJob] = MappingProxyType({}),
    unplanned: Collection[int] = (),
) -> Restored:
    """Return a restoration whose cluster continues from a snapshot, and which can create its recorder.

    ``made``: live jobs of a system above, by number; ``unplanned``: the numbers of running jobs whose ends that system
    plans.
    """
    check_instant(env, snapshot)
    chosen = chosen_policy(snapshot, policy)
    cluster = Cluster(
        env,
        snapshot.platform,
        chosen,
        **snapshot.options.values(),
        name=snapshot.name,
        rank=rank,
        record=record,
        begin=False,
    )
    restored = Restored(cluster, snapshot, made, unplanned)
    restored.run()
    return restored


class Restored:
    """Restores the state of a new cluster from a snapshot, part by part.

    Attributes
    ----------
    cluster, snapshot
        the new cluster, and its snapshot
    runs, jobs
        the executions of running jobs; all other jobs by number
    """

    def __init__(
        self, cluster: Cluster, snapshot: ClusterSnapshot, made: Mapping[int, LiveJob], unplanned: Collection[int]
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
        works = cluster._active = sum(map(len, parts))
        intake = cluster.intake
        intake.submitted = max(snapshot.submitted, max(snapshot.rows, default=-1) + 1)
        intake.offset = intake.submitted - works
        restore_streams(cluster.env, snapshot)
        self._places()
        self._running()
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
                job.past = _history(past)
            yield job

    def _give_spec(self, job: LiveJob, spec: Job) -> None:
        job._job = spec
        job.watched = True
        job.request = job.place.request_of(spec)
        if spec.queue is not None and self.cluster.rules:
            job.rules = self.cluster.rules[str(spec.queue)]

    # ------------------------------------------------------------------ places and running jobs

    def _places(self) -> None:
        cluster = self.cluster
        for state in self.snapshot.places:
            pool = cluster.pools[state.name]
            pool.take_size(state.size)
            if state.down:
                pool.take_away(state.down)
                pool.drained = state.drained or pool.drained
            for start, end, what, begun, why in state.windows:
                window = CapacityWindow(start, end, what, cluster.calendar.purpose(pool, why) if why else Purpose())
                window.begun = begun
                insort(pool.windows, window)
            if state.windows:
                pool.altered()
            if state.open and isinstance(pool, Reserved):
                cluster.calendar.resume(pool, state.pending)

    def _running(self) -> None:
        cluster = self.cluster
        running, runs = self.snapshot.running, self.runs
        know = cluster.dependencies.known
        there: dict[Any, list[tuple[Run, int]]] = {place: [] for place in cluster.places}
        for each, job in zip(running, self._live([each.work for each in running]), strict=True):
            place = job.place
            if not each.released:
                grant = place.take(job, each.held)
            else:
                grant = COUNTED if each.held is None else _grant(each.held)
            run = Run(job, place, each.started, each.expected_end, grant)
            runs.append(run)
            if each.released:
                cluster.execution.release(run)
            else:
                there[place].append((run, job.width))
            job.state = "running"
            job.run = run
            job.started = each.started
            job.attempts = each.attempt
            know[job.id] = job
            if job.rules is not None:
                job.rules.runs(job)
            cluster.execution.malleable += job.elastic is not None
        for place, held in there.items():
            place.running.fill(held)
        cluster.places[0].consumables.restore(self.snapshot.consumables)

    # ------------------------------------------------------------------ waiting jobs

    def _waiting(self) -> None:
        cluster, snapshot, jobs = self.cluster, self.snapshot, self.jobs
        queueing = cluster.queueing
        queues = queueing.queues
        choices = {choice.number: [cluster.pools[name] for name in choice.places] for choice in snapshot.choices}
        waiting = list(self._live(snapshot.waiting))
        for job in waiting:
            jobs[job.seq] = job
            if job.seq in choices:
                queueing.join(job, choices[job.seq])
            else:
                queues[job.place].add(job)
            if job.rules is not None:
                job.rules.waits(job)
        for state, works in (("held", snapshot.held), ("blocked", snapshot.blocked)):
            for job in self._live(works):
                jobs[job.seq] = job
                job.state = state
                if state == "held":
                    job.rules.held.append(job)
        if self.own:
            cluster.view.waiting.forget_new()
            for number in snapshot.new:
                job = jobs[number]
                for entry in queueing.choices.get(job, (job,)):
                    queueing.queues[entry.place].new.append(entry)
        cluster.dependencies.restore(
            list(jobs.values()),
            [(other, what, jobs[n], which) for other, what, n, which in snapshot.waits],
            snapshot.over,
        )

    def _usages(self) -> None:
        records = list(self.snapshot.usage)
        for usage in self.cluster.core.usages:
            same = [record for record in records if record[0] == usage.half_life]
            if same:
                records.remove(same[0])
                usage.by_user.update({user: (used, held, since) for user, used, held, since in same[0][1]})
            else:
                for run in self.runs:
                    usage.change(run.job.user, run.job.processors, self.snapshot.now)

    # ------------------------------------------------------------------ planned events

    def _plans(self) -> None:
        cluster, snapshot = self.cluster, self.snapshot
        self._expected_ends()
        calendar, jobs = cluster.calendar, self.jobs
        arrivals = snapshot.arrivals
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
                row, report = self.snapshot.rows[work.number], cluster.report
                cluster.intake.expect_one(Submission(at, row, work.number, work.spec, report))
            elif what == "cancel":
                cluster.intake.cancel_at(running[about[0]], at)
            elif what == "eligible":
                cluster.dependencies.think_again(jobs[about[0]], at)
            elif what == "alarm":
                if self.own:
                    cluster.scheduler.plan_alarm(at)
            elif what in ("begin", "over", "told") and isinstance(about[1], int):
                pool = cluster.pools[about[0]]
                pool.plan_window(pool.windows[about[1]], what, at)
            else:
                calendar.plan(at, what, *about)

    def _expected_ends(self) -> None:
        """Plan the expected ends of running jobs whose actual ends are unknown."""
        now = self.snapshot.now
        missing = [
            run
            for run, each in zip(self.runs, self.snapshot.running, strict=True)
            if each.end is None and run.job.seq not in self.unplanned
        ]
        for run in sorted(missing, key=attrgetter("expected_end")):
            end = expected_end(now, run.expected_end)
            if end != run.expected_end:
                run.job._duration = (end - run.started) * run.place.speed_of(run.job, run.grant.nodes)
            if end < inf:
                self.cluster.execution.plan_end(run, end)


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
        work.outcome == "timeout",
        work.unrequested,
        work.elastic,
    )


def _history(past: Past) -> History:
    """Return the live history of a job."""
    history = History()
    history.eligible = past.eligible
    history.first_start = past.first_start
    history.attempt_start = past.attempt_start
    history.last_start = past.last_start
    history.executed = past.executed
    if past.whole is not None:
        requested, expected, duration = past.whole
        history._whole = requested, expected, expected if duration is None else duration
    if past.resumes is not None:
        history.resumes = COUNTED if past.resumes is True else _grant(past.resumes)
    if past.bound is not None:
        history.bound = _grant(past.bound)
    history.kept = past.kept
    return history


def _grant(held: Any) -> Grant:
    return Grant(held.processors, tuple(held.nodes.tolist()), held)
