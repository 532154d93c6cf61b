"""Takes the snapshot of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from simmodel.environment import ToCome
from simmodel.foundation.errors import SnapshotError
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import (
    Choice,
    Past,
    PlaceState,
    Planned,
    RunningWork,
    Wait,
    Whole,
    WindowState,
    WorkState,
    expected_plans,
    seen_work,
)
from simmodel.systems.cluster.intake import PlainArrivals
from simmodel.systems.job_states import work_of
from simmodel.systems.policy_state import policy_state, stream_states
from simmodel.work.prepare import planned_seconds

if TYPE_CHECKING:
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.intake import Submission
    from simmodel.systems.cluster.system import Cluster
    from simmodel.work.job import LiveJob

__all__ = ["capture", "to_come"]

_START = itemgetter(1)
_ORDER = itemgetter(0, 1, 2)


def capture(cluster: Cluster, actual: bool, *, predictor: bool = True) -> ClusterSnapshot:
    """Return the snapshot of a cluster; unless ``actual``, it holds only the information available to policies.

    ``predictor``: whether to save what its predictor has learned, without which no more jobs may arrive.
    """
    env = cluster.env
    now = float(env._now)
    work_of = _actual if actual else _seen
    runs = [entry[3] for pool in cluster.places for entry in sorted(pool.running.entries(), key=_START)]
    ends: dict[Any, float] = {}
    arrivals: list[WorkState] = []
    coming = _known_to_come(cluster)
    if actual:
        _refuse_claims(cluster)
        endings = sorted(cluster.execution.endings(), key=_ORDER)
        ends = {ending.run: ending.at for ending in endings}
        runs += [run for run in ends if run.released]
        rows = {run: row for row, run in enumerate(runs)}
        coming += [ToCome(*ending[:3], "end", (rows[ending.run],)) for ending in endings]
        coming += cluster.intake.cancellations()
        arrivals = _arrivals(cluster, coming)
    running = tuple([_running(run, work_of(run.job), ends.get(run)) for run in runs])
    planned = [Planned(at, priority, what, about) for at, priority, _, what, about in sorted(coming, key=_ORDER)]
    blocked = cluster.dependencies.blocked_jobs()
    held = [work_of(job) for job in cluster.queueing.held()]
    waiting = [work_of(job) for job in cluster.view.waiting]
    blocked_work = [work_of(job) for job in blocked]
    submitted = cluster.submitted
    if not actual:
        planned = expected_plans(planned, cluster.spec, now, actual=False)
        known = (*[run.work.number for run in running], *[work.number for work in (*waiting, *held, *blocked_work)])
        submitted = max(known, default=-1) + 1
    predictions = cluster.predictions if predictor else None
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
        blocked=tuple(blocked_work),
        new=tuple([job.seq for job in cluster.view.waiting.new if job.state == "waiting"]),
        arrivals=tuple(arrivals),
        places=tuple([_place(cluster, pool, actual) for pool in cluster.places]),
        consumables=tuple((name, float(free)) for name, free in cluster.places[0].consumables.free.items()),
        waits=_waits(cluster) if blocked else (),
        over=tuple(
            cluster.dependencies.ended(
                each.job for work in arrivals if work.spec is not None for each in work.spec.dependencies
            )
        ),
        usage=tuple(
            (
                float(usage.half_life),
                tuple((user, float(a), float(b), float(at)) for user, (a, b, at) in usage.by_user.items()),
            )
            for usage in cluster.core.usages
        ),
        streams=stream_states(env, f"{cluster.name}.") if actual else (),
        planned=tuple(planned),
        submitted=submitted,
        choices=tuple(
            Choice(job.seq, tuple(entry.place.name for entry in entries))
            for job, entries in cluster.queueing.choices.items()
            if job is entries[0]
        ),
        prediction=None if predictions is None else predictions.state(cluster.present()),
    )


def _known_to_come(cluster: Cluster) -> list[ToCome]:
    """Return the pending events of the calendar, of think times and of the policy's alarms."""
    return [*cluster.calendar.to_come(), *cluster.dependencies.to_come(), *cluster.scheduler.to_come()]


def _refuse_claims(cluster: Cluster) -> None:
    if cluster.chunks is not None:
        raise SnapshotError(f"{cluster.name} cannot be copied: it reads its workload in chunks")
    for job in cluster.execution.checkpoints.jobs():
        raise _shares(job)
    cluster.core.io.check_copy()
    for pool in cluster.places:
        for claim in (*pool.claims_waiting, *pool.claims_held):
            who = f"process {claim.process.name}" if claim.process is not None else "an unknown process"
            raise SnapshotError(f"{who}, which has {claim.describe()}, cannot be copied: it is a generator")


