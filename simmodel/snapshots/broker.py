"""Snapshots of a broker with all its systems, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import attrs

from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, Size, one_of
from simmodel.work.job import Job

__all__ = [
    "Arriving",
    "BrokerSnapshot",
    "Handed",
    "OverState",
    "PlannedState",
    "SlowdownState",
    "WaitState",
]

POLICY = PolicyState(name="sgs-t", known_as="sgs-t")


class Arriving(NamedTuple):
    """A job that a broker has not handed over, or that is still to arrive.

    ``limit``: s, requested; ``length``: s that it will run, where that is known; both as on a cluster without a
    slowdown. ``home``: the name of its cluster; empty: none. ``family``: the number of the jobs it came with, among
    which those are that it may come after. ``tasks``: the columns of a set of tasks, which stands for a job.
    """

    id: int | str
    row: Count
    submit: Instant
    processors: Size
    limit: Seconds
    length: Seconds | None
    user: int | str | None = None
    home: str = ""
    spec: Job | None = None
    family: Count = 0
    tasks: Mapping[str, Any] | None = None


class SlowdownState(NamedTuple):
    """What multiplies run and requested times at a place, for jobs of a home; empty: of any other."""

    home: str
    place: str
    factor: float


class WaitState(NamedTuple):
    """For whom a blocked job waits: the other's id, its start or its end, the job's row, which dependency it is."""

    family: Count
    other: int | str
    what: Annotated[str, one_of("start", "end")]
    row: Count
    which: Count


class OverState(NamedTuple):
    """How a job ended that one still to arrive names."""

    family: Count
    job: int | str
    how: str


class PlannedState(NamedTuple):
    """What comes of a blocked job at an instant (s): a think time ends, or it is withdrawn."""

    at: Instant
    what: Annotated[str, one_of("eligible", "cancel")]
    row: Count


class Handed(NamedTuple):
    """A job that was handed over and is not over: its row in the record, its number at its place, as it came.

    ``start``, ``end``: s, what was expected of its place, where the policy asked. ``eligible``: s, when all had come
    that it came after. ``family``: as of :class:`Arriving`.
    """

    row: Count
    place: str
    number: int
    id: int | str
    submit: Instant
    processors: Size
    asked: Seconds
    origin: str = ""
    user: int | str | None = None
    start: float | None = None
    end: float | None = None
    eligible: Instant | None = None
    family: Count = 0


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BrokerSnapshot(Snapshot):
    """A broker and the systems below it at one instant; beside what all snapshots have:

    Parameters
    ----------
    places
        the snapshot of each system below, in the order of the places
    by
        what estimates go by
    slowdowns
        those that are not 1
    waiting, blocked
        what waits for the policy, in order; what waits for other jobs
    handed
        what was handed over and is not over
    arrivals
        what is still to arrive, source by source
    waits, over, planned
        for whom blocked jobs wait; the jobs that are over and that arrivals name; what is to come of blocked jobs

    ``simulate(snapshot)`` goes on from it, and so does :meth:`Broker.from_snapshot
    <simmodel.systems.broker.system.Broker.from_snapshot>`.
    """

    system: ClassVar[str] = "broker"
    schema: ClassVar[int] = 2

    name: str = "broker"
    places: tuple[Snapshot, ...]
    policy: PolicyState = POLICY
    by: Literal["requested", "actual"] = "requested"
    slowdowns: tuple[SlowdownState, ...] = ()
    waiting: Columns[Arriving] = ()
    blocked: Columns[Arriving] = ()
    handed: Columns[Handed] = ()
    arrivals: tuple[Columns[Arriving], ...] = ()
    waits: tuple[WaitState, ...] = ()
    over: tuple[OverState, ...] = ()
    planned: tuple[PlannedState, ...] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        names = ", ".join(each.name for each in self.places)
        return f"<BrokerSnapshot of {names} at {self.now:g} s: {running} running, {waiting} waiting>"

    @property
    def tally(self) -> tuple[int, int]:
        """How many jobs run and how many wait, here and below."""
        running, waiting = super().tally
        return running, waiting + len(self.waiting) + len(self.blocked)

    @property
    def below(self) -> tuple[Snapshot, ...]:
        """The snapshots of the systems below."""
        return self.places

    @property
    def ids(self) -> list[int | str]:
        """The ids of the jobs that the systems below have, and of those that wait for the policy."""
        return [*super().ids, *(job.id for job in self.waiting)]

    @property
    def unfinished(self) -> int:
        """How many jobs it holds, those still to arrive included."""
        return super().unfinished + len(self.waiting) + len(self.blocked) + sum(map(len, self.arrivals))

    def reseeded(self) -> BrokerSnapshot:
        """Return the snapshot without its random streams, and without those of its places."""
        return attrs.evolve(self, streams=(), places=tuple(each.reseeded() for each in self.places))

    def expected(self, *, actual: bool = False) -> BrokerSnapshot:
        """Return what a what-if may see, as that of a cluster does, of the broker and of its places."""
        waiting, blocked = self.waiting, self.blocked
        if not actual:
            waiting, blocked = (tuple(map(_seen, jobs)) for jobs in (waiting, blocked))
        return attrs.evolve(
            self,
            places=tuple(cluster.expected(actual=actual) for cluster in self.places),
            waiting=waiting,
            blocked=blocked,
            arrivals=(),
            planned=tuple(each for each in self.planned if each.what != "cancel"),
            over=(),
            streams=(),
            seed=0,
        )


def _seen(job: Arriving) -> Arriving:
    spec = job.spec
    if spec is not None:
        spec = attrs.evolve(spec, run=job.limit, body=None, cancel=None)
    return job._replace(length=None, spec=spec)
