"""The states of jobs, places and planned events in snapshots, the parts that a what-if may see, and small systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, repeat
from math import inf, nextafter
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar

import attrs
import numpy as np

from simmodel.foundation.display import Fields
from simmodel.platform.cluster import ClusterSpec
from simmodel.records.job_record import OF_REQUESTS, join
from simmodel.resources.pools.allocation import Allocation
from simmodel.resources.pools.sleeping import SleepState
from simmodel.snapshots.snapshot import Snapshot
from simmodel.snapshots.types import Columns, Count, Instant, Like, Rest, Seconds, Size, one_of
from simmodel.work.checkpoint import Kept
from simmodel.work.elastic import Elastic
from simmodel.work.history import AtLevel
from simmodel.work.job import Job
from simmodel.work.outcomes import OUTCOMES

__all__ = [
    "Choice",
    "JobSystemSnapshot",
    "JobsSnapshot",
    "Pace",
    "Past",
    "PlaceState",
    "Planned",
    "RunningWork",
    "Wait",
    "Whole",
    "WindowState",
    "WorkState",
    "elastic_of",
    "expected_end",
    "expected_plans",
    "just_after",
    "rows_of",
    "seen_running",
    "seen_work",
    "seen_works",
]


Row = TypeVar("Row", bound=tuple[Any, ...])


class Whole(NamedTuple):
    """The times (s) of a job before a part of it was done: requested, expected and, if known, actual."""

    requested: Seconds
    expected: Seconds
    duration: Seconds | None


class Past(NamedTuple):
    """The history of a job that was blocked or whose execution was stopped.

    ``attempts`` before the present one; ``eligible``, ``first_start`` (of a restarted job), ``attempt_start`` (of a job
    suspended since) and ``last_start`` in s; ``executed``: seconds of work that was kept; ``whole``: its times before
    it was suspended or continued from a checkpoint; ``resumes``: the parts of nodes on which it resumes, ``True`` if
    nodes are not identified, ``None`` if it restarts; ``bound``: the part of the host on which a broker wants it to
    run; ``kept``: the totals of its checkpoints; ``done``: the share of a job with traffic that was done before;
    ``interruptions``: how often it was stopped; ``waited``, ``paused``, ``lost`` and ``overhead``: the seconds that it
    waited again, was suspended, executed in vain, and spent on restarts and on saves that were broken off; ``stopped``:
    the instant (s) since which it waits again or is suspended; ``level``: that at which it runs.
    """

    attempts: Count = 0
    eligible: Instant | None = None
    first_start: Instant | None = None
    attempt_start: Instant | None = None
    last_start: Instant | None = None
    executed: Seconds = 0.0
    whole: Whole | None = None
    resumes: Allocation | bool | None = None
    bound: Allocation | None = None
    kept: Kept | None = None
    done: Seconds = 0.0
    interruptions: Count = 0
    waited: Seconds = 0.0
    paused: Seconds = 0.0
    lost: Seconds = 0.0
    overhead: Seconds = 0.0
    stopped: Instant | None = None
    level: AtLevel | None = None


class WorkState(NamedTuple):
    """The state of a job in a snapshot.

    ``requested``: the planned time (s) while it waits; ``expected``: the planned time once it runs; ``duration``: the
    actual run time, if known; ``number``: its position in the order of submission; ``priority`` includes that of its
    queue and partition; ``spec``: the job as submitted, if it has more than these fields; ``elastic``: its
    sizes, unless its spec has them; ``unrequested``: whether it has no requested time, but is planned with another.
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
    outcome: Annotated[str, one_of(*OUTCOMES, "withdrawn")] = "completed"
    spec: Job | None = None
    past: Past | None = None
    elastic: Elastic | None = None
    unrequested: bool = False


class Pace(NamedTuple):
    """How far a running job with traffic is: ``left`` of it (of 1) at the instant ``since`` (s), and its rate (1/s)."""

    left: float
    since: Instant
    rate: float


