"""Policies that give each piece of work to a place with a queue at once: tasks to processors, jobs to systems.

They look at no order: whatever waits is handed over in the order in which it came. Ties go to the first place, in the
order in which the system has them, where a policy has no rule for them.

Sources: HetSim's hRR, GreedyET and GreedyDS; the names of the queue-aware ones as in Maheswaran, Ali, Siegel, Hensgen,
Freund, "Dynamic mapping of a class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999 (there
minimum completion time). Random, Share (there User(x)), SGS-T and SGS-W: the CQSim+ papers of the SPEAR group at
Illinois Institute of Technology.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

from simmodel.errors import InputError, unknown
from simmodel.scheduling.policy_base import Decides, Policy
from simmodel.scheduling.protocol import Decision, Start, View

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place
    from simmodel.work.job import LiveJob
    from simmodel.work.livetask import LiveTask

__all__ = [
    "TIES",
    "EarliestFinish",
    "EarliestStart",
    "FastestExecution",
    "GreedyDS",
    "Lowest",
    "MappingPolicy",
    "Random",
    "RoundRobin",
    "Share",
]


class MappingPolicy(Policy):
    """What mapping policies share: each piece of waiting work goes to one of the places that can ever run it.

    A subclass says which, in ``choose(view, work, places)``.
    """

    decides: Decides = "places"

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Hand over everything that waits."""
        places = self.candidates(view)
        for work in view.waiting:
            able = [place for place in places if place.can_run(work)]
            if able:
                yield Start(work, self.choose(view, work, able))

    def candidates(self, view: View) -> Sequence[Any]:
        """Return the places among which to choose at this decision: all."""
        return view.places

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
        """Return the place, one of these, that the work goes to."""
        raise NotImplementedError


