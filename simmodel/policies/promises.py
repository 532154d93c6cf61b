"""The promises that conservative backfilling keeps: instants and allocations by job, at one place."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.resources.pools.allocation import Allocation
    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["Promises"]

_VOID = 64  # entries of promises that moved, kept beside as many as there are promises


class Promises(dict["LiveJob", tuple[float, Any]]):
    """The promised instants (s) and allocations at a place, by job, with those that are due or void.

    Parameters
    ----------
    place, waiting, order
        the pool, its queue, and the order of the queue

    Attributes
    ----------
    left
        jobs with promises that left the queue
    moved
        whether a promise has moved, to other nodes too, or a job has lost its promise, since this was last reset
    """

    __slots__ = ("_count", "_due", "_order", "_place", "_void", "_waiting", "left", "moved")

    def __init__(self, place: Pool, waiting: WaitingQueue, order: OrderLike) -> None:
        self._place = place
        self._waiting = waiting
        self._order = order
        self._void = False  # whether promises have gone since the last decision
        self._count = 0  # entries of a job that comes back have its number: they are told apart by their turn
        self._due: list[tuple[float, int, int, LiveJob]] = []  # earliest first, and some that are void
        self.left: list[LiveJob] = []
        self.moved = False
        waiting.keep(self)

    def add(self, job: LiveJob) -> None:
        """Note a job that has come into the queue: if it had a promise before it started elsewhere, that is void."""
        if job.attempts and self.pop(job, None) is not None:
            self._void = True

    def remove(self, job: LiveJob) -> None:
        if job in self:
            self.left.append(job)

    def promise(self, job: LiveJob, at: float, allocation: Allocation | Grant | None) -> bool:
        """Promise a job a start (s); return whether that is another instant than before."""
        before = self.get(job)
        self[job] = at, allocation
        self.moved = self.moved or (before is not None and before != (at, allocation))
        if before is not None and before[0] == at:
            return False
        self._count += 1
        heap = self._due
        heappush(heap, (at, job.seq, self._count, job))
        if len(heap) > 2 * len(self) + _VOID:
            heap[:] = [each for each in heap if self.get(each[3], (None,))[0] == each[0]]
            heapify(heap)
        return True

    @property
    def inexact(self) -> bool:
        """Whether some job is planned for an instant alone, at which more may start than its place has room for."""
        return any(at + job.planned <= at for job, (at, _) in self.items())

    def end(self, job: LiveJob, at: float) -> None:
        """Note that a job starts now, or that it has no known start any more (infinity)."""
        before = self.pop(job, None)
        self.moved = self.moved or (before is not None and at != max(before[0], self._place.env._now))

    def due(self, now: float) -> list[LiveJob]:
        """Return the jobs that are promised a start by now."""
        heap = self._due
        found = {}
        while heap and heap[0][0] <= now:
            each = heappop(heap)
            if self.get(each[3], (None,))[0] == each[0]:
                found[each[3]] = each
        for each in found.values():
            heappush(heap, each)
        return list(found)

    def drop_void(self) -> bool:
        """Drop the promises to jobs that wait here no longer; return whether there are any."""
        if not self.left:
            return False
        gone = [job for job in self.left if job in self and (job.state != "waiting" or job.place is not self._place)]
        self.left.clear()
        for job in gone:
            self.pop(job, None)
        found = bool(gone) or self._void
        self._void = False
        return found

    def into(self, profile: Any) -> dict[LiveJob, tuple[float, Any]]:
        """Add the promises to a profile; return them, with the starts that can be kept of those that are due.

        A job that is due fits on its own nodes now, or as soon as the jobs end whose expected end has been reached. The
        others (after an overrun or an outage) are planned once these have theirs: they could take them.
        """
        now = self._place.env._now
        planned: dict[LiveJob, tuple[float, Any]] = {}
        for job, (at, allocation) in self.items():
            if at > now:
                planned[job] = at, allocation
                profile.renew(job, at, job.planned, allocation)
        if len(planned) == len(self):
            return planned
        due = [job for job in self._waiting.by(self._order) if job in self and job not in planned]
        for job in due:
            held = profile.hold(job, job.planned, self[job][1])
            if held is not None:
                planned[job] = held, self[job][1]
        for job in due:
            if job not in planned:
                planned[job] = profile.earliest(job, job.planned)
                profile.take(job, planned[job][0], job.planned, planned[job][1])
        return planned
