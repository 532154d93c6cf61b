"""Policies that choose the work that fits a place best.

Source of best fit: Johnson, "Fast algorithms for bin packing", J. Comput. Syst. Sci. 8(3), 1974, applied to the free
processors of a cluster, as in the job schedulers of simulators such as SST.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from simmodel.policies.ordering import FCFS, at_each_place
from simmodel.scheduling.protocol import Decision, Policy, Start, View

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool

__all__ = ["BestFit"]


class BestFit(Policy):
    """Best fit: as long as a job fits, start the one that leaves the fewest processors free; ties by arrival.

    >>> BestFit().name
    'best-fit'
    """

    name = "best-fit"
    decides = "jobs"

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start the best fitting jobs at each place."""
        return at_each_place(view, self._at)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        waiting = view.waiting.at(place)
        if place.simple:
            lanes = waiting.lanes(FCFS)
            while (job := lanes.widest_fitting(place.free)) is not None:
                yield Start(job, place)
            return
        while place.free > 0:
            fitting = [job for job in waiting if place.fits(job)]
            if not fitting:
                return
            yield Start(min(fitting, key=lambda job: (-job.processors, -job.priority, job.submit, job.seq)), place)
