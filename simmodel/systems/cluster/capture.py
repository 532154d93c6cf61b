"""From a live cluster to its snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from simmodel.environment import Call
from simmodel.errors import SnapshotError
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import (
    Past,
    PlaceState,
    Planned,
    RunningWork,
    Wait,
    Whole,
    WindowState,
    Work,
    expected_plans,
    seen_work,
)
from simmodel.systems.cluster.arrivals import Arrivals
from simmodel.systems.cluster.replay import Submission
from simmodel.systems.policy_state import policy_state, stream_states
from simmodel.work.job import OVER, Run
from simmodel.work.prepare import planned_seconds

if TYPE_CHECKING:
    from simmodel.systems.cluster.system import Cluster
    from simmodel.work.job import LiveJob

__all__ = ["capture"]

_START = itemgetter(1)
_ORDER = itemgetter(0, 1, 2)


def capture(cluster: Cluster, actual: bool) -> ClusterSnapshot:
    """Return the snapshot of a cluster: with what continuing needs, or with what a policy may know."""
    env = cluster.env
    now = float(env._now)
    work_of = _actual if actual else _seen
    entries = _entries(cluster, actual)
    runs = [entry[3] for pool in cluster.places for entry in sorted(pool.running.entries(), key=_START)]
    ends: dict[Any, float] = {}
    if actual:
        _refuse_claims(cluster)
        ends = {entry[3]: float(entry[0]) for entry in entries if type(entry[3]) is Run}
        runs += [run for run in ends if run.released]
    running = tuple([_running(run, work_of(run.job), ends.get(run)) for run in runs])
    arrivals, places_of = _arrivals(cluster, entries) if actual else ([], {})
    places_of.update({run: (row,) for row, run in enumerate(runs)} if actual else {})
    planned = _planned(cluster, entries, places_of)
    blocked = _blocked(cluster)
    held = [work_of(job) for rules in cluster.rules.values() for job in rules.held]
    waiting = [work_of(job) for job in cluster.view.waiting]
    blocked_work = [work_of(job) for job in blocked]
    submitted = cluster.submitted
    if not actual:
        planned = expected_plans(planned, cluster.spec, now, actual=False)
        known = (*[run.work.number for run in running], *[work.number for work in (*waiting, *held, *blocked_work)])
        submitted = max(known, default=-1) + 1
    return ClusterSnapshot(
        name=cluster.name,
        now=now,
        seed=env.seed if actual else 0,
        platform=cluster.spec,
        options=cluster.options,
        policy=policy_state(cluster.scheduler, cluster.known_as),
        running=running,
        waiting=tuple(waiting),
        held=tuple(held),
        blocked=tuple(blocked_work),
        new=tuple([job.seq for job in cluster.view.waiting.new if job.state == "waiting"]),
        arrivals=tuple(arrivals),
        places=tuple([_place(cluster, pool, actual) for pool in cluster.places]),
        consumables=tuple((name, float(free)) for name, free in cluster.places[0].consumables.free.items()),
        waits=_waits(cluster) if blocked else (),
        over=_over(cluster, arrivals),
        usage=tuple(
            (float(usage.half_life), tuple((user, *map(float, held)) for user, held in usage._users.items()))
            for usage in cluster.usages
        ),
        streams=stream_states(env, f"{cluster.name}.") if actual else (),
        planned=tuple(planned),
        submitted=submitted,
    )


def _entries(cluster: Cluster, actual: bool) -> list[Any]:
    """Return what is to come of this cluster, in order: the entries of the environment's queue."""
    queue: list[Any] = cluster.env._queue
    places = cluster.places
    owners = (cluster, cluster.scheduler, cluster.calendar, cluster._dependencies, *places)
    found = [
        entry
        for entry in queue
        if type(entry[3]) is Call and entry[3].callbacks is not None and entry[3].what and entry[3].what[0] in owners
    ]
    if actual:
        for entry in queue:
            thing = entry[3]
            if (type(thing) is Run and thing.callbacks is not None and thing.place in places) or (
                type(thing) is Arrivals and thing.cluster is cluster
            ):
                found.append(entry)
        there = {entry[3] for entry in found}
        found += [  # what is submitting right now goes on after all that is planned
            (max(left[0][1], cluster.env._now), cluster._submit_priority, inf, source)
            for source in cluster._sources
            if source not in there and (left := source.to_come())
        ]
    return sorted(found, key=_ORDER)


def _refuse_claims(cluster: Cluster) -> None:
    for pool in cluster.places:
        for claim in (*pool._claims, *pool._granted):
            who = claim.process.name if claim.process is not None else "somebody"
            raise SnapshotError(f"process {who}, which has {claim.describe()}, cannot be copied: it is a generator")


# ---------------------------------------------------------------------- jobs


def _work(job: LiveJob) -> Work:
    """Return what a snapshot says of a job; it is kept while it stays true."""
    if job._work is None:
        past: Past | None = job._past
        attempts = job.attempts - (job._run is not None)
        if past is not None or attempts or hasattr(job, "_whole") or job._resumes:
            resumes = None if not job._resumes else job._resumes.allocation or True
            whole = Whole(*map(float, job._whole)) if hasattr(job, "_whole") else None
            past = (past or Past())._replace(attempts=attempts, whole=whole, resumes=resumes)
        job._work = Work(
            job.id,
            job.seq,
            float(job.submit),
            job.processors,
            float(job.requested),
            float(job._expected),
            float(job._duration),
            job.user,
            float(job.priority),
            job.place.name,
            job._outcome,
            job.spec,
            past,
        )
    return job._work  # type: ignore[no-any-return]