# ---------------------------------------------------------------------- jobs


def _work(job: LiveJob) -> WorkState:
    """Return the snapshot state of a job, cached until the job changes."""
    if job._work is None:
        job._work = work_of(job, _past(job))
    return job._work  # type: ignore[no-any-return]


def _past(job: LiveJob) -> Past | None:
    past, attempts = job.past, job.attempts - (job.run is not None)
    if past is None:
        return Past(attempts) if attempts else None
    whole = None if past._whole is None else Whole(*map(float, past._whole))
    return Past(
        attempts,
        past.eligible,
        past.first_start,
        past.attempt_start,
        past.last_start,
        past.executed,
        whole,
        None if not past.resumes else past.resumes.allocation or True,
        None if past.bound is None else past.bound.allocation,
        past.kept,
    )


def _actual(job: LiveJob) -> WorkState:
    if job._job is not None and job._job.has_body:
        raise SnapshotError(
            f"job {job.id} cannot be copied: {job._job.program} (snapshot(actual=False) has what policies know of it)"
        )
    if job.past is not None and job.past.progress is not None:  # suspended
        raise _shares(job)
    return _work(job)


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
        job._seen = seen_work(_work(job))
    return job._seen  # type: ignore[no-any-return]


def _running(run: Any, work: WorkState, end: float | None) -> RunningWork:
    attempt = max(1, run.job.attempts)
    return RunningWork(
        work,
        float(run.started),
        float(run.expected_end),
        end,
        run.grant.allocation,
        attempt,
        getattr(run, "released", False),
    )


def _arrivals(cluster: Cluster, coming: list[ToCome]) -> list[WorkState]:
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
    for row, submit, processors, planned, expected, duration, name, user, cut, blind, elastic in source.left():
        number = row if numbers is None else numbers[row]
        outcome = "timeout" if cut else "completed"
        asked = number, submit, processors, planned, expected, duration
        yield WorkState(name, *asked, user, 0.0, place, outcome, elastic=elastic, unrequested=blind)


def to_come(cluster: Cluster) -> Iterator[tuple[int | str, float]]:
    """Yield the ids of the jobs that have not been submitted, each with the instant of its submission (s)."""
    intake = cluster.intake
    for source in intake.sources:
        yield from ((name, at) for _, at, _, _, _, _, name, *_ in source.left())
    for call, submission in intake.submissions.items():
        yield _id_of(submission), float(call.at)


def _id_of(submission: Submission) -> int | str:
    spec = submission.job
    return spec.id if spec.id is not None else spec.name or submission.number + 1


def _submission(cluster: Cluster, submission: Submission) -> WorkState:
    spec = submission.job
    number = submission.number
    name = _id_of(submission)
    if spec.has_body:
        raise SnapshotError(f"job {name} (not yet submitted) cannot be copied: {spec.program}")
    assert spec.run is not None
    run = cluster.core.io.timed_job(spec).seconds()
    limit = spec.requested if spec.requested is not None else run
    seconds = planned_seconds(run, limit, cluster.core.estimates, cluster.core.overrun)
    planned, expected, duration = map(float, seconds)
    unrequested = spec.requested is None and cluster.core.estimates == "requested"
    about = name, number, submission.at, spec.processors, planned, expected, duration, spec.user
    return WorkState(*about, spec=spec, unrequested=unrequested)


def _waits(cluster: Cluster) -> tuple[Wait, ...]:
    found = [(job.submit, job.seq, which, other, what) for job, which, other, what in cluster.dependencies.waits()]
    return tuple(Wait(other, what, number, which) for _, number, which, other, what in sorted(found, key=_ORDER))


# ---------------------------------------------------------------------- places


def _place(cluster: Cluster, pool: Any, actual: bool) -> PlaceState:
    windows = []
    for window in pool.windows:
        if actual and window.purpose.tell is not None and not window.why:
            raise SnapshotError(f"{window!r} of {pool.name} cannot be copied: it calls a function but has no reason")
        what = window.what if isinstance(window.what, int) else tuple(map(int, window.what))
        windows.append(WindowState(float(window.start), float(window.end), what, window.begun, window.why))
    reserved = pool.part_of is not None
    is_open = reserved and cluster.calendar.is_open(pool)
    pending = cluster.calendar.pending(pool) if reserved else ""
    return PlaceState(pool.name, pool.away, tuple(windows), is_open, pending, pool.size, pool.drained)
