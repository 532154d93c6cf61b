"""Snapshots of a broker and its systems, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import attrs

from simmodel.foundation.errors import InputError, shown
from simmodel.snapshots.snapshot import PolicyState, Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Seconds, Size, one_of
from simmodel.work.job import Job
from simmodel.work.outcomes import OUTCOMES

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
    """A job that waits for the broker, or that is still to arrive.

    ``limit``: planned time (s); ``length``: actual run time (s), if known; both without slowdown. ``home``: the name of
    its home; empty: none. ``family``: the number of the group of jobs it belongs to, in which its dependencies are
    looked up. ``tasks``: the columns of the task set, if the work is one. ``unrequested``: whether it has no requested
    time. ``outcome``: how its run ends, unless its spec says so.
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
    unrequested: bool = False
    outcome: Annotated[str, one_of(*OUTCOMES)] = "completed"


class SlowdownState(NamedTuple):
    """The slowdown factor of a place for jobs of a home; an empty ``home``: for all other jobs."""

    home: str
    place: str
    factor: float


class WaitState(NamedTuple):
    """A pending dependency: the other job, the awaited event, the row of the blocked job, the dependency's index."""

    family: Count
    other: int | str
    what: Annotated[str, one_of("start", "end")]
    row: Count
    which: Count


class OverState(NamedTuple):
    """The final state of an ended job on which an arrival depends."""

    family: Count
    job: int | str
    how: str


class PlannedState(NamedTuple):
    """A planned event of a job at an instant (s): the end of a think time of a blocked one, or a cancellation."""

    at: Instant
    what: Annotated[str, one_of("eligible", "cancel")]
    row: Count


class Handed(NamedTuple):
    """A job that was handed over and has not ended: its row in the record, its number at its place, its request.

    ``start``, ``end``: the estimate of its place (s), if the policy asked for one. ``eligible``: the instant (s) at
    which all its dependencies were satisfied. ``family``, ``unrequested``: as in :class:`Arriving`.
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
    unrequested: bool = False


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class BrokerSnapshot(Snapshot):
    """A broker and the systems below it at one instant, with the fields of all snapshots and:

    Parameters
    ----------
    places
        the snapshot of each system below, in the order of the places
    by
        the run times that estimates use
    slowdowns
        the slowdown factors other than 1
    waiting, blocked
        jobs that wait for the policy, in order; jobs that wait for other jobs
    handed
        jobs that were handed over and have not ended
    arrivals
        jobs still to arrive, source by source
    waits, over, planned
        pending dependencies of blocked jobs; ended jobs on which arrivals depend; planned events of jobs
    alarms
        the instants (s) at which the policy wants to be asked

    ``simulate(snapshot)`` and :meth:`Broker.from_snapshot <simmodel.systems.broker.system.Broker.from_snapshot>`
    continue from it.
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
    alarms: tuple[Instant, ...] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        names = ", ".join(each.name for each in self.places)
        return f"<{type(self).__name__} of {names} at {self.now:g} s: {running} running, {waiting} waiting>"

    @property
    def tally(self) -> tuple[int, int]:
        """The numbers of running and of waiting jobs, here and below."""
        running, waiting = super().tally
        return running, waiting + len(self.waiting) + len(self.blocked)

    @property
    def below(self) -> tuple[Snapshot, ...]:
        return self.places

    @property
    def ids(self) -> list[int | str]:
        """The ids of the jobs in the systems below and of those that wait for the policy, or for other jobs."""
        return [*super().ids, *(job.id for job in (*self.waiting, *self.blocked))]

    @property
    def unrequested(self) -> tuple[int | str, ...]:
        """The ids of the jobs that have not ended and request no time, here and below."""
        own = (job for jobs in (self.waiting, self.blocked, *self.arrivals) for job in jobs)
        return (*super().unrequested, *(job.id for job in own if job.unrequested))

    @property
    def seconds(self) -> dict[int | str, float]:
        """The times (s) with which jobs are planned, by id, in the systems below and of those not handed over."""
        return super().seconds | {job.id: job.limit for job in (*self.waiting, *self.blocked)}

    @property
    def unfinished(self) -> int:
        """The number of unfinished jobs, including those still to arrive."""
        return super().unfinished + len(self.waiting) + len(self.blocked) + sum(map(len, self.arrivals))

    def check(self) -> None:
        """Raise ``InputError``, with its place, if a job came after now, or arrivals are past or out of order."""
        parts: dict[str, tuple[Arriving | Handed, ...]]
        parts = {"waiting": self.waiting, "blocked": self.blocked, "handed": self.handed}
        for part, known in parts.items():
            for i, each in enumerate(known):
                _check_family(each, f"{part}.family[{i}]")
                if each.submit > self.now:
                    message = f"must be an instant <= {self.now:g} s, got {each.submit:g}"
                    raise InputError(message, place=f"{part}.submit[{i}]")
        for i, jobs in enumerate(self.arrivals):
            before = self.now
            for j, job in enumerate(jobs):
                _check_family(job, f"arrivals[{i}].family[{j}]")
                if job.submit < before:
                    message = f"must be an instant >= {before:g} s, got {job.submit:g}"
                    raise InputError(message, place=f"arrivals[{i}].submit[{j}]")
                before = job.submit

    def reseeded(self) -> BrokerSnapshot:
        """Return the snapshot without its random streams and those of its places."""
        return attrs.evolve(self, streams=(), places=tuple(each.reseeded() for each in self.places))

    def expected(self, *, actual: bool = False) -> BrokerSnapshot:
        """Return the part of the snapshot that a what-if may see; see ``ClusterSnapshot.expected``."""
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


def _check_family(job: Arriving | Handed, place: str) -> None:
    if job.family > _MOST_FAMILIES:
        raise InputError(f"must be at most {_MOST_FAMILIES:,}, got {shown(job.family)}", place=place)


_MOST_FAMILIES = 100_000  # workloads that one broker replays


def _seen(job: Arriving) -> Arriving:
    spec = job.spec
    if spec is not None:
        spec = spec.as_seen(job.limit)
    return job._replace(length=None, spec=spec)