class RunningWork(NamedTuple):
    """A running job: its start, its expected end and, only in snapshots of simulations, its actual end (s).

    ``held``: the parts of nodes that it holds, if nodes are identified; ``attempt``: from 1; ``released``: its
    processors are free already, although its end is still an event of this instant; ``pace``: if it has traffic, and
    its end is known. ``boots``: whether it holds nodes that boot, from ``started`` on; ``boots_at``: the size at which
    an elastic job starts then, if that is not the one it prefers.
    """

    work: WorkState
    started: Instant
    expected_end: float
    end: float | None = None
    held: Allocation | None = None
    attempt: Size = 1
    released: bool = False
    pace: Pace | None = None
    boots: bool = False
    boots_at: Size | None = None

    @property
    def id(self) -> int | str:
        return self.work.id

    @property
    def place(self) -> str:
        """The name of the place where it runs."""
        return self.work.place

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The numbers of its nodes; ``None`` if nodes are not identified."""
        return None if self.held is None else tuple(self.held.nodes.tolist())


class WindowState(NamedTuple):
    """A window in which part of a place is unavailable: start and end (s), the part, whether it has begun, why."""

    start: Instant
    end: float
    what: Count | tuple[Count, ...]
    begun: bool
    why: str


@attrs.frozen(repr=False)
class PlaceState(Fields):
    """The unavailable parts of a place: ``down`` processors or ((node, number of reasons), ...), and its windows.

    ``open``: for a reservation, whether failures of its partition affect it too; ``pending``: whether bodies still hold
    the part that it gets (``"open"``) or gives back (``"return"``). ``size``: the number of processors after a resize,
    or the nodes that left. ``drained``: the part of ``down`` that ``take_down`` took. ``sleep``: the nodes that sleep
    and boot, of nodes that can.
    """

    name: str
    down: Count | tuple[tuple[Count, Size], ...] = 0
    windows: tuple[WindowState, ...] = ()
    open: bool = False
    pending: Annotated[str, one_of("", "open", "return")] = ""
    size: Count | tuple[Count, ...] | None = None
    drained: Count | tuple[tuple[Count, Size], ...] = 0
    sleep: SleepState | None = None


class Wait(NamedTuple):
    """A pending dependency: the other job, the awaited event, the blocked job's number, the dependency's index."""

    other: int | str
    what: Annotated[str, one_of("start", "end")]
    number: int
    which: Count


class Choice(NamedTuple):
    """The number of a job that waits for several places, and their names in order of preference."""

    number: int
    places: tuple[str, ...]


class Planned(NamedTuple):
    """A planned event at an instant (s); ties of instant and priority keep the order of the snapshot's list."""

    at: float
    priority: float
    what: str
    about: Rest[tuple[Any, ...]] = ()


_WHEN = attrgetter("at", "priority")
_UNKNOWN = ("end", "arrivals", "submission", "cancel", "down", "fail")  # kinds of planned events hidden from a what-if


def just_after(instant: float) -> float:
    """Return the next representable instant (s)."""
    return nextafter(instant, inf)


def expected_end(now: float, end: float) -> float:
    """Return the expected end (s) as of now: just after now if it is past."""
    return end if end > now else just_after(now)


def seen_work(work: WorkState) -> WorkState:
    """Return a job without its actual run time and outcome: it runs for its planned time."""
    if work.spec is None and work.past is None:
        return work._replace(duration=None, outcome="completed")
    spec, past = work.spec, work.past
    saved = 0.0 if past is None or past.kept is None else past.kept.saved
    if spec is not None and not spec.is_seen(work.expected, saved):
        spec = spec.as_seen(work.expected, saved)
    elif work.duration is None and work.outcome == "completed" and past is None:
        return work  # it was seen before
    if past is not None and past.whole is not None:
        past = past._replace(whole=past.whole._replace(duration=None))
        if past.level is not None:
            past = past._replace(level=past.level._replace(outcome="completed", over=0.0))
    return work._replace(duration=None, outcome="completed", spec=spec, past=past)