class RoundRobin(MappingPolicy):
    """One place after the other, whatever that costs (hRR of HetSim); a place that cannot run the work is passed over.

    >>> RoundRobin().name
    'round-robin'
    """

    draws = False

    def __init__(self, *, name: str = "round-robin") -> None:
        self.name = name
        self._next = 0

    def forget(self) -> None:
        """Begin with the first place again."""
        self._next = 0

    def state(self) -> int:
        """Return the position of the place whose turn it is."""
        return self._next

    def restore(self, values: int) -> None:
        """Go on with the place whose turn it was."""
        self._next = int(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Hand out what waits in turn."""
        places = view.places
        count = len(places)
        turn = self._next
        for work in view.waiting:
            for _ in range(count):
                place = places[turn]
                turn += 1
                if turn == count:
                    turn = 0
                if place.can_run(work):
                    self._next = turn
                    yield Start(work, place)
                    break


class Random(MappingPolicy):
    """Any place, by chance, from the policy's random stream: one draw a job.

    Parameters
    ----------
    weights
        how often each place is taken, any positive scale: in the order of the places, or by name; default: all alike.
        Where a place cannot run a job the others share its part

    >>> Random(weights={"fast": 3, "slow": 1}).name
    'random(3,1)'
    """

    def __init__(self, weights: Sequence[float] | Mapping[str, float] | None = None) -> None:
        self.weights = weights
        values = [] if weights is None else list(weights.values() if isinstance(weights, Mapping) else weights)
        if weights is not None and not (values and all(_at_least_zero(value) for value in values) and sum(values) > 0):
            raise InputError(f"weights of places expected, none negative and not all 0, found {weights!r}")
        self.name = "random" if weights is None else f"random({','.join(f'{value:g}' for value in values)})"

    @classmethod
    def of(cls, *values: Any) -> Self:
        """Return the policy that ``random(3, 1)`` describes."""
        return cls(values or None)

    def _weights(self, places: Sequence[Any]) -> list[float]:
        """Return the weight of each place, in their order."""
        given = self.weights
        if given is None:
            return [1.0] * len(places)
        names = [place.name for place in places]
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise InputError(f"a weight of each place expected ({', '.join(names)}), found {', '.join(given)}")
            return [float(given[name]) for name in names]
        if len(given) != len(places):
            raise InputError(f"{len(places)} weights expected, one a place, found {len(given)}")
        return [float(weight) for weight in given]

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
        """Draw a place."""
        drawn = float(view.rng.random())
        weight = dict(zip(view.places, self._weights(view.places), strict=True))
        able = [place for place in places if weight[place] > 0] or places
        sums = list(accumulate(weight[place] or 1.0 for place in able))
        return able[min(bisect_right(sums, drawn * sums[-1]), len(able) - 1)]


class Share(Random):
    """The first place with probability ``p``, each of the others with the same part of the rest.

    Parameters
    ----------
    p
        between 0 and 1; default: a half

    Raises
    ------
    InputError
        ``p`` is not between 0 and 1

    >>> Share(0.6).name
    'share(0.6)'
    """

    def __init__(self, p: float = 0.5) -> None:
        if not (_at_least_zero(p) and p <= 1):
            raise InputError(f"a share between 0 and 1 expected, found {p!r}")
        super().__init__()
        self.p = p
        self.name = f"share({p:g})"

    @classmethod
    def of(cls, p: Any = 0.5) -> Self:
        """Return the policy that ``share(0.6)`` describes."""
        return cls(p)

    def _weights(self, places: Sequence[Any]) -> list[float]:
        others = len(places) - 1
        return [self.p, *[(1.0 - self.p) / others] * others] if others else [1.0]


def _at_least_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


# ---------------------------------------------------------------------- the lowest figure

Rule = Callable[[View, Any, Sequence[Any]], Any]


def _first(_view: View, _work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
    return places[0]


def _random(view: View, _work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
    return places[int(view.rng.integers(len(places)))]


def _home(_view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
    home = getattr(work, "home", None)
    return home if home in places else places[0]


def work_a_processor(place: Place) -> float:
    """Return the work that is still expected of a place, for each of its processors."""
    return float(place.backlog / place.capacity)


def _least_loaded(_view: View, _work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
    return min(places, key=work_a_processor)


TIES: dict[str, Rule] = {"first": _first, "least-loaded": _least_loaded, "home": _home, "random": _random}
"""Who wins a tie: the first declared; the least loaded, then the first; the job's home, else the first; any, by chance.
"""


class Lowest(MappingPolicy):
    """The place with the lowest figure.

    A subclass writes ``figures(view, work, places)``.

    Parameters
    ----------
    ties
        who wins a tie: the ``first`` declared, the ``least-loaded`` system, the job's ``home``, any (``random``), or a
        function of the view, the work and the places
    name
        what results call the policy

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

    def choose(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> Any:
        """Return the place with the lowest figure."""
        if len(places) == 1:
            return places[0]
        figures = self.figures(view, work, places)
        lowest = min(figures)
        first = figures.index(lowest)
        if self._rule is _first or figures.count(lowest) == 1:
            return places[first]
        return self._rule(view, work, [place for place, each in zip(places, figures, strict=True) if each == lowest])

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the figure of each place, in their order."""
        raise NotImplementedError


class EarliestStart(Lowest):
    """Where the work is expected to start first; simulation-guided scheduling by wait where estimates are simulations.

    >>> EarliestStart().name
    'earliest-start'
    """

    name = "earliest-start"

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the estimated starts (s)."""
        return [view.estimate(work, place).start for place in places]


class EarliestFinish(Lowest):
    """Where the work is expected to end first: start, setup, transfers and run together.

    Where estimates are simulations this is simulation-guided scheduling by turnaround (SGS-T).

    >>> EarliestFinish("least-loaded").name
    'earliest-finish'
    """

    name = "earliest-finish"

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the estimated ends (s)."""
        estimates = [view.estimate(work, place) for place in places]
        return [start + setup + transfer + run for start, setup, transfer, run in estimates]


class FastestExecution(Lowest):
    """Where the task is expected to execute fastest, whatever waits there (GreedyET of HetSim).

    >>> FastestExecution().name
    'greedy-et'
    """

    name = "greedy-et"
    decides = "tasks"

    def candidates(self, view: View) -> Sequence[Any]:
        """Return the first place of each spec: places of one spec are equally fast."""
        first: dict[Any, Any] = {}
        for place in view.places:
            first.setdefault(id(getattr(place, "spec", place)), place)
        return list(first.values())

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the expected run times (s)."""
        return [place.expected_run(work) for place in places]


class GreedyDS(Lowest):
    """Where setup, transfers and run take least, whatever waits there (GreedyDS of HetSim).

    Setup includes a reconfiguration, where the place would need one now; transfers move what is not in its pool now.

    >>> GreedyDS().name
    'greedy-ds'
    """

    name = "greedy-ds"
    decides = "tasks"

    def figures(self, view: View, work: LiveJob | LiveTask, places: Sequence[Any]) -> list[float]:
        """Return the seconds that the places would be held."""
        return [
            place.expected_setup(work) + place.expected_transfer(work) + place.expected_run(work) for place in places
        ]
