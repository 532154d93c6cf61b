"""The plan of conservative backfilling on identified nodes, kept from decision to decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.policies.fast.count_plan import CountPlan
from simmodel.policies.spare import ahead
from simmodel.resources.pools.node_profile import NodeGaps, shape_of
from simmodel.scheduling.protocol import Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simmodel.resources.pools.node_profile import NodeTimes
    from simmodel.resources.pools.nodes import NodePool
    from simmodel.resources.pools.running import Entry
    from simmodel.scheduling.protocol import Decision, OrderLike
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["NodePlan"]

INFINITY = float("inf")


class NodePlan(CountPlan):
    """The planned starts and nodes of the waiting jobs of a pool of identified nodes.

    A planned job has certain nodes, the first that are free for its whole requested time: where jobs share nodes, they
    are the proof that it can start then.

    Parameters
    ----------
    place, waiting, order, keep
        as for :class:`~simmodel.policies.fast.count_plan.CountPlan`
    times
        when the nodes have room beside the running work
    """

    __slots__ = ("_odd", "_open", "_same", "_spare", "_times", "_until_then", "_where", "_witness")

    _place: NodePool
    _profile: NodeGaps

    counted = False

    def __init__(
        self, place: NodePool, waiting: WaitingQueue, order: OrderLike, times: NodeTimes, *, keep: bool
    ) -> None:
        self._odd = 0  # waiting jobs that it cannot plan
        self._same = False  # whether the last job that started got its planned nodes
        self._times = times
        self._witness: LiveJob | None = None  # the last job that was tried now, until when it would run,
        self._until_then = 0.0
        self._open = np.zeros(0, dtype=bool)  # the nodes that have room for it, and how many more than it requests
        self._spare = -1
        self._where: dict[LiveJob, Any] = {}  # planned allocation
        super().__init__(place, waiting, order, keep=keep)
        if not keep:
            self._odd = sum(not self._can_plan(job) for job in waiting)

    @property
    def possible(self) -> bool:
        """Whether it can plan: by first fit, for requests of nodes that are expected to hold; no nodes are down."""
        place = self._place
        return (
            not self._odd
            and not place.windows
            and not place.consumables.capacity
            and place.spec.placed_by == "first-fit"
            and place.table.complete
            and place.table.apart is None
        )

    def _can_plan(self, job: LiveJob) -> bool:
        if job.history is not None and job.history.resumes:
            return False
        request = self._place.request_for(job)
        return request.nodes is not None and not request.chunks and 0 < job.planned == job.expected

    def add(self, job: LiveJob) -> None:
        self._odd += not self._can_plan(job)
        super().add(job)

    def remove(self, job: LiveJob) -> None:
        self._odd -= not self._can_plan(job)
        super().remove(job)

    def started(self, entry: Entry) -> None:
        """Note a start in the pool: from now on the job is running work, and no longer in the profile."""
        end, _, _, run = entry
        planned = self._where.pop(run.work, None)
        allocation = run.grant.allocation
        self._same = planned is not None and planned.numbers == allocation.numbers
        if self._profile is not None:
            self._profile.give_back(run.started, end, allocation if planned is None else planned)
        super().started(entry)

    def decide(self) -> Iterator[Decision]:
        """Bring the plan up to date, start the jobs planned for now, and wake the nodes of others in time."""
        place = self._place
        if self._profile is not None:
            self._profile.ready = None if place.dozing is None else place.dozing.by_node()
        yield from super().decide()
        for job, (at, _) in list(self._starts.items()) if place.dozing is not None else ():
            allocation, dozing = self._where[job], place.dozing
            if dozing is not None and dozing.asleep_in(allocation) and job.state == "waiting":
                if dozing.begins_now(job, at, allocation):
                    yield Start(job, place, None, allocation)
                else:
                    yield from ahead(place, job, at, allocation)

    def _new_profile(self) -> NodeGaps:
        self._where.clear()
        self._witness, self._spare = None, -1
        profile = NodeGaps(self._place.env._now, self._times)
        dozing = self._place.dozing
        profile.ready = None if dozing is None else dozing.by_node()
        return profile

    def _plan(self, job: LiveJob) -> float:
        request, requested = self._place.request_for(job), job.planned
        at, allocation = self._profile.earliest(request, requested)
        if allocation is not None:
            self._profile.take(request, at, requested, allocation)
            self._where[job] = allocation
            if self._spare >= 0 and at < self._until_then:
                self._spare -= int(np.count_nonzero(self._open[allocation.nodes]))
        return at

    def _start(self, job: LiveJob) -> Start:
        return Start(job, self._place, None, self._where[job])

    def _has_started(self, job: LiveJob) -> None:
        planned = self._where.pop(job, None)
        if planned is not None and job.run is not None:
            self._profile.give_back(job.run.started, job.run.expected_end, planned)

    def _as_planned(self, entry: Entry) -> bool:
        return self._same

    def _take_head(self, entry: Entry, now: float) -> None:
        """Do nothing: running work is not in the profile."""

    def _drop(self, jobs: list[tuple[LiveJob, float]]) -> None:
        for job, _ in jobs:
            del self._where[job]
        profile = self._profile = NodeGaps(self._place.env._now, self._times)
        for planned in (self._starts, self._gone):
            for job, (at, _) in planned.items():
                if job in self._where:
                    profile.take(self._place.request_for(job), at, job.planned, self._where[job])

    def _fitting(self, first: int) -> list[LiveJob]:
        self._witness, self._spare = None, -1
        fits = self._place.fits
        return [job for job in self._line[first:] if job.state == "waiting" and fits(job)]

    def _fits(self, job: LiveJob) -> bool:
        """Whether a job could start now; each job planned since this was asked took no more than its nodes."""
        if job is not self._witness or self._spare < 0:
            request = self._place.request_for(job)
            self._witness = job
            self._open = self._profile.open_nodes(request, job.planned)
            self._spare = int(np.count_nonzero(self._open)) - (request.nodes or 0)
            self._until_then = self._profile.end(self._place.env._now, job.planned)
        return self._spare >= 0

    def _drop_like(self, blocked: LiveJob, jobs: list[LiveJob]) -> None:
        request_for = self._place.request_for
        request = request_for(blocked)
        cores, gpus, memory, exclusive = shape_of(request)
        nodes, requested = request.nodes or 0, blocked.planned

        def no_less(job: LiveJob) -> bool:
            other = request_for(job)
            return (
                job.planned >= requested
                and (other.nodes or 0) >= nodes
                and other.cores_per_node >= cores
                and other.gpus_per_node >= gpus
                and other.memory_per_node >= memory
                and other.exclusive >= exclusive
            )

        jobs[:] = [job for job in jobs if not no_less(job)]
