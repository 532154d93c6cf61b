"""What other jobs may use beside a job that no known end frees: work without a time limit is in its way.

Such a job has no promised start. What falls free is kept for it until it fits, so that it is not passed for ever; what
has been free ever since it came first is left to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from simmodel.resources.pools.allocation import Allocation, NodeTable
from simmodel.resources.pools.counts import COUNTED, PoolProfile
from simmodel.resources.pools.node_profile import NodeProfile
from simmodel.resources.pools.nodes import NodePool
from simmodel.scheduling.protocol import Decision, Policy, Wake, WakeAt
from simmodel.work.job import Booting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import LiveJob

__all__ = ["Keeping", "Spare", "Spares"]

INFINITY = float("inf")

Free: TypeAlias = "int | NodeTable"
"""A number of processors, or the free capacity of each node."""


class Spare:
    """The capacity of a pool that has been free ever since a job came first that no known end frees.

    Parameters
    ----------
    place, head
        the pool, and the job
    free
        what is free now

    Attributes
    ----------
    free
        what other jobs may use of it
    amounts
        the consumables that the job requests, by name: what other jobs may use of them
    """

    __slots__ = ("amounts", "free", "head", "place")

    def __init__(self, place: Pool, head: LiveJob, free: Free) -> None:
        self.place = place
        self.head = head
        self.free = free
        needs: Mapping[str, float] = {} if head.request is None else head.request.consumables
        self.amounts = {name: place.consumables.free[name] for name in needs}

    @property
    def cores(self) -> int:
        """The processors that other jobs may use."""
        return self.free.cores if isinstance(self.free, NodeTable) else self.free

    @property
    def table(self) -> NodeTable | None:
        """What other jobs may use of each node, if nodes are identified."""
        return self.free if isinstance(self.free, NodeTable) else None

    def narrow(self, free: Free, amounts: Mapping[str, float]) -> None:
        """Leave out what is not free at another instant."""
        if isinstance(self.free, NodeTable) and isinstance(free, NodeTable):
            self.free = self.free.minimum([free])
        else:
            self.free = min(self.free, free)  # type: ignore[type-var]
        self.amounts = {name: min(there, amounts[name]) for name, there in self.amounts.items()}

    def allows(self, job: LiveJob) -> bool:
        """Whether another job requests no more processors and consumables than it may use."""
        if job.request is not None:
            slack = self.place.consumables.slack
            for name, amount in job.request.consumables.items():
                if amount > self.amounts.get(name, INFINITY) + slack[name]:
                    return False
        return job.width <= self.cores

    def room(self, job: LiveJob) -> Allocation | Grant | None:
        """Return the allocation with which another job could start now, or ``None``."""
        place = self.place
        if not (place.fits(job) and self.allows(job)):
            return None
        if not isinstance(place, NodePool) or self.table is None:
            return COUNTED
        found = self.table.allocate(place.need_of(job))
        return found if found is not None and place.accepts(job, found) else None

    def take(self, job: LiveJob) -> None:
        """Note that another job has started."""
        if not isinstance(self.free, NodeTable):
            self.free -= job.width
        elif job.run is not None:  # else it has ended at once
            self.free.take(job.run.grant.allocation)
        if job.request is not None:
            for name in self.amounts.keys() & job.request.consumables.keys():
                self.amounts[name] -= job.request.consumables[name]


class Spares(dict[str, "Spare | list[Any]"]):
    """What is left beside such jobs, by the name of the place; plain values where a snapshot has them."""

    def at(self, place: Pool, head: LiveJob, free: int | None = None) -> Spare:
        """Return what is left beside a job that comes first at a place and that no known end frees.

        ``free``: the processors that jobs can have now, if these are not the free ones.
        """
        there: Free = max(place.free, 0) if free is None else free
        if isinstance(place, NodePool):
            there = place.table.copy()
        before = self.get(place.name)
        self[place.name] = spare = Spare(place, head, there)
        if isinstance(before, Spare) and before.head is head:
            spare.narrow(before.free, before.amounts)
        elif isinstance(before, list) and before[0] == head.seq:
            there = before[1]
            if isinstance(place, NodePool):
                there = place.table.copy()
                there.restore(before[1])
            spare.narrow(there, before[2])
        return spare

    def beside(self, place: Pool, job: LiveJob) -> Spare | None:
        """Return what is left beside a job that comes first at a place if no known end frees it, else ``None``."""
        if place.running.endless and place.profile().earliest(job, job.planned)[0] == INFINITY:
            return self.at(place, job)
        self.pop(place.name, None)
        return None

    def drop(self, place: Pool, job: LiveJob) -> None:
        """Keep nothing for a job any more that has a known start now."""
        before = self.get(place.name)
        if before is not None and (before.head is job if isinstance(before, Spare) else before[0] == job.seq):
            del self[place.name]

    def state(self) -> dict[str, Any]:
        """Return it as plain values, for a snapshot."""
        return {
            name: [each.head.seq, each.free if each.table is None else each.table.state(), each.amounts]
            if isinstance(each, Spare)
            else each
            for name, each in self.items()
            if not isinstance(each, Spare) or each.head.state == "waiting"
        }


class Outlook:
    """The free capacity of a place over time, into which a rule plans jobs.

    The first job that no known end frees has no plan; those behind it start now, on what has been free ever since it
    came first, or have none either. Promises stand.

    Parameters
    ----------
    place
        the pool
    spares
        what is left beside such jobs
    counted
        whether to plan by numbers alone where the free processors are the whole state, on any nodes

    Attributes
    ----------
    profile
        the free capacity, without the planned jobs
    """

    __slots__ = ("_beside", "_place", "_spare", "_spares", "profile")

    def __init__(self, place: Pool, spares: Spares, *, counted: bool = False) -> None:
        self._place = place
        self._spares = spares
        self.profile = place.profile()
        if counted and place.simple:
            self.profile = PoolProfile(place.env.now, {"": place.counts()}, attrgetter("width"))
        self._spare: Spare | None = None
        self._beside: LiveJob | None = None  # the last job that could start now on what is not kept
        if not place.running.endless:
            spares.pop(place.name, None)

    def earliest(self, job: LiveJob, promised: tuple[float, Any] | None = None) -> tuple[float, Any]:
        """Return the earliest start of a job (s), infinite if it has none, and its allocation then.

        A promise, an instant and an allocation, is undone.
        """
        if promised is not None:
            self.profile.give_back(job, promised[0], job.planned, promised[1])
        elif self._spare is not None:
            found = self._now(self._spare, job)
            return (INFINITY, None) if found is None else (self._place.env._now, found)
        place = self._place
        at, allocation = self.profile.earliest(job, job.planned)
        if at > place.env._now and place.dozing is not None and place.dozing.begins_now(job, at, allocation):
            at = place.env._now  # its nodes boot from now on
            found, plans = place.dozing.chosen(job), self.profile
            if found is not None and isinstance(plans, NodeProfile):  # as few nodes as possible, if plans leave them
                allocation = plans.fits_at(found, place.dozing.ready(found), job.planned) or allocation
        if at < INFINITY:
            self._spares.drop(self._place, job)
        elif self._spare is None and self._place.running.endless:
            self._spare = self._spares.at(self._place, job)
        return at, allocation

    def make_room(self, job: LiveJob, head: LiveJob) -> Any:
        """Return the allocation with which a job can start now without delaying another one, or ``None``."""
        place = self._place
        if self._spare is None:
            found = self.profile.make_room(job, job.planned, head)
            if found is None and place.dozing is not None and (asleep := place.dozing.chosen(job)) is not None:
                found = self.profile.make_room(job, job.planned, head, (place.dozing.ready(asleep), asleep))
            return found
        self._beside = job
        return self._spare.room(job)

    def take(self, job: LiveJob, at: float, allocation: Any) -> None:
        """Plan a job, which may just have started."""
        run, seconds = job.run, job.planned
        if isinstance(run, Booting):
            seconds += run.up - at
        self.profile.take(job, at, seconds, allocation)
        if self._spare is not None and self._beside is job and job.state != "waiting":
            self._spare.take(job)

    def ahead(self, job: LiveJob, at: float, allocation: Allocation | Grant) -> Iterable[Decision]:
        """Return the decisions of :func:`ahead` for a planned job, which the profile has."""
        dozing, plans = self._place.dozing, self.profile
        if dozing is None:
            return ()
        if isinstance(plans, PoolProfile):
            most = self._place.capacity
            allocation = dozing.needed(at, plans.processors.room(1, at, job.planned, most))
        return ahead(self._place, job, at, allocation)

    def instant(self, at: float) -> float:
        """Return the instant of a planned start, which may be a step just after it."""
        return self.profile.instant(at)

    def _now(self, spare: Spare, job: LiveJob) -> Any:
        """Return the allocation with which a job could start now beside what is kept and planned, or ``None``."""
        if not (self._place.fits(job) and spare.allows(job)):
            return None
        self._beside = job
        found = self.profile.fits(job, job.planned, spare.table)
        return found if found is None or isinstance(found, Allocation) else spare.room(job)


def ahead(place: Pool, job: LiveJob, at: float, allocation: Allocation | Grant) -> Iterator[Decision]:
    """Wake the nodes of a job that is planned for an instant (s) in time, or decide again then."""
    assert place.dozing is not None
    nodes, up, now = place.dozing.asleep_in(allocation), place.dozing.ready(allocation), place.env._now
    if nodes:
        begin = at - (up - now)
        yield Wake(place, nodes, job) if at <= up or begin <= now else WakeAt(begin)


class Keeping(Policy):
    """The base class of policies that keep what falls free for a job that no known end frees."""

    _spares: Spares

    def forget(self) -> None:
        """Discard what is kept: another policy has decided since."""
        self._spares.clear()

    def state(self) -> dict[str, Any] | None:
        """Return what is kept as plain values, for a snapshot."""
        kept = self._spares.state()
        return {"kept": kept} if kept else None

    def restore(self, values: dict[str, Any]) -> None:
        """Restore the values of :meth:`state`."""
        self._spares.clear()
        self._spares.update(values.get("kept", {}))
