"""Where the jobs of a cluster wait, what holds them back, and when their coming brings a decision."""

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
    """What waiting jobs ask for and are expected to take, as whole numbers that are kept as they come and go.

    Attributes
    ----------
    processors, work
        processors asked for; expected work in units of 2^-20 processor seconds
    endless
        how many have no end
    """

    __slots__ = ("endless", "processors", "work")

    def __init__(self) -> None:
        self.processors = self.work = self.endless = 0

    def add(self, job: LiveJob) -> None:
        """Count a job that comes."""
        self._count(job, 1)

    def remove(self, job: LiveJob) -> None:
        """Count a job that goes."""
        self._count(job, -1)

    def _count(self, job: LiveJob, sign: int) -> None:
        self.processors += sign * job.processors
        self.work += sign * work_units(job.processors, job.expected)
        self.endless += sign * (job.expected == inf)


class Queueing:
    """One queue a place, limits that hold jobs back, and when a job that comes brings a decision.

    Attributes
    ----------
    queues, only_queue
        by place; the one where there is only one
    waiting
        what waits in all of them, as policies see it
    rules
        of the queues that the cluster describes, by name
    tries_every_submission
        whether the policy wants a decision also for a job that does not fit now
    settle
        frees what holds jobs that have ended by now, where submissions come before ends
    """

    settle: Callable[[], None]

    def __init__(self, core: ClusterCore) -> None:
        self._core = core
        self.queues = {pool: WaitingQueue(core.env) for pool in core.places}
        self.only_queue = None if core.only_pool is None else self.queues[core.only_pool]
        self.waiting: WaitingQueue | MergedQueues = (
            MergedQueues(self.queues) if self.only_queue is None else self.only_queue
        )
        self.rules = {queue.name: QueueRules(queue) for queue in core.spec.queues}
        self.tries_every_submission = False
        self._queued: QueuedWork | None = None

    def admit(self, job: LiveJob) -> None:
        """Take in a plain job of a log: the hot path."""
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
            fits = job.processors <= job.place.free
        queue.add(job)
        if fits or self.tries_every_submission:
            core.decide()

    def enqueue(self, job: LiveJob) -> None:
        """Put an eligible job into the queue of its place, unless a limit holds it."""
        if job.rules is not None and job.rules.holds(job):
            job.state = "held"
            return
        core = self._core
        if core.submits_first:
            self.settle()
        fits = job.place.fits(job)
        self.queues[job.place].add(job)
        if not core.submits_first or fits or self.tries_every_submission:
            core.wake()

    def leave(self, job: LiveJob) -> None:
        """Take out a job that waits or is held."""
        if job.state == "waiting":
            self.queues[job.place].remove(job)
        if job.rules is not None:
            job.rules.forget(job)

    @property
    def queued(self) -> QueuedWork:
        """What waiting jobs ask for; kept as they come and go from the first question on."""
        if self._queued is None:
            self._queued = QueuedWork()
            for queue in self.queues.values():
                queue.keep(self._queued)
        return self._queued

    def move(self, job: LiveJob, place: Pool) -> None:
        """Let a waiting job wait for another place."""
        before = job.place
        self.queues[before].remove(job)
        job.place = place
        job.priority += place.priority - before.priority
        if job._job is not None:
            job.request = place.request_of(job._job)
        self.queues[place].add(job)

    def started(self, job: LiveJob) -> None:
        """Count a start in the limits of its queue, and hold what is beyond them from now on."""
        if job.rules is not None:
            for held in job.rules.started(job):
                self.queues[held.place].remove(held)
                held.state = "held"

    def ended(self, job: LiveJob) -> Sequence[LiveJob]:
        """Count an end in the limits of its queue; return the jobs that were held and may wait from now on."""
        return job.rules.ended(job) if job.rules is not None else ()

    def held(self) -> Iterator[LiveJob]:
        """Iterate over the jobs that a limit holds, queue by queue."""
        for rules in self.rules.values():
            yield from rules.held

    def waiting_report(self) -> Iterator[str]:
        """Yield one sentence for each job that waits or is held."""
        for pool, queue in self.queues.items():
            for job in queue:
                yield (
                    f"job {job.id} waits for {job.processors} processors of {pool.name} since {job.submit:g}; "
                    f"{pool.free} of {pool.capacity} are free"
                )
        for rules in self.rules.values():
            for job in rules.held:
                yield f"job {job.id} is held by a limit of queue {rules.spec.name} since {job.submit:g}"
