"""The obstacle to the start of a job of a cluster at one instant, and the holders of the resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from simmodel.environment import Environment
from simmodel.foundation.display import are_free, counted
from simmodel.foundation.errors import InputError, of_class
from simmodel.foundation.units import show_quantity
from simmodel.futures.asking import Question, promised_now, started_now
from simmodel.futures.whatif import what_if
from simmodel.referee.explanation import PROMISES, Change, Explanation, Holder, instant_text, span_table
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import Choice
from simmodel.systems.cluster.queueing import places_to_wait
from simmodel.systems.cluster.system import Cluster
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from simmodel.resources.pools.absences import CapacityWindow
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import Policy
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.jobs import RunningWork, WorkState

__all__ = ["MEGABYTE", "Request", "largest", "least_changes", "obstacle", "waiting_parts", "why_waits"]

MEGABYTE = 10**6
"""Bytes: memory is changed by whole megabytes."""


def least_changes(seen: ClusterSnapshot, work: WorkState, policy: PolicyLike | None = None) -> Iterator[Change]:
    """Yield, of each kind, the least change that starts a job now.

    A number is the largest that starts the job such that the next larger one does not: processors, or nodes, cores,
    GPUs and memory (whole MB) of each node; licences; bandwidth (whole MB/s); the requested time (whole s). Then other
    partitions, open reservations that admit the job, and queues. A job that was suspended resumes as it was: nothing is
    tried.

    Parameters
    ----------
    seen
        a cluster at one instant, as a policy may see it
    work
        the job: waiting, or held by a limit of its queue, for which only another queue helps
    policy
        default: that of the snapshot
    """
    if work.past is not None and work.past.resumes is not None:
        return
    asked = Request(seen, work, policy)
    if work in seen.waiting:
        yield from _smaller(asked)
        yield from _shorter(asked)
        yield from _elsewhere(asked)
    yield from _other_queues(asked)


class Request:
    """The request of a waiting job, and whether another one would start now.

    Parameters
    ----------
    seen, work, policy
        as of :func:`least_changes`

    Attributes
    ----------
    seen, spec, place
        the snapshot; the request; the partition that it waits for
    """

    def __init__(self, seen: ClusterSnapshot, work: WorkState, policy: PolicyLike | None = None) -> None:
        self.seen = seen
        self.spec = work.spec or _plain(work)
        self.place = work.place
        self._work = work
        self._policy = policy
        parts: dict[str, Any] = {
            part: tuple(each for each in getattr(seen, part) if each is not work) for part in ("waiting", "held")
        }
        choices = tuple(each for each in seen.choices if each.number != work.number)
        self._others = attrs.evolve(seen, **parts, choices=choices, new=())
        before = (each for each in self._others.waiting if (each.submit, each.number) < (work.submit, work.number))
        self._row = seen.waiting.index(work) if work in seen.waiting else sum(1 for _ in before)
        self._there = Cluster.from_snapshot(Environment(seen.now), self._others, policy, record=False)
        self._priority = self._there.live(self.spec, work.number, 0)[0].priority

    def starts(self, **changes: Any) -> bool:
        """Whether the policy would start the job now if these fields of its request were other ones."""
        changed = self.changed(**changes)
        return changed is not None and self._work.id in started_now(changed, self._policy)

    def changed(self, **changes: Any) -> ClusterSnapshot | None:
        """Return the snapshot with the changed request; ``None``: the cluster would not take it, or would hold it."""
        work = self._work
        spec = attrs.evolve(self.spec, **changes)
        try:
            live, reason = self._there.live(spec, work.number, 0)
        except InputError:
            return None
        if reason is not None or (live.rules is not None and live.rules.full(live.user)):
            return None
        places = [pool.name for pool in places_to_wait(live, self._there.core)]
        limit: dict[str, Any] = (
            {}
            if spec.requested is None
            else {"requested": spec.requested, "expected": spec.requested, "unrequested": False}
        )
        new = work._replace(
            processors=spec.processors,
            priority=work.priority + live.priority - self._priority,
            place=places[0],
            spec=None if work.spec is None and spec.plain else spec,
            **(limit if "requested" in changes else {}),
        )
        others = self._others
        choices = (*others.choices, Choice(work.number, tuple(places))) if len(places) > 1 else others.choices
        waiting = (*others.waiting[: self._row], new, *others.waiting[self._row :])
        return attrs.evolve(others, waiting=waiting, choices=choices)


def _plain(work: WorkState) -> Job:
    """Return the request of a job that asked for processors and time only."""
    requested = None if work.unrequested else work.requested or None
    return Job(
        id=work.id, submit=work.submit, processors=work.processors, run=work.expected, requested=requested,
        user=work.user,
    )  # fmt: skip


# ---------------------------------------------------------------------- one kind each


def _smaller(asked: Request) -> Iterator[Change]:
    """Yield fewer processors, or less of the nodes, and fewer licences."""
    spec = asked.spec
    if not spec.chunks:
        yield from _smaller_nodes(asked, spec)
    for name, amount in spec.consumables.items():

        def with_fewer(count: int, name: str = name) -> bool:
            return asked.starts(consumables={**spec.consumables, name: float(count)})

        fewer = largest(with_fewer, ceil(amount) - 1, least=0)
        if fewer is not None:
            yield Change(name, float(fewer), f"with {fewer} of {name} instead of {amount:g}")
    yield from _narrower(asked)


def _smaller_nodes(asked: Request, spec: Job) -> Iterator[Change]:
    """Yield fewer processors, or fewer nodes with less of each."""
    if spec.nodes is None:
        yield from _fewer(asked, "processors", spec.processors, "processor")
    else:
        yield from _fewer(asked, "nodes", spec.nodes, "node")
        yield from _fewer(asked, "cores_per_node", spec.cores_per_node, "core", " per node")
    if 0 < spec.gpus_per_node < 1:
        share = largest(lambda part: asked.starts(gpus_per_node=part / 1000), round(spec.gpus_per_node * 1000) - 1)
        if share is not None:
            text = f"with {share / 1000:g} of a GPU per node instead of {spec.gpus_per_node:g}"
            yield Change("gpus_per_node", share / 1000, text)
    else:
        yield from _fewer(asked, "gpus_per_node", int(spec.gpus_per_node), "GPU", " per node", least=0)
    memory = spec.memory_per_node
    found = largest(
        lambda count: asked.starts(memory_per_node=float(count * MEGABYTE)), ceil(memory / MEGABYTE) - 1, least=0
    )
    if found is not None:
        less, before = (show_quantity(float(each), "B") for each in (found * MEGABYTE, memory))
        yield Change("memory_per_node", float(found * MEGABYTE), f"with {less} of memory per node instead of {before}")


def _narrower(asked: Request) -> Iterator[Change]:
    """Yield less of each bandwidth, in whole MB/s."""
    given = asked.spec.bandwidth
    for name, rate in given.items():

        def with_less(count: int, name: str = name) -> bool:
            return asked.starts(bandwidth={**given, name: float(count * MEGABYTE)})

        found = largest(with_less, ceil(rate / MEGABYTE) - 1, least=0)
        if found is not None:
            less = show_quantity(float(found * MEGABYTE), "B/s") if found else "nothing"
            text = f"with {less} of {name} instead of {show_quantity(rate, 'B/s')}"
            yield Change(name, float(found * MEGABYTE), text)


def _fewer(asked: Request, field: str, most: int, noun: str, of: str = "", least: int = 1) -> Iterator[Change]:
    found = largest(lambda count: asked.starts(**{field: count}), most - 1, least)
    if found is not None:
        yield Change(field, found, f"with {counted(found, noun)}{of} instead of {most:,}")


def _shorter(asked: Request) -> Iterator[Change]:
    """Yield a shorter limit, where jobs are planned with their limits."""
    before = asked.spec.asked
    if asked.seen.options.estimates != "requested" or not before < 1e15:
        return
    found = largest(lambda seconds: asked.starts(requested=float(seconds), run=float(seconds)), ceil(before) - 1)
    if found is not None:
        yield Change("requested", float(found), f"with a limit of {found} s instead of {before:.10g} s")


def _elsewhere(asked: Request) -> Iterator[Change]:
    """Yield other partitions, and reservations."""
    platform, spec = asked.seen.platform, asked.spec
    tried = {str(spec.partition), *map(str, spec.partitions), asked.place}
    for kind, parts in (("partition", platform.partitions), ("reservation", platform.reservations)):
        for name in [each.name for each in parts if each.name not in tried]:
            if asked.starts(partition=name, partitions=()):
                yield Change("partition", name, f"on {kind} {name}")


def _other_queues(asked: Request) -> Iterator[Change]:
    spec = asked.spec
    for queue in asked.seen.platform.queues if spec.queue is not None else ():
        if queue.name != str(spec.queue) and asked.starts(
            queue=queue.name, partition=queue.partition or spec.partition
        ):
            yield Change("queue", queue.name, f"in queue {queue.name}")


def largest(starts: Callable[[int], bool], most: int, least: int = 1) -> int | None:
    """Return a value up to ``most`` that starts a job, while the next larger one does not; ``None``: none was found.

    A larger value may start it all the same, where a policy prefers large jobs. Tried are ``most``, its halves, and
    ``least``; from the largest of these that starts the job the search goes on by bisection.

    >>> largest(lambda value: value <= 37, 100), largest(lambda value: False, 100)
    (37, None)
    """
    if most < least:
        return None
    above, value = most + 1, most
    while not starts(value):
        if value == least:
            return None
        above, value = value, max(value // 2, least)
    while above - value > 1:
        middle = (value + above) // 2
        if starts(middle):
            value = middle
        else:
            above = middle
    return value


_PARTS = ("waiting", "held", "blocked")


def obstacle(job: LiveJob, entries: Sequence[LiveJob] = ()) -> str:
    """Return the obstacle to a job that waits: a ``reason`` of an explanation; changes nothing.

    Parameters
    ----------
    job
        a live job of a cluster that has not started
    entries
        of a job that waits for several places, its entry for each

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> jobs = [cluster.submit(Job(processors=size, run=9)) for size in (3, 2, 1)]
    >>> cluster.env.run(until=1); [obstacle(job) for job in jobs[1:]]
    ['processors', 'order']
    """
    if job.state == "blocked":
        return "dependencies" if job.spec is not None and job.spec.dependencies else "policy"
    if job.state == "held":
        return "limit"
    found = [_at(entry.place, entry) for entry in entries or (job,)]
    return "order" if "order" in found else found[0]


def _at(place: Pool, job: LiveJob) -> str:
    if place.fits(job):
        return "order"
    if not place.holds:
        return "reservation"
    if job.processors > place.free:
        return "processors"
    if job.request is not None and not place.consumables.fits(job.request.consumables):
        lacking = place.consumables.lacking(job.request.consumables)
        if all(map(place.consumables.is_limited, lacking)):
            return "power"
        return "bandwidth" if all(map(place.consumables.is_bandwidth, lacking)) else "licences"
    return "reservation" if place.windows and place.fits(_brief(job)) else "nodes"


def _brief(job: LiveJob) -> LiveJob:
    """Return a job with the same request that is over at once."""
    brief = LiveJob(job.id, job.index, job.submit, job.processors, 0.0, 0.0, 0.0, job.user, job.place)
    brief.request, brief.width, brief.history = job.request, job.width, job.history
    return brief


# ---------------------------------------------------------------------- in a snapshot


def waiting_parts(snapshot: ClusterSnapshot) -> dict[str, tuple[str, WorkState]]:
    """Return the jobs that have not started, by id as text: the part of the snapshot, and the job."""
    return {str(work.id): (part, work) for part in _PARTS for work in getattr(snapshot, part)}


def why_waits(
    snapshot: ClusterSnapshot, job: int | str, policy: PolicyLike | None = None, *, dated: bool = False
) -> Explanation:
    """Explain why a job waits in a snapshot: of a simulation, or of the mirror of a real scheduler.

    Parameters
    ----------
    snapshot
        a cluster at one instant
    job
        the id of a job that waits
    policy
        default: that of the snapshot
    dated
        whether instants are seconds since 1970, shown as dates

    Raises
    ------
    InputError
        the job does not wait, or the policy of the snapshot was given as an object

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size, limit in ((3, 100), (4, 50), (1, 20)): _ = cluster.submit(Job(processors=size, run=limit))
    >>> cluster.env.run(until=1)
    >>> print(why_waits(cluster.snapshot(), 2).report())
    job 2 at 1 s: needs 4 processors of batch, 1 is free
      held by: job 1 (3 until 100 s)
      expected to start at 100 s, in 1 min 39 s
      it would start now with 1 processor instead of 4
    """
    seen = of_class(snapshot, ClusterSnapshot, "that of a cluster", "snapshot").expected()
    works = waiting_parts(seen)
    if str(job) not in works:
        raise InputError(f"must be one of the {len(works):,} jobs that wait, got {job!r}", place="job")
    part, work = works[str(job)]
    (outcome,) = what_if(seen, {"as it is": policy}).outcomes
    starts = {each.job: each.at for each in outcome.starts}
    expected = starts.get(work.id)
    question = Question(seen, policy)
    question.simulation.decide()
    system = question.system
    live = next(each for each in system.present() if each.seq == work.number)
    policy_there = system.scheduler.policy
    way = _Way(system.snapshot(actual=False), work, live, system.pools[work.place], dated, policy_there)
    reason = "due" if live.attempts else obstacle(live, system.view.choices.get(live, ()))
    waits = part == "waiting"
    promised = promised_now(seen, policy).get(work.id)
    names = [each.job for each in outcome.starts]
    before = names[: names.index(work.id)] if work.id in starts else names
    return Explanation(
        job=work.id,
        at=float(seen.now),
        place=work.place,
        reason=reason,
        detail=_DETAILS[reason](way),
        needs=work.processors,
        free=int(way.pool.free),
        ahead=tuple(name for name in before if name != work.id) if waits and reason not in ("due", "limit") else (),
        holders=tuple(_HOLDERS[reason](way)) if reason in _HOLDERS else (),
        expected=expected,
        promises=span_table([] if promised is None else [(seen.now, promised, "", "promise")], PROMISES),
        changes=() if part == "blocked" or reason == "due" else tuple(least_changes(seen, work, policy)),
        dated=dated,
    )


class _Way(NamedTuple):
    """A job that waits after the decision of an instant: the cluster then, its state, its live job and its pool.

    ``dated``: whether instants are shown as dates.
    """

    seen: ClusterSnapshot
    work: WorkState
    live: LiveJob
    pool: Pool
    dated: bool
    policy: Policy


# ---------------------------------------------------------------------- in words


def _processors(way: _Way) -> str:
    return f"needs {_needed(way)}, {are_free(int(way.pool.free))}"


def _order(way: _Way) -> str:
    return f"would fit, but others go first ({_processors(way).removeprefix('needs ')})"


def _nodes(way: _Way) -> str:
    spec = way.work.spec
    each = [] if spec is None or spec.nodes is None else [counted(spec.cores_per_node, "core")]
    if spec is not None:
        each += [counted(int(spec.gpus_per_node), "GPU")] if spec.gpus_per_node else []
        each += [f"{show_quantity(spec.memory_per_node, 'B')} of memory"] if spec.memory_per_node else []
    pool: Any = way.pool
    apart = pool.why_waits(way.live)
    if spec is not None and (spec.chunks or apart):
        free = apart or f"{are_free(int(pool.free), 'processor')}, but none such"
        return f"needs {pool.request_for(way.live)} of {pool.name}; {free}"
    what = _needed(way) if spec is None or spec.nodes is None else f"{counted(spec.nodes, 'node')} of {way.pool.name}"
    kind = f" with {' and '.join(each)} each" if each else ""
    return f"needs {what}{kind}; {are_free(int(way.pool.free), 'processor')}, but none such"


def _needed(way: _Way) -> str:
    return f"{counted(way.work.processors, 'processor')} of {way.pool.name}"


def _licences(way: _Way) -> str:
    there = way.pool.consumables
    short = [
        f"{there.show(name, amount)} of {name}, {are_free(there.show(name, there.free[name]))}"
        for name, amount in _missing_licences(way)
    ]
    return f"needs {'; '.join(short)}"


def _power(way: _Way) -> str:
    there, needs = way.pool.consumables, way.live.request.consumables
    (name,) = there.lacking(needs)
    free = are_free(there.show(name, there.free[name]))
    return f"needs {there.show(name, needs[name])} above idle nodes, {free} below the cap"


def _missing_licences(way: _Way) -> list[tuple[str, float]]:
    needs = {} if way.work.spec is None else way.work.spec.amounts
    return [(name, needs[name]) for name in way.pool.consumables.lacking(needs)]


def _reservation(way: _Way) -> str:
    pool: Any = way.pool
    if not pool.holds:
        return f"its reservation {pool.name} has not begun"
    names = [str(each.job) for each in _windows(way)]
    return f"would run into {' and '.join(names)} ({way.work.requested:.10g} s {_asked(way.work)})"


def _asked(work: WorkState) -> str:
    return "planned" if work.unrequested else "requested"


def _limit(way: _Way) -> str:
    rules = way.live.rules
    if rules is None:
        return "is held by a limit of its queue"
    limits = [f"{counted(most, 'running job')}{who}" for most, who in _limits(rules.spec) if most is not None]
    return f"is held by a limit of its queue: {rules.spec.name} allows {' and '.join(limits)}"


def _limits(spec: Any) -> Iterator[tuple[int | None, str]]:
    yield spec.max_running, ""
    yield spec.max_running_per_user, " of a user"


def _dependencies(way: _Way) -> str:
    names = dict.fromkeys(str(wait.other) for wait in way.seen.waits if wait.number == way.work.number)
    return "waits for other jobs" + (f": {', '.join(names)}" if names else "")


def _policy(way: _Way) -> str:
    why = way.policy.why_held(way.live)
    return f"is held by the policy: {why}" if why else "is held by the policy"


def _due(_way: _Way) -> str:
    return "the policy starts it now"


_DETAILS: dict[str, Callable[[_Way], str]] = {
    "processors": _processors,
    "order": _order,
    "nodes": _nodes,
    "licences": _licences,
    "bandwidth": _licences,
    "power": _power,
    "reservation": _reservation,
    "limit": _limit,
    "dependencies": _dependencies,
    "policy": _policy,
    "due": _due,
}


# ---------------------------------------------------------------------- who holds it


def _running(way: _Way) -> list[RunningWork]:
    return sorted((run for run in way.seen.running if run.place == way.work.place), key=lambda run: run.expected_end)


def _holder(run: RunningWork, processors: int | None = None) -> Holder:
    return Holder(run.id, run.work.processors if processors is None else processors, float(run.expected_end))


def _who_make_room(way: _Way) -> Iterator[Holder]:
    """Yield the running jobs and the windows of absent capacity, by expected end, until they make room for the job."""
    free = int(way.pool.free)
    away = [
        Holder(_called(each, way.pool), _size(each.what, way.pool), each.end) for each in way.pool.windows if each.begun
    ]
    held = [*map(_holder, _running(way)), *away]
    for holder in sorted(held, key=lambda each: each.until):
        if free >= way.work.processors:
            return
        free += holder.processors
        yield holder


def _who_hold_nodes(way: _Way) -> Iterator[Holder]:
    """Yield the running jobs that end by the instant at which the job fits."""
    at, _ = way.pool.earliest(way.live)
    yield from (_holder(run) for run in _running(way) if run.expected_end <= at < inf)


def _who_hold_power(way: _Way) -> Iterator[Holder]:
    """Yield the running jobs that end by the instant at which the job has enough power."""
    at, _ = way.pool.profile().earliest(way.live, way.live.planned)
    yield from (_holder(run) for run in _running(way) if run.expected_end <= at < inf)


def _who_hold_licences(way: _Way) -> Iterator[Holder]:
    """Yield the running jobs that hold licences, by expected end, until enough are free."""
    free = dict(way.pool.consumables.free)
    short = dict(_missing_licences(way))
    for run in sorted(way.seen.running, key=lambda run: run.expected_end):
        held = {} if run.work.spec is None else run.work.spec.amounts
        if any(free[name] < amount and held.get(name) for name, amount in short.items()):
            yield _holder(run)
            for name, amount in held.items():
                free[name] += amount


def _windows(way: _Way) -> Iterator[Holder]:
    """Yield the windows that begin before the job would end; of a reservation that has not begun, that until then."""
    pool: Any = way.pool
    opens = not pool.holds
    end = way.seen.now + (0.0 if opens else way.work.requested)
    for window in pool.windows:
        if window.begun or window.start < end:
            begins = "" if window.begun else f" from {instant_text(window.start, dated=way.dated)}"
            yield Holder(_called(window, way.pool) + begins, _size(window.what, way.pool), window.end)


def _called(window: CapacityWindow, pool: Pool) -> str:
    """Return the name of a window: that of a reservation, or its purpose."""
    if window.why.startswith("reservation "):
        return window.why
    if pool.part_of is not None and window.why in ("not yet open", "closed"):
        return f"reservation {pool.name}, {window.why}"
    return f"the {window.why or 'absence'}"


def _size(what: Any, pool: Pool) -> int:
    """Return the processors of a part of a pool."""
    if isinstance(what, int):
        return what
    spec = getattr(pool, "spec", None)
    cores = [] if spec is None else [kind.cores for kind in spec.nodes for _ in range(kind.count)]
    return sum(cores[node] for node in what if node < len(cores))


def _who_count(way: _Way) -> Iterator[Holder]:
    """Yield the running jobs that its queue counts: of its user, if only those are limited."""
    rules = way.live.rules
    if rules is None:
        return
    every = rules.spec.max_running is not None
    for run in sorted(way.seen.running, key=lambda run: run.expected_end):
        spec = run.work.spec
        if spec is not None and str(spec.queue) == rules.spec.name and (every or run.work.user == way.work.user):
            yield _holder(run)


def _who_come_before(way: _Way) -> Iterator[Holder]:
    """Yield the jobs that it depends on."""
    others = dict.fromkeys(str(wait.other) for wait in way.seen.waits if wait.number == way.work.number)
    running = {str(run.id): run for run in way.seen.running}
    known = {str(work.id): work for work in way.seen.works}
    for name in others:
        if name in running:
            yield _holder(running[name])
        elif name in known:
            yield Holder(known[name].id, known[name].processors, nan)


_HOLDERS: dict[str, Callable[[_Way], Iterator[Holder]]] = {
    "processors": _who_make_room,
    "nodes": _who_hold_nodes,
    "licences": _who_hold_licences,
    "bandwidth": _who_hold_licences,
    "power": _who_hold_power,
    "reservation": _windows,
    "limit": _who_count,
    "dependencies": _who_come_before,
}
