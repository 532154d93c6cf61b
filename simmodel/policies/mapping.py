"""Immediate-mode mapping: policies that assign work to places with queues, tasks to processors or jobs to systems.

Waiting work is assigned in the order of its arrival. Unless a policy has a tie rule, ties go to the first place in the
order of the system.

Sources: HetSim's hRR, GreedyET and GreedyDS; the names of the queue-aware ones as in Maheswaran, Ali, Siegel, Hensgen,
Freund, "Dynamic mapping of a class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999 (there
minimum completion time). Random, Share (there User(x)), SGS-T and SGS-W: the CQSim+ papers of the SPEAR group at
Illinois Institute of Technology.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.load_index import SiteColumns
from simmodel.scheduling.protocol import Decides, Decision, Policy, Start, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import Brokered, LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = [
    "TIES",
    "IndexedLowest",
    "Lowest",
    "MappingPolicy",
    "Random",
    "RoundRobin",
    "Share",
]

_FEW = 8  # places of which all are asked
_ATTEMPTS = 4  # the lowest places that are tried for a job before all are asked whether they can run it


class MappingPolicy(Policy):
    """The base class of mapping policies: each task or job goes to one of the places that can ever run it.

    A subclass implements ``choose(view, work, places)``.
    """

    decides: Decides = "places"

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting work."""
        places = self.candidates(view)
        for work in view.waiting:
            able = [place for place in places if place.can_run(work)]
            if able:
                yield Start(work, self.choose(view, work, able))
            elif not view.takes():
                return

    def candidates(self, view: View) -> Sequence[Any]:
        """Return the places to choose from at this decision; by default all."""
        return view.places

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
        """Return the one of these places to which the work goes."""
        raise NotImplementedError


