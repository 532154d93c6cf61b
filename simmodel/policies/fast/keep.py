"""Conservative backfilling that keeps its promises, without what can be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import nextafter
from typing import TYPE_CHECKING, TypeAlias

from simmodel.policies.spare import Outlook, Spares
from simmodel.resources.pools.counts import COUNTED, CountPool
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.promises import Promises
    from simmodel.resources.pools.counts import PoolProfile
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.running import Entry
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["FastKeep", "KeptProfile"]

INFINITY = float("inf")

Rule: TypeAlias = "Callable[[View, Pool, Iterable[LiveJob], Outlook, Promises], Iterator[Decision]]"


class KeptProfile:
    """The profile that a decision has left, which is that of the next one if all started as planned in between.

    Parameters
    ----------
    place
        a pool of counted processors

    Attributes
    ----------
    whole
        whether the last decision was made to its end, so that the profile includes all promises
    settled
        whether it moved no promise, and no job has ended early since: then no job can start earlier than promised
    """

    __slots__ = ("_broken", "_events", "_offered", "_place", "_profile", "_version", "settled", "whole")

    def __init__(self, place: CountPool) -> None:
        self._place = place
        self._profile: PoolProfile | None = None
        self.whole = self.settled = False
        self._broken = False  # whether something was not as planned
        self._version = self._events = 0  # of the pool when the profile was made; its starts and ends since
        self._offered: LiveJob | None = None  # a job whose start has not been carried out yet
        place.running.watch(self)

    def started(self, entry: Entry) -> None:
        """Note a start in the pool: it should be that of the job that was offered."""
        self._events += 1
        end, _, processors, run = entry
        job, now = self._offered, self._place.env._now
        if job is None or job is not run.work or job.processors != processors or not now < end == now + job.planned:
            self._broken = True
        self._offered = None

    def ended(self, entry: Entry) -> None:
        """Note an end in the pool: it should not come later than expected."""
        self._events += 1
        now = self._place.env._now
        if entry[0] < now:
            self._broken = True
        elif entry[0] > now and self._profile is not None:
            self._profile.processors.change(entry[2], now, entry[0])
            self.settled = False

    def offer(self, job: LiveJob) -> None:
        """Note that a job is about to start, as planned in the profile."""
        self._broken = self._broken or self._offered is not None
        self._offered = job

    def follow(self, now: float) -> PoolProfile | None:
        """Return the profile from now on, for another decision; ``None`` if it no longer holds."""
        place, profile = self._place, self._profile
        if (
            profile is None
            or not self.whole
            or self._broken
            or self._offered is not None  # put aside, and perhaps carried out elsewhere
            or not profile.exact
            or place.version != self._version + self._events
            or place.running.first_end <= nextafter(now, float("inf"))
        ):
            return None
        profile.advance(now)
        self.whole = False
        return profile

    def keep(self, profile: PoolProfile | None) -> None:
        """Keep a new profile, to which the promises are about to be added; ``None``: keep none."""
        self._profile, self._offered = profile, None
        self._broken = self.whole = self.settled = False
        self._version, self._events = self._place.version, 0


class FastKeep:
    """Moves the promises that can move: all of them by the rule, unless nothing has happened that opens a hole.

    If no promise moved at the last decision and only jobs have come since, these alone are planned. On counted
    processors the profile is kept as long as all goes as planned; an early end opens holes in it.

    Parameters
    ----------
    order
        of the queue
    spares
        what is kept for jobs that no known end frees: where there is any, the rule decides
    rule
        moves jobs in a profile, by the rule
    """

    def __init__(self, order: OrderLike, spares: Spares, rule: Rule) -> None:
        self._order = order
        self._spares = spares
        self._rule = rule
        self._kept: dict[Pool, KeptProfile] = {}

    def forget(self, place: Pool | None = None) -> None:
        """Keep no profile, of one place or of all: the promises are others now."""
        for each, kept in self._kept.items():
            if place in (None, each):
                kept.keep(None)

    def at(
        self, view: View, place: Pool, promised: Promises, due: list[LiveJob], *, settled: bool
    ) -> Iterator[Decision]:
        """Decide at a place.

        Parameters
        ----------
        view, place, promised, due
            the promises at the place, and the jobs that are promised a start by now
        settled
            whether no promise moved at the last decision, and only jobs have come since
        """
        kept = self._profile_of(place)
        now = view.env._now
        late = place.running.first_end <= now  # what runs on shifts the ends from which promises were planned
        # Choices that depend on later plans, of nodes or of devices:
        other = isinstance(place, NodePool) and (place.spec.placed_by != "first-fit" or place.table.apart is not None)
        settled = settled and not (due or late or other or self._order.changes or place.paced)
        if kept is None:
            yield from self._by_rule(view, place, promised, None, settled=settled)
            return
        profile = kept.follow(now) if all(promised[job][0] == now for job in due) else None
        if profile is None:
            yield from self._by_rule(view, place, promised, kept, settled=settled)
        else:
            queue: Iterable[LiveJob] = view.waiting.at(place).by(self._order)
            if kept.settled:
                tried = set(due)
                queue = (job for job in queue if job not in promised or job in tried)
            kept.settled = True
            yield from self._in_kept(view, place, iter(queue), promised, kept, profile)
        kept.settled = kept.settled and not promised.moved
        kept.whole = all(job.state == "waiting" for job in promised.left)  # else one was held by a limit, and not tried

    def _profile_of(self, place: Pool) -> KeptProfile | None:
        """Return the kept profile of a pool on which only the number of processors counts, else ``None``."""
        if not isinstance(place, CountPool) or not place.simple or self._order.changes:
            return None
        if place not in self._kept:
            self._kept[place] = KeptProfile(place)
        kept = self._kept[place]
        if place.running.endless or self._spares:
            kept.keep(None)
            return None
        return kept

    def _by_rule(
        self, view: View, place: Pool, promised: Promises, kept: KeptProfile | None, *, settled: bool
    ) -> Iterator[Decision]:
        """Decide by the rule, about all jobs or, if the promises are settled, about those alone that have none."""
        queue: Iterable[LiveJob] = view.waiting.at(place).by(self._order)
        plan = Outlook(place, self._spares)
        only_new = settled and not promised.inexact
        if only_new:
            new = [job for job in queue if job not in promised]
            queue = (job for job in new if job.state == "waiting")  # one may be held by a limit since another started
        if kept is not None:
            kept.keep(None if only_new else plan.profile)  # type: ignore[arg-type]
            kept.settled = True
        for decision in self._rule(view, place, queue, plan, promised):
            if type(decision) is Start:
                if kept is not None:
                    kept.offer(decision.work)
                elif decision.work.expected != decision.work.planned:
                    promised.moved = True  # jobs that were planned for now may not fit beside it: they are tried again
            yield decision

    def _in_kept(
        self,
        view: View,
        place: Pool,
        queue: Iterator[LiveJob],
        promised: Promises,
        kept: KeptProfile,
        profile: PoolProfile,
    ) -> Iterator[Decision]:
        """Decide as by the rule in a profile that has the promises."""
        free, now = profile.processors, place.env._now
        exact = True
        for job in queue:
            width, requested = job.processors, job.planned
            before = promised[job][0] if job in promised else INFINITY
            if exact and before < INFINITY:
                at = free.earliest(width, requested, -INFINITY, before)
                if at == before > now:
                    continue  # it cannot move
                free.move(width, before, at, requested)
            else:
                if before < INFINITY:
                    free.give_back(width, before, requested)
                at = free.earliest(width, requested)
                if at == INFINITY:
                    promised.end(job, at)
                    continue
                free.take(width, at, requested)
                exact = free.exact
            if at == now:
                promised.end(job, at)
                kept.offer(job)
                yield Start(job, place, None, COUNTED)
                if job.planned == INFINITY:  # it may be in the way of the others
                    kept.keep(None)
                    yield from self._rule(view, place, queue, Outlook(place, self._spares), promised)
                continue
            if not exact:
                at = free.instant(at)
            if promised.promise(job, at, COUNTED):
                yield Reserve(job, place, at)
