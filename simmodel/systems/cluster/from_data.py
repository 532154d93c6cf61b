"""Snapshots from the data of a real scheduler: running and waiting jobs as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import attrs

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Plain, unknown
from simmodel.platform.cluster import ClusterSpec
from simmodel.resources.pools.allocation import Allocation, Request
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.usage import Usage
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.jobs import RunningWork
from simmodel.systems.cluster.queueing import places_to_wait
from simmodel.systems.cluster.snapshots import capture
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.job_states import work_of
from simmodel.work.job import Job, LiveJob
from simmodel.work.prepare import Frame

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["snapshot_of"]

_FIELDS = tuple(field.name for field in attrs.fields(Job) if field.name not in ("body", "cancel"))
_PLAIN = {"id", "submit", "processors", "run", "requested", "user"}
_OF_RUNS = ("started", "on", "expected_end")
HALF_LIFE = 7 * 86400.0


def snapshot_of(
    platform: ClusterSpec | int,
    *,
    now: float,
    running: Iterable[Job | Mapping[str, Plain]] = (),
    waiting: Iterable[Job | Mapping[str, Plain]] = (),
    down: Mapping[str, Plain] | None = None,
    usage: Mapping[int | str, float] | None = None,
    half_life: float | None = None,
    policy: PolicyLike = "fcfs",
    **options: Any,
) -> ClusterSnapshot:
    """Return the snapshot of a cluster, such as a real one, of which actual run times are unknown.

    Parameters
    ----------
    platform, now
        a cluster spec or a number of processors; the instant, in s
    running
        jobs as mappings with the fields of a :class:`~simmodel.work.job.Job` (``run`` is optional), ``started`` (s),
        ``on`` if nodes are identified (nodes, or (node, cores, GPUs, bytes) of each), and ``expected_end`` (s) if it
        differs from ``started`` + ``requested``
    waiting
        jobs, or mappings with their fields; jobs of the same submit time in order of arrival; dependencies must name
        running or waiting jobs
    down
        the capacity that is down, by place: a number of processors, or nodes; outages in the cluster's spec are added
    usage, half_life
        processor seconds by user, for fair share; s, default: that of the policy
    policy, options
        as for :class:`~simmodel.systems.cluster.system.Cluster`

    Raises
    ------
    InputError
        if a value is invalid; names its place (``running[2].started``)

    >>> seen = snapshot_of(4, now=100, running=[{"id": 1, "processors": 3, "requested": 60, "started": 90}],
    ...                    waiting=[{"id": 2, "processors": 2, "requested": 30, "submit": 95}])
    >>> seen.running[0].expected_end
    150.0
    >>> from simmodel import simulate
    >>> simulate(seen).jobs["start"]
    array([ 90., 150.])
    """
    if not isinstance(platform, (ClusterSpec, int)) or platform is True:
        raise InputError(f"must be a ClusterSpec or a number of processors, got {platform!r}", None, "platform")
    _instant(now, "now")
    cluster = Cluster(Environment(now), platform, policy, begin=False, record=False, **options)
    builder = _Builder(cluster)
    runs = _several(running, "running")
    for i, given in enumerate(runs):
        builder.run(given, f"running[{i}]")
    for i, given in enumerate(_several(waiting, "waiting")):
        builder.wait(given, f"waiting[{i}]")
    cluster.calendar.begin()
    for name, what in (down or {}).items():
        builder.down(name, what)
    builder.queue()
    snapshot = capture(cluster, actual=False)
    if usage is not None:
        snapshot = attrs.evolve(snapshot, usage=(builder.usage(usage, half_life),))
    return attrs.evolve(snapshot, policy=attrs.evolve(snapshot.policy, due=True))


def _several(given: Any, place: str) -> list[Any]:
    """Return the jobs of a list; a frame, a single job or a single mapping is refused."""
    if isinstance(given, (Frame, Job, Mapping)) or not isinstance(given, Iterable):
        raise InputError(f"must be a list of jobs or mappings of their fields, got {given!r:.60}", None, place)
    return list(given)


def _instant(value: Plain, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise InputError(f"must be an instant (s), got {value!r}", None, place)
    return float(value)


class _Builder:
    """Puts jobs into a cluster that has not begun to run."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now = cluster.env.now
        self.names: dict[int | str, LiveJob] = {}
        self.waiting: list[tuple[LiveJob, str]] = []

    def _job(
        self, given: Job | Mapping[str, Plain], place: str, more: tuple[str, ...] = ()
    ) -> tuple[LiveJob, dict[str, Any]]:
        """Return the live job of the given fields, and the fields of its execution."""
        values = given if isinstance(given, Mapping) else self._values(given, place)
        for name in values:
            if name not in _FIELDS and name not in more:
                raise InputError(unknown("key", str(name), (*_FIELDS, *more)).message, None, f"{place}.{name}")
        about = {name: values[name] for name in more if values.get(name) is not None}
        asked = {name: value for name, value in values.items() if name in _FIELDS and value is not None}
        if "requested" not in asked and "run" not in asked:
            raise InputError("missing requested time (s)", None, f"{place}.requested")
        asked.setdefault("requested", asked.get("run"))
        asked["run"] = asked["requested"]
        spec = self._spec(asked, place)
        if _instant(spec.submit, f"{place}.submit") > self.now:
            raise InputError(
                f"must be an instant <= now ({self.now:g} s), got {spec.submit:g}", None, f"{place}.submit"
            )
        cluster = self.cluster
        try:
            job, reason = cluster.live(spec)
        except InputError as error:
            raise InputError(error.message, None, place) from None
        if reason is not None:
            raise InputError(f"job {job.id} can never run: {reason}", None, place)
        if job.id in self.names:
            raise InputError(f"duplicate job {job.id!r}", None, f"{place}.id")
        self.names[job.id] = job
        cluster.submitted += 1
        cluster.core.known[job.id] = job
        job.submit = float(spec.submit)
        if set(asked) <= _PLAIN and job.rules is None:
            job._job = None  # it adds nothing to the live job
        return job, about

    def _values(self, given: Job | Mapping[str, Plain], place: str) -> dict[str, Any]:
        if not isinstance(given, Job):
            raise InputError(f"must be a Job or a mapping of its fields, got {given!r}", None, place)
        fields = attrs.fields_dict(Job)
        values = {name: getattr(given, name) for name in _FIELDS}
        return {name: value for name, value in values.items() if name == "processors" or value != fields[name].default}

    def _spec(self, asked: Mapping[str, Any], place: str) -> Job:
        for name in ("requested", "submit", "memory_per_node", "priority"):
            value = asked.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or value != value):
                raise InputError(f"must be a number, got {value!r}", None, f"{place}.{name}")
        if not asked["requested"] > 0:
            raise InputError(f"must be seconds > 0, got {asked['requested']!r}", None, f"{place}.requested")
        for name in ("processors", "nodes", "cores_per_node", "gpus_per_node"):
            value = asked.get(name)
            if value is not None and type(value) is not int:
                raise InputError(f"must be a whole number, got {value!r}", None, f"{place}.{name}")
        for name in ("id", "user", "group", "queue", "partition"):
            value = asked.get(name)
            if value is not None and type(value) not in (int, str):
                raise InputError(f"must be a whole number or a name, got {value!r}", None, f"{place}.{name}")
        try:
            fields: dict[str, Any] = dict(asked)
            return Job(**fields)
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"invalid job: {error}", None, place) from None

    def run(self, given: Job | Mapping[str, Plain], place: str) -> None:
        """Add a running job."""
        if not isinstance(given, Mapping):
            raise InputError(f"must be a mapping of the fields of a Job and 'started', got {given!r}", None, place)
        job, about = self._job(given, place, _OF_RUNS)
        if "started" not in about:
            raise InputError("missing instant of its start (s)", None, f"{place}.started")
        started = _instant(about["started"], f"{place}.started")
        if "submit" not in given:
            job.submit = min(started, self.now)
        if not job.submit <= started <= self.now:
            raise InputError(
                f"must be an instant from its submission ({job.submit:g} s) to now ({self.now:g} s), got {started:g}",
                None,
                f"{place}.started",
            )
        pool = job.place
        allocation = self._allocation(job, pool, about.get("on"), place)
        speed = 1.0 if allocation is None else pool.speed_of(job, allocation.numbers)
        end = started + job.expected / speed
        if "expected_end" in about:
            end = _instant(about["expected_end"], f"{place}.expected_end")
            if end < started:
                raise InputError(
                    f"must be an instant >= its start ({started:g} s), got {end:g}", None, f"{place}.expected_end"
                )
        there = pool.table.fits(allocation) if allocation is not None else job.processors <= pool.free
        if not there or (job.request is not None and not pool.consumables.fits(job.request.consumables)):
            raise InputError(f"{job} does not fit beside the jobs before it", None, place)
        self.cluster.execution.restore([RunningWork(work_of(job), started, end, held=allocation)], [job])
        job.expected = (end - started) * speed
        for usage in self.cluster.core.usages:
            usage.change(job.user, job.processors, self.now)

    def _allocation(self, job: LiveJob, pool: Pool, on: Plain, place: str) -> Allocation | None:
        """Return the parts of nodes that a running job holds."""
        place = f"{place}.on"
        if not isinstance(pool, NodePool):
            if on is not None:
                raise InputError(f"must be left out: {pool.name} has no identified nodes", None, place)
            return None
        if on is None:
            raise InputError(f"missing nodes of {pool.name} that the job runs on", None, place)
        request: Request = pool.request_for(job)
        try:
            given: Any = on
            parts = [each if isinstance(each, (tuple, list)) else (each,) for each in given]
            numbers = {name: number for number, name in enumerate(pool.nodes)}
            nodes = [pool.number_of(part[0], numbers) for part in parts]
            if all(len(part) == 1 for part in parts):
                rows = self._whole(nodes, request, pool)
            else:
                rows = [(node, *part[1:], *(0,) * (4 - len(part))) for node, part in zip(nodes, parts, strict=True)]
            allocation = Allocation.of(rows)
        except InputError as error:
            raise InputError(error.message, None, place) from None
        except (TypeError, ValueError) as error:
            raise InputError(f"must be nodes, or [node, cores, GPUs, bytes] of each: {error}", None, place) from None
        if not allocation.meets(request):
            raise InputError(f"must match the request ({request}), got {list(allocation.rows)}", None, place)
        return allocation

    def _whole(self, nodes: list[int], request: Request, pool: NodePool) -> list[Any]:
        """Return the job's part of each node if only the nodes are given."""
        capacity = pool.table.capacity
        if request.exclusive:
            return [(node, capacity[0, node], capacity[1, node], request.memory_per_node) for node in nodes]
        if request.chunks:
            parts = zip(nodes, request.chunks, strict=True)
            return [(node, chunk.cores, chunk.gpus, chunk.memory) for node, chunk in parts]
        if request.nodes is not None:
            return [(node, request.cores_per_node, request.gpus_per_node, request.memory_per_node) for node in nodes]
        left, rows = request.processors, []
        for node in nodes:
            cores = min(left, int(max(0, pool.table.free[0, node])))
            left -= cores
            rows.append((node, cores, request.gpus_per_node, request.memory_per_node))
        return rows

    def wait(self, given: Job | Mapping[str, Plain], place: str) -> None:
        """Add a waiting job; it joins the queue once all jobs are known."""
        job, _ = self._job(given, place)
        self.waiting.append((job, place))

    def down(self, name: str, what: Plain) -> None:
        """Take part of a place down."""
        place = f"down.{name}"
        pool = self.cluster.pools.get(name)
        if pool is None:
            raise InputError(unknown("place", str(name), self.cluster.pools).message, None, place)
        part: Any
        if isinstance(pool, NodePool):
            try:
                nodes: Any = what
                numbers = {node: number for number, node in enumerate(pool.nodes)}
                part = sorted({pool.number_of(node, numbers) for node in nodes})
            except InputError as error:
                raise InputError(error.message, None, place) from None
            except TypeError:
                raise InputError(f"must be nodes of {name}, got {what!r}", None, place) from None
        elif type(what) is not int or not 0 <= what <= pool.capacity:
            raise InputError(f"must be a number of processors from 0 to {pool.capacity}, got {what!r}", None, place)
        else:
            part = what
        pool.absences.lower(part)
        pool.absences.count_drained(part, 1)

    def queue(self) -> None:
        """Put the waiting jobs into the queue, or let them be held by a limit or blocked by dependencies."""
        cluster = self.cluster
        for job, place in self.waiting:
            spec = job.spec
            if spec is None or not spec.dependencies:
                self._enqueue(job)
                continue
            for i, dependency in enumerate(spec.dependencies):
                if dependency.job not in self.names or dependency.job == job.id:
                    raise InputError(
                        f"must be another running or waiting job, got {dependency.job!r}",
                        None,
                        f"{place}.dependencies[{i}]",
                    )
            cluster.dependencies.block(job)

    def _enqueue(self, job: LiveJob) -> None:
        if job.rules is not None and job.rules.holds(job):
            job.state = "held"
        else:
            self.cluster.queueing.join(job, places_to_wait(job, self.cluster.core))

    def usage(self, used: Mapping[int | str, float], half_life: float | None) -> tuple[float, tuple[Any, ...]]:
        """Return the record of the consumption of users."""
        own = self.cluster.core.usages
        if half_life is None:
            half_life = own[0].half_life if own else HALF_LIFE
        if not isinstance(half_life, (int, float)) or not half_life > 0:
            raise InputError(f"must be seconds > 0, got {half_life!r}", None, "half_life")
        record = Usage(half_life)
        for user, seconds in used.items():
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < inf:
                raise InputError(f"must be processor seconds >= 0, got {seconds!r}", None, f"usage.{user}")
            record.by_user[user] = float(seconds), 0.0, float(self.now)
        for pool in self.cluster.places:
            for run in pool.running:
                record.change(run.job.user, run.job.processors, self.now)
        return float(half_life), tuple((user, *map(float, held)) for user, held in record.by_user.items())
