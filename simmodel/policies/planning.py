"""Conservative backfilling: every waiting job has a planned start, and no job may delay one ahead of it.

Source: Mu'alem & Feitelson, "Utilization, predictability, workloads, and user runtime estimates in scheduling the IBM
SP2 with backfilling", IEEE TPDS 12(6), 2001; the form that keeps its promises: Feitelson & Mu'alem Weil, IPPS 1998.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import nextafter
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.policies.count_plan import CountPlan
from simmodel.policies.node_plan import NodePlan
from simmodel.policies.ordering import FCFS, at_each_place, order as order_named, start_heads
from simmodel.policies.spare import Keeping, Spare, Spares
from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.counts import COUNTED, CountPool
from simmodel.resources.pools.node_profile import NodeTimes
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.protocol import Decision, Reserve, Start, View

if TYPE_CHECKING:
    from simmodel.policies.ordering import GivenOrder
    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.counts import PoolProfile
    from simmodel.resources.pools.pool import Pool
    from simmodel.resources.pools.profile import Profile
    from simmodel.resources.pools.running import Entry
    from simmodel.scheduling.waiting import WaitingQueue
    from simmodel.work.job import LiveJob

__all__ = ["Conservative", "ConservativeKeep", "KeptProfile", "Promises"]


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


INFINITY = float("inf")
_VOID = 64  # entries of promises that moved, kept beside as many as there are promises


class _Planner(Keeping):
    """The base class of both forms: an order, and a decision at each place."""

    decides = "jobs"
    kind = ""

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = False) -> None:
        self.order = order_named(order)
        self.promises = promises
        self._spares = Spares()
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

    >>> Conservative("sjf").name
    'sjf+conservative'
    """

    kind = "conservative"

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = False) -> None:
        super().__init__(order, promises=promises)
        self._plans: dict[Pool, CountPlan] = {}
        self._node_plans: dict[Pool, NodePlan] = {}
        self._times: dict[Pool, NodeTimes] = {}

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide with a kept plan if the place allows it, else by profile: both start the same jobs."""
        plan = self._counts(view, place) if place.simple else self._nodes(view, place)
        if plan is None or place.running.endless:
            return self._planned(view, place)
        return self._kept(view, place, plan)

    def _planned(self, view: View, place: Pool) -> Iterator[Decision]:
        """Decide at a pool of any kind, by its profile: the reference rule."""
        waiting = view.waiting.at(place)
        yield from start_heads(self.order, view, place)
        endless, spare = place.running.endless, None
        if not endless:
            self._spares.pop(place.name, None)
        lanes = waiting.lanes(self.order)
        if not waiting.count or (place.free < lanes.narrowest and not (self.promises or endless)):
            return
        profile = place.profile()
        now = place.env.now
        holds = True  # else a job is expected to run longer than planned, perhaps into a window
        for job in waiting.by(self.order):
            if place.running.endless and not endless:  # that has started now: all others are planned anew
                yield from self._planned(view, place)
                return
            if place.free < lanes.narrowest and not (self.promises or (endless and spare is None)):
                return
            if spare is not None:
                yield from _beside(spare, profile, job)
                continue
            at, allocation = profile.earliest(job, job.planned)
            if at == INFINITY:
                spare = self._spares.at(place, job) if endless else None
                continue
            profile.take(job, at, job.planned, allocation)
            if at == now:
                if holds or place.accepts(job, allocation):
                    holds = holds and job.expected == job.planned and not place.paced
                    yield Start(job, place, None, allocation)
            elif self.promises:
                yield Reserve(job, place, profile.instant(at))
        if spare is None:
            self._spares.pop(place.name, None)

    def _kept(self, view: View, place: Pool, plan: CountPlan) -> Iterator[Decision]:
        """Decide with a plan, which is kept as long as it holds."""
        waiting = view.waiting.at(place)
        yield from start_heads(self.order, view, place)
        endless = place.running.endless
        if self._spares and not endless:
            self._spares.pop(place.name, None)
        # If no job can start, no plan is needed unless promises are recorded.
        if waiting.count and not endless and (place.free >= waiting.lanes(self.order).narrowest or self.promises):
            yield from plan.decide(promises=self.promises)
        if waiting.count and place.running.endless:  # that has started now
            yield from self._planned(view, place)

    def _counts(self, view: View, place: Pool) -> CountPlan:
        """Return the plan of counted processors."""
        plan = self._plans.get(place)
        if plan is None:
            keep = not (self.promises or self.order.changes)
            plan = CountPlan(place, view.waiting.at(place), self.order, keep=keep)
            if keep:
                self._plans[place] = plan
        return plan

    def _nodes(self, view: View, place: Pool) -> NodePlan | None:
        """Return the plan of identified nodes, or ``None`` if only the full profile will do."""
        if not isinstance(place, NodePool) or place.spec.placed_by != "first-fit":
            return None
        plan = self._node_plans.get(place)
        if plan is None:
            times = self._times.get(place)
            if times is None:
                times = self._times[place] = NodeTimes(place.table.capacity, place.running)
            keep = not (self.promises or self.order.changes)
            plan = NodePlan(place, view.waiting.at(place), self.order, times, keep=keep)
            if keep:
                self._node_plans[place] = plan
        return plan if plan.possible else None


def _beside(spare: Spare, profile: Profile, job: LiveJob) -> Iterator[Decision]:
    """Start a job behind one that no known end frees, if it fits now beside what is kept and planned."""
    place = spare.place
    if not (place.fits(job) and spare.allows(job)):
        return
    found = profile.fits(job, job.planned, spare.table)
    if found is not None and not isinstance(found, Allocation):
        found = spare.room(job)
    if found is not None:
        profile.take(job, place.env.now, job.planned, found)
        yield Start(job, place, None, found)
        spare.take(job)


def _rows(allocation: Allocation | None) -> list[list[int]] | None:
    """Return an allocation as plain values; ``None`` for counted processors."""
    return [list(row) for row in allocation.rows] if isinstance(allocation, Allocation) else None


class Promises(dict["LiveJob", tuple[float, Any]]):
    """The promised instants (s) and allocations at a place, by job, with those that are due or void.

    Parameters
    ----------
    place, waiting
        the pool, and its queue
    """

    __slots__ = ("_count", "_due", "_place", "_void", "left")

    def __init__(self, place: Pool, waiting: WaitingQueue) -> None:
        self._place = place
        self._void = False  # whether promises have gone since the last decision
        self._count = 0  # entries of a job that comes back have its number: they are told apart by their turn
        self._due: list[tuple[float, int, int, LiveJob]] = []  # earliest first, and some that are void
        self.left: list[LiveJob] = []  # jobs with promises that left the queue
        waiting.keep(self)

    def add(self, job: LiveJob) -> None:
        """Note a job that has come into the queue: if it had a promise before it started elsewhere, that is void."""
        if job.attempts and self.pop(job, None) is not None:
            self._void = True

    def remove(self, job: LiveJob) -> None:
        """Note a job that leaves the queue."""
        if job in self:
            self.left.append(job)

    def promise(self, job: LiveJob, at: float, allocation: Allocation | Grant | None) -> None:
        """Promise a job a start (s)."""
        self[job] = at, allocation
        self._count += 1
        heap = self._due
        heappush(heap, (at, job.seq, self._count, job))
        if len(heap) > 2 * len(self) + _VOID:
            heap[:] = [each for each in heap if self.get(each[3], (None,))[0] == each[0]]
            heapify(heap)

    def due(self, now: float) -> list[LiveJob]:
        """Return the jobs that are promised a start by now."""
        heap = self._due
        found = {}
        while heap and heap[0][0] <= now:
            each = heappop(heap)
            if self.get(each[3], (None,))[0] == each[0]:
                found[each[3]] = each
        for each in found.values():
            heappush(heap, each)
        return list(found)

    def drop_void(self) -> bool:
        """Drop the promises to jobs that wait here no longer; return whether there are any."""
        gone = [job for job in self.left if job in self and (job.state != "waiting" or job.place is not self._place)]
        self.left.clear()
        for job in gone:
            self.pop(job, None)
        found = bool(gone) or self._void
        self._void = False
        return found


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

    >>> ConservativeKeep().name
    'conservative-keep'
    """

    kind = "conservative-keep"

    tries_every_submission = True

    def __init__(self, order: GivenOrder = FCFS, *, promises: bool = True) -> None:
        super().__init__(order, promises=promises)
        self._promised: dict[Pool, Promises] = {}
        self._system: Queued | None = None
        self._settled: dict[Pool, tuple[int, bool]] = {}  # version at its last decision, whether no promise moved
        self._kept: dict[Pool, KeptProfile] = {}

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
        for profile in self._kept.values():
            profile.keep(None)
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
        for kept in self._kept.values():
            kept.keep(None)
        self._settled.clear()

    def _promises(self, place: Pool, waiting: WaitingQueue) -> Promises:
        """Return the promises at a place."""
        promised = self._promised.get(place)
        if promised is None:
            promised = self._promised[place] = Promises(place, waiting)
        return promised

    def _at(self, view: View, place: Pool) -> Iterator[Decision]:
        waiting = view.waiting.at(place)
        promised = self._promises(place, waiting)
        now = view.env._now
        gone = bool(promised.left) and promised.drop_void()
        kept = self._profile_of(place)
        if kept is not None and gone:
            kept.keep(None)
        if not waiting:
            return
        queue = waiting.by(self.order)
        seen, settled = self._settled.get(place, (-1, False))
        version = place.version + place.consumables.version  # consumables released by other places count, too
        unchanged = seen == version and not gone
        due = promised.due(now)
        if unchanged and not due and not waiting.new:
            return  # woken for a promise that moved since
        profile: Any = None
        if kept is not None and all(promised[job][0] == now for job in due):
            profile = kept.follow(now)
        only_new = settled and unchanged and not due and not (self.order.changes or place.paced)
        jobs: Iterable[LiveJob] = queue  # live: what a start releases is planned, too
        free = None  # the profile of the processors, which includes all promises
        planned: dict[LiveJob, tuple[float, Any]]
        if profile is not None:
            assert kept is not None
            free, planned = profile.processors, promised
            if kept.settled:
                tried = set(due)
                jobs = (job for job in queue if job not in promised or job in tried)
        else:
            profile = place.profile()
            if kept is not None:
                kept.keep(None if only_new else profile)  # it is whole only if each promise has been tried
            due = [job for job in queue if job in promised and promised[job][0] <= now] if due else due
            planned = _renewed(profile, promised, due, now)
        if kept is not None:
            kept.settled = True
        if only_new:
            jobs = [job for job in queue if job not in promised]
        moved = False
        whole = True
        holds = True  # else a job is expected to run longer than planned, perhaps into a window
        exact = free is not None and free.exact
        spare = first = None  # the first job without a plan, and what is left beside it
        for job in jobs:
            if job.state != "waiting":  # held by a limit since another job started
                continue
            requested = job.planned
            if spare is not None and job not in promised:
                yield from _beside(spare, profile, job)
                continue
            before, allocation = promised.get(job, (INFINITY, None))
            if free is not None and exact and before < INFINITY:
                at = free.earliest(job.processors, requested, -INFINITY, before)
                if at == before > now:
                    continue  # it cannot move
                free.move(job.processors, before, at, requested)
            else:
                if job in planned:
                    profile.give_back(job, planned[job][0], requested, planned[job][1])
                at, allocation = profile.earliest(job, requested)
                if at == INFINITY:  # behind work without an end, or its resources are down, with unknown return
                    moved = promised.pop(job, None) is not None or moved
                    first = job if first is None else first
                    if spare is None and place.running.endless:
                        spare = self._spares.at(place, first)
                    continue
                profile.take(job, at, requested, allocation)
                exact = free is not None and free.exact
            if at == now:
                if not holds and not place.accepts(job, allocation):
                    moved = True  # it is tried again when anything changes
                    whole = False
                    continue
                holds = holds and job.expected == requested and not place.paced
                promised.pop(job, None)
                moved = moved or now < before < INFINITY
                if kept is not None:
                    kept.offer(job)
                yield Start(job, place, None, allocation)
                continue
            instant = at if exact else profile.instant(at)
            if instant != before:
                promised.promise(job, instant, allocation)
                moved = moved or before < INFINITY
                yield Reserve(job, place, instant)
            else:
                promised[job] = instant, allocation
        if spare is None and first is not None and place.running.endless:
            self._spares.at(place, first)
        elif spare is None and self._spares:
            self._spares.pop(place.name, None)
        self._settled[place] = place.version + place.consumables.version, not moved
        if kept is not None:  # a job that a limit has held since another started has not been tried
            kept.settled = kept.settled and not moved
            kept.whole = whole and all(job.state == "waiting" for job in promised.left)

    def _profile_of(self, place: Pool) -> KeptProfile | None:
        """Return the kept profile of a pool on which only the number of processors counts, else ``None``."""
        if not isinstance(place, CountPool) or not place.simple or self.order.changes:
            return None
        if place not in self._kept:
            self._kept[place] = KeptProfile(place)
        return self._kept[place]


def _renewed(
    profile: Any, promised: dict[LiveJob, tuple[float, Any]], due: list[LiveJob], now: float
) -> dict[LiveJob, tuple[float, Any]]:
    """Add the promises to a profile; return them, with the starts that can be kept of those that are due."""
    planned: dict[LiveJob, tuple[float, Any]] = {}
    for job, (at, allocation) in promised.items():
        if at > now:
            planned[job] = at, allocation
            profile.renew(job, at, job.planned, allocation)
    # A job that is due fits on its own nodes now, or as soon as the jobs end whose expected end has been reached.
    # The others (after an overrun or an outage) are planned once these have theirs: they could take them.
    for job in due:
        _, allocation = promised[job]
        held = profile.hold(job, job.planned, allocation)
        if held is not None:
            planned[job] = held, allocation
    for job in due:
        if job not in planned:
            planned[job] = profile.earliest(job, job.planned)
            profile.take(job, planned[job][0], job.planned, planned[job][1])
    return planned