class RoundRobin(MappingPolicy):
    """Assign work to the places in turn, whatever the cost (hRR of HetSim); places that cannot run it are skipped.

    >>> RoundRobin().name
    'round-robin'
    """

    draws = False
    blind = True

    def __init__(self, *, name: str = "round-robin") -> None:
        self.name = name
        self._next = 0

    def forget(self) -> None:
        """Restart with the first place."""
        self._next = 0

    def state(self) -> int:
        return self._next

    def restore(self, values: int) -> None:
        """Continue with the place at this position."""
        self._next = int(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting work, in turn."""
        places = view.places
        size = len(places)
        turn = self._next if self._next < size else 0
        for work in view.waiting:
            for _ in range(size):
                place = places[turn]
                turn += 1
                if turn == size:
                    turn = 0
                if place.can_run(work):
                    self._next = turn
                    yield Start(work, place)
                    break
            else:
                if not view.takes():
                    return


class Random(MappingPolicy):
    """Assign work to random places, with one draw per job from the random stream of the policy.

    Parameters
    ----------
    weights
        relative frequencies of the places, on any scale, in their order or by name; default: equal. The share of a
        place that cannot run a job is divided among the others

    Raises
    ------
    InputError
        a weight is negative, or all are 0

    >>> Random(weights={"fast": 3, "slow": 1}).name
    'random(3,1)'
    """

    blind = True

    def __init__(self, weights: Sequence[float] | Mapping[str, float] | None = None) -> None:
        self.weights = weights
        values = [] if weights is None else list(weights.values() if isinstance(weights, Mapping) else weights)
        if weights is not None and not (values and all(_at_least_zero(value) for value in values) and sum(values) > 0):
            raise InputError(f"weights: must be numbers >= 0, not all 0, got {weights!r}")
        self.name = "random" if weights is None else f"random({','.join(f'{value:g}' for value in values)})"
        self._chances: tuple[Sequence[Any], dict[Any, float], list[Any], list[float]] | None = None

    @classmethod
    def of(cls, *values: Any) -> Self:
        """Return the policy for ``random(3, 1)``."""
        return cls(values or None)

    def _weights(self, places: Sequence[Place]) -> list[float]:
        """Return the weights of the places, in their order."""
        given = self.weights
        if given is None:
            return [1.0] * len(places)
        names = [place.name for place in places]
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise InputError(f"weights: must be one for each place ({', '.join(names)}), got {', '.join(given)}")
            return [float(given[name]) for name in names]
        if len(given) != len(places):
            raise InputError(f"weights: must have {len(places)} numbers, one per place, got {len(given)}")
        return [float(weight) for weight in given]

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
        """Draw a place."""
        drawn = float(view.rng.random())
        if self.weights is None and type(self) is Random:
            return places[min(int(drawn * len(places)), len(places) - 1)]
        every, weight, able, sums = self._known(view.places)
        if len(places) < len(every):
            able, sums = _chances(places, weight)
        return able[min(bisect_right(sums, drawn * sums[-1]), len(able) - 1)]

    def forget(self) -> None:
        self._chances = None

    def _known(self, places: Sequence[Place]) -> tuple[Sequence[Any], dict[Any, float], list[Any], list[float]]:
        """Return the places, their weights, and those to draw from with sums of weights, if all can run the work."""
        known = self._chances
        if known is None or known[0] is not places:
            weight = dict(zip(places, self._weights(places), strict=True))
            known = self._chances = (places, weight, *_chances(places, weight))
        return known


def _chances(places: Sequence[Place], weight: Mapping[Any, float]) -> tuple[list[Any], list[float]]:
    """Return the places that have a weight, all if none has, and the sums of their weights up to each."""
    able = [place for place in places if weight[place] > 0] or list(places)
    return able, list(accumulate(weight[place] or 1.0 for place in able))


class Share(Random):
    """Assign work to the first place with probability ``p``, and to the others with equal shares of the rest.

    Parameters
    ----------
    p
        from 0 to 1

    Raises
    ------
    InputError
        ``p`` is not from 0 to 1

    >>> Share(0.6).name
    'share(0.6)'
    """

    blind = True

    def __init__(self, p: float = 0.5) -> None:
        if not (_at_least_zero(p) and p <= 1):
            raise InputError(f"p: must be a share from 0 to 1, got {p!r}")
        super().__init__()
        self.p = p
        self.name = f"share({p:g})"

    @classmethod
    def of(cls, p: Any = 0.5) -> Self:
        """Return the policy for ``share(0.6)``."""
        return cls(p)

    def _weights(self, places: Sequence[Place]) -> list[float]:
        others = len(places) - 1
        return [self.p, *[(1.0 - self.p) / others] * others] if others else [1.0]


def _at_least_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


# ---------------------------------------------------------------------- the lowest figure

Rule = Callable[[View, Any, Sequence[Any]], Any]


def _first(_view: View, _work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
    return places[0]


def _random(view: View, _work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
    return places[int(view.rng.integers(len(places)))]


def _home(_view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
    home = getattr(work, "home", None)
    return home if home in places else places[0]


def work_a_processor(place: Place) -> float:
    """Return the expected remaining work of a place per processor, in seconds."""
    return float(place.backlog / place.capacity)


def _least_loaded(_view: View, _work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
    return min(places, key=work_a_processor)


TIES: dict[str, Rule] = {"first": _first, "least-loaded": _least_loaded, "home": _home, "random": _random}
"""The winner of a tie: the first place; the least loaded, then the first; the home of the job, else the first; random.
"""


class Lowest(MappingPolicy):
    """Assign work to the place with the lowest figure.

    A subclass implements ``figures(view, work, places)``.

    Parameters
    ----------
    ties
        the winner of a tie: the ``first`` place, the ``least-loaded`` one, the ``home`` of the job, a ``random`` one,
        or a function of the view, the work and the tied places
    name
        the name of the policy in results

    Raises
    ------
    InputError
        the rule for ties is unknown
    """

    def __init__(self, ties: str | Rule = "first", *, name: str | None = None) -> None:
        if isinstance(ties, str) and ties not in TIES:
            raise unknown("tie rule", ties, TIES)
        self.ties = ties
        self.name = type(self).name if name is None else name
        self.draws = ties == "random"
        self._rule: Rule = TIES[ties] if isinstance(ties, str) else ties

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> Any:
        """Return the place with the lowest figure."""
        if len(places) == 1:
            return places[0]
        figures = self.figures(view, work, places)
        lowest = min(figures)
        first = figures.index(lowest)
        if self._rule is _first or figures.count(lowest) == 1:
            return places[first]
        return self._rule(view, work, [place for place, each in zip(places, figures, strict=True) if each == lowest])

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Place]) -> list[float]:
        """Return the figures of the places, in their order."""
        raise NotImplementedError


class IndexedLowest(Lowest):
    """Assign work to the place with the lowest figure, found in columns if all places report changes of load.

    A subclass implements ``indexed(view)`` and ``find(view, index, work, among)``, besides ``figures``.

    Parameters
    ----------
    ties, name
        as in :class:`Lowest`
    """

    def __init__(self, ties: str | Rule = "first", *, name: str | None = None) -> None:
        super().__init__(ties, name=name)
        self._index: SiteColumns | None = None

    def forget(self) -> None:
        """Discard the columns."""
        self._index = None

    def indexed(self, view: View) -> bool:
        """Return whether the columns serve under this view."""
        raise NotImplementedError

    def find(self, view: View, index: SiteColumns, work: Brokered, among: NDArray[np.bool_] | None) -> list[int]:
        """Return the numbers of the places with the lowest figure among some, or the first of them."""
        raise NotImplementedError

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Assign all waiting work."""
        index = self._columns(view)
        if index is None:
            yield from super().decide(view)
            return
        places = index.places
        for work in view.waiting:
            found = self.find(view, index, work, None)
            if len(found) == 1 and places[found[0]].can_run(work):
                yield Start(work, places[found[0]])
                continue
            able = [places[i] for i in found if places[i].can_run(work)] or self._next_able(view, index, work, found)
            if able:
                yield Start(work, able[0] if len(able) == 1 else self._rule(view, work, able))
            elif not view.takes():
                return

    def _next_able(self, view: View, index: SiteColumns, work: Brokered, found: list[int]) -> list[Any]:
        """Return the places with the lowest figure that can run the work, except some; none can: an empty list."""
        among: NDArray[np.bool_] = np.ones(len(index.places), dtype=bool)
        among[found] = False
        for attempt in count(1):
            if not among.any():
                break
            found = self.find(view, index, work, among)
            able = [index.places[i] for i in found if index.places[i].can_run(work)]
            if able:
                return able
            among[found] = False
            if attempt == _ATTEMPTS:
                among &= [place.can_run(work) for place in index.places]
        return []

    def _columns(self, view: View) -> SiteColumns | None:
        """Return the columns of these places, or ``None`` if they do not report changes or are too few to gain."""
        places = view.places
        if self._index is not None and self._index.places is places:
            return self._index
        if len(places) < _FEW or not self.indexed(view):
            return None
        if not all(hasattr(place, "watch_load") for place in places):
            return None
        self._index = SiteColumns(places)
        return self._index
