"""Eviction rules, and the candidates in the order of a rule, kept up to date at each use.

Sources: A. Silberschatz, P. Galvin, G. Gagne, "Operating System Concepts", 10th ed., section 10.4 (FIFO, LRU, LFU); S.
Williams et al., "Removal policies in network caches for World-Wide Web documents", SIGCOMM 1996 (SIZE). No rule that
knows the past alone has fewer misses than that of L. Belady, "A study of replacement algorithms for a virtual-storage
computer", IBM Systems Journal 5(2), 1966, on things of one size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar, NamedTuple, TypeAlias

from simmodel.foundation.entries import call_with, split_call
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.models import EVICTIONS

__all__ = [
    "Candidate",
    "CandidateState",
    "Eviction",
    "EvictionLike",
    "EvictionOrder",
    "FirstIn",
    "KeyedEviction",
    "LargestFirst",
    "LeastFrequentlyUsed",
    "LeastRecentlyUsed",
    "NoEviction",
    "RankedData",
    "eviction_rule",
    "register_eviction",
    "rule_for_data",
]


class Candidate:
    """A file or data object that may have to go, as eviction rules see it.

    Attributes
    ----------
    name, size
        the file or data object, and its bytes
    arrival, last
        its arrival and its last use as positions in the order of all arrivals and uses; an arrival counts as a use
    uses
        the number of uses since it arrived

    >>> Candidate("a", 10.0, 1)
    <Candidate 'a': 10 bytes, 0 uses>
    """

    __slots__ = ("arrival", "entry", "last", "name", "size", "uses")

    def __init__(self, name: Any, size: float, arrival: int) -> None:
        self.name = name
        self.size = size
        self.arrival = arrival
        self.last = arrival
        self.uses = 0
        self.entry: tuple[Any, int, int, Candidate] | None = None  # its valid entry in the order; None: it is not in it

    def __repr__(self) -> str:
        return f"<Candidate {self.name!r}: {self.size:g} bytes, {self.uses} uses>"


class CandidateState(NamedTuple):
    """The past of a candidate at one instant, as positions in the order of all arrivals and uses."""

    arrival: int
    last: int
    uses: int


class Eviction:
    """The base class of eviction rules.

    Parameters
    ----------
    last
        whether the last replica of a file may go, too

    >>> class SmallestFirst(Eviction):
    ...     def key(self, candidate): return candidate.size
    >>> order = EvictionOrder(SmallestFirst())
    >>> order.add("a", 30.0); order.add("b", 10.0); order.pop().name
    'b'
    """

    evicts: ClassVar[bool] = True
    """Whether anything is evicted at all."""

    def __init__(self, last: bool = False) -> None:
        self.last = last

    def key(self, candidate: Candidate) -> Any:
        """Return the key of a candidate: the one with the lowest key goes first, of equal ones the first to arrive."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class KeyedEviction(Eviction):
    """A rule made of a function that returns the key of a candidate.

    >>> KeyedEviction(lambda candidate: candidate.size).key(Candidate("a", 10.0, 1))
    10.0
    """

    def __init__(self, function: Callable[[Candidate], Any], last: bool = False) -> None:
        super().__init__(last)
        self.function = function

    def key(self, candidate: Candidate) -> Any:
        return self.function(candidate)


EvictionLike: TypeAlias = "str | Eviction | type[Eviction] | Callable[[Candidate], Any]"
"""An eviction rule as users pass it: a name, a rule, its class, or a function that returns the key of a candidate."""


def register_eviction(name: str, rule: type[Eviction] | Callable[[Candidate], Any]) -> None:
    """Make an eviction rule known by a name, which specs and platform files accept from then on.

    Parameters
    ----------
    name
        its name; replaces another rule of that name
    rule
        a class derived from :class:`Eviction`, or a function that returns the key of a :class:`Candidate`

    Packages offer rules as entry points of the group ``simmodel.evictions``.

    >>> register_eviction("smallest", lambda candidate: candidate.size)
    >>> eviction_rule("smallest(last=true)").last
    True
    >>> del EVICTIONS["smallest"]
    """
    EVICTIONS[name] = rule


def eviction_rule(given: EvictionLike, place: str = "evict") -> Eviction:
    """Return the rule given as a name, such as ``"lru"`` or ``"lru(last=true)"``, an object, a class or a function.

    Raises
    ------
    InputError
        an unknown name, invalid parameters, or an object of another type

    >>> eviction_rule("lfu"), eviction_rule("lru(last=true)").last
    (<LeastFrequentlyUsed>, True)
    """
    if isinstance(given, Eviction):
        return given
    if isinstance(given, str):
        name, values, options = split_call(given, place)
        if name not in EVICTIONS:
            raise InputError(unknown("eviction rule", name, EVICTIONS).message, place=place)
        source: Any = EVICTIONS[name]
    else:
        source, values, options = given, [], {}
    if isinstance(source, type) and issubclass(source, Eviction):
        return call_with(source, values, options, place)
    if isinstance(source, type) or not callable(source):
        message = f"must be a name, a subclass of Eviction or a function of candidates, got {given!r}"
        raise InputError(message, place=place)
    return call_with(lambda last=False: KeyedEviction(source, last), values, options, place)


def rule_for_data(given: EvictionLike, place: str) -> Eviction:
    """Return an eviction rule for memory pools, which evict as tasks need room and never lose the last copy.

    Raises
    ------
    InputError
        the rule evicts nothing, or the last replicas too; or as for :func:`eviction_rule`

    >>> rule_for_data("none", "memory pool hbm, evict")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: memory pool hbm, evict: must be a rule that evicts all but last copies, ...
    """
    rule = eviction_rule(given, place)
    if rule.last or not rule.evicts:
        raise InputError(f"must be a rule that evicts all but last copies, got {given!r}", place=place)
    return rule


