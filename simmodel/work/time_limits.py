"""Jobs that request more time than they may: cut to the limit, or split into parts that follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.work.outcomes import outcomes_in
from simmodel.work.request import Dependency, Job
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TooLong", "within_limits"]

TooLong: TypeAlias = Literal["reject", "cut", "split"]
"""What becomes of jobs that request more time than they may, as ``within_limits`` explains."""
_WAYS = ("reject", "cut", "split")


def within_limits(workload: Workload, limits: NDArray[np.float64], too_long: TooLong) -> Workload:
    """Return the jobs, of which none requests more time than it may; its report counts those that are changed.

    Parameters
    ----------
    workload
        the jobs; of one without a requested time, the run time counts
    limits
        of each job (s); infinite: none
    too_long
        ``"reject"``: they stay as they are, and a cluster rejects them. ``"cut"``: they request the limit, and time out
        there if they run longer. ``"split"``: each becomes parts, as of a user who continues from a checkpoint at no
        cost: a part waits for the end of the one before, and runs to the limit, the last one for the rest. The last
        part has the name of the job, and jobs that depend on it wait for that

    Raises
    ------
    InputError
        ``too_long`` is none of these

    >>> log = Workload({"submit": [0, 5], "run": [25, 8], "requested": [40, 8], "processors": [1, 2]})
    >>> within_limits(log, np.array([10, 10]), "cut")["run"].tolist()
    [10.0, 8.0]
    >>> split = within_limits(log, np.array([10, 10]), "split")
    >>> split["job"].tolist(), split["run"].tolist(), split["preceding"].tolist()
    ([3, 4, 1, 2], [10.0, 10.0, 5.0, 8.0], [-1, 3, 4, -1])
    """
    if too_long not in _WAYS:
        raise InputError(f"must be {' or '.join(map(repr, _WAYS))}, got {too_long!r}", place="too_long")
    run, requested = workload["run"], workload.get("requested", np.nan)
    asked = np.where(requested > 0, requested, run)
    long = asked > limits
    if too_long == "reject" or not long.any():
        return workload
    parts = np.ones(len(workload), dtype=np.int64)
    if too_long == "split":
        parts = np.where(long & np.isfinite(run), np.ceil(np.fmin(run, asked) / limits), 1).astype(np.int64)
        parts = np.maximum(parts, 1)
    if workload.specs is not None:
        specs = zip(workload.specs, long.tolist(), limits.tolist(), parts.tolist(), strict=True)
        jobs = [part for job, is_long, *how in specs for part in (_parts_of(job, *how) if is_long else [job])]
        new = Workload.from_jobs(jobs, name=workload.name, processors=workload.processors)
        new.files = workload.files
    else:
        new = _in_columns(workload, np.where(long, limits, np.inf), asked, parts)
    new.report = workload.report + Report()
    new.report.repaired[f"requested time above the limit: {too_long}"] += int(long.sum())
    if (parts > 1).any():
        new.report.note(
            f"jobs that run longer than their limit: {(parts > 1).sum():,}, in {parts[parts > 1].sum():,} parts"
        )
    return new


def _parts_of(job: Job, limit: float, count: int) -> list[Job]:
    """Return a job that requests more than its limit in parts, or cut to it."""
    asked = job.run if job.requested is None else job.requested
    assert asked is not None
    if count == 1:
        cut: dict[str, Any] = {"run": limit, "outcome": "timeout"} if job.run is not None and job.run > limit else {}
        return [attrs.evolve(job, requested=limit, **cut)]
    assert job.run is not None
    last = attrs.evolve(job, run=job.run - (count - 1) * limit, requested=min(limit, asked - (count - 1) * limit))
    parts = [
        attrs.evolve(job, id=f"{job.id}.{i}", run=limit, requested=limit, outcome="completed", exit_code=None)
        for i in range(1, count)
    ]
    names: list[Any] = [part.id for part in parts]
    return [
        part if i == 0 else attrs.evolve(part, dependencies=(Dependency(names[i - 1]),))
        for i, part in enumerate([*parts, last])
    ]


def _in_columns(
    log: Workload, limits: NDArray[np.float64], asked: NDArray[np.float64], parts: NDArray[np.int64]
) -> Workload:
    """Return the jobs of a log cut to finite limits, or in so many parts."""
    rows = np.repeat(np.arange(len(log)), parts)
    before = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)  # how many parts of the job
    new, limit, last = log.where(rows), limits[rows], before == parts[rows] - 1
    has_limit = np.isfinite(limit)
    done = np.where(has_limit, before * np.where(has_limit, limit, 0.0), 0.0)
    left = new["run"] - done
    cut = (parts[rows] == 1) & has_limit & (left > limit)
    columns: dict[str, Any] = {
        "run": np.where(cut | ~last, limit, left),
        "requested": np.where(has_limit, np.minimum(limit, asked[rows] - done), new.get("requested", np.nan)),
    }
    outcomes = outcomes_in(new.table)
    if outcomes is not None or cut.any():
        told = np.full(len(new), "completed", dtype="<U13") if outcomes is None else np.asarray(outcomes)
        columns["outcome"] = np.where(cut, "timeout", np.where(last, told, "completed"))
    if "exit_code" in new:
        columns["exit_code"] = np.where(last & ~cut, new["exit_code"], -1)
    if not last.all():
        columns |= _following(new, before, last)
    return new.replace(**columns)


def _following(new: Workload, before: NDArray[np.int64], last: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return the names of parts, and the part before each; the last one keeps the name of its job."""
    ids = new["job"]
    none: int | str = -1
    if ids.dtype.kind in "iu":
        ids = np.where(last, ids, ids.max() + np.cumsum(~last))
    else:
        names = [name if end else f"{name}.{i + 1}" for name, i, end in zip(ids, before, last, strict=True)]
        ids, none = np.array(names, dtype=object), ""
    preceding = new["preceding"] if "preceding" in new else np.full(len(new), none, dtype=ids.dtype)
    return {
        "job": ids,
        "preceding": np.where(before > 0, np.roll(ids, 1), preceding),
        "think_time": np.where(before > 0, 0.0, new.get("think_time", 0.0)),
    }
