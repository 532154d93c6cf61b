"""The best order of a start window, without planning the orders that cannot be the best."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import LiveJob

__all__ = ["Best", "Plan", "best_order"]

INFINITY = float("inf")
Plan = tuple["LiveJob", Any]  # a job that starts now, and its allocation
Best = Callable[["Pool", "list[LiveJob]"], "list[Plan]"]  # the jobs of a window that the best plan starts now


def best_order(place: Pool, line: list[LiveJob], *, in_turn: bool) -> list[Plan]:
    """Return the jobs that start now in the order with the shortest makespan, the first such order by arrival.

    The orders are the branches of a tree; one that cannot beat the best so far is cut.
    """
    if all(job.width > place.free for job in line):
        return []
    search = _Search(place, in_turn=in_turn)
    search.go_on(line, -INFINITY, place.env.now, [])
    assert search.best is not None
    return search.best[1]


class _Search:
    """The search for the best order: ``best`` has its makespan so far, and the jobs that it starts now."""

    __slots__ = ("_in_turn", "_now", "_profile", "best")

    def __init__(self, place: Pool, *, in_turn: bool) -> None:
        self._profile = place.profile()
        self._now = place.env.now
        self._in_turn = in_turn
        self.best: tuple[float, list[Plan]] | None = None

    def go_on(self, left: list[LiveJob], makespan: float, last: float, starting: list[Plan]) -> None:
        """Plan the jobs that are left, in each order."""
        if not left:
            self.best = makespan, starting
        profile, now = self._profile, self._now
        for i, job in enumerate(left):
            if any(job.width == each.width and job.planned == each.planned for each in left[:i]) and job.place.simple:
                continue  # as good as the one before it at best
            at, allocation = profile.earliest(job, job.planned, last)
            rest = left[:i] + left[i + 1 :]
            if at == INFINITY:  # behind a job with unknown end; the jobs planned before it may still start
                if self.best is None:
                    self.go_on(rest, at, last, starting)
                continue
            end = max(makespan, profile.instant(at) + job.planned)
            then = at if self._in_turn else now
            if not self._may_be_best(end, profile.instant(then), rest):
                continue
            begun = [*starting, (job, allocation)] if at == now else starting
            if not rest:
                self.best = end, begun
                continue
            profile.take(job, at, job.planned, allocation)
            self.go_on(rest, end, then, begun)
            profile.give_back(job, at, job.planned, allocation)

    def _may_be_best(self, end: float, first: float, rest: list[LiveJob]) -> bool:
        """Whether an order could be the best in which the others start no earlier than an instant (s)."""
        return self.best is None or max([end, *(first + each.planned for each in rest)]) < self.best[0]
