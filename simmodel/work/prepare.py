"""From the columns of a log to jobs that can be simulated: repairs and rejections, with reasons."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeVar

import attrs
import numpy as np

from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["REPEATED", "Estimates", "Overrun", "Prepared", "distinct_jobs", "planned_seconds", "prepare"]

Estimates = Literal["requested", "exact", "cqsim"]
Overrun = Literal["stop", "continue"]
Seconds = TypeVar("Seconds", float, "NDArray[np.float64]")


@attrs.frozen
class Stopped:
    """How many of the jobs are stopped at their requested time, and how much work (processor-s) is never done."""

    jobs: int = 0
    stopped: int = 0
    work: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, run: NDArray[np.float64], duration: NDArray[np.float64], processors: NDArray[np.int64]) -> Stopped:
        """Return the counts of these jobs."""
        finite = np.isfinite(run)
        cut = (duration < run) & finite
        lost = float(((run[cut] - duration[cut]) * processors[cut]).sum())
        work = float((run[finite] * processors[finite]).sum())
        return cls(len(run), int(cut.sum()), work, lost)

    def __add__(self, other: Stopped) -> Stopped:
        return Stopped(
            self.jobs + other.jobs, self.stopped + other.stopped, self.work + other.work, self.lost + other.lost
        )

    def note(self, report: Report) -> None:
        """Add a sentence to a report, if there are any."""
        if self.stopped:
            report.note(
                f"{self.stopped:,} of {self.jobs:,} jobs run longer than they request: stopped at their requested "
                f"time, without {100 * self.lost / self.work:.1f} % of all work (overrun='continue' lets them end)"
            )


@attrs.frozen
class Prepared:
    """Jobs as simulated: arrays with one entry per row of the workload, and the order of submission.

    Attributes
    ----------
    rows
        rows that can run, in order of (submit, row)
    submit, requested, expected, duration
        seconds: instant of submission; planned time while waiting; planned time while running; actual run time
    processors
        processors requested
    cut
        whether the job is stopped at its requested time
    rejected
        rows that never run, with the reason
    report
        counts of repairs and rejections
    stopped
        the jobs that are stopped at their requested time, of which the report has a note
    """

    rows: NDArray[np.intp]
    submit: NDArray[np.float64]
    requested: NDArray[np.float64]
    expected: NDArray[np.float64]
    duration: NDArray[np.float64]
    processors: NDArray[np.int64]
    cut: NDArray[np.bool_]
    rejected: dict[int, str]
    report: Report
    stopped: Stopped


def planned_seconds(
    run: Seconds, requested: Seconds, estimates: Estimates = "requested", overrun: Overrun = "stop"
) -> tuple[Seconds, Seconds, Seconds]:
    """Return the planned seconds of waiting jobs, the planned seconds of running jobs, and the actual run times.

    Parameters
    ----------
    run, requested
        seconds, numbers or arrays of one shape
    estimates
        ``"requested"``: the requested time plans both; ``"exact"``: the actual run time plans both; ``"cqsim"``: the
        actual run time plans waiting jobs, the requested time running ones
    overrun
        ``"stop"``: the actual run time is min(run, requested); ``"continue"``: it is ``run``

    >>> planned_seconds(50.0, 60.0, "cqsim")
    (np.float64(50.0), 60.0, np.float64(50.0))
    """
    duration = np.minimum(run, requested) if overrun == "stop" else run
    return (
        requested if estimates == "requested" else duration,
        duration if estimates == "exact" else requested,
        duration,
    )


def prepare(
    workload: Workload,
    capacity: int | None,
    estimates: Estimates = "requested",
    overrun: Overrun = "stop",
    *,
    too_large: str = "larger than the machine",
) -> Prepared:
    """Return the jobs of a workload as simulated.

    Rejected, never run: jobs with a missing run time (nan or negative), a missing instant of submission, no
    processors, or more than ``capacity`` processors (``None``: no limit; ``too_large``: the reason). Repaired: missing
    requested processors (the allocated ones are used), missing requested times (the run time is used), submissions out
    of order.

    >>> log = Workload({"submit": [0, 5, 3], "run": [10, -1, 7], "processors": [1, 1, 1]})
    >>> ready = prepare(log, 4)
    >>> ready.rows, ready.rejected
    (array([0, 2]), {1: 'run time missing'})
    """
    report = Report()
    submit, run = workload["submit"], workload["run"]
    allocated = np.asarray(workload["processors"], dtype=np.int64)
    processors = allocated
    if "requested_processors" in workload:
        asked = np.asarray(workload["requested_processors"], dtype=np.int64)
        missing = (asked <= 0) & (allocated > 0)
        processors = np.where(asked > 0, asked, allocated)
        _count(report.repaired, "requested processors missing: allocated ones used", missing)
    reasons = (
        ("run time missing", ~(run >= 0)),
        ("submission time missing", ~np.isfinite(submit)),
        ("no processors", processors <= 0),
        ("circular preceding jobs", _circular(workload)),
        (too_large, processors > (2**62 if capacity is None else capacity)),
    )
    rejected: dict[int, str] = {}
    bad = np.zeros(len(workload), dtype=bool)
    for reason, mask in reasons:
        new = mask & ~bad
        if new.any():
            rejected.update(dict.fromkeys(np.flatnonzero(new).tolist(), reason))
            _count(report.rejected, reason, new)
            bad |= mask
    requested = run
    if "requested" in workload:
        given = workload["requested"]
        missing = ~(given > 0)
        requested = np.where(missing, run, given)
        if workload.specs is None:  # a Job without one requests its run time
            _count(report.repaired, "requested time missing: run time used", missing & ~bad)
    waiting, expected, duration = planned_seconds(run, requested, estimates, overrun)
    rows = np.flatnonzero(~bad)
    ordered = submit[rows]
    late = ordered[1:] < ordered[:-1]
    if late.any():
        _count(report.repaired, "submissions out of order: sorted", late)
        rows = rows[np.argsort(ordered, kind="stable")]
    cut = run > requested if overrun == "stop" else np.zeros(len(run), bool)
    stopped = Stopped.of(run[rows], duration[rows], processors[rows])
    stopped.note(report)
    return Prepared(rows, submit, waiting, expected, duration, processors, cut, rejected, report, stopped)


def _circular(workload: Workload) -> NDArray[np.bool_]:
    """Return whether each job of a log precedes itself, directly or through the jobs that precede it.

    >>> same = {"submit": [0] * 3, "run": [1] * 3, "processors": [1] * 3}
    >>> _circular(Workload({"job": [1, 2, 3], **same, "preceding": [2, 1, 1]}))
    array([ True,  True, False])
    """
    circular = np.zeros(len(workload), dtype=bool)
    if "preceding" not in workload or "job" not in workload or workload.specs is not None:
        return circular
    if workload["preceding"].dtype.kind in "iu" and (workload["preceding"] == -1).all():
        return circular  # as in most logs
    jobs, before = workload["job"].tolist(), workload["preceding"].tolist()
    row_of = {job: row for row, job in enumerate(jobs)}
    ahead = {
        row: row_of[other] for row, other in enumerate(before) if other not in (-1, "", jobs[row]) and other in row_of
    }
    seen: set[int] = set()
    for first in ahead:
        path: dict[int, int] = {}
        row: int | None = first
        while row is not None and row not in seen:
            seen.add(row)
            path[row] = len(path)
            row = ahead.get(row)
        if row in path:
            circular[list(path)[path[row] :]] = True
    return circular


def _count(counts: Counter[str], reason: str, mask: NDArray[np.bool_]) -> None:
    number = int(mask.sum())
    if number:
        counts[reason] += number


_CHUNK = 1 << 20
REPEATED = "duplicate job id: a new one assigned"


def distinct_jobs(workload: Workload) -> tuple[Workload, int]:
    """Return a workload in which no job id occurs twice, and the number of jobs of a log that got a new one.

    >>> log = Workload({"job": [7, 8, 7], "submit": [0, 0, 0], "run": [1, 1, 1], "processors": [1, 1, 1]})
    >>> distinct, repaired = distinct_jobs(log)
    >>> distinct["job"], repaired
    (array([7, 8, 9]), 1)
    """
    ids = workload["job"]
    again = _repeated(ids)
    count = len(again)
    if workload.specs is not None or not count:
        return workload, 0
    renamed = ids.copy()
    if ids.dtype.kind in "iu":
        renamed[again] = int(ids.max()) + 1 + np.arange(count)
    else:
        taken = set(ids.tolist())
        renamed = renamed.astype(object)
        for row in again.tolist():
            number = 2
            while (name := f"{ids[row]}.{number}") in taken:
                number += 1
            taken.add(name)
            renamed[row] = name
    return workload.replace(job=renamed), count


def _repeated(ids: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the rows whose id occurred in an earlier row."""
    if ids.dtype.kind not in "iu":
        seen: set[object] = set()
        found_again = []
        for row, name in enumerate(ids.tolist()):
            if name in seen:
                found_again.append(row)
            seen.add(name)
        return np.array(found_again, dtype=np.intp)
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):  # type: ignore[operator]
        return np.zeros(0, dtype=np.intp)
    least, most = int(ids.min()), int(ids.max())
    if most - least > 64 * len(ids) + 1024:  # too sparse for a bit per number
        _, first = np.unique(ids, return_index=True)
        return np.setdiff1d(np.arange(len(ids)), first)
    met = np.zeros(most - least + 1, dtype=bool)
    found = []
    for begin in range(0, len(ids), _CHUNK):
        part = ids[begin : begin + _CHUNK].astype(np.int64) - least
        _, first = np.unique(part, return_index=True)
        new = np.zeros(len(part), dtype=bool)
        new[first] = ~met[part[first]]
        met[part] = True
        found.append(np.flatnonzero(~new) + begin)
    return np.concatenate(found)
