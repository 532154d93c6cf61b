"""Orders of the queue, which are also policies that start jobs in that order without backfilling, and best fit.

Sources: fcfs, sjf, ljf, smallest, largest: the field's folklore, compared in Mu'alem & Feitelson, "Utilization,
predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6),
2001. wfp and unicef: Tang, Lan, Desai, Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
CLUSTER 2009. f1 to f4: Carastan-Santos & de Camargo, "Obtaining dynamic scheduling policies with simulation and
machine learning", SC 2017. Best fit: Johnson, "Fast algorithms for bin packing", J. Comput. Syst. Sci. 8(3), 1974,
applied to the free processors of a cluster, as in the job schedulers of simulators such as SST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, takewhile
from math import log2, log10, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.entries import Entries, call_with, load, split_call
from simmodel.foundation.errors import unknown
from simmodel.scheduling.protocol import Decision, OrderLike, Policy, Reserve, Start, View

if TYPE_CHECKING:
    from typing import SupportsIndex

    from numpy.typing import NDArray

    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.column_index import ColumnIndex
    from simmodel.work.job import LiveJob

__all__ = [
    "BUILT_IN",
    "FCFS",
    "LJF",
    "ORDERS",
    "SJF",
    "UNICEF",
    "WFP",
    "BestFit",
    "First",
    "GivenOrder",
    "HeldPlaces",
    "Order",
    "at_each_place",
    "by_preference",
    "order",
    "recorded",
    "settled",
    "start_heads",
    "start_heads_in_order",
    "start_in_order",
]


@attrs.frozen(eq=False)
class Order(Policy):
    """An order of waiting work, and the policy that starts jobs in that order until the first that does not fit.

    A higher priority of the job, its queue or its partition always precedes the key.

    Parameters
    ----------
    name
        its name in results
    key
        ``key(job)``, or ``key(job, now)`` if it changes: lower first, ties by submission; ``None``: order of arrival
    changes
        whether the key changes while a job waits
    scores
        ``scores(now, columns)`` returns the keys of all waiting jobs as an array, for orders that change; must agree
        with ``key``
    description
        one line

    >>> from simmodel.work import LiveJob
    >>> widest = Order("widest", key=lambda job: -job.processors)
    >>> widest.key(LiveJob(1, 0, 0.0, 8, 60.0, 60.0, 60.0))
    -8
    """

    decides = "jobs"

    name: str
    key: Callable[..., Any] | None = attrs.field(default=None, kw_only=True)
    changes: bool = attrs.field(default=False, kw_only=True)
    scores: Callable[[float, ColumnIndex], NDArray[np.float64]] | None = attrs.field(default=None, kw_only=True)
    description: str = attrs.field(default="", kw_only=True)

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start jobs in order at each place, until the first that does not fit (hot path)."""
        places = view.places
        return start_heads(self, view, places[0]) if len(places) == 1 else start_in_order(self, view)

    def fresh(self) -> Order:
        """Return the order itself, which has no state."""
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if any(self is known for known in BUILT_IN):  # built-in orders keep their identity in other processes
            return load, (f"{__name__}:{self.name.upper()}",)
        return object.__reduce_ex__(self, protocol)


def start_heads(order: OrderLike, view: View, place: Pool) -> Iterator[Decision]:
    """Yield starts of the first job in an order as long as it fits."""
    waiting = view.waiting.at(place)
    if not waiting.count or place.free <= 0:
        return
    queue = waiting.by(order) if order.key is not None or waiting.with_priorities else waiting
    if order.changes and place.free < queue.narrowest:
        return
    while waiting.count and place.fits(head := queue.head()):
        yield Start(head, place)


def start_in_order(order: OrderLike, view: View) -> Iterable[Decision]:
    """Return the starts of jobs in an order at each place, until the first that does not fit."""
    if view.choices:
        return start_heads_in_order(order, view)
    return at_each_place(view, partial(start_heads, order))


def at_each_place(view: View, decide: Callable[[View, Pool], Iterable[Decision]]) -> Iterable[Decision]:
    """Return the decisions of ``decide(view, place)`` for all places in turn."""
    places = view.places
    if len(places) == 1:
        return decide(view, places[0])
    if view.choices:
        return by_preference(view, decide)
    return chain.from_iterable(decide(view, place) for place in places)


def _at_least_one(seconds: float) -> float:
    """Return the requested time as a divisor: zero counts as one second."""
    return seconds if seconds > 0 else 1.0


def _wfp(job: LiveJob, now: float) -> float:
    ratio = (now - job.submit) / _at_least_one(job.planned)
    return -(ratio * ratio * ratio * job.processors)


def _wfp_scores(now: float, columns: ColumnIndex) -> NDArray[np.float64]:
    ratio, score = columns.scratch
    np.subtract(now, columns.submit, out=ratio)
    ratio /= columns.divisor
    np.multiply(ratio, ratio, out=score)
    score *= ratio
    score *= columns.processors
    negative: NDArray[np.float64] = np.negative(score, out=score)
    return negative


