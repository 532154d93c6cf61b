"""A start window: the best order of the first few jobs, by exhaustive search.

Source: the window of CQSim, the scheduler simulator of the Illinois Institute of Technology: Yang, Zhou, Wallace,
Zhang, Lan et al., "Integrating dynamic pricing of electricity into energy aware scheduling for HPC systems", SC 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice, permutations
from typing import TYPE_CHECKING, Literal

from simmodel.foundation.errors import InputError
from simmodel.policies.fast.window import best_order
from simmodel.policies.ordering import FCFS, at_each_place, order as order_named
from simmodel.policies.spare import Keeping, Spares
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from simmodel.policies.fast.window import Best, Plan
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["Window", "best_of_all", "planned", "window"]

INFINITY = float("inf")


def window(view: View, place: Pool, order: OrderLike, size: int, best: Best, spares: Spares) -> Iterator[Decision]:
    """Start the jobs that the best plan of the first few starts now; if all of them start, go on with the next few."""
    cursor = iter(view.waiting.at(place).by(order))
    while line := list(islice(cursor, size)):
        spare = spares.beside(place, line[0])
        starting = best(place, line)
        for job, found in starting:
            allocation = found if spare is None else spare.room(job)
            if job.state == "waiting" and allocation is not None:  # else held by a limit since another job started
                yield Start(job, place, None, allocation)
                if spare is not None:
                    spare.take(job)
        if len(starting) < len(line):
            spares.beside(place, next(job for job in line if job.state != "running"))
            return


def best_of_all(place: Pool, line: list[LiveJob], *, in_turn: bool) -> list[Plan]:
    """Return the jobs that start now in the order with the shortest makespan, the first such order by arrival."""
    return min((planned(place, order, in_turn=in_turn) for order in permutations(line)), key=lambda plan: plan[0])[1]


def planned(place: Pool, line: Iterable[LiveJob], *, in_turn: bool) -> tuple[float, list[Plan]]:
    """Return the makespan of jobs planned one by one into the earliest hole, and those that start now."""
    profile, now = place.profile(), place.env.now
    last = makespan = -INFINITY
    starting: list[Plan] = []
    for job in line:
        at, allocation = profile.earliest(job, job.planned, last)
        makespan = max(makespan, profile.instant(at) + job.planned)
        if at == now:
            starting.append((job, allocation))
        if at < INFINITY:  # else no known end frees it
            profile.take(job, at, job.planned, allocation)
            last = at if in_turn else last
    return makespan, starting


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
    fast
        whether to leave out orders that cannot be the best; else all are planned

    Raises
    ------
    InputError
        ``size`` is not from 1 to 8

    >>> Window(size=3).name
    'window'
    """

    decides = "jobs"

    def __init__(
        self,
        order: GivenOrder = FCFS,
        *,
        size: int = 5,
        planning: Literal["list", "hole"] = "list",
        fast: bool = True,
    ) -> None:
        self._spares = Spares()
        if not 1 <= size <= 8:
            raise InputError(f"size: must be from 1 to 8, got {size!r}")
        self.order = order_named(order)
        self.size = size
        self.planning = planning
        self.fast = fast
        self.name = "window" if self.order is FCFS else f"{self.order.name}+window"

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start the jobs that the best plan of the window starts now, at each place."""
        return at_each_place(view, self._at)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        if self.fast and place.free <= 0 and not place.running.endless:
            return iter(())
        best = partial(best_order if self.fast else best_of_all, in_turn=self.planning == "list")
        return window(view, place, self.order, self.size, best, self._spares)
