"""How jobs come into a cluster: the live job of a request, and the door by which logs come."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from simmodel.foundation.errors import InputError, SnapshotError, unknown
from simmodel.records.streamed_recorder import StreamedRecorder
from simmodel.snapshots.jobs import WorkState
from simmodel.systems.arrivals import Arrivals, Block, Door, as_queue, name_of, needs_specs, requests_of
from simmodel.systems.cluster.queueing import able, places_of
from simmodel.work.job import Job, LiveJob
from simmodel.work.malleable import MalleableJob
from simmodel.work.prepare import Prepared, planned_seconds, prepare

if TYPE_CHECKING:
    from simpy.events import Event

    from simmodel.environment import Environment, ToCome
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.platform.options import ClusterOptions
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import View
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.scheduling.scheduler import Scheduler
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.cluster.calendar import Calendar
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.execution import JobExecution
    from simmodel.systems.cluster.queueing import Queueing, QueueRules
    from simmodel.systems.cluster.run_times import Predictions
    from simmodel.systems.dependencies import Dependencies
    from simmodel.work.workload import Workload

__all__ = ["ClusterDoor", "LiveCluster", "LogArrivals", "adds_nothing", "columns_of_log", "live_job"]


class LiveCluster(Protocol):
    """A :class:`~simmodel.systems.cluster.system.Cluster` as its door, its snapshots and its futures see it."""

    env: Environment
    spec: ClusterSpec
    name: str
    options: ClusterOptions
    core: ClusterCore
    pools: dict[str, Pool]
    places: tuple[Pool, ...]
    queueing: Queueing
    sources: list[Any]
    submitted: int
    execution: JobExecution
    scheduler: Scheduler
    view: View
    predictions: Predictions | None

    @property
    def dependencies(self) -> Dependencies:
        """The part that holds jobs back until others have started or ended."""

    @property
    def calendar(self) -> Calendar:
        """The part that carries out its outages, failures and reservations."""

    @property
    def rules(self) -> Mapping[str, Any]:
        """The limits of its queues, by name."""

    def present(self) -> Iterator[LiveJob]:
        """Yield the jobs that run or wait."""

    def check_copy(self) -> None:
        """Raise an error if it cannot be copied."""

    def arrivals(self) -> tuple[list[WorkState], list[ToCome]]:
        """Return the jobs to come, and the planned submissions and cancellations."""

    def begin_with(self, snapshot: ClusterSnapshot, /) -> None:
        """Count the jobs of a snapshot."""

    def come(self, job: LiveJob, reason: str | None, /) -> None:
        """Submit a job of a log, or reject it."""

    def cancel_at(self, job: LiveJob, at: float, /) -> None:
        """Plan the cancellation of a job."""

    def receive(self, job: LiveJob, /) -> None:
        """Assign a number and a row to a job that is about to be submitted."""

    def take_in(self, job: LiveJob, /) -> None:
        """Submit a live job."""

    def count_coming(self, jobs: int, /) -> None:
        """Count jobs that have not ended."""

    def live(self, spec: Job, number: int | None = None, row: int | None = None, /) -> tuple[LiveJob, str | None]:
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


class LogArrivals(Arrivals[Any]):
    """Submits the jobs of a log to a cluster: plain ones at the cost of a live job, others one by one.

    The number of a job in the order of submission is its row, unless ``number_of`` returns another.
    """

    __slots__ = ("_cluster", "_fixed", "_number_of")

    def __init__(
        self, cluster: LiveCluster, blocks: Iterable[Block], number_of: Callable[[int], int] | None = None
    ) -> None:
        core, queue = cluster.core, cluster.queueing.only_queue
        self._cluster = cluster
        self._number_of = number_of
        add: Any = None if queue is None else queue.add
        self._fixed = (core, add, core.only_pool, core.by_event or bool(core.on_submitted))  # for each event
        super().__init__(core.env, blocks, core.submit_priority)

    def number_at(self, row: int) -> int:
        return row if self._number_of is None else self._number_of(row)

    def state(self) -> list[WorkState]:
        """Return the jobs that have not been submitted.

        Raises
        ------
        SnapshotError
            if one has a body
        """
        states = []
        for row in self.left():
            number, more = self.number_at(row[0]), row[10]
            states.append(self._asked(more, number, row[1]) if isinstance(more, Job) else self._plain(number, row))
        return states

    def _plain(self, number: int, row: Sequence[Any]) -> WorkState:
        _, submit, processors, limit, expected, length, name, user, outcome, unrequested, more = row[:11]
        spec, place = None, self._cluster.places[0].name
        if isinstance(more, float):  # cancelled while it waited
            asked = None if limit == inf else limit
            spec = Job(id=name, submit=submit, processors=processors, requested=asked, user=user, cancel=more)
            more = None
        about = name, number, submit, processors, limit, expected, length, user, 0.0, place, outcome or "completed"
        return WorkState(*about, spec, elastic=more, unrequested=unrequested)

    def _asked(self, spec: Job, number: int, submit: float) -> WorkState:
        core, name = self._cluster.core, _name_of(spec, number)
        if spec.has_body:
            raise SnapshotError(f"job {name} (not yet submitted) cannot be copied: {spec.program}")
        run = core.io.timed_job(spec).seconds()
        limit = spec.requested if spec.requested is not None else run
        seconds = planned_seconds(run, limit, core.estimates, core.overrun)
        planned, expected, duration = map(float, seconds if spec.traffic is None else (limit, limit, run))
        unrequested = spec.requested is None and core.estimates == "requested"
        about = name, number, submit, spec.processors, planned, expected, duration, spec.user
        return WorkState(*about, spec=spec, unrequested=unrequested)

    def names(self) -> Iterator[tuple[int | str, float]]:
        """Yield the ids of the jobs that have not been submitted, each with the instant of its submission (s)."""
        for row, at, _, _, _, _, name, *_, more in self.left():
            yield (_name_of(more, self.number_at(row)) if isinstance(more, Job) else name), at

    @classmethod
    def restored(cls, cluster: LiveCluster, works: Iterable[WorkState], rows: Mapping[int, int]) -> Self:
        """Return the source of jobs of a snapshot, given the rows of the record by number."""
        numbers = {rows[work.number]: work.number for work in works}
        return cls(cluster, [[_coming(*each) for each in zip(numbers, works, strict=True)]], numbers.__getitem__)

    def _fire(self, _event: Event) -> None:
        core, admit, pool, each = self._fixed
        cluster, number_of = self._cluster, self._number_of
        one_by_one = core.by_event or core.on_submitted
        if one_by_one:
            admit = cluster.queueing.admit
        watched = bool(core.usages)
        power = None if pool is None else pool.power
        jobs, i = self._jobs, self._i
        at = jobs[i][1]
        self.number = inf
        while True:
            row, _, processors, planned, expected, duration, name, user, outcome, blind, more = jobs[i]
            i += 1
            if i == len(jobs):
                jobs, i = self._next_block(), 0
                each = each or (bool(jobs) and type(jobs[0][10]) is Job)
            self._i = i
            if more is None:
                job = LiveJob(name, row, at, processors, planned, expected, duration, user, pool, watched)
            elif isinstance(more, float):
                job = LiveJob(name, row, at, processors, planned, expected, duration, user, pool, True)
                cluster.cancel_at(job, more)
            elif type(more) is Job:  # each has an event of its own
                cluster.come(*cluster.live(more, row if number_of is None else number_of(row), row))
                if jobs:
                    self._push(jobs[i][1])
                return
            else:
                job = MalleableJob(name, row, at, processors, planned, expected, duration, user, pool, True)
                job.elastic = more
            if number_of is not None:
                job.seq = number_of(row)
            if outcome is not None:
                job._outcome = outcome
            if power is not None:
                power.count(job)
            if blind:
                job.unrequested = True
            admit(job)
            if not jobs:
                break
            then = jobs[i][1]
            if each or then != at:
                self._push(then)
                break
        if not one_by_one:
            core.wake_last()


def _name_of(spec: Job, number: int) -> int | str:
    return spec.id if spec.id is not None else spec.name or number + 1


def _coming(row: int, work: WorkState) -> tuple[Any, ...]:
    duration = work.expected if work.duration is None else work.duration
    outcome, spec = None if work.outcome == "completed" else work.outcome, work.spec
    more: Any = work.elastic
    if spec is not None and not work.place:
        more = spec
    elif spec is not None and spec.cancel is not None:
        more = float(spec.cancel)
    seconds = work.requested, work.expected, duration
    return row, work.submit, work.processors, *seconds, work.id, work.user, outcome, work.unrequested, more


class ClusterDoor(Door):
    """The door of a cluster, whose record expects the jobs of a log."""

    system: Any

    def prepare(self, workload: Workload) -> Prepared:
        """Return the jobs of a workload as simulated here."""
        core = self.system.core
        return prepare(
            workload, core.largest, core.estimates, core.overrun, too_large=core.too_large, timed=core.io.timed
        )

    def admit(self, workload: Workload, prepared: Prepared) -> Iterable[Block]:
        """Give the jobs of a workload their rows in the record, and reject some; return the others, in blocks."""
        cluster, core = self.system, self.system.core
        if core.recorder is not None and not core.recorder.expect(columns_of_log(workload, prepared)):
            core.record_submissions()
        first = cluster.submitted - cluster.offset
        names = workload["job"].tolist() if prepared.rejected else []
        for row, reason in prepared.rejected.items():
            processors = int(prepared.processors[row])
            job = LiveJob(names[row], first + row, float(workload["submit"][row]), processors, 0.0, 0.0, 0.0)
            job.place = core.places[0]
            cluster.reject(job, reason)
        cluster.submitted += len(workload)
        pool = core.only_pool
        special = pool is None or pool.limited or pool.power is not None or needs_specs(workload, core.offers)
        jobs = requests_of(workload, prepared, core.offers) if special else None
        return self.blocks(workload, prepared, first, jobs)

    def plan(self, blocks: Iterable[Block]) -> None:
        """Plan the submission of jobs."""
        offset = self.system.offset
        self.system.sources.append(LogArrivals(self.system, blocks, offset.__add__ if offset else None))

    def write(self, *, everything: bool = False) -> None:
        """Write the rows of the jobs that have ended, or all rows."""
        recorder = self.system.core.recorder
        assert isinstance(recorder, StreamedRecorder)
        recorder.drain(everything=everything)


def live_job(
    spec: Job, number: int, row: int, core: ClusterCore, rules: Mapping[str, QueueRules], known: Container[object]
) -> tuple[LiveJob, str | None]:
    """Return the live job of a request, and why it can never run or ``None``; has no side effects.

    Parameters
    ----------
    spec, number, row
        the request, its number in the order of submission, and its row in the record
    core, rules, known
        of the cluster: its core, the limits of its queues, and the ids of its jobs

    Raises
    ------
    InputError
        if it names an unknown queue or partition
    """
    spec = as_queue(core.io.timed_job(spec), rules, core.pools)
    run = spec.seconds()
    limit = spec.requested if spec.requested is not None else run
    requested, expected, duration = map(float, planned_seconds(run, limit, core.estimates, core.overrun))
    if spec.own_end:
        requested, expected, duration = limit, limit, float("inf")
    name = name_of(spec, number + 1, known)
    kind = LiveJob if spec.elastic is None else MalleableJob
    job = kind(name, row, core.env.now, spec.processors, requested, expected, duration)
    if spec.elastic is not None:
        job.elastic = spec.elastic
    job.seq = number
    job._job = spec
    job.user, job.priority = spec.user, spec.priority
    job.unrequested = spec.requested is None and core.estimates == "requested"
    cut = core.overrun == "stop" and limit < run and spec.traffic is None
    if cut or spec.run is None or spec.outcome != "completed":
        job.end_as(cut=cut)
    job.watched = True
    if spec.queue is not None and rules:
        job.rules = rules.get(str(spec.queue))
        if job.rules is None:
            raise InputError(f"job {name}: {unknown('queue', str(spec.queue), rules).message}")
        job.priority += job.rules.spec.priority
    places = places_of(spec, core) if spec.partitions and core.only_pool is None else [_place_of(job, spec, core)]
    for pool in places:
        job.request = pool.request_of(spec)
        if spec.requested == inf and not spec.own_end:
            _limit(job, spec, pool, core)
        reason = pool.why_not(job) or pool.limits.why_not(job, pool.name)
        if reason is None:
            break
    else:
        if len(places) > 1:
            pool, reason = places[0], able(job, places)[1]
            job.request = pool.request_of(spec)
    job.place = pool
    job.priority += pool.priority
    reason = reason or (job.rules.why_not(job) if job.rules is not None else None)
    if reason is None and spec.workflow is not None:
        from simmodel.systems.cluster.bodies import why_not_inside

        reason = why_not_inside(spec, pool)
    if reason is None and spec.traffic is not None:
        from simmodel.systems.cluster.traffic import why_no_traffic

        reason = why_no_traffic(spec, pool)
    return job, reason or core.io.why_not(spec)


def _limit(job: LiveJob, spec: Job, pool: Pool, core: ClusterCore) -> None:
    """Give a job without a limit that of its partition and queue."""
    rules, run = job.rules, spec.seconds()
    limits = pool.limits.requested, None if rules is None else rules.spec.max_requested
    limit = min([inf, *(each for each in limits if each is not None)])
    job.plan(*map(float, planned_seconds(run, limit, core.estimates, core.overrun)))
    job.end_as(cut=core.overrun == "stop" and limit < run and spec.traffic is None)


def adds_nothing(job: Job) -> bool:
    """Whether a live job has all that its request has, but for its name."""
    waits = job.dependencies or job.group is not None
    return job.plain and not (waits or job.inputs or job.outputs or job.site is not None or job.keeps_work)


def _place_of(job: LiveJob, spec: Job, core: ClusterCore) -> Pool:
    """Return the pool that a job waits for: its partition, else that of its queue, else the default one.

    Without a default, the first partition that can ever run it.

    Raises
    ------
    InputError
        if the partition is unknown
    """
    if core.only_pool is not None:
        return core.only_pool
    name = spec.partition
    if name is None and job.rules is not None:
        name = job.rules.spec.partition
    if name is None:
        name = core.spec.default_partition
    if name is not None:
        pool = core.pools.get(str(name))
        if pool is None:
            raise InputError(f"job {job.id}: {unknown('partition', str(name), core.pools).message}")
        return pool
    for pool in core.places:
        if pool.part_of is not None:
            break  # reservations must be named
        job.request = pool.request_of(spec)
        if pool.why_not(job) is None and pool.limits.why_not(job, pool.name) is None:
            return pool
    return core.places[0]


def columns_of_log(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return the columns of a workload for the record."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    columns |= {
        "processors": prepared.processors,
        "requested": np.where(prepared.unrequested, np.nan, prepared.requested),
        "recorded_run": workload["run"],
    }
    return columns if prepared.outcomes is None else columns | {"outcome": prepared.outcomes}