class EvictionOrder:
    """Candidates in the order of a rule; an arrival, a use and an eviction cost O(log n).

    Parameters
    ----------
    rule
        the rule

    >>> from simmodel.resources.data.eviction import LeastRecentlyUsed
    >>> order = EvictionOrder(LeastRecentlyUsed())
    >>> for name in "abc": order.add(name, 1.0)
    >>> order.use("a"); [each.name for each in order]
    ['b', 'c', 'a']
    """

    __slots__ = ("_clock", "_heap", "_numbers", "_of", "rule")

    def __init__(self, rule: Eviction) -> None:
        self.rule = rule
        self._of: dict[Hashable, Candidate] = {}
        self._heap: list[tuple[Any, int, int, Candidate]] = []
        self._clock = 0
        self._numbers = 0  # of entries: no two compare equal

    def __len__(self) -> int:
        """Return the number of candidates, those held among them."""
        return len(self._of)

    def __getitem__(self, name: Hashable) -> Candidate:
        return self._of[name]

    def __iter__(self) -> Iterator[Candidate]:
        """Iterate over the candidates that are not held, the first to go first; must not be changed meanwhile.

        The first k cost O(k log k).
        """
        heap = self._heap
        if not heap:
            return
        ahead = [(heap[0][:2], 0)]
        while ahead:
            _, at = heappop(ahead)
            entry = heap[at]
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heappush(ahead, (heap[child][:2], child))
            if entry[3].entry is entry:
                yield entry[3]

    def add(self, name: Hashable, size: float, *, held: bool = False) -> None:
        """Add a candidate that arrives now; ``held``: it stays out of the order until :meth:`free`."""
        self._clock = clock = self._clock + 1
        self._of[name] = candidate = Candidate(name, size, clock)
        if not held:
            self._push(candidate)

    def use(self, name: Hashable) -> None:
        """Note a use of a candidate."""
        candidate = self._of[name]
        self._clock = candidate.last = self._clock + 1
        candidate.uses += 1
        if candidate.entry is not None:
            self._push(candidate)

    def hold(self, name: Hashable) -> None:
        """Take a candidate out of the order until :meth:`free`."""
        self._of[name].entry = None

    def free(self, name: Hashable) -> None:
        """Put a candidate back into the order after :meth:`hold` or :meth:`pop`."""
        candidate = self._of[name]
        if candidate.entry is None:
            self._push(candidate)

    def remove(self, name: Hashable) -> None:
        self._of.pop(name).entry = None

    def pop(self) -> Candidate | None:
        """Take the candidate that goes first out of the order and return it; ``None`` if the order is empty."""
        heap = self._heap
        while heap:
            entry = heappop(heap)
            candidate = entry[3]
            if candidate.entry is entry:
                candidate.entry = None
                return candidate
        return None

    def _push(self, candidate: Candidate) -> None:
        key = self.rule.key(candidate)
        if candidate.entry is not None and candidate.entry[0] == key:
            return
        self._numbers = number = self._numbers + 1
        candidate.entry = entry = (key, candidate.arrival, number, candidate)
        heap = self._heap
        if len(heap) > 64 + 2 * len(self._of):
            heap[:] = [each for each in heap if each[3].entry is each]
            heapify(heap)
        heappush(heap, entry)

    # ------------------------------------------------------------------ snapshots

    def state(self) -> tuple[int, dict[Any, CandidateState]]:
        """Return the position in the order of all arrivals and uses, and the past of each candidate by name."""
        return self._clock, {name: CandidateState(c.arrival, c.last, c.uses) for name, c in self._of.items()}

    def restore(self, clock: int, pasts: Mapping[Any, CandidateState]) -> None:
        """Give the candidates their pasts of a snapshot."""
        self._clock = clock
        for name, past in pasts.items():
            candidate = self._of[name]
            candidate.arrival, candidate.last, candidate.uses = past
            if candidate.entry is not None:
                candidate.entry = None
                self._push(candidate)


class RankedData(OrderedDict[Any, None]):
    """Things with a ``size``, the least recently used first, and their order by a rule.

    A new key is an arrival, ``move_to_end`` a use.

    Parameters
    ----------
    rule
        the rule
    """

    def __init__(self, rule: Eviction) -> None:
        super().__init__()
        self.order = EvictionOrder(rule)

    def __setitem__(self, thing: Any, value: None) -> None:
        if thing not in self:
            self.order.add(thing, thing.size)
        super().__setitem__(thing, value)

    def __delitem__(self, thing: Any) -> None:
        super().__delitem__(thing)
        self.order.remove(thing)

    def move_to_end(self, thing: Any, last: bool = True) -> None:
        super().move_to_end(thing, last)
        self.order.use(thing)


class LeastRecentlyUsed(Eviction):
    """Least recently used first; an arrival counts as a use."""

    def key(self, candidate: Candidate) -> int:
        return candidate.last


class LeastFrequentlyUsed(Eviction):
    """Fewest uses since the arrival first; of these the least recently used."""

    def key(self, candidate: Candidate) -> tuple[int, int]:
        """Return the count of uses, and the number of the last."""
        return candidate.uses, candidate.last


class LargestFirst(Eviction):
    """Largest first; of these the first to arrive."""

    def key(self, candidate: Candidate) -> float:
        return -candidate.size


class FirstIn(Eviction):
    """In the order of arrival."""

    def key(self, candidate: Candidate) -> int:
        return candidate.arrival


class NoEviction(Eviction):
    """Nothing goes by itself: work waits until files are dropped."""

    evicts = False

    def __init__(self) -> None:
        super().__init__()
