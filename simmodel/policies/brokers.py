"""Policies that choose among systems: which of several clusters, machines or brokers does each job go to?

Those that choose among any places with queues, such as ``random``, ``round-robin`` and ``sgs-t``, are in mapping.py.
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
    """Where the load is lowest, for each processor of the system.

    Parameters
    ----------
    load
        ``"work"``: the processor seconds that what runs and waits is still expected to take; ``"processors"``: those
        busy and asked for; ``"jobs"``: those running and waiting
    ties
        as of :class:`~simmodel.policies.mapping.Lowest`

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
        """Return the loads."""
        load = LOADS[self.load]
        return [load(place) for place in places]


class Siloed(MappingPolicy):
    """Every job at home: nothing is shared.

    >>> Siloed().name
    'siloed'
    """

    name = "siloed"
    decides = "systems"
    draws = False

    def destinations(self, home: Any, places: Sequence[Any], /) -> Sequence[Any]:
        """Return the home."""
        if home is None:
            raise InputError("a home cluster of each job expected under siloed, found a job without one")
        return (home,)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Hand over everything that waits."""
        for job in view.waiting:
            for home in self.destinations(getattr(job, "home", None), view.places):
                if home.can_run(job):
                    yield Start(job, home)
