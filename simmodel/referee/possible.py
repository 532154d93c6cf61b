"""What no schedule can do: start before the submission or a dependency, or use more processors than there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from simmodel.referee.schedules import Fault, Schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["impossible"]


def impossible(schedule: Schedule, processors: int, tolerance: float = 0.0) -> Iterator[Fault]:
    """Yield what is impossible in a schedule on so many processors, up to a number of seconds.

    Processors that are released at an instant can be used at this instant.

    >>> from simmodel.referee.schedules import schedule_of
    >>> from simmodel import Workload
    >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]})
    >>> [fault.text for fault in impossible(schedule_of(log, {1: 0, 2: 9}), 4)]
    ['8 of 4 processors are used from 9 s on, when job 2 starts']
    >>> [fault.kind for fault in impossible(schedule_of(log, {1: 0, 2: 4}), 8)]
    ['start before submission']
    """
    workload, start, end = schedule.workload, schedule.start, schedule.end
    jobs, submit = workload["job"].tolist(), workload["submit"].astype(np.float64)
    size = _processors(schedule)
    for row in np.flatnonzero(start < submit - tolerance).tolist():
        text = f"job {jobs[row]} starts at {start[row]:.10g} s, before its submission at {submit[row]:.10g} s"
        yield Fault("start before submission", jobs[row], float(start[row]), text)
    yield from _dependencies(schedule, tolerance)
    for row in np.flatnonzero(size > processors).tolist():
        text = f"job {jobs[row]} uses {size[row]} processors of {processors}"
        yield Fault("larger than the machine", jobs[row], float(start[row]), text)
    yield from _oversubscribed(jobs, size, start, end, processors, tolerance)


def _processors(schedule: Schedule) -> NDArray[np.int64]:
    workload = schedule.workload
    asked = workload.get("requested_processors", -1).astype(np.int64)
    return np.where(asked > 0, asked, workload["processors"].astype(np.int64))


def _oversubscribed(
    jobs: list[int | str],
    size: NDArray[np.int64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    processors: int,
    tolerance: float,
) -> Iterator[Fault]:
    """Yield the starts at which more processors are used than there are, the first of each excess."""
    rows = np.flatnonzero((end - start > 2 * tolerance) & (size <= processors))
    times = np.concatenate((end[rows] - tolerance, start[rows] + tolerance))
    change = np.concatenate((-size[rows], size[rows]))
    order = np.lexsort((change > 0, times))  # ends before starts
    used = np.cumsum(change[order])
    over = used > processors
    first = over & ~np.concatenate(([False], over[:-1]))
    for at in np.flatnonzero(first).tolist():
        job = jobs[int(rows[order[at] % len(rows)])]
        when = float(times[order[at]]) - tolerance
        text = f"{used[at]} of {processors} processors are used from {when:.10g} s on, when job {job} starts"
        yield Fault("too many processors", job, when, text)


def _dependencies(schedule: Schedule, tolerance: float) -> Iterator[Fault]:
    specs = schedule.workload.specs
    jobs = schedule.workload["job"].tolist()
    when = {str(job): (at, end) for job, at, end in zip(jobs, schedule.start, schedule.end, strict=True)}
    preceding = schedule.workload.get("preceding", -1).tolist()
    think = np.nan_to_num(schedule.workload.get("think_time", 0.0).astype(np.float64))
    for row, job in enumerate(jobs):
        waits = (
            [(preceding[row], "end", max(0.0, float(think[row])))] if preceding[row] not in (-1, 0, "", None) else []
        )
        if specs is not None:
            waits += [(each.job, each.after, each.think_time) for each in specs[row].dependencies]
        for other, after, seconds in waits:
            known = when.get(str(other))
            if known is None:
                continue
            ready = (known[0] if after == "start" else known[1]) + seconds
            if schedule.start[row] < ready - tolerance:
                text = (
                    f"job {job} starts at {schedule.start[row]:.10g} s, before it may: job {other}, "
                    f"for whose {'start' if after == 'start' else 'end'} it waits, allows it from {ready:.10g} s on"
                )
                yield Fault("start before a dependency", job, float(schedule.start[row]), text)
