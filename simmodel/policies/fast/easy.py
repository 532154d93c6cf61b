"""EASY without what can be left out: by counting, by what a pool knows of its nodes, and by what has not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from simmodel.policies.ordering import HeldPlaces, at_each_place, recorded, start_heads
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.spare import Spares
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.promises import Promise
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["FastEasy", "new_start"]

INFINITY = float("inf")

new_start = partial(tuple.__new__, Start)  # a third of the cost of Start(work, place)


class FastEasy:
    """Makes the decisions of EASY: by two numbers where the free processors are the whole state of a place.

    Elsewhere a pool may answer itself (:meth:`Pool.promise <simmodel.resources.pools.pool.Pool.promise>`), else the
    rule does, and beside work without a time limit always. What is left out: decisions since which only jobs have come
    that cannot start, and the search for a job when the narrowest one does not fit.

    Parameters
    ----------
    order, candidates, promises
        as for EASY
    spares
        what is kept for jobs that no known end frees: where there is any, the rule decides
    rule
        returns the decisions behind a head that does not fit, by the rule
    """

    def __init__(
        self,
        order: OrderLike,
        candidates: OrderLike,
        promises: bool,
        spares: Spares,
        rule: Callable[[View, Pool, LiveJob], Iterator[Decision]],
    ) -> None:
        self._order = order
        self._candidates = candidates
        self._promises = promises
        self._spares = spares
        self._rule = rule
        # By counted place: version, head, promised time, extra, and whether the last two hold for a job that starts.
        self._blocked: dict[Pool, tuple[int, LiveJob, float, int, bool]] = {}
        # By other place: version, head, and whether none of some jobs that have come since can start.
        self._last: dict[Pool, tuple[int, LiveJob, Callable[[Iterable[LiveJob]], bool]]] = {}
        self._promised: dict[Pool, Promise] = {}  # the last promise of a pool that makes its own

    @cached_property
    def held(self) -> HeldPlaces:
        """The jobs for which places are held, where jobs may wait for several."""
        return HeldPlaces(self._order, self._roomy)

    def forget(self) -> None:
        """Discard the state of the last decision: another policy has decided since."""
        self._blocked.clear()
        self._last.clear()
        self._promised.clear()

    def decide(self, view: View) -> Iterable[Decision]:
        """Start heads, make a promise, and backfill, at each place (hot path)."""
        places = view.places
        if len(places) > 1:
            return self._at_several(view)
        place, waiting = places[0], view.waiting
        last = self._blocked.get(place)
        if last is not None and last[0] == place.version and place.simple:  # parts of nodes may be asked for since
            return self._with_new(view, place, last)
        seen = self._last.get(place)
        if seen is not None and seen[0] == place.version and self._stands(view, seen):
            return ()
        if waiting.count == 1 and place.fits(job := waiting.head()):
            return (new_start((job, place, None, None, None, None, True)),)
        return self._at(view, place)

    def _stands(self, view: View, last: tuple[int, LiveJob, Callable[[Iterable[LiveJob]], bool]]) -> bool:
        """Whether no job can start, because the only changes since are new jobs that do not fit."""
        _, head, bars = last
        return not self._promises and view.waiting.by(self._order).head() is head and bars(view.waiting.new)

    def _at_several(self, view: View) -> Iterable[Decision]:
        """Decide at several places, where jobs may wait for more than one."""
        if not view.choices:
            return at_each_place(view, self._at)
        if view.waiting.count == 1 and not self._promises and not any(place.running.endless for place in view.places):
            (entries,) = set(view.choices.values())
            return [
                new_start((each, each.place, None, None, None, None, True)) for each in entries if each.place.fits(each)
            ][:1]
        if not self._roomy(view):
            return ()
        return chain(self.held.start_firsts(view), at_each_place(view, self._at))

    def _roomy(self, view: View) -> set[Pool]:
        """Return the places where a job could start, or be promised a start."""
        if self._promises:
            return set(view.places)
        at, candidates = view.waiting.at, self._candidates
        return {
            place
            for place in view.places
            if (place.free > 0 and (not place.simple or place.free >= at(place).lanes(candidates).narrowest))
            or place.running.endless
            or place.dozing is not None
        }

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        if place.simple and not place.running.endless and not self._spares:
            return self._counted(view, place)
        return self._by_heads(view, place)

    def _by_heads(self, view: View, place: Pool) -> Iterator[Decision]:
        """Start heads, and other jobs behind the first that does not fit."""
        yield from start_heads(self._order, view, place)
        head = self.held.first(view, place, view.waiting.at(place).by(self._order).head())
        if head is not None:
            yield from self.beside(view, place, head)

    def beside(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Start other jobs beside a given one, which does not fit now, without delaying its earliest start."""
        if place.running.endless or self._spares:
            return recorded(self._rule(view, place, head), promises=self._promises)
        if not place.simple:
            return self._promise(view, place, head)
        return iter(()) if self._none_fits(view, place) else self._fill(view, place, head)

    def _none_fits(self, view: View, place: Pool) -> bool:
        """Whether no decision is to be made, since less is free than any job takes."""
        return (
            not self._promises
            and not place.dozing
            and place.free < view.waiting.at(place).lanes(self._candidates).narrowest
        )

    # ------------------------------------------------------------------ by counting

    def _counted(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide with two numbers, the promised instant and ``extra``: nearly all decisions are these."""
        waiting = view.waiting.at(place)
        order, promises = self._order, self._promises
        if order.changes and not promises and place.free < waiting.lanes(self._candidates).narrowest:
            return  # without a look at the scores of all jobs
        queue = waiting.by(order)
        # start_heads, inlined:
        while (head := queue.head()) is not None and head.width <= place.free and place.fits(head):
            yield new_start((head, place, None, None, None, None, True))
        if head is None or (place.free <= 0 and not (promises or place.running.endless)):
            return
        if head in view.choices and (head := self.held.first(view, place, head)) is None:
            return
        if place.running.endless:  # one that has started now
            yield from self.beside(view, place, head)
        elif promises or place.free >= waiting.lanes(self._candidates).narrowest:
            yield from self._fill(view, place, head)

    def _fill(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        promises = self._promises
        first_fitting = view.waiting.at(place).lanes(self._candidates).first_fitting
        at, extra = place.earliest(head)
        now = view.env._now
        limit = at - now
        if promises and at < INFINITY:
            yield Reserve(head, place, at)
        holds = exact = True
        while (job := first_fitting(place.free, limit, extra)) is not None:
            requested = job.planned
            if requested > limit:
                extra -= job.width
            # Else it is expected to end at another instant than assumed here:
            holds = holds and job.expected == requested and not place.paced
            exact = exact and (requested > limit) == (now + requested > at)  # but for rounding
            yield new_start((job, place, None, None, None, None, True))
        if not promises:
            lasts = holds and not place.running.endless  # what is kept beside endless work is noted at each decision
            self._blocked[place] = (place.version if lasts else -1, head, at, extra, exact)

    def _with_new(self, view: View, place: Pool, last: tuple[int, LiveJob, float, int, bool]) -> Iterable[Decision]:
        """Decide when the only changes since the last decision are new jobs.

        No job started or ended since: for jobs that did not fit then, passing time only tightens the limit.
        """
        version, head, at, extra, holds = last
        waiting = view.waiting
        now = view.env._now
        limit = at - now
        if limit <= 0 or waiting.by(self._order).head() is not head:
            return self._at(view, place)
        free = place.free
        found = None
        for job in waiting.new:
            width = job.width
            if width <= free and (job.planned <= limit or width <= extra):
                if found is not None or not holds:
                    return self._at(view, place)
                found = job
        if found is None:
            return ()
        requested = found.planned
        if requested > limit:
            extra -= found.width
        holds = found.expected == requested < INFINITY and (requested > limit) == (now + requested > at)
        holds = holds and not place.paced
        self._blocked[place] = (version + 1 if holds else -1, head, at, extra, holds)
        return (new_start((found, place, None, None, None, None, True)),)

    # ------------------------------------------------------------------ elsewhere

    def _promise(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Decide by the promise of the pool; by the rule if it makes none."""
        promise = place.promise(head, view.waiting.at(place), self._candidates, self._promised.get(place))
        if promise is None:
            yield from self._by_rule(view, place, head)
            return
        self._promised[place] = promise
        if self._promises and promise.at < INFINITY:
            yield Reserve(head, place, promise.at)
        while (found := promise.next()) is not None:
            job, allocation = found
            yield Start(job, place, None, allocation)
        self._last[place] = -1 if place.running.endless else promise.version, head, promise.bars

    def _by_rule(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Decide by the rule, as long as a job could start."""
        at, lasts = INFINITY, not (place.consumables.capacity or place.paced or place.dozing is not None)
        for decision in () if self._none_fits(view, place) else self._rule(view, place, head):
            if type(decision) is Reserve:
                at = decision.at
                if not self._promises:
                    continue
            elif type(decision) is Start:
                lasts = lasts and decision.work.expected == decision.work.planned < INFINITY
            yield decision
            if self._none_fits(view, place):
                break

        def bars(jobs: Iterable[LiveJob]) -> bool:
            return place.env._now < at and not any(map(place.fits, jobs))

        self._last[place] = place.version if lasts else -1, head, bars
