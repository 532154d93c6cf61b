"""Samples: the part of a simulated future that a what-if keeps, for systems of jobs and of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import inf, nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.futures.outcomes import Sample, Starting
from simmodel.scheduling.objectives import measure
from simmodel.snapshots.jobs import rows_of
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["Recorded", "sample_of"]

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
