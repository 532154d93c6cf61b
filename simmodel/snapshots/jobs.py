"""The states of jobs, places and plans in a snapshot of a cluster, and what of them a what-if may see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, nextafter
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import attrs

from simmodel.platform.cluster import ClusterSpec
from simmodel.resources.allocation import Allocation
from simmodel.snapshots.snapshot import Snapshot
from simmodel.snapshots.types import Count, Instant, Like, Rest, Seconds, Size, one_of
from simmodel.work.job import Job

__all__ = [
    "JobsSnapshot",
    "Past",
    "PlaceState",
    "Planned",
    "RunningWork",
    "Wait",
    "Whole",
    "WindowState",
    "WorkState",
    "expected_end",
    "expected_plans",
    "just_after",
    "seen_work",
]


class Whole(NamedTuple):
    """The seconds of a job before it was suspended: requested, expected and, where it is known, that it would run."""

    requested: Seconds
    expected: Seconds
    duration: Seconds | None


class Past(NamedTuple):
    """What happened to a job before: only of jobs that were blocked, or whose executions were stopped.

    ``attempts`` before the present one; ``eligible``, ``first_start`` (of a job that started again), ``attempt_start``
    (of one that was suspended since) and ``last_start`` in s; ``executed`` seconds whose work was not thrown away;
    ``whole``: its times before it was suspended; ``resumes``: the parts of nodes that it goes on with, ``True`` where
    only processors count, ``None`` where it starts from the beginning.
    """

    attempts: Count = 0
    eligible: Instant | None = None
    first_start: Instant | None = None
    attempt_start: Instant | None = None
    last_start: Instant | None = None
    executed: Seconds = 0.0
    whole: Whole | None = None
    resumes: Allocation | bool | None = None


class WorkState(NamedTuple):
    """A job as a snapshot holds it.

    ``requested``: the seconds that it is planned with; ``expected``: those that it is planned with once it runs;
    ``duration``: those that it will run, where that is known; ``number``: its place in the order of submission;
    ``priority`` includes that of its queue and partition; ``spec``: what it was submitted as, where that says more.
    """

    id: int | str
    number: int
    submit: Instant
    processors: Size
    requested: Seconds
    expected: Annotated[Seconds, Like("requested")]
    duration: Seconds | None = None
    user: int | str | None = None
    priority: Instant = 0.0
    place: str = ""
    outcome: Annotated[str, one_of("completed", "timeout")] = "completed"
    spec: Job | None = None
    past: Past | None = None


class RunningWork(NamedTuple):
    """A job that runs: since when, its expected end and, only where it was taken from a simulation, its actual one.

    ``held``: the parts of nodes that it holds, where nodes are identified; ``attempt``: from 1 on; ``released``: what
    it held is given back, though its end is still an event of this instant.
    """

    work: WorkState
    started: Instant
    expected_end: float
    end: float | None = None
    held: Allocation | None = None
    attempt: Size = 1
    released: bool = False

    @property
    def id(self) -> int | str:
        """The job."""
        return self.work.id

    @property
    def place(self) -> str:
        """Where it runs."""
        return self.work.place

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The numbers of its nodes, where nodes are identified."""
        return None if self.held is None else tuple(self.held.nodes.tolist())


class WindowState(NamedTuple):
    """A time in which part of a place is away: from when until when (s), what, whether it has begun, and for what."""

    start: Instant
    end: float
    what: Count | tuple[Count, ...]
    begun: bool
    why: str


@attrs.frozen
class PlaceState:
    """What of a place is away: ``down`` processors, or ((node, for how many reasons), ...); and its windows.

    ``open``: of a reservation, whether what fails of its partition fails here too.
    """

    name: str
    down: Count | tuple[tuple[Count, Size], ...] = 0
    windows: tuple[WindowState, ...] = ()
    open: bool = False


class Wait(NamedTuple):
    """For whom a blocked job waits: the other's id, its start or its end, the job's number, which dependency it is."""

    other: int | str
    what: Annotated[str, one_of("start", "end")]
    number: int
    which: Count


class Planned(NamedTuple):
    """Something to come at an instant (s); in the order of the snapshot's list where instant and priority are one."""

    at: float
    priority: float
    what: str
    about: Rest[tuple[Any, ...]] = ()


_WHEN = attrgetter("at", "priority")
_UNKNOWN = ("end", "arrivals", "submission", "cancel", "down", "fail")  # to a what-if, of what is planned


def just_after(instant: float) -> float:
    """Return the first instant (s) after one."""
    return nextafter(instant, inf)


def expected_end(now: float, end: float) -> float:
    """Return when work is expected to end that was expected to end then (s): just after now where that is past."""
    return end if end > now else just_after(now)


def seen_work(work: WorkState) -> WorkState:
    """Return a job without what only its end will tell: it runs the time that it is planned with."""
    if work.spec is None and work.past is None:
        return work._replace(duration=None, outcome="completed")
    spec, past = work.spec, work.past
    if spec is not None:
        spec = attrs.evolve(spec, run=work.expected, body=None, cancel=None)
    if past is not None and past.whole is not None:
        past = past._replace(whole=past.whole._replace(duration=None))
    return work._replace(duration=None, outcome="completed", spec=spec, past=past)


def expected_plans(planned: Iterable[Planned], platform: ClusterSpec, now: float, *, actual: bool) -> list[Planned]:
    """Return what is known to come: windows, the return of what is away, think times, and the policy's own alarms.

    What failed by chance is expected back after the mean time to repair, and fails no more. ``actual``: also the ends
    of what runs.
    """
    plans = list(planned)
    later = {each.about[0] for each in plans if each.what == "down"}  # outages that nobody knows of yet
    known = [each for each in plans if actual and each.what == "end"]
    for each in plans:
        if each.what in _UNKNOWN or (each.what == "up" and each.about[0] in later):
            continue
        if each.what == "repair":
            model = platform.failures[each.about[0]]
            each = each._replace(at=now + model.mean_time_to_repair, what="back")
        known.append(each)
    return sorted(known, key=_WHEN)


class JobsSnapshot(Snapshot):
    """What the snapshots of systems that run jobs share: which jobs they hold."""

    running: tuple[RunningWork, ...]
    waiting: tuple[WorkState, ...]
    arrivals: tuple[WorkState, ...]

    @property
    def works(self) -> Iterator[WorkState]:
        """What has been submitted and is not over: what runs, then what waits."""
        yield from (run.work for run in self.running)
        yield from self.waiting

    @property
    def ids(self) -> list[int | str]:
        """The ids of the jobs that have been submitted and are not over."""
        return [work.id for work in self.works]

    @property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the jobs that run, each with its start (s)."""
        return {(run.work.id, run.started) for run in self.running}

    @property
    def tally(self) -> tuple[int, int]:
        """How many jobs run and how many wait."""
        return len(self.running), len(self.waiting)

    @property
    def unfinished(self) -> int:
        """How many jobs it holds, those still to arrive included."""
        return sum(1 for _ in self.works) + len(self.arrivals)
