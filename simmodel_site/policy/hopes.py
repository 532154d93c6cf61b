"""Whether a job that a cycle of the backfill loop has not reached may still start in it.

slurmctld plans them all: a cycle that ends once there is none starts the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simmodel_site.policy.board import Board, Pending
    from simmodel_site.policy.selection import Shape

__all__ = ["Hopes"]


class Hopes:
    """The last job of a queue that may start now, as far as nodes tell: with each plan and start there are fewer.

    Parameters
    ----------
    queue
        the jobs, sorted
    now
        the instant of the cycle (s, whole)
    free
        returns the nodes of a board, as bits, that no planned job has from now until an instant (s)
    """

    def __init__(self, queue: Sequence[Pending], now: int, free: Callable[[Board, int], int]) -> None:
        self._queue = queue
        self._now = now
        self._free = free
        self._last = len(queue) - 1
        self._never: set[tuple[Shape, int]] = set()  # what has no room now, and on which nodes: nor has it later on
        self._boards = {job.board for job in queue}

    def from_on(self, number: int) -> bool:
        """Whether one of the jobs from this one on may start, or is cancelled."""
        queue = self._queue
        while self._last >= number and not self._may(queue[self._last]):
            self._last -= 1
        return self._last >= number

    @property
    def unheld(self) -> bool:
        """Whether there is a node on which no job runs."""
        return any(board.unheld for board in self._boards)

    def _may(self, job: Pending) -> bool:
        board, where, kept = job.board, job.where, job.board.kept
        nodes = job.site.nodes & board.up & where.may
        key = job.shape, nodes
        mortal = job.wishes.deadline < inf or job.reservation is not None
        if key in self._never and not mortal:
            return False
        if not job.waits or job.barred:
            return False
        if mortal and job.missed is not None:
            return True
        if not board.has(job.shape, nodes):
            self._never.add(key)
            return False
        nodes &= self._free(board, self._now + job.limit)
        if kept is not None:
            nodes &= ~kept.barred(job, self._now)
            if kept.opens(job) > self._now:
                return False
        return not where.must & ~nodes and board.has(job.shape, nodes) and job.allowed
