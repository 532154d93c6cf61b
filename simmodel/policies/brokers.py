"""Policies of brokers: they assign each job to one of several clusters, machines or brokers.

Policies for any places with queues, such as ``random``, ``round-robin`` and ``sgs-t``, are in mapping.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.load_index import SiteColumns
from simmodel.policies.mapping import IndexedLowest, MappingPolicy, Rule, work_a_processor
from simmodel.scheduling.protocol import Decision, Start, View
from simmodel.work.job import Brokered, LiveJob

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import At, Place
    from simmodel.work.taskset import LiveTask

__all__ = ["LOADS", "DataLocality", "LeastLoaded", "Panda", "ShortestWait", "Siloed"]

LOADS: dict[str, Callable[[Any], float]] = {
    "work": work_a_processor,
    "processors": lambda place: (place.capacity - place.free + place.queued_processors) / (place.capacity or 1),
    "jobs": lambda place: (place.queued + place.runs) / (place.capacity or 1),
}


class LeastLoaded(IndexedLowest):
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

    def indexed(self, view: View) -> bool:
        """Return whether this is the policy itself."""
        return type(self) is LeastLoaded

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the numbers of the places with the lowest load, or the first of them."""
        figure = None if self.load == "work" else LOADS[self.load]  # that of work changes with time, too
        return index.lowest(view.env._now, among, first=self.ties == "first", figure=figure)

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> list[float]:
        """Return the load of each place per processor."""
        load = LOADS[self.load]
        return [load(place) for place in places]


class ShortestWait(IndexedLowest):
    """Assign each job to the system with the shortest quickly estimated wait; ties go to the least loaded.

    The wait is 0 where nothing waits and enough processors are free; elsewhere it is the remaining work of the running
    and waiting jobs per processor.

    >>> ShortestWait().name
    'shortest-wait'
    """

    name = "shortest-wait"
    decides = "systems"
    draws = False

    def __init__(self) -> None:
        super().__init__("least-loaded")

    def indexed(self, view: View) -> bool:
        """Return whether this is the policy itself."""
        return type(self) is ShortestWait

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the first of the least loaded places with the shortest wait."""
        return index.shortest(view.env._now, work.processors, among)

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the estimated waits (s)."""
        assert isinstance(work, LiveJob)
        return [place.expected_wait(work.processors) for place in places]


class DataLocality(IndexedLowest):
    """Assign each job to the site that holds most bytes of its inputs; ties go to the least loaded.

    >>> DataLocality().name
    'data-locality'
    """

    name = "data-locality"
    decides = "systems"
    draws = False

    def __init__(self) -> None:
        super().__init__("least-loaded")

    def indexed(self, view: View) -> bool:
        """Return whether this is the policy itself."""
        return type(self) is DataLocality

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the first of the least loaded places with most bytes."""
        if work.needs_files:
            held = _held(view, work, len(index.places))
            if among is not None:
                held[~among] = -1.0
            among = held == held.max()
        return index.lowest(view.env._now, among, first=True)

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the bytes that each place holds, negated."""
        return [-place.held(work) for place in places]


class Panda(IndexedLowest):
    """Assign each job to the site with the highest weight, as the production brokerage of PanDA does.

    weight = (running + slots + 1) / (queued + assigned + 1) / many * (1 + local) / 2, where ``slots`` are the jobs of
    its width that the free cores can take now (PanDA's standby slots), ``assigned`` the jobs whose inputs are on their
    way, ``many`` = (assigned + 1) / (queued + 1) within 1 and 2, and ``local`` the share of its input bytes that is at
    the site. The ratio and ``many`` are those of ``AtlasProdJobBroker`` in PanDA's JEDI; the factor of the data is a
    simplification. Ties go to the first.

    >>> Panda().name
    'panda'
    """

    name = "panda"
    decides = "systems"
    draws = False

    def __init__(self) -> None:
        super().__init__()
        self._terms: _PandaTerms | None = None

    def forget(self) -> None:
        super().forget()
        self._terms = None

    def indexed(self, view: View) -> bool:
        """Return whether this is the policy itself."""
        return type(self) is Panda

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the first of the places with the highest weight."""
        index.refresh(view.env._now)
        if self._terms is None or self._terms.index is not index:
            self._terms = _PandaTerms(index)
        weights = self._terms.weights(work.processors)
        if work.needs_files:
            weights = weights * _locality(_held(view, work, len(weights)), _bytes_of(view, work))
        if among is not None:
            weights[~among] = -1.0
        return [int(weights.argmax())]

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the weights of the places, negated."""
        assert isinstance(work, Brokered)
        terms = np.array([_terms(place.runs, place.queued, place.assigned) for place in places]).T
        weights = _weights(np.array([max(place.free, 0) // work.processors for place in places]), terms)
        if work.needs_files:
            held = np.array([place.held(work) for place in places])
            weights = weights * _locality(held, _bytes_of(view, work))
        return [-float(weight) for weight in weights]


def _terms(running: float, queued: float, assigned: float) -> tuple[float, float, float]:
    """Return the terms of a weight that do not depend on the job: running + 1, queued + assigned + 1, and many."""
    return running + 1.0, queued + assigned + 1.0, min(max((assigned + 1.0) / (queued + 1.0), 1.0), 2.0)


def _weights(slots: NDArray[np.int64], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    running, waiting, many = terms
    weights: NDArray[np.float64] = slots + running
    weights /= waiting
    weights /= many
    return weights


class _PandaTerms:
    """The parts of the weights that do not depend on the job, in columns of which changed places are renewed."""

    def __init__(self, index: SiteColumns) -> None:
        self.index = index
        self._changed = index.follow()
        self._terms = np.zeros((3, len(index.places)))
        self._free = np.zeros(len(index.places), dtype=np.int64)

    def weights(self, processors: int) -> NDArray[np.float64]:
        """Return the weights of the places, without data, for a job with this number of processors."""
        index = self.index
        for i in self._changed:
            self._free[i] = max(int(index.free[i]), 0)
            self._terms[:, i] = _terms(float(index.running[i]), float(index.queued[i]), float(index.assigned[i]))
        self._changed.clear()
        return _weights(self._free // processors, self._terms)


def _locality(held: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    return (1.0 + held / total) / 2 if total else np.ones(len(held))


def _held(view: View, work: Brokered, sites: int) -> NDArray[np.float64]:
    """Return the bytes of the inputs of a job that each site of a grid holds, from the catalogue of replicas."""
    held, files = np.zeros(sites), view.files
    for name in work.inputs:
        if name in files:
            size = files.size(name)
            for number in files.numbers_of(name):
                held[number] += size
    return held


def _bytes_of(view: View, work: Brokered) -> float:
    """Return the bytes of the inputs of a job that exist somewhere."""
    return sum([float(view.files.size(name)) for name in work.inputs if name in view.files])


class Siloed(MappingPolicy):
    """Run every job at home: the systems share no work.

    >>> Siloed().name
    'siloed'
    """

    decides = "systems"
    draws = False
    at_home = True
    blind = True

    def __init__(self, *, name: str = "siloed") -> None:
        self.name = name

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
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
                elif not view.takes():
                    return