def seen_works(works: Sequence[WorkState]) -> tuple[WorkState, ...]:
    """Return jobs as :func:`seen_work` does; column by column, which is four times as fast, if they are plain."""
    if not works:
        return ()
    count = len(works)
    columns: Any = WorkState._make(zip(*works, strict=True))
    if columns.spec.count(None) < count or columns.past.count(None) < count:
        return tuple(map(seen_work, works))
    return rows_of(WorkState, columns._replace(duration=repeat(None, count), outcome=repeat("completed", count)))


def seen_running(running: Sequence[RunningWork]) -> tuple[RunningWork, ...]:
    """Return the running jobs that hold processors, without their actual run times, outcomes and ends."""
    if not running:
        return ()
    columns: Any = RunningWork._make(zip(*running, strict=True))
    if any(columns.released):
        return seen_running([run for run in running if not run.released])
    nothing = [None] * len(running)
    return rows_of(RunningWork, columns._replace(work=seen_works(columns.work), end=nothing, pace=nothing))


def rows_of(kind: type[Row], columns: Iterable[Iterable[Any]]) -> tuple[Row, ...]:
    """Return the rows of a ``NamedTuple`` class from its columns, without a call for each."""
    return tuple(map(tuple.__new__, repeat(kind), zip(*columns, strict=True)))


def expected_plans(planned: Iterable[Planned], platform: ClusterSpec, now: float, *, actual: bool) -> list[Planned]:
    """Return the planned events that are known in advance: windows, repairs, think times, and alarms of the policy.

    Parts that failed by chance return after the mean time to repair and do not fail again. With ``actual``, the ends
    of running jobs are included.
    """
    plans = list(planned)
    later = {each.about[0] for each in plans if each.what == "down"}  # outages still unknown
    known = [each for each in plans if actual and each.what == "end"]
    for each in plans:
        if each.what in _UNKNOWN or (each.what == "up" and each.about[0] in later):
            continue
        if each.what == "repair":
            model = platform.failures[each.about[0]]
            each = each._replace(at=now + model.mean_time_to_repair, what="back")
        elif each.what == "booted":
            each = each._replace(at=expected_end(now, each.about[1]))
        known.append(each)
    return sorted(known, key=_WHEN)


def _record_columns(works: Sequence[WorkState]) -> dict[str, Any]:
    """Return the columns of jobs for a recorder."""
    of: Any = WorkState._make(zip(*works, strict=True) if works else repeat((), len(WorkState._fields)))
    plain = not any(of.past)
    one_size = not (any(of.spec) or any(of.elastic))
    columns: dict[str, Any] = {
        "job": _names(of.id),
        "submit": np.array(of.submit, dtype=np.float64),
        "processors": np.array(of.processors if one_size else list(map(_preferred, works)), dtype=np.int64),
        "requested": np.array(of.requested if plain else list(map(_requested, works)), dtype=np.float64),
    }
    columns["requested"][np.array(of.unrequested, dtype=bool)] = np.nan
    optional: dict[str, Any] = {}
    if any(of.spec):
        for name, field in OF_REQUESTS.items():
            optional[name] = [None if spec is None else getattr(spec, field) for spec in of.spec]
        optional["exit_code"] = [None if spec is None else spec.exit_code for spec in of.spec]
    optional["user"] = of.user
    told = list(map(_outcome, works)) if any(of.spec) or of.outcome.count("completed") < len(works) else []
    if told.count("completed") < len(told):
        columns["outcome"] = told
    return columns | {name: _names(values) for name, values in optional.items() if values.count(None) < len(works)}


def _requested(work: WorkState) -> float:
    """Return the requested time; for a suspended job, that before suspension."""
    return work.requested if work.past is None or work.past.whole is None else work.past.whole[0]


