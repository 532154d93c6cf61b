"""A cluster as a place of a broker: jobs are taken over as they are, not submitted anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.errors import InputError
from simmodel.scheduling.protocol import Estimate
from simmodel.systems.cluster.projection import ProjectedJob
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.destination import BrokeredJob, Destination
from simmodel.work.job import Job, LiveJob

if TYPE_CHECKING:
    from simmodel.systems.system import EstimateBasis

__all__ = ["ClusterDestination"]

INFINITY = float("inf")


class ClusterDestination(Destination):
    """A cluster as a place of a broker; parameters and attributes are those of the base class.

    A job of a log that asks for processors and time alone costs no more here than in the cluster's own logs.
    """

    system: Cluster

    def __init__(self, cluster: Cluster, by: EstimateBasis = "requested") -> None:
        super().__init__(cluster, by)
        self.forecast = cluster.forecast(by)
        self._actual = by == "actual"
        self._plain = cluster.plain_pool  # where jobs go that ask for processors and time alone

    @property
    def queued(self) -> int:
        """Jobs that wait."""
        return len(self.system.view.waiting)

    @property
    def runs(self) -> int:
        """Jobs that run."""
        return sum(len(pool.running) for pool in self.system.places)

    @property
    def queued_processors(self) -> int:
        """Processors that waiting jobs ask for."""
        return self.system.queueing.queued.processors

    @property
    def backlog(self) -> float:
        """Processor seconds that what runs and waits is still expected to take."""
        return INFINITY if self.system.endless_work else self.system.load.backlog

    def seconds(self, job: BrokeredJob) -> tuple[float, float, float]:
        """Return the seconds that a job would be planned with here, planned with once it runs, and run."""
        slowdown = self.slowdown(job)
        limit, run = job.limit * slowdown, job._length * slowdown
        cluster = self.system
        if job._job is not None and job._job.body is not None:
            return limit, limit, INFINITY
        if cluster.core.overrun == "stop" and run > limit:
            run = limit
        return (
            limit if cluster.core.estimates == "requested" else run,
            run if cluster.core.estimates == "exact" else limit,
            run,
        )

    def why_not(self, job: BrokeredJob) -> str | None:
        """Say why the cluster can never run the job, or ``None``; a pure question."""
        pool = self._plain
        if pool is not None and job._job is None:
            if job.processors > pool.capacity:
                return f"{job.processors} processors asked for, {self.name} has {pool.capacity}"
            if pool.max_processors is None and pool.max_requested is None:
                return None
        try:
            return self._guest(job)[1]
        except InputError as error:
            return error.message

    def fits(self, job: BrokeredJob) -> bool:
        """Whether the job could start now, were nothing before it in the queue."""
        guest, reason = self._guest(job)
        return reason is None and bool(guest.place.fits(guest))

    def request(self, job: BrokeredJob) -> Job:
        """Return the job as it would be submitted here."""
        request = super().request(job)
        assert isinstance(request, Job)
        return request

    def _guest(self, job: BrokeredJob) -> tuple[LiveJob, str | None]:
        """Return the job as it would be here, and why it can never run."""
        return self.system.live(self.request(job))

    def estimate(self, job: BrokeredJob) -> Estimate:
        """Return when the job would start and how long it would run here, were it handed over now; a pure question."""
        pool = self._plain
        if pool is not None and job._job is None:
            requested, expected, duration = self.seconds(job)
            work = ProjectedJob(job, job.processors, requested, expected, duration if self._actual else expected)
            return self.forecast.expect(work, pool)
        guest, reason = self._guest(job)
        return self.forecast.estimate(guest) if reason is None else Estimate(INFINITY, 0.0, 0.0, guest.requested)

    def take(self, job: BrokeredJob) -> LiveJob:
        """Take a job into the queue of the cluster; from now on it is the cluster's."""
        cluster = self.system
        spec = job._job
        if self._plain is not None and spec is None:
            job.plan(*self.seconds(job))
            job.place = self._plain
            job.priority += self._plain.priority
            job.watched = bool(cluster.core.usages)
        else:
            guest, _ = cluster.live(self.request(job))
            job.adopt(guest)
            job.watched = True
        if cluster.core.overrun == "stop" and job._length > job.limit and (spec is None or spec.body is None):
            job._outcome = "timeout"
        self.forecast.adds(job)
        self.handed.append((cluster.take_over(job), job.row))
        return job
