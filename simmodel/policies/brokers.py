"""Policies of brokers: they assign each job to one of several clusters, machines or brokers.

Policies for any places with queues, such as ``random``, ``round-robin`` and ``sgs-t``, are in mapping.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.errors import InputError, unknown
from simmodel.policies.load_index import LoadIndex
from simmodel.policies.mapping import Lowest, MappingPolicy, Rule, work_a_processor
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = ["LOADS", "LeastLoaded", "Siloed"]

_FEW = 8  # places of which all are asked
_ATTEMPTS = 4  # the lowest places that are tried for a job before all are asked whether they can run it

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
        self._index: LoadIndex | None = None

    def forget(self) -> None:
        """Discard the index of the loads."""
        self._index = None

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting work, with an index of the loads where all places tell when theirs change."""
        index = self._loads(view.places)
        if index is None:
            yield from super().decide(view)
            return
        first = self.ties == "first"
        for work in view.waiting:
            among: NDArray[np.bool_] | None = None
            for attempt in count():
                found = index.lowest(view.env.now, among, first=first)
                able = [index.places[i] for i in found if index.places[i].can_run(work)]
                if able:
                    yield Start(work, able[0] if len(able) == 1 else self._rule(view, work, able))
                    break
                if among is None:
                    among = np.ones(len(index.places), dtype=bool)
                among[found] = False
                if attempt == _ATTEMPTS:
                    among &= [place.can_run(work) for place in index.places]
                if not among.any():
                    break

    def _loads(self, places: Sequence[Any]) -> LoadIndex | None:
        """Return the index of the loads of these places, or ``None`` if they do not tell or are too few to gain."""
        if self.load != "work" or type(self) is not LeastLoaded or len(places) < _FEW:
            return None
        if self._index is None or self._index.places is not places:
            if not all(hasattr(place, "watch_load") for place in places):
                return None
            self._index = LoadIndex(places)
        return self._index

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the load of each place per processor."""
        load = LOADS[self.load]
        return [load(place) for place in places]


class Siloed(MappingPolicy):
    """Run every job at home: the systems share no work.

    >>> Siloed().name
    'siloed'
    """

    decides = "systems"
    draws = False
    at_home = True

    def __init__(self, *, name: str = "siloed") -> None:
        self.name = name

    def destinations(self, home: Any, places: Sequence[Any], /) -> Sequence[Any]:
        """Return the home of a job.

        Raises
        ------
        InputError
            the job has no home
        """
        if home is None:
            raise InputError(f"home: must be given for each job under the policy {self.name!r}")
        return (home,)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting jobs."""
        for job in view.waiting:
            for home in self.destinations(getattr(job, "home", None), view.places):
                if home.can_run(job):
                    yield Start(job, home)
