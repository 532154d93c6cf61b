"""Conservative backfilling: every waiting job has a planned start, and no job may delay one ahead of it.

Source: Mu'alem & Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM
SP2 with backfilling", IEEE TPDS 12(6), 2001; the form that keeps its promises: Feitelson & Mu'alem Weil, IPPS 1998.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.policies.fast.conservative import FastConservative
from simmodel.policies.fast.keep import FastKeep
from simmodel.policies.ordering import FCFS, at_each_place, order as order_named, recorded, start_heads
from simmodel.policies.promises import Promises
from simmodel.policies.spare import Keeping, Outlook, Spares
from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.counts import COUNTED
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import OrderLike
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["Conservative", "ConservativeKeep", "conservative", "conservative_keep"]

INFINITY = float("inf")


def conservative(view: View, place: Pool, order: OrderLike, spares: Spares) -> Iterator[Decision]:
    """Start heads while they fit; then plan each job, in order, into the earliest hole, and start those planned now."""
    yield from start_heads(order, view, place)
    plan = Outlook(place, spares, counted=True)
    for job in view.waiting.at(place).by(order):
        at, allocation = plan.earliest(job)
        if at == INFINITY:
            continue
        if at > view.now:
            yield Reserve(job, place, plan.instant(at))
        elif place.accepts(job, allocation):
            yield Start(job, place, None, allocation)
        plan.take(job, at, allocation)
        yield from plan.ahead(job, plan.instant(at), allocation)


def conservative_keep(
    view: View, place: Pool, queue: Iterable[LiveJob], plan: Outlook, promised: Promises
) -> Iterator[Decision]:
    """Move each job, once and in order, to the earliest hole beside the promises of all others; it is never later."""
    planned = promised.into(plan.profile)
    for job in queue:
        at, allocation = plan.earliest(job, planned.get(job))
        if at == INFINITY:
            promised.end(job, at)
            continue
        if at > view.now:
            if promised.promise(job, plan.instant(at), allocation):
                yield Reserve(job, place, plan.instant(at))
        elif place.accepts(job, allocation):
            promised.end(job, at)
            yield Start(job, place, None, allocation)
        plan.take(job, at, allocation)
        yield from plan.ahead(job, plan.instant(at), allocation)


class _Planner(Keeping):
    """The base class of both forms: an order, and a decision at each place."""

    decides = "jobs"
    kind = ""

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = False, fast: bool = True) -> None:
        self._spares = Spares()
        self.order = order_named(order)
        self.promises = promises
        self.fast = fast
        self.name = self.kind if self.order is FCFS else f"{self.order.name}+{self.kind}"

    def decide(self, view: View, /) -> Iterable[Decision]:
        """Plan the waiting jobs at each place, and start those planned for now."""
        return at_each_place(view, self._at)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        raise NotImplementedError


class Conservative(_Planner):
    """Conservative backfilling with a new plan at each decision.

    Heads start while they fit. Then every waiting job, in order, is planned into the earliest hole of its requested
    time among the running jobs and those planned before it; jobs planned for now start.

    A job has no plan while work without a time limit is in its way. Then jobs behind it only start now, on what has
    been free ever since it was the first without a plan; what falls free is kept for it.

    Parameters
    ----------
    order
        of the queue: a name, an order, or a key function
    promises
        whether each planned start is recorded, as a :class:`~simmodel.scheduling.protocol.Reserve`
    fast
        whether to keep the plan where it holds; else :func:`conservative` decides everywhere

    >>> Conservative("sjf").name
    'sjf+conservative'
    """

    kind = "conservative"

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = False, fast: bool = True) -> None:
        super().__init__(order, promises=promises, fast=fast)
        self._fast = FastConservative(self.order, promises, self._spares, self._rule)

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        if self.fast:
            return self._fast.at(view, place)
        return recorded(self._rule(view, place), promises=self.promises)

    def _rule(self, view: View, place: Pool) -> Iterator[Decision]:
        return conservative(view, place, self.order, self._spares)


def _rows(allocation: Allocation | None) -> list[list[int]] | None:
    """Return an allocation as plain values; ``None`` for counted processors."""
    return [list(row) for row in allocation.rows] if isinstance(allocation, Allocation) else None


class Queued(Protocol):
    """A system with a queue at each of its pools."""

    view: View

    @property
    def places(self) -> Sequence[Pool]:
        """The pools."""
        ...


class ConservativeKeep(_Planner):
    """Conservative backfilling that keeps its promises.

    A job gets a promised start at the first decision after its submission. At each decision, once and in queue order,
    each job moves to the earliest hole among the running jobs and the promises of all other jobs, which is never later.
    The promises are recorded, and the scheduler wakes for them.

    Parameters
    ----------
    order
        of the queue: a name, an order, or a key function
    promises
        whether each promise is recorded, as a :class:`~simmodel.scheduling.protocol.Reserve`
    fast
        whether to try those jobs alone that could move; else :func:`conservative_keep` tries all

    >>> ConservativeKeep().name
    'conservative-keep'
    """

    kind = "conservative-keep"

    tries_every_submission = True

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = True, fast: bool = True) -> None:
        super().__init__(order, promises=promises, fast=fast)
        self._promised: dict[Pool, Promises] = {}
        self._system: Queued | None = None
        self._settled: dict[Pool, tuple[int, bool]] = {}  # version at its last decision, whether no promise moved
        self._fast = FastKeep(self.order, self._spares, conservative_keep)

    def attach(self, system: Queued) -> None:
        """Attach the order to the system, and keep the system for :meth:`restore`."""
        super().attach(system)
        self._system = system

    def state(self) -> dict[str, Any] | None:
        """Return the promises and what is kept as plain values, by place and job number, for a snapshot."""
        promised = {
            place.name: [
                [job.seq, float(at), _rows(allocation)]
                for job, (at, allocation) in jobs.items()
                if job.state == "waiting" and job.place is place
            ]
            for place, jobs in self._promised.items()
        }
        settled = {
            place.name: settled
            for place, (seen, settled) in self._settled.items()
            if seen == place.version + place.consumables.version
            and len(promised.get(place.name, ())) == len(self._promised.get(place, ()))
        }
        found = {name: jobs for name, jobs in promised.items() if jobs}
        kept = super().state() or {}
        return {"promised": found, "settled": settled, **kept} if found or settled or kept else None

    def restore(self, values: dict[str, Any]) -> None:
        """Restore the promises from the state of an equal policy; jobs that wait no longer have none."""
        super().restore(values)
        assert self._system is not None  # it is attached before
        places = {place.name: place for place in self._system.places}
        self._fast.forget()
        for name, promised in values["promised"].items():
            waiting = self._system.view.waiting.at(places[name])
            jobs = {job.seq: job for job in waiting}
            kept = self._promises(places[name], waiting)
            kept.clear()
            for number, at, rows in promised:
                if number in jobs:
                    kept.promise(jobs[number], at, COUNTED if rows is None else Allocation.of(rows))
        for name, settled in values["settled"].items():
            place = places[name]
            self._settled[place] = place.version + place.consumables.version, settled

    def forget(self) -> None:
        """Discard the promises: another policy has decided since, without being bound by them."""
        super().forget()
        for promised in self._promised.values():
            promised.clear()
        self._fast.forget()
        self._settled.clear()

    def _promises(self, place: Pool, waiting: WaitingQueue) -> Promises:
        """Return the promises at a place."""
        promised = self._promised.get(place)
        if promised is None:
            promised = self._promised[place] = Promises(place, waiting, self.order)
        return promised

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        waiting = view.waiting.at(place)
        promised = self._promises(place, waiting)
        gone = promised.drop_void()
        if gone:
            self._fast.forget(place)
        due = promised.due(view.env._now)
        version, settled = self._settled.get(place, (-1, False))
        same = not gone and version == place.version + place.consumables.version  # of other places, too
        if not waiting or (same and not due and not waiting.new):
            return  # woken for a promise that moved since
        promised.moved = False
        if self.fast:
            yield from self._fast.at(view, place, promised, due, settled=settled and same)
        else:
            queue = waiting.by(self.order)
            yield from conservative_keep(view, place, queue, Outlook(place, self._spares), promised)
        self._settled[place] = place.version + place.consumables.version, not promised.moved
