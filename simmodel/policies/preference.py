"""Decisions about jobs that wait for several places: where they start, and which place is held for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from simmodel.scheduling.protocol import Decision, OrderLike, Start, View

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import LiveJob

__all__ = ["by_preference", "heads_of", "start_heads_in_order"]


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


def heads_of(order: OrderLike, view: View) -> dict[Pool, LiveJob]:
    """Return the head of each queue: the first job for which no other place is held; none of them fits.

    For a job that is first in several queues one place is held: that with the earliest start by the expected ends of
    running jobs; of equal ones, the preferred one. In the other queues the next job is the first.
    """
    return _settled(order, view, passing=True)[1]


def start_heads_in_order(order: OrderLike, view: View, *, passing: bool = False) -> Iterator[Decision]:
    """Start the first of all jobs, where it prefers to, as long as it fits at a place where it is first.

    Parameters
    ----------
    order, view
        the order of the queues; the view
    passing
        whether a job that fits nowhere lets others pass except where a place is held for it (see :func:`heads_of`)
    """
    while (entry := _settled(order, view, passing=passing)[0]) is not None:
        yield Start(entry, entry.place)


def _settled(order: OrderLike, view: View, *, passing: bool) -> tuple[LiveJob | None, dict[Pool, LiveJob]]:
    """Return the first job that can start, and the jobs ahead of it that wait, by the places that are held for them."""
    cursors = {place: iter(view.waiting.at(place).by(order)) for place in view.places}
    firsts: dict[Pool, LiveJob | None] = {place: next(cursor, None) for place, cursor in cursors.items()}
    held: dict[Pool, LiveJob] = {}
    passed: set[LiveJob] = set()
    while True:
        for place, first in firsts.items():
            while first in passed:
                first = firsts[place] = next(cursors[place], None)
        left = [first for place, first in firsts.items() if first is not None and place not in held]
        if not left:
            return None, held
        first = min(left, key=lambda job: _key(order, job, view))
        entries = view.choices.get(first, (first,))
        here = [each for each in entries if each in left]
        for each in here:
            if each.place.fits(each):
                return each, held
        holding = [min(here, key=_earliest)] if passing and len(here) > 1 else here
        held.update((each.place, each) for each in holding)
        if passing:
            passed.update(each for each in entries if each not in holding)


def _key(order: OrderLike, job: LiveJob, view: View) -> tuple[Any, ...]:
    if order.key is None:
        return _rank(job)
    return -job.priority, order.key(job, view.now) if order.changes else order.key(job), job.submit, job.seq


def _earliest(entry: LiveJob) -> float:
    """Return the earliest start of an entry at its place (s), as if it were next."""
    place: Pool = entry.place
    if place.simple:
        return place.earliest(entry)[0]
    profile = place.profile()
    return profile.instant(profile.earliest(entry, entry.planned)[0])
