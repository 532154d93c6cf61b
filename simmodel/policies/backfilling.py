"""Backfilling: jobs behind the head of the queue start early if they delay no promised start.

Sources: EASY: Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; EASY with the shortest candidates first (SJBF):
Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates", IEEE
TPDS 18(6), 2007; conservative: see planning.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.ordering import FCFS, SJF, at_each_place, order as order_named, settled
from simmodel.policies.spare import Keeping, Spares
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.promises import Promise
    from simmodel.work.job import LiveJob

__all__ = ["BACKFILLS", "Backfill", "Easy"]

INFINITY = float("inf")

new_start = partial(tuple.__new__, Start)  # a third of the cost of Start(work, place)


class Easy(Keeping):
    """EASY: the head of the queue is promised the earliest start at which it fits; other jobs may not delay it.

    Heads start while they fit. A head that does not fit is promised the instant at which it fits if all running jobs
    end as expected; ``extra`` are the processors then free beside it. The other jobs are tried once, in order: a job
    starts if it fits now and either ends by the promised instant or fits in ``extra``, which shrinks if the job runs
    past that instant. Each decision makes a new promise.

    No promise can be made to a head while work without a time limit is in its way. Then other jobs may use what has
    been free ever since it came first; what falls free is kept for it.

    Parameters
    ----------
    order
        of the queue: a name, an order, or a key function
    candidates
        the order in which the other jobs are tried; default: the order of the queue
    promises
        whether each promise is recorded, as a :class:`~simmodel.scheduling.protocol.Reserve`

    >>> Easy("fcfs", candidates="sjf").name
    'easy-sjbf'
    """

    decides = "jobs"

    def __init__(
        self, order: GivenOrder = FCFS, *, candidates: GivenOrder | None = None, promises: bool = False
    ) -> None:
        self.order = order_named(order)
        self.candidates = self.order if candidates is None else order_named(candidates)
        self.promises = promises
        self.name = "easy" if self.order is FCFS else f"{self.order.name}+easy"
        if self.candidates is not self.order:
            self.name += "-sjbf" if self.candidates is SJF else f"-{self.candidates.name}"
        # Decide after each submission, even of a job that does not fit now: see Cluster(decide_on="event").
        self.tries_every_submission = self.candidates is not self.order
        # By counted place: version, head, promised time, extra, and whether the last two hold for a job that starts.
        self._blocked: dict[Pool, tuple[int, LiveJob, float, int, bool]] = {}
        self._held: tuple[int, dict[Pool, LiveJob]] = -1, {}  # sum of versions, the jobs for which places are held then
        self._ends: dict[Pool, tuple[int, dict[int, float]]] = {}  # version, and the earliest start (s) by width
        self._spares = Spares()
        self._promised: dict[Pool, Promise] = {}  # where the free processors are not the whole state

    def forget(self) -> None:
        """Discard the state of the last decision: another policy has decided since."""
        super().forget()
        self._blocked.clear()
        self._promised.clear()

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start heads, make a promise, and backfill, at each place."""
        places = view.places
        if len(places) > 1:
            if not view.choices:
                return at_each_place(view, self._at)
            if view.waiting.count == 1 and not self.promises and not any(place.running.endless for place in places):
                (entries,) = set(view.choices.values())
                return [new_start((each, each.place, None, None, None)) for each in entries if each.place.fits(each)][
                    :1
                ]
            roomy = self._roomy(view)
            return chain(self._start_firsts(view, roomy), at_each_place(view, self._at)) if roomy else ()
        place = places[0]
        last = self._blocked.get(place)
        if last is not None and last[0] == place.version and place.simple:  # parts of nodes may be asked for since
            return self._with_new(view, place, last)
        promised = self._promised.get(place)
        if promised is not None and promised.version == place.version and self._stands(view, promised):
            return ()
        waiting = view.waiting
        if waiting.count == 1 and place.fits(job := waiting.head()):
            return (new_start((job, place, None, None, None)),)
        return self._at(view, place)

    def _stands(self, view: View, promise: Promise) -> bool:
        """Whether no job can start, because the only changes since are new jobs that do not fit."""
        waiting = view.waiting
        return not self.promises and waiting.by(self.order).head() is promise.head and promise.bars(waiting.new)

    def _with_new(self, view: View, place: Pool, last: tuple[int, LiveJob, float, int, bool]) -> Iterable[Decision]:
        """Decide when the only changes since the last decision are new jobs.

        No job started or ended since: for jobs that did not fit then, passing time only tightens the limit.
        """
        version, head, at, extra, holds = last
        waiting = view.waiting
        now = view.env._now
        limit = at - now
        if limit <= 0 or waiting.by(self.order).head() is not head:
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
        holds = found.expected == requested and (requested > limit) == (now + requested > at) and not place.paced
        self._blocked[place] = (version + 1 if holds else -1, head, at, extra, holds)
        return (new_start((found, place, None, None, None)),)

    def _start_firsts(self, view: View, roomy: set[Pool]) -> Iterator[Decision]:
        """Start the first of the jobs for which no place is held ahead of them, as long as it fits somewhere."""
        while (entry := self._settle(view, roomy)) is not None:
            yield Start(entry, entry.place)
            roomy = self._roomy(view)

    def _settle(self, view: View, roomy: set[Pool]) -> LiveJob | None:
        """Return the first job that can start, if any, and note the jobs for which places are held."""
        entry, held = settled(self.order, view, roomy, self._earliest)
        self._held = sum([place.version for place in view.places]), held
        return entry

    def _roomy(self, view: View) -> set[Pool]:
        """Return the places where a job could start, or be promised a start."""
        if self.promises:
            return set(view.places)
        at, candidates = view.waiting.at, self.candidates
        return {
            place
            for place in view.places
            if (place.free > 0 and (not place.simple or place.free >= at(place).lanes(candidates).narrowest))
            or place.running.endless
        }

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

    def _first(self, view: View, place: Pool, head: LiveJob | None) -> LiveJob | None:
        """Return the job for which a place is held, given the head of its queue: no other place is held for it."""
        if head not in view.choices:
            return head
        if self._held[0] != sum([place.version for place in view.places]):
            self._settle(view, self._roomy(view))
        return self._held[1].get(place)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide by counting if the free processors are the whole state of the place, else by its own promise."""
        return self._counted(view, place) if place.simple else self._beside(view, place)

    def _heads(self, view: View, place: Pool, queue: Any) -> Generator[Decision, None, LiveJob | None]:
        """Start heads while they fit; return the job for which the place is held then, or ``None``."""
        head: LiveJob | None
        while (head := queue.head()) is not None and place.fits(head):
            yield Start(head, place)
        return self._first(view, place, head)

    def _beside(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide at a pool of any kind: start heads, promise a start to the next, and start other jobs beside it."""
        waiting = view.waiting.at(place)
        head = yield from self._heads(view, place, waiting.by(self.order))
        if head is None:
            return
        yield from self._promise(view, place, head)

    def _promise(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        waiting = view.waiting.at(place)
        promise = self._promised[place] = place.promise(head, waiting, self.candidates, self._promised.get(place))
        if place.running.endless and promise.at == INFINITY:
            del self._promised[place]
            yield from self._beside_endless(view, place, head)
            return
        if self.promises:
            yield Reserve(head, place, promise.at)
        if self._spares:
            self._spares.pop(place.name, None)
        while (found := promise.next()) is not None:
            job, allocation = found
            yield Start(job, place, None, allocation)

    def _counted(self, view: View, place: Pool) -> Iterator[Decision]:
        """Do :meth:`_beside` with two numbers, the promised instant and ``extra``: nearly all decisions are these."""
        waiting = view.waiting.at(place)
        order, promises, running = self.order, self.promises, place.running
        tight = order.changes and not promises and place.free < waiting.lanes(self.candidates).narrowest
        if tight and not running.endless:
            return  # without a look at the scores of all jobs
        queue = waiting.by(order)
        # _heads, inlined:
        while (head := queue.head()) is not None and head.width <= place.free and place.fits(head):
            yield new_start((head, place, None, None, None))
        if head is None or (place.free <= 0 and not (promises or running.endless)):
            return
        lanes = waiting.lanes(self.candidates)
        if place.free < lanes.narrowest and not (promises or running.endless):
            return
        if head in view.choices and (head := self._first(view, place, head)) is None:
            return
        yield from self._fill(view, place, head)

    def beside(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Start other jobs beside a given one, which does not fit now, without delaying its earliest start."""
        if not place.simple:
            yield from self._promise(view, place, head)
        elif place.running.endless or place.free >= view.waiting.at(place).lanes(self.candidates).narrowest:
            yield from self._fill(view, place, head)

    def _fill(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        promises = self.promises
        first_fitting = view.waiting.at(place).lanes(self.candidates).first_fitting
        at, extra = place.earliest(head)
        now = view.env._now
        limit = at - now
        if at == INFINITY and place.running.endless:
            self._blocked.pop(place, None)
            yield from self._beside_endless(view, place, head)
            return
        if promises:
            yield Reserve(head, place, at)
        if self._spares:
            self._spares.pop(place.name, None)
        holds = exact = True
        while (job := first_fitting(place.free, limit, extra)) is not None:
            requested = job.planned
            if requested > limit:
                extra -= job.width
            # Else it is expected to end at another instant than assumed here:
            holds = holds and job.expected == requested and not place.paced
            exact = exact and (requested > limit) == (now + requested > at)  # but for rounding
            yield new_start((job, place, None, None, None))
        if not promises:
            self._blocked[place] = (place.version if holds else -1, head, at, extra, exact)

    def _beside_endless(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Start other jobs beside one that no known end frees, on what has been free ever since it came first."""
        waiting, spare = view.waiting.at(place), self._spares.at(place, head)
        lanes = waiting.lanes(self.candidates)
        while place.simple and (job := lanes.first_fitting(place.free, -INFINITY, spare.cores)) is not None:
            yield Start(job, place, None, spare.room(job))
            spare.take(job)
        for job in () if place.simple else waiting.by(self.candidates):
            if min(place.free, spare.cores) < lanes.narrowest:
                return
            if job is not head and (allocation := spare.room(job)) is not None:
                yield Start(job, place, None, allocation)
                spare.take(job)


def Backfill(
    order: GivenOrder = FCFS, kind: str = "easy", *, candidates: GivenOrder | None = None, **options: Any
) -> Any:  # a family of policies, called like one
    """Return the backfilling policy of a kind, with any order of the queue.

    Parameters
    ----------
    order
        a name, an order, or a key function
    kind
        ``none``, ``easy``, ``conservative`` or ``conservative-keep``
    candidates
        for EASY, the order in which jobs behind the head are tried

    Raises
    ------
    InputError
        the kind is unknown, or does not accept candidates

    >>> Backfill("sjf", "easy").name
    'sjf+easy'
    """
    if kind not in BACKFILLS:
        raise unknown("backfill", kind, BACKFILLS)
    if candidates is not None:
        if kind != "easy":
            raise InputError(f"candidates: must be used with kind 'easy', got {kind!r}")
        options["candidates"] = candidates
    return BACKFILLS[kind](order_named(order), **options)


BACKFILLS = Entries[Callable[..., Any]](
    {
        "none": lambda order: order,
        "easy": Easy,
        "conservative": "simmodel.policies.planning:Conservative",
        "conservative-keep": "simmodel.policies.planning:ConservativeKeep",
    }
)
"""How jobs overtake, by name: the policy for an order of the queue."""
