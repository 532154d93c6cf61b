"""Backfilling: jobs behind the head of the queue start early if they delay no promised start.

Sources: EASY: Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; EASY with the shortest candidates first (SJBF):
Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates", IEEE
TPDS 18(6), 2007; conservative: see planning.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, unknown
from simmodel.policies.fast.easy import FastEasy
from simmodel.policies.ordering import (
    FCFS,
    SJF,
    HeldPlaces,
    at_each_place,
    order as order_named,
    recorded,
    start_heads,
)
from simmodel.policies.spare import Keeping, Outlook, Spares
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import First, GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.work.job import LiveJob

__all__ = ["BACKFILLS", "Backfill", "Easy", "behind", "easy"]

INFINITY = float("inf")


def easy(
    view: View, place: Pool, order: OrderLike, candidates: OrderLike, spares: Spares, first: First
) -> Iterator[Decision]:
    """Start the heads of the queue while they fit; then start others behind the one that does not."""
    yield from start_heads(order, view, place)
    head = first(view, place, view.waiting.at(place).by(order).head())
    if head is not None:
        yield from behind(view, place, head, candidates, spares)


def behind(view: View, place: Pool, head: LiveJob, candidates: OrderLike, spares: Spares) -> Iterator[Decision]:
    """Promise the head its earliest start, and start each other job that fits now and does not delay it."""
    plan = Outlook(place, spares)
    at, allocation = plan.earliest(head)
    if at < INFINITY:
        plan.take(head, at, allocation)
        yield Reserve(head, place, plan.instant(at))
        yield from plan.ahead(head, plan.instant(at), allocation)
    for job in view.waiting.at(place).by(candidates):
        if job is not head and place.fits(job):
            allocation = plan.make_room(job, head)
            if allocation is not None:
                yield Start(job, place, None, allocation)
                plan.take(job, view.now, allocation)


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
    fast
        whether to count and to remember where that makes the same starts; else :func:`easy` decides everywhere

    >>> Easy("fcfs", candidates="sjf").name
    'easy-sjbf'
    """

    decides = "jobs"

    def __init__(
        self,
        order: GivenOrder = FCFS,
        *,
        candidates: GivenOrder | None = None,
        promises: bool = False,
        fast: bool = True,
    ) -> None:
        self._spares = Spares()
        self.order = order if order is FCFS else order_named(order)
        self.candidates = self.order if candidates is None else order_named(candidates)
        self.promises = promises
        self.fast = fast
        self.name = "easy" if self.order is FCFS else f"{self.order.name}+easy"
        if self.candidates is not self.order:
            self.name += "-sjbf" if self.candidates is SJF else f"-{self.candidates.name}"
        # Decide after each submission, even of a job that does not fit now: see Cluster(decide_on="event").
        self.tries_every_submission = self.candidates is not self.order
        self._fast = FastEasy(self.order, self.candidates, promises, self._spares, self._behind)

    def forget(self) -> None:
        """Discard the state of the last decision: another policy has decided since."""
        super().forget()
        self._fast.forget()

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Start heads, make a promise, and backfill, at each place."""
        if self.fast:
            return self._fast.decide(view)
        held = HeldPlaces(self.order)
        firsts = held.start_firsts(view) if view.choices else ()
        return chain(firsts, at_each_place(view, partial(self._at, held)))

    def _at(self, held: HeldPlaces, view: View, place: Pool) -> Iterator[Decision]:
        decisions = easy(view, place, self.order, self.candidates, self._spares, held.first)
        return recorded(decisions, promises=self.promises)

    def _behind(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        return behind(view, place, head, self.candidates, self._spares)

    def beside(self, view: View, place: Pool, head: LiveJob) -> Iterator[Decision]:
        """Start other jobs beside a given one, which does not fit now, without delaying its earliest start."""
        if self.fast:
            return self._fast.beside(view, place, head)
        return recorded(self._behind(view, place, head), promises=self.promises)


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
