"""Snapshots of a broker with all its systems, as plain values."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

import attrs

from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, Size, one_of
from simmodel.work.job import Job

__all__ = ["Arriving", "BrokerSnapshot", "Handed"]

POLICY = PolicyState(name="sgs-t", known_as="sgs-t")


class Arriving(NamedTuple):
    """A job that a broker has not handed over, or that is still to arrive.

    ``limit``: s, requested; ``length``: s that it will run, where that is known; both as on a cluster without a
    slowdown. ``home``: the name of its cluster; empty: none. ``family``: the number of the jobs it came with, among
    which those are that it may come after.
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


class Handed(NamedTuple):
    """A job that was handed to a cluster and is not over: its row in the record, its number there, as it came.

    ``start``, ``end``: s, what was expected of its cluster, where the policy asked. ``eligible``: s, when all had come
    that it came after. ``family``: as of :class:`Arriving`.
    """

    row: Count
    cluster: str
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
    clusters
        the snapshot of each system below, in the order of the places
    ties, by
        the rule for ties; what estimates go by
    slowdowns
        (home or empty, cluster, factor)
    waiting, blocked
        what waits for the policy, in order; what waits for other jobs
    handed
        what was handed over and is not over
    arrivals
        what is still to arrive, source by source
    waits
        for whom blocked jobs wait: (family, the other's id, ``"start"`` or ``"end"``, the job's row, which dependency)
    over
        (family, id, how it ended) of the jobs that are over and that arrivals name
    planned
        (s, ``"eligible"`` or ``"cancel"``, row) of blocked jobs: a think time that ends, a job that is withdrawn

    ``simulate(snapshot)`` goes on from it, and so does :meth:`Broker.from_snapshot
    <simmodel.systems.broker.system.Broker.from_snapshot>`.
    """

    system: ClassVar[str] = "broker"

    name: str = "broker"
    clusters: tuple[Snapshot, ...]
    policy: PolicyState = POLICY
    ties: str | None = None
    by: Literal["requested", "actual"] = "requested"
    slowdowns: tuple[tuple[str, str, float], ...] = ()
    waiting: Columns[Arriving] = ()
    blocked: Columns[Arriving] = ()
    handed: Columns[Handed] = ()
    arrivals: tuple[Columns[Arriving], ...] = ()
    waits: tuple[tuple[Count, int | str, Annotated[str, one_of("start", "end")], Count, Count], ...] = ()
    over: tuple[tuple[Count, int | str, str], ...] = ()
    planned: tuple[tuple[Instant, Annotated[str, one_of("eligible", "cancel")], Count], ...] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        names = ", ".join(each.name for each in self.clusters)
        return f"<BrokerSnapshot of {names} at {self.now:g} s: {running} running, {waiting} waiting>"

    @property
    def tally(self) -> tuple[int, int]:
        """How many jobs run and how many wait, here and below."""
        running, waiting = super().tally
        return running, waiting + len(self.waiting) + len(self.blocked)

    @property
    def below(self) -> tuple[Snapshot, ...]:
        """The snapshots of the systems below."""
        return self.clusters

    @property
    def ids(self) -> list[int | str]:
        """The ids of the jobs that the systems below have, and of those that wait for the policy."""
        return [*super().ids, *(job.id for job in self.waiting)]

    @property
    def unfinished(self) -> int:
        """How many jobs it holds, those still to arrive included."""
        return super().unfinished + len(self.waiting) + len(self.blocked) + sum(map(len, self.arrivals))

    def reseeded(self) -> BrokerSnapshot:
        """Return the snapshot without its random streams, and without those of its clusters."""
        return attrs.evolve(self, streams=(), clusters=tuple(each.reseeded() for each in self.clusters))

    def expected(self, *, actual: bool = False) -> BrokerSnapshot:
        """Return what a what-if may see, as that of a cluster does, of the broker and of its clusters."""
        waiting, blocked = self.waiting, self.blocked
        if not actual:
            waiting, blocked = (tuple(map(_seen, jobs)) for jobs in (waiting, blocked))
        return attrs.evolve(
            self,
            clusters=tuple(cluster.expected(actual=actual) for cluster in self.clusters),
            waiting=waiting,
            blocked=blocked,
            arrivals=(),
            planned=tuple(each for each in self.planned if each[1] != "cancel"),
            over=(),
            streams=(),
            seed=0,
        )


def _seen(job: Arriving) -> Arriving:
    spec = job.spec
    if spec is not None:
        spec = attrs.evolve(spec, run=job.limit, body=None, cancel=None)
    return job._replace(length=None, spec=spec)
