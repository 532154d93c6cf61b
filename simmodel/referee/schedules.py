"""Schedules of others, laid beside the workload that they claim to schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.display import Fields
from simmodel.errors import InputError, shown
from simmodel.formats.schedules import read_schedule
from simmodel.records.job_record import JobRecord
from simmodel.work.table import Table
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Fault", "GivenSchedule", "Schedule", "schedule_of"]

GivenSchedule: TypeAlias = "Workload | JobRecord | Table | Mapping[Any, Any] | str | Path | None"
"""A file, a result, columns, starts by job, or ``None`` for the starts that the workload itself records."""


class Fault(NamedTuple):
    """Something in a schedule that cannot be: its kind, the job, the instant (s), and a sentence."""

    kind: str
    job: int | str
    at: float
    text: str


@attrs.frozen(eq=False, repr=False)
class Schedule(Fields):
    """The jobs of a workload with the starts and ends of a schedule.

    Attributes
    ----------
    workload
        the jobs that are in both, each with the run time that it has in the schedule
    start, end
        s, one for each of its rows
    faults
        jobs that are missing, unknown or doubled
    notes
        sentences about what was done to lay the two beside each other
    """

    workload: Workload
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> dict[int | str, float]:
        """The start (s) by job."""
        return dict(zip(self.workload["job"].tolist(), self.start.tolist(), strict=True))


def schedule_of(workload: Workload, given: GivenSchedule) -> Schedule:
    """Return a schedule beside its workload.

    Parameters
    ----------
    workload
        the jobs
    given
        the schedule: a file (see :func:`~simmodel.formats.schedules.read_schedule`), a result, columns ``job``,
        ``start`` and optionally ``end``, or starts (s) by job. ``None``: the recorded waits of the workload

    Raises
    ------
    InputError
        the file cannot be read, the columns do not exist, or no job of the schedule is one of the workload

    >>> log = Workload({"submit": [0, 5], "run": [10, 10], "processors": [4, 4]})
    >>> schedule_of(log, {1: 0, 2: 10}).end
    array([10., 20.])
    >>> schedule_of(log, {1: 0}).faults
    (Fault(kind='missing job', job=2, at=5.0, text='job 2, submitted at 5 s, is not in the schedule'),)
    """
    jobs, start, end, submit = _columns(workload, given)
    faults: list[Fault] = []
    rows = {_name(job): row for row, job in reversed(list(enumerate(workload["job"].tolist())))}
    later = _shift(workload, rows, jobs, submit)
    notes = () if not later else (f"the times of the schedule are shifted by {later:.10g} s, as its submissions are",)
    start, end = start + later, end + later
    found: dict[int, tuple[float, float]] = {}
    for job, begin, over in zip(jobs, start.tolist(), end.tolist(), strict=True):
        row = rows.get(_name(job))
        if row is None:
            faults.append(Fault("unknown job", job, begin, f"job {shown(job)} is not in the workload"))
        elif row in found:
            faults.append(Fault("doubled job", job, begin, f"job {shown(job)} is in the schedule more than once"))
        elif begin == begin:
            found[row] = (begin, over)
    if not found:
        message = f"must be a schedule of {workload.name}, got {len(jobs)} jobs, none of which is in it"
        raise InputError(message if len(jobs) else "must have jobs, got none", place="schedule")
    faults += _missing(workload, found)
    order = sorted(found)
    begin, over = (np.array([found[row][which] for row in order], dtype=np.float64) for which in (0, 1))
    here = _as_scheduled(workload.where(np.array(order, dtype=np.intp)), begin, over)
    over = begin + here["run"]
    return Schedule(here, begin, over, tuple(faults), notes)


def _as_scheduled(workload: Workload, start: NDArray[np.float64], end: NDArray[np.float64]) -> Workload:
    """Return the jobs with the run times of the schedule; what they asked for stays, also if it was the run time."""
    run = workload["run"].astype(np.float64)
    made = np.maximum(0.0, np.where(np.isnan(end), run, end - start))
    requested = workload.get("requested", np.nan).astype(np.float64)
    requested = np.where(requested > 0, requested, run)
    asked = requested if workload.specs is None else [each if each > 0 else None for each in requested.tolist()]
    return workload.replace(run=made, requested=asked)


def _missing(workload: Workload, found: Mapping[int, object]) -> Iterator[Fault]:
    jobs, submit = workload["job"].tolist(), workload["submit"].tolist()
    run, processors = workload["run"].tolist(), workload["processors"].tolist()
    for row, job in enumerate(jobs):
        if row not in found and run[row] >= 0 and processors[row] > 0:
            text = f"job {job}, submitted at {submit[row]:g} s, is not in the schedule"
            yield Fault("missing job", job, submit[row], text)


def _name(job: object) -> str:
    """Return what a job is known by: a number and its text are the same."""
    return str(job)


def _shift(workload: Workload, rows: Mapping[str, int], jobs: list[Any], submit: NDArray[np.float64] | None) -> float:
    """Return the seconds by which the clock of a schedule is behind that of its workload, if all jobs agree."""
    if submit is None:
        return 0.0
    known = [(rows[_name(job)], at) for job, at in zip(jobs, submit.tolist(), strict=True) if _name(job) in rows]
    if not known:
        return 0.0
    behind = workload["submit"][[row for row, _ in known]] - np.array([at for _, at in known])
    alike = np.ptp(behind) <= 1e-6
    return float(behind[0]) if alike else 0.0


def _columns(
    workload: Workload, given: GivenSchedule
) -> tuple[list[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the jobs of a schedule with their starts, ends and, if it has them, submissions (s, nan: unknown)."""
    if isinstance(given, str | Path):
        given = read_schedule(given)
    elif isinstance(given, JobRecord):
        given = given.jobs
    if given is None:
        if np.isnan(workload.recorded_starts()).all():
            raise InputError("must be given: the workload has no recorded waits", place="schedule")
        given = workload
    if isinstance(given, Workload):
        start = given.recorded_starts()
        end = np.where(start == start, given.get("recorded_end", np.nan).astype(np.float64), np.nan)
        end = np.where(np.isfinite(end), end, start + given["run"].astype(np.float64))
        return given["job"].tolist(), start, end, None
    if isinstance(given, Table) or "start" in given:
        jobs = _cells(given, "job").tolist()
        start = _cells(given, "start").astype(np.float64)
        end = _cells(given, "end").astype(np.float64) if "end" in given else np.full(len(jobs), np.nan)
        submit = _cells(given, "submit").astype(np.float64) if "submit" in given else None
        return jobs, start, end, submit
    try:
        start = np.array(list(given.values()), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("must be starts (s) by job, or columns 'job' and 'start'", place="schedule") from None
    return list(given), start, np.full(len(start), np.nan), None


def _cells(columns: Mapping[str, Any] | Table, name: str) -> NDArray[Any]:
    if name not in columns:
        known = ", ".join(columns.names if isinstance(columns, Table) else map(str, columns))
        raise InputError(f"must have a column {name!r}, got {known}", place="schedule")
    return np.asarray(columns[name])