def _actual(job: LiveJob) -> Work:
    if job.spec is not None and job.spec.body is not None:
        raise SnapshotError(f"job {job.id} cannot be copied: it has a body, which is a generator")
    return _work(job)


def _seen(job: LiveJob) -> Work:
    if job._seen is None:
        job._seen = seen_work(_work(job))
    return job._seen  # type: ignore[no-any-return]


def _running(run: Any, work: Work, end: float | None) -> RunningWork:
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


def _arrivals(cluster: Cluster, entries: Iterable[Any]) -> tuple[list[Work], dict[Any, tuple[int, ...]]]:
    """Return what is still to be submitted, and where in the list of it each source's part is: (first, how many)."""
    works: list[Work] = []
    parts: dict[Any, tuple[int, ...]] = {}
    for _, _, _, source in entries:
        if type(source) is Arrivals:
            assert cluster._only_pool is not None
            place = cluster._only_pool.name
            left = [
                Work(
                    name,
                    row if source.numbers is None else source.numbers[row],
                    submit,
                    processors,
                    requested,
                    expected,
                    duration,
                    user,
                    0.0,
                    place,
                    "timeout" if cut else "completed",
                )
                for row, submit, processors, requested, expected, duration, name, user, cut in source.to_come()
            ]
            parts[source] = (len(works), len(left))
            works += left
        elif type(source) is Call and type(source.call) is Submission:
            parts[source] = (len(works),)
            works.append(_submission(cluster, source.call))
    return works, parts


def _submission(cluster: Cluster, submission: Submission) -> Work:
    spec = submission.spec
    number = submission.number
    name = spec.id if spec.id is not None else spec.name or number + 1
    if spec.body is not None:
        raise SnapshotError(f"job {name}, still to arrive, cannot be copied: it has a body, which is a generator")
    assert spec.run is not None
    limit = spec.requested if spec.requested is not None else spec.run
    seconds = planned_seconds(spec.run, limit, cluster.estimates, cluster.overrun)
    requested, expected, duration = map(float, seconds)
    return Work(name, number, submission.at, spec.processors, requested, expected, duration, spec.user, spec=spec)


def _blocked(cluster: Cluster) -> list[LiveJob]:
    """Return the jobs that wait for others, in the order of submission."""
    known = cluster._dependencies.known
    return [job for job in known.values() if job.state == "blocked"] if cluster._dependencies.blocked else []


def _waits(cluster: Cluster) -> tuple[Wait, ...]:
    found = [
        (job.submit, job.seq, job.spec.dependencies.index(dependency), other, what)
        for (other, what), waiting in cluster._dependencies.waiting.items()
        for job, dependency in waiting
        if job.state == "blocked" and job.spec is not None
    ]
    return tuple(Wait(other, what, number, which) for _, number, which, other, what in sorted(found, key=_ORDER))


def _over(cluster: Cluster, arrivals: Iterable[Work]) -> tuple[tuple[Any, str], ...]:
    """Return the jobs that are over and that one still to arrive names."""
    dependencies = cluster._dependencies
    named = dict.fromkeys(each.job for work in arrivals if work.spec is not None for each in work.spec.dependencies)
    found = []
    for name in named:
        job = dependencies.known.get(name)
        if job is not None and job.state in OVER:
            found.append((name, job.state))
        elif job is None and name in dependencies.absent:
            found.append((name, "rejected"))
    return tuple(found)


# ---------------------------------------------------------------------- the rest


def _place(cluster: Cluster, pool: Any, actual: bool) -> PlaceState:
    windows = []
    for window in pool.windows:
        if actual and window.tell is not None and not window.why:
            raise SnapshotError(f"{window!r} of {pool.name} cannot be copied: it calls a function, and has no reason")
        what = window.what if isinstance(window.what, int) else tuple(map(int, window.what))
        windows.append(WindowState(float(window.start), float(window.end), what, window.begun, window.why))
    return PlaceState(pool.name, pool.away, tuple(windows), pool.part_of is not None and cluster.calendar.is_open(pool))


def _planned(cluster: Cluster, entries: Iterable[Any], parts: dict[Any, tuple[int, ...]]) -> list[Planned]:
    """Return what is to come, with numbers and names instead of live things."""
    found = []
    for at, priority, _, thing in entries:
        if type(thing) is not Call:
            what: str = "end" if type(thing) is Run else "arrivals"
            about: tuple[Any, ...] = parts[thing]
        else:
            assert thing.what is not None
            owner, what, *rest = thing.what
            about = tuple(rest)
            if what == "submission":
                if thing not in parts:
                    continue  # nobody knows of it yet
                about = parts[thing]
            elif what in ("cancel", "eligible"):
                if what == "eligible" and rest[0].state != "blocked":
                    continue
                about = (rest[0].seq,)
            elif owner is not cluster.calendar and what != "alarm":
                about = (owner.name, owner.windows.index(rest[0]))
        found.append(Planned(float(at), float(priority), what, about))
    return found
