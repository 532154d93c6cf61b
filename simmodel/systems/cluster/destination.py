"""A cluster as a place of a broker: it takes over the broker's live jobs instead of submitting new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.scheduling.protocol import Estimate, LoadLine
from simmodel.systems.cluster.future.plan import ProjectedJob
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.destination import BrokeredJob, Destination
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from simmodel.systems.system import EstimateBasis

__all__ = ["ClusterDestination"]

INFINITY = float("inf")


class ClusterDestination(Destination):
    """A cluster as a place of a broker; parameters and attributes are those of the base class.

    A job of a log that requests only processors and time costs no more than in a log of the cluster itself.

    Attributes
    ----------
    on_the_way
        the number, the processors and the work (units of 2^-20 processor seconds) of the jobs that are bound for it and
        not yet in its queue; only sites of grids have such jobs
    """

    system: Cluster

    def __init__(self, cluster: Cluster, by: EstimateBasis = "requested") -> None:
        super().__init__(cluster, by)
        self.forecast = cluster.forecast(by)
        self._actual = by == "actual"
        # Where jobs that request only processors and time wait: the only place, if no queue has limits.
        self._plain = None if cluster.rules else cluster.core.only_pool
        self.basis = (cluster.core.estimates, cluster.core.overrun) if self.forecast.punctual else None
        self.top_speed = INFINITY if any(pool.paced for pool in cluster.places) else 1.0
        spec, policy = cluster.spec, cluster.scheduler
        # Whether processors come free at ends alone, as far as simulations know:
        kept = self.forecast.keeps or (policy.known_as is not None and not policy.policy.preempts)
        self._steady = kept and not (self._actual or spec.outages or spec.failures or spec.reservations)
        self._watched: tuple[Any, ...] | None = None  # what the load of a cluster with one place is read from
        self.on_the_way = [0, 0, 0]

    @property
    def free(self) -> int:
        """Number of free processors outside reservations."""
        pool = self.system.core.only_pool
        return self.system.free if pool is None else int(pool.free)

    @property
    def queued(self) -> int:
        """Number of waiting jobs."""
        return int(self.system.view.waiting.count)

    @property
    def runs(self) -> int:
        """Number of running jobs."""
        return sum(len(pool.running) for pool in self.system.places)

    @property
    def queued_processors(self) -> int:
        """Processors requested by waiting jobs."""
        return self.system.queueing.queued.processors

    @property
    def backlog(self) -> float:
        """Expected remaining work of running and waiting jobs, in processor seconds."""
        cluster = self.system
        endless = cluster.queueing.queued.endless or any(pool.running.left.endless for pool in cluster.places)
        return INFINITY if endless else cluster.load.backlog

    def watch_load(self, changed: Callable[[], object]) -> None:
        """Call a function from now on whenever the backlog or the capacity changes other than with time."""
        cluster = self.system
        cluster.queueing.queued.changed.append(changed)
        for each in cluster.places:
            each.running.left.changed.append(changed)
            each.changed.append(changed)
        pool = cluster.core.only_pool
        if pool is not None:
            self._watched = pool, pool.running, pool.running.left, cluster.queueing.queued, cluster.view.waiting

    def load_line(self) -> LoadLine:
        """Return its load and queue now, and how the load falls with time (hot path)."""
        cluster, (coming, _, more) = self.system, self.on_the_way
        if self._watched is not None:
            only, there, rest, waits, waiting = self._watched
            work, processors, end = rest.line(cluster.env._now)
            backlog = INFINITY if waits.endless or rest.endless else (waits.work + work) / 2**20
            if coming:
                backlog += more / 2**20
            line = backlog, processors, end, only.capacity, only.free, waiting.count, there.size, coming
            return tuple.__new__(LoadLine, line)  # as LoadLine(*line), at half the cost
        now, queued = cluster.env._now, cluster.queueing.queued
        endless = queued.endless
        falls, until, left, capacity, free, runs = 0, INFINITY, 0, 0, 0, 0
        for pool in cluster.places:
            running = pool.running
            each = running.left
            work, processors, end = each.line(now)
            if end < until:
                until = end
            falls += processors
            left += work
            endless = endless or each.endless
            runs += running.size
            if pool.part_of is None:
                capacity += pool.capacity
                free += pool.free
        backlog = INFINITY if endless else (queued.work + left) / 2**20 + more / 2**20
        return LoadLine(backlog, falls, until, capacity, free, cluster.view.waiting.count, runs, coming)

    def earliest_start(self, job: BrokeredJob) -> float:
        """Return an instant (s) before which no estimate by simulation has the job start: by the ends of the runs."""
        now, pool, end = self.system.env._now, self._plain, self.next_end
        if pool is None or not job.plain or end <= now or pool.fits(job):
            return now
        missing = job.processors - pool.free
        return pool.running.when_free(missing, now)[0] if missing > 0 and self.forecast.punctual else end

    @property
    def next_end(self) -> float:
        """The instant (s) before which no processors come free in a simulation; -infinity if it is not known."""
        cluster, pool = self.system, self._plain
        if pool is None or not self._steady or cluster.execution.malleable or pool.windows:
            return -INFINITY
        return pool.running.first_end

    def unslowed_run(self, job: BrokeredJob) -> float:
        """Return how long a job would run here at speed 1 without a slowdown factor (s), as estimates expect."""
        core = self.system.core
        run = job._length if self._actual or core.estimates == "exact" else job.limit
        return min(run, job.limit) if core.overrun == "stop" else run

    def seconds(self, job: BrokeredJob) -> tuple[float, float, float]:
        """Return the seconds that a job would be planned with here, waiting and running, and its run time."""
        slowdowns = self.slowdowns
        slowdown = slowdowns[None] if len(slowdowns) == 1 else self.slowdown(job)
        limit, run = job.limit * slowdown, job._length * slowdown
        cluster = self.system
        if job._job is not None and job._job.own_end:
            return limit, limit, INFINITY
        if cluster.core.overrun == "stop" and run > limit:
            run = limit
        return (
            limit if cluster.core.estimates == "requested" else run,
            run if cluster.core.estimates == "exact" else limit,
            run,
        )

    def why_not(self, job: BrokeredJob) -> str | None:
        """Return why the cluster can never run the job, or ``None``; has no side effects."""
        pool = self._plain
        if pool is not None and job.plain:
            if job.processors <= pool.largest:
                if not pool.limited:
                    return None
            elif job._job is None:
                return pool.too_large(job.processors, self.name)
        try:
            return self._guest(job)[1]
        except InputError as error:
            return error.message

    def fits(self, job: BrokeredJob) -> bool:
        """Whether the job could start now if the queue were empty."""
        guest, reason = self._guest(job)
        return reason is None and bool(guest.place.fits(guest))

    def request(self, job: BrokeredJob) -> Job:
        """Return the job as it would be submitted here."""
        request = super().request(job)
        assert isinstance(request, Job)
        return request

    def _guest(self, job: BrokeredJob) -> tuple[LiveJob, str | None]:
        """Return the live job as it would be here, and why it can never run or ``None``."""
        return self.system.live(self.request(job))

    def estimate(self, job: BrokeredJob) -> Estimate:
        """Estimate when the job would start here if handed over now, and how long it would run; has no side effects."""
        pool = self._plain
        if pool is not None and job.plain:
            requested, expected, duration = self.seconds(job)
            work = ProjectedJob(job, job.processors, requested, expected, duration if self._actual else expected)
            return self.forecast.expect(work, pool)
        guest, reason = self._guest(job)
        return self.forecast.estimate(guest) if reason is None else Estimate(INFINITY, 0.0, 0.0, guest.planned)

    def take(self, job: BrokeredJob) -> LiveJob:
        """Take a job over into the queue of the cluster, to which it belongs from now on."""
        cluster = self.system
        pool, plain = self._plain, job.plain
        if pool is not None and plain:
            job.plan(*self.seconds(job))
            job.unrequested &= cluster.core.estimates == "requested"
            job.place = pool
            job.priority += pool.priority
            job.watched = bool(cluster.core.usages)
            if cluster.core.overrun == "stop" and job._length > job.limit:
                job._outcome = "timeout"
        else:
            guest, _ = cluster.live(self.request(job))
            job.adopt(guest)
            job.watched, plain = True, False
        self.forecast.adds(job)
        cluster.receive(job)
        job.submit = cluster.env._now
        if plain:  # it costs no more than a job of a log
            cluster.queueing.admit(job)
        else:
            cluster.take_in(job)
        self.handed.append((job.index, job.row))
        return job
