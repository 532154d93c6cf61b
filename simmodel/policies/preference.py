"""Decisions about jobs that wait for several places: where they start, and which place is held for them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from simmodel.scheduling.protocol import Decision, OrderLike, Start, View

if TYPE_CHECKING:
    from simmodel.resources.pool import Pool
    from simmodel.work.job import LiveJob

__all__ = ["by_preference", "held_places", "start_unheld"]


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


def held_places(view: View, order: OrderLike) -> dict[LiveJob, Pool]:
    """Return the place that is held for each job at the head of the queues of several places, by the job's entries.

    It is the place with the earliest start by the expected ends of running jobs; of equal ones, the preferred one. In
    the queues of its other places the next job is the head, which may in turn be a job with several places: earlier
    jobs choose first.
    """
    cursors = {place: iter(view.waiting.at(place).by(order)) for place in view.places}
    heads: dict[Pool, LiveJob | None] = {place: next(cursor, None) for place, cursor in cursors.items()}
    held: dict[LiveJob, Pool] = {}
    while True:
        for place, head in heads.items():
            while head is not None and held.get(head, place) is not place:
                head = heads[place] = next(cursors[place], None)
        open_heads = [head for head in heads.values() if head is not None and head in view.choices and head not in held]
        if not open_heads:
            return held
        first = min(open_heads, key=lambda job: _key(order, job, view))
        entries = view.choices[first]
        best = min((each for each in entries if heads[each.place] is each), key=_earliest)
        held.update(dict.fromkeys(entries, best.place))


def start_unheld(order: OrderLike, view: View, place: Pool) -> Generator[Decision, Any, LiveJob | None]:
    """Start the heads of a queue that fit, and pass jobs that other places are held for; return the first other one."""
    held = held_places(view, order)
    job: LiveJob
    for job in view.waiting.at(place).by(order):
        if place.fits(job):
            yield Start(job, place)
        elif held.get(job, place) is place:
            return job
    return None


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
    return profile.instant(profile.earliest(entry, entry.requested)[0])
