"""Brokers: to which of several places that queue does each job go?

They look at no order: whatever waits is handed over at once, in the order in which it came.

Sources: Random, Share (there User(x)) and SGS-T, the lowest simulated turnaround: the CQSim+ papers of the SPEAR group
at Illinois Institute of Technology; the others are the field's folklore.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from simmodel.errors import InputError, unknown
from simmodel.scheduling.protocol import Start, View

if TYPE_CHECKING:
    from simmodel.work.job import LiveJob

__all__ = [
    "BROKERS",
    "TIES",
    "Broking",
    "LeastLoaded",
    "LowestTurnaround",
    "LowestWait",
    "Random",
    "RoundRobin",
    "Share",
    "Siloed",
    "broker_policy",
]

Rule = Callable[[View, Any, Sequence[Any]], Any]


def _first(_view: View, _job: LiveJob, places: Sequence[Any]) -> Any:
    return places[0]


def _random(view: View, _job: LiveJob, places: Sequence[Any]) -> Any:
    return places[int(view.rng.integers(len(places)))]


def _home(_view: View, job: LiveJob, places: Sequence[Any]) -> Any:
    home = getattr(job, "home", None)
    return home if home in places else places[0]


def _least_loaded(_view: View, _job: LiveJob, places: Sequence[Any]) -> Any:
    return min(places, key=_work_a_processor)


def _work_a_processor(place: Any) -> float:
    return float(place.backlog / place.capacity)


TIES: dict[str, Rule] = {"first": _first, "least-loaded": _least_loaded, "home": _home, "random": _random}
"""Who wins a tie: the first declared; the least loaded, then the first; the job's home, else the first; any, by chance.
"""


class Broking:
    """What all brokers share: each waiting job goes to one of the places that can ever run it.

    A subclass says which, in ``choose(view, job, places)``.
    """

    name = "broker"

    def decide(self, view: View) -> Iterator[Start]:
        """Hand over everything that waits."""
        for job in view.waiting:
            places = self.destinations(getattr(job, "home", None), view.places)
            able = [place for place in places if place.can_run(job)]
            if able:
                yield Start(job, self.choose(view, job, able))

    def destinations(self, home: Any, places: Sequence[Any]) -> Sequence[Any]:
        """Return where a job of this home may go: anywhere; a broker that can tell asks before the job is there."""
        return places

    def choose(self, view: View, job: LiveJob, places: Sequence[Any]) -> Any:
        """Return the place, one of these, that the job goes to."""
        raise NotImplementedError

    def fresh(self) -> Any:
        """Return one with the same settings and nothing remembered: itself, where it remembers nothing."""
        return self

    def __repr__(self) -> str:
        return f"<broker {self.name}>"


class Random(Broking):
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
        if weights is not None and not (values and all(value >= 0 for value in values) and sum(values) > 0):
            raise InputError(f"weights of places expected, none negative and not all 0, found {weights!r}")
        self.name = "random" if weights is None else f"random({','.join(f'{value:g}' for value in values)})"

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

    def choose(self, view: View, job: LiveJob, places: Sequence[Any]) -> Any:
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
        between 0 and 1

    Raises
    ------
    InputError
        where it is not

    >>> Share(0.6).name
    'share:0.6'
    """

    def __init__(self, p: float) -> None:
        if not 0 <= p <= 1:
            raise InputError(f"a share between 0 and 1 expected, found {p!r}")
        super().__init__()
        self.p = p
        self.name = f"share:{p:g}"

    def _weights(self, places: Sequence[Any]) -> list[float]:
        others = len(places) - 1
        return [self.p, *[(1.0 - self.p) / others] * others] if others else [1.0]


class RoundRobin(Broking):
    """One place after the other; a place that cannot run a job is passed over.

    >>> RoundRobin().name
    'round-robin'
    """

    name = "round-robin"

    def __init__(self) -> None:
        self._next = 0

    def fresh(self) -> RoundRobin:
        """Return one that begins with the first place."""
        return RoundRobin()

    def forget(self) -> None:
        """Begin with the first place again."""
        self._next = 0

    def state(self) -> dict[str, int]:
        """Return whose turn it is, as a plain value."""
        return {"next": self._next}

    def restore(self, values: Mapping[str, int]) -> None:
        """Go on from such a value."""
        self._next = int(values["next"])

    def choose(self, view: View, job: LiveJob, places: Sequence[Any]) -> Any:
        """Return the next place."""
        everywhere = list(view.places)
        turn = [everywhere[(self._next + i) % len(everywhere)] for i in range(len(everywhere))]
        place = next(place for place in turn if place in places)
        self._next = (everywhere.index(place) + 1) % len(everywhere)
        return place


class _Lowest(Broking):
    """The place with the lowest figure; ties by a rule of :data:`TIES`, or a function of view, job and places."""

    def __init__(self, ties: str | Rule = "first") -> None:
        if isinstance(ties, str) and ties not in TIES:
            raise unknown("rule for ties", ties, TIES)
        self.ties = ties
        self._rule: Rule = TIES[ties] if isinstance(ties, str) else ties

    def choose(self, view: View, job: LiveJob, places: Sequence[Any]) -> Any:
        """Return the place with the lowest figure."""
        if len(places) == 1:
            return places[0]
        figures = [self.figure(view, job, place) for place in places]
        lowest = min(figures)
        tied = [place for place, figure in zip(places, figures, strict=True) if figure == lowest]
        return tied[0] if len(tied) == 1 else self._rule(view, job, tied)

    def figure(self, view: View, job: LiveJob, place: Any) -> float:
        """Return what is to be low."""
        raise NotImplementedError


