"""Impossible schedules: starts before the submission or a dependency, and more processors in use than there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from simmodel.referee.on_nodes import allowed, impossible_on_nodes
from simmodel.referee.schedules import Fault, Schedule
from simmodel.work.rows import jobs_of_rows, processors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.work.job import Job
    from simmodel.work.workload import Workload

__all__ = ["impossible"]


def impossible(schedule: Schedule, spec: ClusterSpec, tolerance: float = 0.0) -> Iterator[Fault]:
    """Yield the faults that make a schedule impossible on a cluster, with a tolerance in seconds.

    Processors and parts of nodes that are released at an instant can be used at this instant. Processors are counted in
    the whole cluster and in each of several partitions, as far as it is known where jobs run; nodes are judged if the
    schedule names them (see :func:`~simmodel.referee.on_nodes.impossible_on_nodes`).

    >>> from simmodel.referee.schedules import schedule_of
    >>> from simmodel import Workload
    >>> from simmodel.platform import ClusterSpec
    >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]})
    >>> [fault.text for fault in impossible(schedule_of(log, {1: 0, 2: 9}), ClusterSpec.simple(4))]
    ['8 of 4 processors are used from 9 s on, when job 2 starts']
    >>> [fault.kind for fault in impossible(schedule_of(log, {1: 0, 2: 4}), ClusterSpec.simple(8))]
    ['start before submission']
    """
    workload, start = schedule.workload, schedule.start
    jobs, submit = workload["job"].tolist(), workload["submit"].astype(np.float64)
    size, _ = processors_of(workload.table)
    for row in np.flatnonzero(start < submit - tolerance).tolist():
        text = f"job {jobs[row]} starts at {start[row]:.10g} s, before its submission at {submit[row]:.10g} s"
        yield Fault("start before submission", jobs[row], float(start[row]), text)
    yield from _dependencies(schedule, tolerance)
    for row in np.flatnonzero(size > spec.processors).tolist():
        text = f"job {jobs[row]} uses {size[row]} processors of {spec.processors}"
        yield Fault("larger than the machine", jobs[row], float(start[row]), text)
    yield from _oversubscribed(schedule, size, spec.processors, tolerance)
    several = len(spec.partitions) > 1
    if not several and (schedule.held is None or not spec.partitions[0].nodes):
        return
    asked = _asked(workload, size)
    places = _places(schedule, spec, asked) if several else np.zeros(0)
    for part in spec.partitions if several else ():
        yield from _oversubscribed(schedule, size, part.capacity, tolerance, places == part.name, f" of {part.name}")
    yield from impossible_on_nodes(schedule, spec, asked, tolerance)


def _asked(workload: Workload, size: NDArray[np.int64]) -> dict[int, Job]:
    """Return the jobs that can run, by row."""
    if workload.specs is not None:
        return dict(enumerate(workload.specs))
    rows = np.flatnonzero((size > 0) & (workload["run"] >= 0) & np.isfinite(workload["submit"])).tolist()
    return dict(jobs_of_rows(workload.table, rows, size, Counter()))


def _places(schedule: Schedule, spec: ClusterSpec, asked: Mapping[int, Job]) -> NDArray[np.str_]:
    """Return the partition in which each job runs: as the schedule says, or the only one it asked for; else empty."""
    of_reservation = {each.name: spec.partition(each.partition).name for each in spec.reservations}
    places = []
    for row in range(len(schedule.start)):
        place = None if schedule.held is None else schedule.held[row].place
        wanted = allowed(spec, asked[row]) if row in asked and place is None else []
        place = wanted[0] if len(wanted) == 1 else place
        places.append(of_reservation.get(place, place) if place is not None else "")
    return np.array(places, dtype=str)


def _oversubscribed(
    schedule: Schedule,
    size: NDArray[np.int64],
    processors: int,
    tolerance: float,
    here: NDArray[np.bool_] | None = None,
    where: str = "",
) -> Iterator[Fault]:
    """Yield the starts at which some jobs use more processors than there are, the first of each excess."""
    jobs, start, end = schedule.workload["job"].tolist(), schedule.start, schedule.end
    counted = (end - start > 2 * tolerance) & (size <= processors)
    rows = np.flatnonzero(counted if here is None else counted & here)
    times = np.concatenate((end[rows] - tolerance, start[rows] + tolerance))
    change = np.concatenate((-size[rows], size[rows]))
    order = np.lexsort((change > 0, times))  # ends before starts
    used = np.cumsum(change[order])
    over = used > processors
    first = over & ~np.concatenate(([False], over[:-1]))
    for at in np.flatnonzero(first).tolist():
        job = jobs[int(rows[order[at] % len(rows)])]
        when = float(times[order[at]]) - tolerance
        text = f"{used[at]} of {processors} processors{where} are used from {when:.10g} s on, when job {job} starts"
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
