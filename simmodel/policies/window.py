"""A start window: the best order of the first few jobs, by exhaustive search.

Source: the window of CQSim, the scheduler simulator of the Illinois Institute of Technology: Yang, Zhou, Wallace,
Zhang, Lan et al., "Integrating dynamic pricing of electricity into energy aware scheduling for HPC systems", SC 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from simmodel.foundation.errors import InputError
from simmodel.policies.ordering import FCFS, at_each_place, order as order_named
from simmodel.policies.spare import Keeping, Spare, Spares
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.profile import Profile
    from simmodel.work.job import LiveJob

__all__ = ["Window"]

INFINITY = float("inf")
Planned = tuple["LiveJob", Any]  # a job that starts now, and its allocation


class Window(Keeping):
    """Start the first ``size`` waiting jobs in the order with the shortest planned makespan; ties by arrival.

    In each order the jobs are planned one by one by their requested times; the jobs that the best plan starts now do
    start. If the whole window starts, the next jobs form a window. There is no backfilling behind the window. While
    work without a time limit is in the way of the first job, the others use what has been free ever since it was first.

    Parameters
    ----------
    order
        of the queue: a name, an order, or a key function
    size
        jobs in the window, at most 8, as all permutations are tried
    planning
        ``"list"``: each job goes into the earliest hole not before the start of the previous job (as in CQSim);
        ``"hole"``: each goes into the earliest hole

    Raises
    ------
    InputError
        ``size`` is not from 1 to 8

    >>> Window(size=3).name
    'window'
    """

    decides = "jobs"

    def __init__(self, order: GivenOrder = FCFS, *, size: int = 5, planning: Literal["list", "hole"] = "list") -> None:
        if not 1 <= size <= 8:
            raise InputError(f"size: must be from 1 to 8, got {size!r}")
        self.order = order_named(order)
        self.size = size
        self.planning = planning
        super().__init__()
        self.name = "window" if self.order is FCFS else f"{self.order.name}+window"

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start the jobs that the best plan of the window starts now, at each place."""
        return at_each_place(view, self._at)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        waiting = view.waiting.at(place)
        cursor = iter(waiting.by(self.order))
        while place.free > 0 or place.running.endless:
            line = list(islice(cursor, self.size))
            if not line:
                return
            spare = self._spare(place, line[0]) if place.running.endless or self._spares else None
            if all(job.width > place.free for job in line):
                return
            now = place.env.now
            best = self._best(place.profile(), now, line, -INFINITY, now, [], None)
            assert best is not None
            starting = best[1]
            for job, found in starting:
                allocation = found if spare is None else spare.room(job)
                if job.state == "waiting" and allocation is not None:  # else held by a limit since another job started
                    yield Start(job, place, None, allocation)
                    if spare is not None:
                        spare.take(job)
            if len(starting) < len(line):
                if place.running.endless:
                    self._spare(place, next(job for job in line if job.state != "running"))
                return

    def _spare(self, place: Pool, first: LiveJob) -> Spare | None:
        """Return what is left beside the first job if no known end frees it, else ``None``."""
        if place.running.endless and place.profile().earliest(first, first.planned)[0] == INFINITY:
            return self._spares.at(place, first)
        self._spares.pop(place.name, None)
        return None

    def _best(
        self,
        profile: Profile,
        now: float,
        left: list[LiveJob],
        makespan: float,
        last: float,
        starting: list[Planned],
        best: tuple[float, list[Planned]] | None,
    ) -> tuple[float, list[Planned]] | None:
        """Return the best plan: its makespan, and the jobs to start now; the first such order by arrival.

        The orders are the branches of a tree, which ``left`` continue; one that cannot beat the best so far is cut.
        """
        if not left:
            return makespan, starting
        for i, job in enumerate(left):
            if any(job.width == each.width and job.planned == each.planned for each in left[:i]) and job.place.simple:
                continue  # as good as the one before it at best
            at, allocation = profile.earliest(job, job.planned, last)
            rest = left[:i] + left[i + 1 :]
            if at == INFINITY:  # behind a job with unknown end; the jobs planned before it may still start
                if best is None:
                    best = self._best(profile, now, rest, at, last, starting, best)
                continue
            end = max(makespan, profile.instant(at) + job.planned)
            then = at if self.planning == "list" else now
            if best is not None:
                first = profile.instant(then)
                if max([end, *(first + each.planned for each in rest)]) >= best[0]:
                    continue
            begun = [*starting, (job, allocation)] if at == now else starting
            if not rest:
                return end, begun
            profile.take(job, at, job.planned, allocation)
            best = self._best(profile, now, rest, end, then, begun, best)
            profile.give_back(job, at, job.planned, allocation)
        return best