class LowestTurnaround(_Lowest):
    """Simulation-guided scheduling (SGS-T): where the estimated end comes first, by ``view.estimate``.

    Parameters
    ----------
    ties
        the first declared (``first``), the ``least-loaded``, the job's ``home``, any (``random``), or a function of
        the view, the job and the places

    >>> LowestTurnaround("least-loaded").name
    'sgs-t'
    """

    name = "sgs-t"

    def figure(self, view: View, job: LiveJob, place: Any) -> float:
        """Return the estimated end (s)."""
        return view.estimate(job, place).finish


class LowestWait(_Lowest):
    """Simulation-guided scheduling by wait: where the estimated start comes first, by ``view.estimate``.

    Parameters
    ----------
    ties
        as of :class:`LowestTurnaround`

    >>> LowestWait().name
    'sgs-w'
    """

    name = "sgs-w"

    def figure(self, view: View, job: LiveJob, place: Any) -> float:
        """Return the estimated start (s)."""
        return view.estimate(job, place).start


LOADS: dict[str, Callable[[Any], float]] = {
    "work": _work_a_processor,
    "processors": lambda place: (place.capacity - place.free + place.queued_processors) / place.capacity,
    "jobs": lambda place: (place.queued + place.runs) / place.capacity,
}


class LeastLoaded(_Lowest):
    """Where the load is lowest, for each processor of the place.

    Parameters
    ----------
    load
        ``"work"``: the processor seconds that what runs and waits is still expected to take; ``"processors"``: those
        busy and asked for; ``"jobs"``: those running and waiting
    ties
        as of :class:`LowestTurnaround`

    >>> LeastLoaded("jobs").name
    'least-loaded:jobs'
    """

    def __init__(self, load: str = "work", ties: str | Rule = "first") -> None:
        if load not in LOADS:
            raise unknown("load", load, LOADS)
        super().__init__(ties)
        self.load = load
        self.name = "least-loaded" if load == "work" else f"least-loaded:{load}"
        self._load = LOADS[load]

    def figure(self, view: View, job: LiveJob, place: Any) -> float:
        """Return the load."""
        return self._load(place)


class Siloed(Broking):
    """Every job at home: nothing is shared.

    >>> Siloed().name
    'siloed'
    """

    name = "siloed"

    def destinations(self, home: Any, places: Sequence[Any]) -> Sequence[Any]:
        """Return the home."""
        if home is None:
            raise InputError("a home cluster of each job expected under siloed, found a job without one")
        return (home,)

    def choose(self, view: View, job: LiveJob, places: Sequence[Any]) -> Any:
        """Return the home."""
        return places[0]


def _share(text: str) -> Share:
    try:
        p = float(text)
    except ValueError:
        p = -1.0
    if not 0 <= p <= 1:
        raise InputError(f"share:P expected, P between 0 and 1, found 'share:{text}'")
    return Share(p)


BROKERS: dict[str, tuple[Callable[..., Any], str]] = {
    "random": (Random, "any cluster, by chance"),
    "round-robin": (RoundRobin, "one cluster after the other"),
    "sgs-t": (LowestTurnaround, "the cluster with the lowest simulated turnaround"),
    "sgs-w": (LowestWait, "the cluster with the lowest simulated wait"),
    "least-loaded": (LeastLoaded, "the cluster with the least work a processor"),
    "siloed": (Siloed, "every job at its home cluster"),
}
"""The brokers that have a name, with a line about each; ``share:P`` comes besides."""

_WITH_TIES = ("sgs-t", "sgs-w", "least-loaded")


def broker_policy(given: Any, *, ties: str | Rule | None = None) -> Any:
    """Return the broker of a name; a policy, or a function of a view, comes back as it is.

    Parameters
    ----------
    given
        a name of :data:`BROKERS`, ``share:P``, ``least-loaded:LOAD``, or a policy
    ties
        for those that compare places

    Raises
    ------
    InputError
        where the name is none of a broker, or ``ties`` is given where there are none to break

    >>> broker_policy("share:0.6").p
    0.6
    """
    from simmodel.scheduling.registry import policy

    if not isinstance(given, str):
        if ties is not None:
            raise InputError("a rule for ties goes with a name of a broker; an object has its own")
        return policy(given)
    name, colon, rest = given.partition(":")
    if ties is not None:
        if name not in _WITH_TIES:
            raise InputError(f"a rule for ties goes with {', '.join(_WITH_TIES)}, found {given!r}")
        return LeastLoaded(rest or "work", ties) if name == "least-loaded" else BROKERS[given][0](ties)
    if name == "share":
        return _share(rest)
    if name == "least-loaded" and colon:
        return LeastLoaded(rest)
    if given in BROKERS:
        return BROKERS[given][0]()
    if colon:
        return policy(given)
    raise unknown("broker", given, [*BROKERS, "share:P"])
