"""Outcomes of a what-if: the simulated futures of each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import inf, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown, counted
from simmodel.futures.branches import Branch
from simmodel.metrics.statistics import Interval, mean_interval
from simmodel.scheduling.objectives import MEASURES, measure
from simmodel.snapshots.jobs import rows_of
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["Outcome", "Recorded", "Sample", "Starting", "sample_of"]


class Starting(NamedTuple):
    """The start of a job, by id, at a place, by name, at an instant (s)."""

    job: int | str
    place: str
    at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sample(Shown):
    """One simulated future.

    Attributes
    ----------
    jobs
        jobs that waited or arrived: ``job, submit, start, end, processors, requested, status`` and ``waiting``, whether
        it waited at the snapshot; times in s, nan if not reached by the end of the simulation
    starts
        the starts, in order
    measures
        measures of these jobs (:data:`~simmodel.scheduling.objectives.MEASURES`); utilisation covers all running jobs.
        A job that has not started by the horizon counts as if it started then; without a horizon it does not count
    unstarted
        number of jobs that have not started by the end
    ended
        the last simulated instant, s
    seed
        seed of the sample
    result
        the complete result, if ``what_if`` keeps results
    """

    jobs: Table
    starts: tuple[Starting, ...]
    measures: dict[str, float]
    unstarted: int
    ended: float
    seed: int
    now: tuple[Starting, ...]
    """The starts at the instant of the snapshot."""
    result: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether the same jobs have the same times; results and seeds are not compared."""
        if not isinstance(other, Sample):
            return NotImplemented
        return (
            self.starts == other.starts
            and self.ended == other.ended
            and self.jobs.names == other.jobs.names
            and all(_same(self.jobs[name], other.jobs[name]) for name in self.jobs.names)
        )

    __hash__ = None  # type: ignore[assignment]

    def _cells(self) -> Cells:
        rows = [[name, f"{value:.6g}"] for name, value in self.measures.items()]
        return [["measure", "value"], *rows, ["unstarted", str(self.unstarted)]]

    def __repr__(self) -> str:
        return f"<Sample: {counted(len(self.jobs), 'job')}, {len(self.now)} start now, ended at {self.ended:g} s>"


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    if one.dtype.kind == "f":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


