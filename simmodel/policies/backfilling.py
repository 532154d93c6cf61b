"""Backfilling: jobs behind the head of the queue start early if they delay no promised start.

Sources: EASY: Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; EASY with the shortest candidates first (SJBF):
Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates", IEEE
TPDS 18(6), 2007; conservative: see planning.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from heapq import heapify, heappop
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.ordering import FCFS, SJF, at_each_place
from simmodel.policies.orders import order
from simmodel.policies.preference import heads_of, start_heads_in_order
from simmodel.resources.pools.node_states import NodePromise
from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Reserve, Start, View
from simmodel.scheduling.waiting import entry_of

if TYPE_CHECKING:
    from simmodel.policies.ordering import Order
    from simmodel.policies.orders import GivenOrder
    from simmodel.resources.pools.hosts import HostPool
    from simmodel.resources.pools.node_ends import Numbers
    from simmodel.resources.pools.node_states import NodeStates
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["BACKFILLS", "Backfill", "Easy"]

INFINITY = float("inf")

new_start = partial(tuple.__new__, Start)  # a third of the cost of Start(work, place)


class Easy(Policy):
    """EASY: the head of the queue is promised the earliest start at which it fits; other jobs may not delay it.

    Heads start while they fit. A head that does not fit is promised the instant at which it fits if all running jobs
    end as expected; ``extra`` are the processors then free beside it. The other jobs are tried once, in order: a job
    starts if it fits now and either ends by the promised instant or fits in ``extra``, which shrinks if the job runs
    past that instant. Each decision makes a new promise.

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
        self.order = _order(order)
        self.candidates = self.order if candidates is None else _order(candidates)
        self.promises = promises
        self.name = _easy_name(self.order, self.candidates)
        # Decide after each submission, even of a job that does not fit now: see Cluster(decide_on="event").
        self.tries_every_submission = self.candidates is not self.order
        # By place: version, head, promised time, extra, and whether the last two hold for a job that starts beside it.
        self._blocked: dict[Pool, tuple[int, LiveJob, float, int, bool]] = {}
        self._promised: dict[Pool, tuple[int, LiveJob, NodePromise | None]] = {}  # the same on nodes

    def forget(self) -> None:
        """Discard the state of the last decision: another policy has decided since."""
        self._blocked.clear()
        self._promised.clear()

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start heads, make a promise, and backfill, at each place."""
        places = view.places
        if len(places) > 1:
            first = start_heads_in_order(self.order, view, passing=True) if view.choices else ()
            return chain(first, at_each_place(view, self._at))
        place = places[0]
        last = self._blocked.get(place)
        if last is not None and last[0] == place.version:
            return self._with_new(view, place, last)
        promised = self._promised.get(place)
        if promised is not None and promised[0] == place.version and self._none_fits(view, place, *promised[1:]):
            return ()
        waiting = view.waiting
        if waiting.count == 1 and place.fits(job := waiting.head()):
            return (new_start((job, place, None, None, None)),)
        return self._at(view, place)

    def _none_fits(self, view: View, place: Pool, head: LiveJob, promise: NodePromise | None) -> bool:
        """Whether no job can start on nodes, because the only changes since are new jobs that do not fit."""
        waiting = view.waiting.at(place)
        return (
            not self.promises
            and (promise is None or view.env._now < promise.at)
            and waiting.by(self.order).head() is head
            and not any(map(place.fits, waiting.new))
        )

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

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide by counts if the place allows it, else by the states of its nodes, else by profile."""
        if place.simple:
            return self._counted(view, place)
        if place.counts_hosts(view.waiting.at(place)):
            return self._on_hosts(view, place)  # type: ignore[arg-type]
        states = place.states(view.waiting.at(place))
        return self._planned(view, place) if states is None else self._on_nodes(view, place, states)

    def _heads(self, view: View, place: Pool, queue: Any) -> Generator[Decision, None, LiveJob | None]:
        """Start heads while they fit; return the job for which the place is held then, or ``None``."""
        head: LiveJob | None
        while (head := queue.head()) is not None and place.fits(head):
            yield Start(head, place)
        return heads_of(self.order, view).get(place) if head in view.choices else head

    def _planned(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide at a pool of any kind, by its profile: the reference rule.

        The head is promised an instant, not nodes: a job that can only start on nodes planned for the head does start
        if the head can have other nodes at the same instant.
        """
        waiting = view.waiting.at(place)
        queue = waiting.by(self.order)
        head = yield from self._heads(view, place, queue)
        if head is None:
            return
        lanes = waiting.lanes(self.candidates)
        if place.free < lanes.narrowest and not self.promises:
            return
        profile = place.profile()
        at, allocation = profile.earliest(head, head.planned)
        now, promised = place.env.now, at < INFINITY
        if promised:
            profile.take(head, at, head.planned, allocation)
            if self.promises:
                yield Reserve(head, place, profile.instant(at))
        holds = True
        for job in waiting.by(self.candidates) if self.candidates is not self.order else queue:
            if place.free < lanes.narrowest:
                break
            if job is head or not place.fits(job):
                continue
            allocation = profile.fits(job, job.planned)
            if allocation is None and promised:
                allocation = profile.make_room(job, job.planned, head)
            if allocation is not None:
                yield Start(job, place, None, allocation)
                profile.take(job, now, job.planned, allocation)
                holds = holds and job.expected == job.planned and not place.paced
        if holds and not self.promises and not place.consumables.capacity:
            # While nothing else changes, only new jobs with few enough processors need another look.
            self._blocked[place] = (place.version, head, profile.instant(at), place.capacity, False)

    def _on_hosts(self, view: View, place: HostPool) -> Iterator[Decision]:
        """Decide on counted hosts, each job on one of them: as on nodes, with three numbers."""
        waiting = view.waiting.at(place)
        head = yield from self._heads(view, place, waiting.by(self.order))
        lanes = waiting.lanes(self.candidates)
        if head is None or (place.free < lanes.narrowest and not self.promises):
            return
        promise = place.promise(head)
        limit = promise.at - view.env._now
        if self.promises:
            yield Reserve(head, place, promise.at)
        first_fitting = lanes.first_fitting
        while (job := first_fitting(promise.free, limit, promise.room)) is not None:
            host = promise.take(job.processors) if job.planned > limit else None
            yield Start(job, place, None, None if host is None else place.offer_host(job, host))
            promise.renew()
        if not self.promises:
            self._blocked[place] = -1 if place.paced else place.version, head, promise.at, promise.room, False

    def _on_nodes(self, view: View, place: Pool, states: NodeStates) -> Iterator[Decision]:
        """Decide on nodes that differ or are shared.

        A job that runs past the promised instant starts if some choice of nodes leaves the head enough of them then. It
        gets the nodes that this does not hurt first, in the order of the placement, then others as long as there are
        nodes to spare.
        """
        waiting = view.waiting.at(place)
        head = yield from self._heads(view, place, waiting.by(self.order))
        if head is None:
            return
        now = view.env._now
        version, before, promise = self._promised.get(place, (-1, None, None))
        unchanged = version == place.version and before is head and (promise is None or now < promise.at)
        rows = states.fitting(waiting.new if unchanged else None)
        if self.promises or promise is None or not unchanged:
            promise = NodePromise(states, head, now, promise) if self.promises or len(rows) else None
        if promise is not None:
            if self.promises:
                yield Reserve(head, place, promise.at)
            yield from self._beside(waiting, promise, rows, states)
        self._promised[place] = -1 if place.paced else place.version, head, promise

    def _beside(
        self, waiting: WaitingQueue, promise: NodePromise, rows: Numbers, states: NodeStates
    ) -> Iterator[Decision]:
        """Start those jobs of some rows that fit and do not delay the promise."""
        place = promise.job.place
        now = place.env._now
        rows = promise.possible(rows, now)
        while len(rows):
            tried = []
            for job in self._in_order(states.jobs(rows), waiting):
                row = states.row(job)
                tried.append(row)
                if not place.fits(job):
                    continue
                if job.planned <= promise.at - now:
                    yield Start(job, place)
                else:
                    allocation = place.offer(job, promise.unhurt(row))
                    if allocation is None:
                        continue
                    yield Start(job, place, None, allocation)
                    promise.take(allocation)
                break
            else:
                return
            rows = rows[rows != tried[0]] if len(tried) == 1 else rows[~np.isin(rows, tried)]
            if len(rows):
                rows = promise.possible(rows, now)

    def _in_order(self, jobs: list[LiveJob], waiting: WaitingQueue) -> Iterator[LiveJob]:
        """Yield some waiting jobs in the order of the candidates, until one of them starts."""
        order = self.candidates
        if len(jobs) == 1:
            yield jobs[0]
        elif order.changes:
            among = set(jobs)
            yield from (job for job in waiting.by(order) if job in among)
        else:
            heap = [entry_of(job, order.key) for job in jobs]
            heapify(heap)
            while heap:
                yield heappop(heap)[-1]

    def _counted(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide for counted processors, with two numbers: the promised instant and ``extra``."""
        waiting = view.waiting.at(place)
        order, promises = self.order, self.promises
        if order.changes and not promises and place.free < waiting.lanes(self.candidates).narrowest:
            return  # without a look at the scores of all jobs
        queue = waiting.by(order)
        # _heads, inlined: nearly all decisions are made here.
        while (head := queue.head()) is not None and head.width <= place.free and place.fits(head):
            yield new_start((head, place, None, None, None))
        if head in view.choices:
            head = heads_of(self.order, view).get(place)
        if head is None or (place.free <= 0 and not promises):
            return
        lanes = waiting.lanes(self.candidates)
        if place.free < lanes.narrowest and not promises:
            return
        at, extra = place.earliest(head)
        now = view.env._now
        limit = at - now
        if promises:
            yield Reserve(head, place, at)
        holds = exact = True
        first_fitting = lanes.first_fitting
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
    return BACKFILLS[kind](_order(order), **options)


BACKFILLS = Entries[Callable[..., Any]](
    {
        "none": lambda order: order,
        "easy": Easy,
        "conservative": "simmodel.policies.planning:Conservative",
        "conservative-keep": "simmodel.policies.planning:ConservativeKeep",
    }
)
"""How jobs overtake, by name: the policy for an order of the queue."""


def _order(given: GivenOrder) -> Any:
    return order(given)


def _easy_name(queue: Order, candidates: Order) -> str:
    name = "easy" if queue is FCFS else f"{queue.name}+easy"
    return name if candidates is queue else f"{name}-sjbf" if candidates is SJF else f"{name}-{candidates.name}"