def _unicef(job: LiveJob, now: float) -> float:
    return -((now - job.submit) / (log2(max(2, job.processors)) * _at_least_one(job.planned)))


def _unicef_scores(now: float, columns: ColumnIndex) -> NDArray[np.float64]:
    divisor: NDArray[np.float64] = columns.scratch[0]
    score: NDArray[np.float64] = columns.scratch[1]
    np.log2(np.maximum(2.0, columns.processors, out=divisor), out=divisor)
    divisor *= columns.divisor
    np.subtract(columns.submit, now, out=score)
    score /= divisor
    return score


FCFS = Order("fcfs", description="first come, first served")
SJF = Order("sjf", key=lambda job: job.planned, description="shortest requested time first")
LJF = Order("ljf", key=lambda job: -job.planned, description="longest requested time first")
SMALLEST = Order("smallest", key=lambda job: job.processors, description="fewest processors first")
LARGEST = Order("largest", key=lambda job: -job.processors, description="most processors first")
WFP = Order("wfp", key=_wfp, changes=True, scores=_wfp_scores, description="(wait / requested)^3 x processors")
UNICEF = Order(
    "unicef",
    key=_unicef,
    changes=True,
    scores=_unicef_scores,
    description="wait / (log2(processors) x requested): small, short, long waiting first",
)
F1 = Order(
    "f1",
    key=lambda job: log10(max(1, job.planned)) * job.processors + 870 * log10(max(1, job.submit)),
    description="log10(requested) x processors + 870 log10(submit)",
)
F2 = Order(
    "f2",
    key=lambda job: sqrt(job.planned) * job.processors + 25600 * log10(max(1, job.submit)),
    description="sqrt(requested) x processors + 25600 log10(submit)",
)
F3 = Order(
    "f3",
    key=lambda job: job.planned * job.processors + 6860000 * log10(max(1, job.submit)),
    description="requested x processors + 6860000 log10(submit)",
)
F4 = Order(
    "f4",
    key=lambda job: job.planned * sqrt(job.processors) + 530000 * log10(max(1, job.submit)),
    description="requested x sqrt(processors) + 530000 log10(submit)",
)
BUILT_IN = (FCFS, SJF, LJF, SMALLEST, LARGEST, WFP, UNICEF, F1, F2, F3, F4)


def _itself(value: Order) -> Callable[[], Order]:
    return lambda: value


GivenOrder: TypeAlias = "str | Order | Callable[[LiveJob], Any]"
"""An order, its name, or a key function."""
ORDERS = Entries[Callable[[], Any]](
    {
        **{value.name: _itself(value) for value in BUILT_IN},
        "multifactor": "simmodel.policies.multifactor:Multifactor",
    }
)
"""Functions that return the orders, by name."""


def order(name: GivenOrder) -> Any:
    """Return the order with this name, the order itself if one is given, or an order with this key function.

    Raises
    ------
    InputError
        the name or a parameter of it is unknown

    >>> order("sjf").description, order("multifactor(age=5)").age
    ('shortest requested time first', 5)
    """
    if not isinstance(name, str):
        return name if hasattr(name, "changes") else Order(getattr(name, "__name__", "order"), key=name)
    place = f"order {name!r}"
    kind, values, options = split_call(name, place)
    if kind not in ORDERS:
        raise unknown("order", kind, ORDERS)
    return call_with(ORDERS[kind], values, options, place)


def by_preference(view: View, decide: Callable[[View, Pool], Iterable[Decision]]) -> Iterator[Decision]:
    """Yield the decisions of ``decide(view, place)`` for all places, so that jobs start where they prefer to.

    A place that would start a job is put aside until the places that the job prefers have decided without starting it,
    and then decides again. Of places that are put aside for each other, the one with the first job goes first.
    """
    undecided = list(view.places)
    allowed: set[LiveJob] = set()
    while undecided:
        wanted: list[LiveJob] = []
        before = tuple(undecided)
        for place in before:
            for decision in decide(view, place) or ():
                work: Any = decision.work if type(decision) is Start else None
                if work in view.choices and work not in allowed and _prefers(view.choices[work], place, undecided):
                    wanted.append(work)
                    break
                yield decision
            else:
                undecided.remove(place)
        if len(wanted) == len(before):
            allowed.add(min(wanted, key=_rank))


def _prefers(entries: Iterable[LiveJob], place: Pool, undecided: list[Pool]) -> bool:
    """Whether a job prefers a place that has not decided yet to this one."""
    return any(each.place in undecided for each in takewhile(lambda each: each.place is not place, entries))


def _rank(job: LiveJob) -> tuple[Any, ...]:
    return -job.priority, job.submit, job.seq


def start_heads_in_order(order: OrderLike, view: View) -> Iterator[Decision]:
    """Start the first of all jobs, where it prefers to, as long as it fits at a place where it is first."""
    while (entry := settled(order, view, {place for place in view.places if place.free > 0})[0]) is not None:
        yield Start(entry, entry.place)