@attrs.frozen(kw_only=True, repr=False)
class Outcome(Shown):
    """The outcome of one policy or branch.

    Attributes
    ----------
    name, branch
        its label, and the branch that was tried
    status
        ``"finished"``, ``"unfinished"`` by the deadline, or ``"failed"``
    reason
        why it is not finished
    samples
        the futures in order; ``None`` for one that is not finished
    scores
        one score per counted sample, by the objective, relative to the other policies on that sample; lower is better
    counted
        the indices of the samples that count: those that all compared policies have
    seconds
        wall-clock time (s) of the simulations
    """

    name: str
    branch: Branch
    status: Literal["finished", "unfinished", "failed"]
    reason: str = ""
    samples: tuple[Sample | None, ...] = ()
    scores: tuple[float, ...] = ()
    counted: tuple[int, ...] = ()
    seconds: float = attrs.field(default=0.0, eq=False)

    @property
    def first(self) -> Sample | None:
        """The first counted future, else the first finished one, or ``None``."""
        order = [*self.counted, *range(len(self.samples))]
        return next((each for each in (self.samples[i] for i in order) if each is not None), None)

    @property
    def starts(self) -> tuple[Starting, ...]:
        """The starts of its first future, in order."""
        return () if self.first is None else self.first.starts

    @property
    def now(self) -> tuple[Starting, ...]:
        """The starts at the instant of the snapshot: the decisions of the policy."""
        return () if self.first is None else self.first.now

    @property
    def score(self) -> float:
        """The mean of its scores; nan if it has none."""
        return float(np.mean(self.scores)) if self.scores else nan

    @property
    def unstarted(self) -> float:
        """The mean number of jobs that have not started by the end."""
        found = self.values("unstarted")
        return float(found.mean()) if len(found) else nan

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the counted samples."""
        if not self.counted:
            return dict.fromkeys(MEASURES, nan)
        return {name: float(self.values(name).mean()) for name in MEASURES}

    def values(self, name: str = "score") -> Any:
        """Return a measure, ``unstarted`` or ``score`` of each counted sample, an array of shape (samples,)."""
        if name == "score":
            return np.array(self.scores, dtype=np.float64)
        counted = [sample for sample in (self.samples[i] for i in self.counted) if sample is not None]
        if name == "unstarted":
            return np.array([sample.unstarted for sample in counted], dtype=np.float64)
        if name not in MEASURES:
            raise KeyError(f"unknown measure {name!r}; known measures: score, unstarted, {', '.join(MEASURES)}")
        return np.array([sample.measures[name] for sample in counted], dtype=np.float64)

    def interval(self, name: str = "score", level: float = 0.95) -> Interval:
        """Return the mean of a measure over the counted samples with its confidence interval.

        Raises
        ------
        ValueError
            if fewer than two samples count
        """
        return mean_interval(self.values(name), level)

    def _cells(self) -> Cells:
        if not self.counted:
            return [["status", self.status], ["reason", self.reason]]
        rows = [[name, f"{value:.6g}"] for name, value in self.measures.items()]
        return [["measure", "value"], ["score", f"{self.score:.6g}"], *rows, ["unstarted", f"{self.unstarted:g}"]]

    def __repr__(self) -> str:
        return f"<Outcome {self.name}: {self.status}, {len(self.now)} start now>"


# ---------------------------------------------------------------------- samples


Name = int | str
_COLUMNS = ("submit", "start", "end", "processors", "requested", "status")
_NEVER = ("rejected", "unsubmitted", "cancelled")


class Recorded(Protocol):
    """The common interface of results of jobs and of tasks."""

    def outcomes(self) -> Table:
        """Return one row per job or task."""
        ...

    def executions(self) -> Table:
        """Return one row per execution."""
        ...

    def used(self, begin: float, end: float) -> float:
        """Return the processor seconds held by work."""
        ...

    def room(self, begin: float, end: float) -> float:
        """Return the processor seconds available."""
        ...


def sample_of(
    snapshot: Snapshot,
    result: Recorded,
    *,
    until: float = inf,
    seed: int = 0,
    came: Mapping[Name, float] = MappingProxyType({}),
    keep: bool,
) -> Sample:
    """Return the sample of a simulated future of a snapshot.

    Parameters
    ----------
    snapshot, result
        the start of the future, and its result
    until
        the instant (s) at which the simulation was stopped
    seed
        seed of the sample
    came
        run times (s) of jobs that arrived since the snapshot, by id
    keep
        whether to keep the complete result

    >>> from simmodel import Job, simulate, start
    >>> snapshot = start(4, [Job(processors=3, run=10), Job(id="b", processors=2, run=5)]).run(until=1).snapshot()
    >>> sample = sample_of(snapshot, simulate(snapshot), keep=False)
    >>> sample.starts, sample.jobs["waiting"].tolist(), sample.ended
    ((Starting(job='b', place='batch', at=10.0),), [True], 15.0)
    """
    now, before, ids = float(snapshot.now), snapshot.begun, snapshot.ids
    work = result.outcomes()
    given = [*ids, *came]
    names = _as_given(work["work"], given)
    begun = np.fromiter(map({name for name, _ in before}.__contains__, names), dtype=bool, count=len(names))
    waiting = np.fromiter(map(set(ids).__contains__, names), dtype=bool, count=len(names))
    inside = ~(begun & (work["start"] <= now))
    inside &= ~np.isin(work["status"], _NEVER)
    inside &= ~(work["submit"] > until)
    column = np.array(names, dtype=object if str in set(map(type, names)) else None)
    own = Table({"job": column, **{name: work[name] for name in _COLUMNS}, "waiting": waiting}).where(inside)
    since = work["since"][inside]
    if np.isnan(own["requested"]).any():  # jobs without a requested time
        planned = {**snapshot.seconds, **came}
        known = [planned.get(name, nan) for name, kept in zip(names, inside.tolist(), strict=True) if kept]
        own = own.with_columns(requested=np.where(np.isnan(own["requested"]), known, own["requested"]))
    started = np.isfinite(own["start"])
    run = np.where(started & np.isfinite(own["end"]), own["end"] - own["start"], own["requested"])
    counts = (started | (until < inf)) & np.isfinite(since)
    ended = until if until < inf else float(np.nanmax(np.append(work["end"], now)))
    room = result.room(now, ended) if ended > now else 0.0
    measures = measure(
        since[counts],
        own["start"][counts],
        run[counts],
        until=ended,
        busy=result.used(now, ended) / room if room else nan,
    )
    starts = _starts(result, now, given)
    at_once = tuple(takewhile(lambda each: each.at == now, starts))
    begun_now = tuple(each for each in at_once if (each.job, each.at) not in before)
    return Sample(
        jobs=own,
        starts=begun_now + starts[len(at_once) :],
        now=begun_now,
        measures=measures,
        unstarted=int((~started).sum()),
        ended=ended,
        seed=seed,
        result=result if keep else None,
    )


def _as_given(column: NDArray[np.generic], given: Sequence[Name]) -> list[Name]:
    """Return the names in a column in their original type: numbers or strings."""
    if column.dtype.kind in "iu":
        return list(column.tolist())
    names = {str(name): name for name in given}
    return [names[str(name)] for name in column.tolist()]


def _starts(result: Recorded, now: float, given: Sequence[Name]) -> tuple[Starting, ...]:
    """Return the starts from an instant (s) on, in order."""
    runs = result.executions()
    starts = runs["start"]
    rows = np.flatnonzero(starts >= now)
    rows = rows[np.argsort(starts[rows], kind="stable")]
    columns = (_as_given(runs["work"][rows], given), runs["place"][rows].tolist(), starts[rows].tolist())
    return rows_of(Starting, columns)
