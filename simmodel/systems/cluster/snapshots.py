"""Snapshots of a live cluster, taken and continued: its parts hand over their states, and take them back, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from simmodel.records.recorder import JobRecorder
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Planned, WorkState, expected_plans
from simmodel.systems.cluster.intake import LiveCluster, LogArrivals
from simmodel.systems.job_states import actual_state, history_of, seen_state
from simmodel.systems.policy_state import (
    check_instant,
    chosen_policy,
    policy_state,
    remember,
    restore_streams,
    stream_states,
)
from simmodel.work.job import LiveJob, Run
from simmodel.work.malleable import MalleableJob

if TYPE_CHECKING:
    from simmodel.environment import Environment, ToCome
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["capture", "restore"]

C = TypeVar("C", bound=LiveCluster)


def capture(cluster: LiveCluster, actual: bool, *, predictor: bool = True) -> ClusterSnapshot:
    """Return the snapshot of a cluster; unless ``actual``, it holds only the information available to policies.

    ``predictor``: whether to save the learned state of its predictor, without which no more jobs may arrive.
    """
    now, work_of = float(cluster.env._now), actual_state if actual else seen_state
    arrivals: list[WorkState] = []
    coming: list[ToCome] = []
    if actual:
        cluster.check_copy()
        arrivals, coming = cluster.arrivals()
    running, ends = cluster.execution.state(work_of, ends=actual)
    waiting, held, new, choices = cluster.queueing.state(work_of)
    blocked, waits, over = cluster.dependencies.state(work_of, arrivals)
    coming += [*cluster.calendar.to_come(), *cluster.dependencies.to_come(), *cluster.scheduler.to_come(), *ends]
    planned = [Planned(at, rank, what, about) for at, rank, _, what, about in sorted(coming, key=itemgetter(0, 1, 2))]
    submitted = cluster.submitted
    if not actual:
        planned = expected_plans(planned, cluster.spec, now, actual=False)
        known = (*[run.work.number for run in running], *[work.number for work in (*waiting, *held, *blocked)])
        submitted = max(known, default=-1) + 1
    predictions = cluster.predictions if predictor else None
    return ClusterSnapshot(
        name=cluster.name,
        now=now,
        seed=cluster.env.seed if actual else 0,
        platform=cluster.spec,
        options=cluster.options,
        policy=policy_state(cluster.scheduler),
        running=running,
        waiting=waiting,
        held=held,
        blocked=blocked,
        new=new,
        arrivals=tuple(arrivals),
        places=cluster.calendar.state(actual=actual),
        consumables=cluster.places[0].consumables.state(),
        waits=waits,
        over=over,
        usage=tuple(usage.state() for usage in cluster.core.usages),
        streams=stream_states(cluster.env, f"{cluster.name}.") if actual else (),
        planned=tuple(planned),
        submitted=submitted,
        choices=choices,
        prediction=None if predictions is None else predictions.state(cluster.present()),
    )


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
    about = {"name": snapshot.name, "rank": rank, "record": record, "begin": False}
    cluster = make(env, snapshot.platform, chosen_policy(snapshot, policy), **snapshot.options.values(), **about)
    live, own = partial(_live, cluster, snapshot, made), cluster.scheduler.policy_name == snapshot.policy.name
    cluster.begin_with(snapshot)
    restore_streams(env, snapshot)
    cluster.calendar.restore(snapshot.places)
    runs = cluster.execution.restore(snapshot.running, live([each.work for each in snapshot.running]))
    cluster.places[0].consumables.restore(snapshot.consumables)
    waiting, held, blocked = map(list, map(live, (snapshot.waiting, snapshot.held, snapshot.blocked)))
    others = [*waiting, *held, *blocked]
    cluster.queueing.restore(waiting, held, snapshot.new if own else None, snapshot.choices)
    cluster.dependencies.restore(others, blocked, snapshot.waits, snapshot.over)
    cluster.core.restore_usages(snapshot.usage, runs, snapshot.now)
    unknown = [run for run, each in zip(runs, snapshot.running, strict=True) if each.end is None and not each.boots]
    cluster.execution.expect_ends(run for run in unknown if run.job.seq not in unplanned)
    _plan(cluster, snapshot, runs, others, own)
    jobs = [*(run.job for run in runs), *others]
    if snapshot.prediction is not None and cluster.predictions is not None:
        cluster.predictions.restore(snapshot.prediction, jobs, runs)
    remember(cluster.scheduler, snapshot.policy)
    for job in () if own else cluster.dependencies.held():  # by another policy
        cluster.dependencies.release(job)
        cluster.queueing.enqueue(job)
    if record:
        recorder = JobRecorder(env, late=False, places=cluster.places)
        recorder.since = float(snapshot.now)
        recorder.expect(snapshot.columns)
        recorder.carry_over(jobs)
        cluster.core.hear(recorder)
        for pool in cluster.places:
            if pool.sleeping is not None:
                pool.sleeping.retell()
    return cluster


def _plan(cluster: LiveCluster, snapshot: ClusterSnapshot, runs: list[Run], others: list[LiveJob], own: bool) -> None:
    """Plan the events of a snapshot again; ``own``: also those of the policy."""
    jobs = {job.seq: job for job in (*(run.job for run in runs), *others)}
    for at, _, what, about in snapshot.planned:
        if what == "end":
            cluster.execution.plan_end(runs[about[0]], at)
        elif what in ("arrivals", "submission"):
            first, count = (*about, 1)[:2]
            works = snapshot.arrivals[first : first + count]
            cluster.sources.append(LogArrivals.restored(cluster, works, snapshot.rows))
        elif what == "cancel":
            cluster.cancel_at(jobs[about[0]], at)
        elif what == "eligible":
            cluster.dependencies.think_again(jobs[about[0]], at)
        elif what == "alarm":
            if own:
                cluster.scheduler.plan_alarm(at)
        else:
            cluster.calendar.plan_again(at, what, *about)


def _live(
    cluster: LiveCluster, snapshot: ClusterSnapshot, made: Mapping[int, LiveJob], works: Iterable[WorkState]
) -> Iterator[LiveJob]:
    """Yield the live jobs of saved states (hot path)."""
    core, rows, rules = cluster.core, snapshot.rows, cluster.rules
    only, pools, watched = core.only_pool, core.pools, bool(core.usages)
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
            job._job, job.watched, job.request = spec, True, job.place.request_of(spec)
            if spec.queue is not None and rules:
                job.rules = rules[str(spec.queue)]
        if elastic is not None and isinstance(job, MalleableJob):
            job.elastic, job.watched = elastic, True
            job.resume_at(size)
        if past is not None:
            job.attempts = past.attempts
            job.started = past.last_start
            job.history = history_of(past)
        if job.place.power is not None:
            job.place.power.count(job)
        yield job
