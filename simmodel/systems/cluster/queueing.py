"""The waiting jobs of a cluster: one queue per place, limits that hold jobs, and decisions on arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from simmodel.scheduling.protocol import work_units
from simmodel.scheduling.waiting import MergedQueues, WaitingQueue
from simmodel.systems.cluster.limits import QueueRules

if TYPE_CHECKING:
    from simmodel.resources.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import LiveJob

__all__ = ["Queueing"]


class QueuedWork:
    """Totals over waiting jobs, updated as whole numbers when jobs come and go.

    Attributes
    ----------
    processors, work
        requested processors; expected work in units of 2^-20 processor seconds
    endless
        number of jobs without an expected end
    changed
        functions that are called whenever a job joins or leaves
    """

    __slots__ = ("changed", "endless", "processors", "work")

    def __init__(self) -> None:
        self.changed: list[Callable[[], object]] = []
        self.processors = self.work = self.endless = 0

    def add(self, job: LiveJob) -> None:
        """Count a job that joins the queue."""
        self._count(job, 1)

    def remove(self, job: LiveJob) -> None:
        """Count a job that leaves the queue."""
        self._count(job, -1)

    def _count(self, job: LiveJob, sign: int) -> None:
        for call in self.changed:
            call()
        self.processors += sign * job.processors
        self.work += sign * work_units(job.processors, job.expected)
        self.endless += sign * (job.expected == inf)


class Queueing:
    """One queue per place, limits that hold jobs, and the decisions that arrivals bring.

    Attributes
    ----------
    queues, only_queue
        the queues by place; the single one, or ``None``
    waiting
        the jobs of all queues, as seen by policies
    rules
        the limits of the named queues in the cluster's spec, by name
    tries_every_submission
        whether the policy also decides when a new job does not fit
    settle
        releases the grants of jobs that have ended by now, for submissions that precede ends
    """

    settle: Callable[[], None]

    def __init__(self, core: ClusterCore) -> None:
        self._core = core
        self.queues = {pool: WaitingQueue(core.env) for pool in core.places}
        for pool, queue in self.queues.items():
            index = pool.know_queue()
            if index is not None:
                queue.keep(index)
        self.only_queue = None if core.only_pool is None else self.queues[core.only_pool]
        self.waiting: WaitingQueue | MergedQueues = (
            MergedQueues(self.queues) if self.only_queue is None else self.only_queue
        )
        self.rules = {queue.name: QueueRules(queue) for queue in core.spec.queues}
        self.tries_every_submission = False
        self._on_nodes = core.offers.nodes
        self._queued: QueuedWork | None = None

    def admit(self, job: LiveJob) -> None:
        """Submit a plain job of a log (hot path)."""
        core = self._core
        for hook in core.on_submitted:
            hook(job)
        queue = self.only_queue
        assert queue is not None
        if not core.by_event:
            queue.add(job)
            core.wake()
            return
        fits = True
        if core.submits_first:
            self.settle()
            fits = job.place.fits(job) if self._on_nodes else job.processors <= job.place.free
        queue.add(job)
        if fits or self.tries_every_submission:
            core.decide()

    def enqueue(self, job: LiveJob) -> None:
        """Put an eligible job into the queue of its place, unless a limit holds it."""
        if job.rules is not None and job.rules.holds(job):
            job.state = "held"
            return
        core = self._core
        tries = True
        if core.submits_first:
            self.settle()
            tries = self.tries_every_submission or job.place.fits(job)
        self.queues[job.place].add(job)
        if tries:
            core.wake()

    def leave(self, job: LiveJob) -> None:
        """Remove a waiting or held job."""
        if job.state == "waiting":
            self.queues[job.place].remove(job)
        if job.rules is not None:
            job.rules.forget(job)

    @property
    def queued(self) -> QueuedWork:
        """Totals over waiting jobs, updated incrementally from the first access on."""
        if self._queued is None:
            self._queued = QueuedWork()
            for queue in self.queues.values():
                queue.keep(self._queued)
        return self._queued

    def move(self, job: LiveJob, place: Pool) -> None:
        """Move a waiting job to the queue of another place."""
        before = job.place
        self.queues[before].remove(job)
        job.place = place
        job.priority += place.priority - before.priority
        job.width = job.processors
        if job._job is not None:
            job.request = place.request_of(job._job)
        self.queues[place].add(job)

    def started(self, job: LiveJob) -> None:
        """Count a start in the limits of the job's queue; hold the waiting jobs that exceed them from now on."""
        if job.rules is not None:
            for held in job.rules.started(job):
                self.queues[held.place].remove(held)
                held.state = "held"

    def ended(self, job: LiveJob) -> Sequence[LiveJob]:
        """Count an end in the limits of the job's queue; return the held jobs that may wait from now on."""
        return job.rules.ended(job) if job.rules is not None else ()

    def held(self) -> Iterator[LiveJob]:
        """Yield the held jobs, queue by queue."""
        for rules in self.rules.values():
            yield from rules.held

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence per waiting or held job."""
        for pool, queue in self.queues.items():
            for job in queue:
                never = pool.why_not(job)  # its capacity has changed
                yield (
                    f"job {job.id} has waited for {job.processors} processors of {pool.name} since {job.submit:g} s; "
                    f"{pool.free} of {pool.capacity} are free" + (f": {never}" if never is not None else "")
                )
        for rules in self.rules.values():
            for job in rules.held:
                yield f"job {job.id}, submitted at {job.submit:g} s, is held by a limit of queue {rules.spec.name}"
