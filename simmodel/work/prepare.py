"""From the columns of a log to jobs that can be simulated: repairs and rejections, with reasons."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeVar

import attrs
import numpy as np

from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Estimates", "Overrun", "Prepared", "planned_seconds", "prepare"]

Estimates = Literal["requested", "exact", "cqsim"]
Overrun = Literal["stop", "continue"]
Seconds = TypeVar("Seconds", float, "NDArray[np.float64]")


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
    workload: Workload, capacity: int | None, estimates: Estimates = "requested", overrun: Overrun = "stop"
) -> Prepared:
    """Return the jobs of a workload as simulated.

    Rejected, never run: jobs with a missing run time (nan or negative), a missing instant of submission, no
    processors, or more than ``capacity`` processors (``None``: no limit). Repaired: missing requested processors (the
    allocated ones are used), missing requested times (the run time is used), submissions out of order.

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
        ("larger than the machine", processors > (2**62 if capacity is None else capacity)),
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
        _count(report.repaired, "requested time missing: run time used", missing & ~bad)
    waiting, expected, duration = planned_seconds(run, requested, estimates, overrun)
    rows = np.flatnonzero(~bad)
    ordered = submit[rows]
    late = ordered[1:] < ordered[:-1]
    if late.any():
        _count(report.repaired, "submissions out of order: sorted", late)
        rows = rows[np.argsort(ordered, kind="stable")]
    return Prepared(
        rows,
        submit,
        waiting,
        expected,
        duration,
        processors,
        run > requested if overrun == "stop" else np.zeros(len(run), bool),
        rejected,
        report,
    )


def _count(counts: Counter[str], reason: str, mask: NDArray[np.bool_]) -> None:
    number = int(mask.sum())
    if number:
        counts[reason] += number
