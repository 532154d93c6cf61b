"""What a what-if keeps of a simulated future, of systems that run jobs and of those that run tasks."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simmodel.futures.outcomes import Sample, Starting
from simmodel.scheduling.objectives import measure
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.snapshots.snapshot import Snapshot

__all__ = ["Recorded", "sample_of"]

Name = int | str
_COLUMNS = ("submit", "start", "end", "processors", "requested", "status")
_NEVER = ("rejected", "unsubmitted", "cancelled")


class Recorded(Protocol):
    """A result of jobs or of tasks, asked for what both have."""

    def outcomes(self) -> Table:
        """Return one row a piece of work."""
        ...

    def executions(self) -> Table:
        """Return one row an execution."""
        ...

    def used(self, begin: float, end: float) -> float:
        """Return the processor seconds that work held."""
        ...

    def room(self, begin: float, end: float) -> float:
        """Return the processor seconds that there were."""
        ...


def sample_of(
    snapshot: Snapshot, result: Recorded, *, until: float = inf, seed: int = 0, came: Sequence[Name] = (), keep: bool
) -> Sample:
    """Return what a what-if keeps of the future of a snapshot.

    Parameters
    ----------
    snapshot, result
        where the future began; what happened in it
    until
        s; the instant at which it was stopped
    seed
        of the sample
    came
        ids of what arrived since the snapshot
    keep
        whether to keep the whole result

    >>> from simmodel import Job, simulate, start
    >>> snapshot = start(4, [Job(processors=3, run=10), Job(id="b", processors=2, run=5)]).run(until=1).snapshot()
    >>> sample = sample_of(snapshot, simulate(snapshot), keep=False)
    >>> sample.starts, sample.jobs["waiting"].tolist(), sample.ended
    ((Starting(job='b', place='batch', at=10.0),), [True], 15.0)
    """
    now, before, ids = float(snapshot.now), snapshot.begun, snapshot.ids
    begun = {name for name, _ in before}
    work = result.outcomes()
    given = [*ids, *came]
    names = _as_given(work["work"], given)
    waited = set(ids)
    inside = ~(np.array([name in begun for name in names], dtype=bool) & (work["start"] <= now))
    inside &= ~np.isin(work["status"], _NEVER)
    inside &= ~(work["submit"] > until)
    column = np.array(names, dtype=object if any(isinstance(name, str) for name in names) else None)
    waiting = np.array([name in waited for name in names], dtype=bool)
    own = Table({"job": column, **{name: work[name] for name in _COLUMNS}, "waiting": waiting}).where(inside)
    since = work["since"][inside]
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
    starts = tuple(each for each in _starts(result, now, given) if (each.job, each.at) not in before)
    return Sample(
        jobs=own,
        starts=starts,
        now=tuple(each for each in starts if each.at == now),
        measures=measures,
        unstarted=int((~started).sum()),
        ended=ended,
        seed=seed,
        result=result if keep else None,
    )


def _as_given(column: NDArray[np.generic], given: Sequence[Name]) -> list[Name]:
    """Return the names in a column as they were given: numbers, or texts."""
    if column.dtype.kind in "iu":
        return list(column.tolist())
    names = {str(name): name for name in given}
    return [names[str(name)] for name in column.tolist()]


def _starts(result: Recorded, now: float, given: Sequence[Name]) -> list[Starting]:
    """Return what starts from an instant (s) on, in order."""
    runs = result.executions()
    starts = runs["start"]
    rows = np.flatnonzero(starts >= now)
    rows = rows[np.argsort(starts[rows], kind="stable")]
    columns = (_as_given(runs["work"][rows], given), runs["place"][rows].tolist(), starts[rows].tolist())
    return [Starting(*each) for each in zip(*columns, strict=True)]