def _outcome(work: WorkState) -> str:
    """Return how the run of a job ends by itself, as told; of a plain job that its limit cuts off it is not kept."""
    if work.spec is not None:
        return work.spec.outcome
    cut = work.outcome == "timeout" and work.duration == work.requested and not work.unrequested
    return "completed" if cut else work.outcome


def elastic_of(work: WorkState) -> Elastic | None:
    """Return the sizes between which a job may run; ``None``: it has one."""
    return work.elastic if work.spec is None else work.spec.elastic


def _preferred(work: WorkState) -> int:
    """Return the requested processors; for an elastic job, which may have another size, the preferred ones."""
    elastic = elastic_of(work)
    return work.processors if elastic is None else elastic.preferred


def _names(values: Sequence[Any]) -> Any:
    if set(map(type, values)) == {int}:
        return np.array(values)
    return join(np.zeros(0, dtype=np.int64), values)


class JobsSnapshot(Snapshot):
    """The common base of the snapshots of systems that run jobs."""

    running: tuple[RunningWork, ...]
    waiting: tuple[WorkState, ...]
    arrivals: tuple[WorkState, ...]

    @property
    def unrequested(self) -> tuple[int | str, ...]:
        """The ids of the jobs that have not ended and request no time."""
        return tuple(work.id for work in (*self.works, *self.arrivals) if work.unrequested)

    @property
    def works(self) -> Iterator[WorkState]:
        """The submitted jobs that have not ended: running jobs, then waiting jobs."""
        yield from (run.work for run in self.running)
        yield from self.waiting

    @cached_property
    def ids(self) -> list[int | str]:
        """The ids of the submitted jobs that have not ended."""
        return [work.id for work in self.works]

    @property
    def seconds(self) -> dict[int | str, float]:
        """The times (s) with which the submitted jobs that have not ended are planned, by id."""
        return {work.id: work.requested for work in self.works}

    @cached_property
    def begun(self) -> set[tuple[int | str, float]]:
        """The ids of the running jobs, each with its start (s)."""
        return {(run.work.id, run.started) for run in self.running}

    @cached_property
    def rows(self) -> dict[int, int]:
        """The rows of the record by number of the job: all jobs, including those to arrive, in order of submission."""
        return {work.number: row for row, work in enumerate(self._in_order)}

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns of these rows for a recorder, which all continuations share."""
        return _record_columns(self._in_order)

    @property
    def _in_order(self) -> list[WorkState]:
        return sorted(chain(self.works, self.arrivals), key=attrgetter("number"))

    @property
    def tally(self) -> tuple[int, int]:
        """The numbers of running and of waiting jobs."""
        return len(self.running), len(self.waiting)

    @property
    def unfinished(self) -> int:
        """The number of unfinished jobs, including those still to arrive."""
        return sum(1 for _ in self.works) + len(self.arrivals)


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class JobSystemSnapshot(JobsSnapshot):
    """A system of jobs at one instant, with the fields of all snapshots and those below.

    A kind of system derives its own attrs class, which names its ``system``, narrows the type of ``platform`` and adds
    its own fields.

    Parameters
    ----------
    platform
        the spec of the system
    running, waiting
        running jobs, in the order of their starts; waiting jobs, in order
    arrivals
        jobs still to be submitted
    """

    platform: Any
    running: Columns[RunningWork] = ()
    waiting: Columns[WorkState] = ()
    arrivals: Columns[WorkState] = ()

    def __repr__(self) -> str:
        running, waiting = self.tally
        return f"<{type(self).__name__} of {self.name} at {self.now:g} s: {running} running, {waiting} waiting>"

    def expected(self, *, actual: bool = False) -> JobSystemSnapshot:
        """Return the part that a what-if may see: no arrivals, and expected instead of actual run times."""
        parts: dict[str, Any] = {}
        if not actual:
            parts["running"] = seen_running(self.running)
            parts["waiting"] = seen_works(self.waiting)
        return attrs.evolve(self, arrivals=(), streams=(), seed=0, **parts)
