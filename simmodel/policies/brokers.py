"""Policies of brokers: they assign each job to one of several clusters, machines or brokers.

Policies for any places with queues, such as ``random``, ``round-robin`` and ``sgs-t``, are in mapping.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simmodel.errors import InputError, unknown
from simmodel.policies.mapping import Lowest, MappingPolicy, Rule, work_a_processor
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["LOADS", "LeastLoaded", "Siloed"]

LOADS: dict[str, Callable[[Any], float]] = {
    "work": work_a_processor,
    "processors": lambda place: (place.capacity - place.free + place.queued_processors) / place.capacity,
    "jobs": lambda place: (place.queued + place.runs) / place.capacity,
}


class LeastLoaded(Lowest):
    """Assign each job to the system with the lowest load per processor.

    Parameters
    ----------
    load
        ``"work"``: remaining processor seconds of the running and waiting work, as expected; ``"processors"``: busy
        processors and those requested by waiting jobs; ``"jobs"``: running and waiting jobs
    ties
        as in :class:`~simmodel.policies.mapping.Lowest`

    Raises
    ------
    InputError
        the load or the rule for ties is unknown

    >>> LeastLoaded("jobs").name
    'least-loaded(jobs)'
    """

    decides = "systems"

    def __init__(self, load: str = "work", ties: str | Rule = "first") -> None:
        if load not in LOADS:
            raise unknown("load", load, LOADS)
        super().__init__(ties, name="least-loaded" if load == "work" else f"least-loaded({load})")
        self.load = load

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the load of each place per processor."""
        load = LOADS[self.load]
        return [load(place) for place in places]


class Siloed(MappingPolicy):
    """Run every job at home: the systems share no work.

    >>> Siloed().name
    'siloed'
    """

    name = "siloed"
    decides = "systems"
    draws = False

    def destinations(self, home: Any, places: Sequence[Any], /) -> Sequence[Any]:
        """Return the home of a job.

        Raises
        ------
        InputError
            the job has no home
        """
        if home is None:
            raise InputError("home: must be given for each job under the policy 'siloed'")
        return (home,)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting jobs."""
        for job in view.waiting:
            for home in self.destinations(getattr(job, "home", None), view.places):
                if home.can_run(job):
                    yield Start(job, home)