def settled(
    order: OrderLike, view: View, roomy: set[Pool], earliest: Callable[[LiveJob], float] | None = None
) -> tuple[LiveJob | None, dict[Pool, LiveJob]]:
    """Return the first job that can start, and the jobs ahead of it, by the places that are held for them.

    Parameters
    ----------
    order, view
        the order of the queues; the view
    roomy
        the places where a job could start; once they are all held, the others do not matter
    earliest
        returns the earliest start of an entry at its place (s). Of the places where a job is first and fits nowhere,
        that with the earliest is held for it, of equal ones the preferred one; at the others the next job is first.
        Default: all are held
    """
    waiting, choices = view.waiting, view.choices
    firsts: dict[Pool, tuple[Any, ...]] = {}
    cursors: dict[Pool, Iterator[LiveJob]] = {}
    held: dict[Pool, LiveJob] = {}
    passed: set[LiveJob] = set()
    for number, place in enumerate(view.places if roomy else ()):
        first = waiting.at(place).by(order).head()
        if first is not None:
            firsts[place] = _key(order, first, view, number)
    rooms = roomy & firsts.keys()
    while rooms:
        first = min(firsts.values())[-1]
        entries = choices.get(first, (first,))
        here = [each for each in entries if each.place in firsts and firsts[each.place][-1] is each]
        for each in here:
            if each.place in rooms and each.place.fits(each):
                return each, held
        holding = here if earliest is None or len(here) == 1 else [min(here, key=earliest)]
        for each in holding:
            held[each.place] = each
            del firsts[each.place]
            rooms.discard(each.place)
        if len(holding) == len(entries) or earliest is None:
            continue
        passed.update(entries)
        for place in [each.place for each in here if each.place in firsts]:
            number = firsts.pop(place)[-2]
            if place not in cursors:
                cursors[place] = iter(waiting.at(place).by(order))
            following = _first_but(cursors[place], passed)
            if following is None:
                rooms.discard(place)
            else:
                firsts[place] = _key(order, following, view, number)
    return None, held


def _first_but(cursor: Iterator[LiveJob], passed: set[LiveJob]) -> LiveJob | None:
    """Return the next job that is not among some others."""
    return next((job for job in cursor if job not in passed), None)


First: TypeAlias = "Callable[[View, Pool, LiveJob | None], LiveJob | None]"
"""Returns the job for which a place is held, given the head of its queue."""


def _all_places(view: View) -> set[Pool]:
    return set(view.places)


class HeldPlaces:
    """The jobs for which places are held, where some may go to several: one place for each that fits at none.

    Parameters
    ----------
    order
        of the queues
    roomy
        returns the places where a job could start, or be promised a start; default: all
    """

    def __init__(self, order: OrderLike, roomy: Callable[[View], set[Pool]] = _all_places) -> None:
        self._order = order
        self._roomy = roomy
        self._held: tuple[int, dict[Pool, LiveJob]] = -1, {}  # sum of versions, the jobs for which places are held then
        self._ends: dict[Pool, tuple[int, dict[int, float]]] = {}  # version, and the earliest start (s) by width

    def start_firsts(self, view: View) -> Iterator[Decision]:
        """Start the first of the jobs for which no place is held ahead of them, as long as it fits somewhere."""
        while (entry := self._settle(view)) is not None:
            yield Start(entry, entry.place)

    def first(self, view: View, place: Pool, head: LiveJob | None) -> LiveJob | None:
        """Return the job for which a place is held, given the head of its queue: no other place is held for it."""
        if head not in view.choices:
            return head
        if self._held[0] != sum([place.version for place in view.places]):
            self._settle(view)
        return self._held[1].get(place)

    def _settle(self, view: View) -> LiveJob | None:
        """Return the first job that can start, if any, and note the jobs for which places are held."""
        entry, held = settled(self._order, view, self._roomy(view), self._earliest)
        self._held = sum([place.version for place in view.places]), held
        return entry

    def _earliest(self, entry: LiveJob) -> float:
        """Return the earliest start of an entry at its place (s), as if it were next."""
        place: Pool = entry.place
        if not place.simple:
            profile = place.profile()
            return profile.instant(profile.earliest(entry, entry.planned)[0])
        ends = self._ends.get(place)
        if ends is None or ends[0] != place.version:
            ends = self._ends[place] = place.version, {}
        at = ends[1].get(entry.width)
        if at is None:
            at = ends[1][entry.width] = place.earliest(entry)[0]
        return max(at, place.env._now)


def _key(order: OrderLike, job: LiveJob, view: View, number: int) -> tuple[Any, ...]:
    """Return a sort key that ends with the number of a place and the first job there."""
    if order.key is None:
        return -job.priority, job.submit, job.seq, number, job
    key = order.key(job, view.now) if order.changes else order.key(job)
    return -job.priority, key, job.submit, job.seq, number, job


def recorded(decisions: Iterator[Decision], *, promises: bool) -> Iterator[Decision]:
    """Return decisions with those that promise a start, or without."""
    return decisions if promises else (each for each in decisions if type(each) is not Reserve)


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
