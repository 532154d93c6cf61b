"""Schedules of others, laid beside the workload that they claim to schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from simmodel.catalogue.formats import FORMATS, looks_like, read_file
from simmodel.formats.schedules import read_schedule
from simmodel.foundation.display import Fields, counted
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import held
from simmodel.records.job_record import JobRecord
from simmodel.work.outcomes import outcome_in
from simmodel.work.prepare import distinct_jobs
from simmodel.work.table import Table
from simmodel.work.workload import Report, Workload, cancelled_waiting

if TYPE_CHECKING:
    from numpy.typing import NDArray

MISFITS = ("missing job", "unknown job", "doubled job", "other submission", "start before submission")
"""The faults by which a schedule is not one of these jobs."""

__all__ = ["MISFITS", "Fault", "GivenSchedule", "Held", "Schedule", "schedule_of"]

GivenSchedule: TypeAlias = "Workload | JobRecord | Table | Mapping[Any, Any] | str | Path | None"
"""A file, a result, columns, starts by job, or ``None`` for the starts that the workload itself records."""


Devices: TypeAlias = tuple[tuple[int, int], ...]
"""The number and the thousandths of each device that is held of a node."""


class Fault(NamedTuple):
    """Something in a schedule that cannot be: its kind, the job, the instant (s), and a sentence."""

    kind: str
    job: int | str
    at: float
    text: str


class Held(NamedTuple):
    """Where a job runs: its partition and nodes, by name or number, as far as the schedule says.

    ``amounts``: the cores, GPUs and bytes that it holds of each node; ``devices``: of each node, the number and the
    thousandths of each device that it holds; ``None``: unknown.
    """

    place: str | None = None
    nodes: tuple[int | str, ...] = ()
    amounts: tuple[tuple[float, float, float], ...] | None = None
    devices: tuple[Devices, ...] | None = None


class _Given(NamedTuple):
    """The columns of a schedule: times in s, nan if unknown."""

    jobs: list[Any]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    submit: NDArray[np.float64] | None = None
    held: list[Held] | None = None
    words: list[str] | None = None


@attrs.frozen(eq=False, repr=False)
class Schedule(Fields):
    """The jobs of a workload with the starts and ends of a schedule.

    Attributes
    ----------
    workload
        the jobs that are in both, each with the run time that it has in the schedule
    everything
        these jobs, and those that waited and never started: they have no run time, and ``cancel`` is when they left (s)
    start, end
        s, one for each of the rows of ``workload``
    faults
        jobs that are missing, unknown, doubled, or submitted at another instant
    notes
        sentences about the steps that matched the two
    held
        where each job runs, if the schedule says so for any
    """

    workload: Workload
    everything: Workload
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()
    held: tuple[Held, ...] | None = None

    @property
    def starts(self) -> dict[int | str, float]:
        """The start (s) by job."""
        return dict(zip(self.workload["job"].tolist(), self.start.tolist(), strict=True))

    @property
    def places(self) -> dict[int | str, str]:
        """The partition by job, as far as the schedule says."""
        known = zip(self.workload["job"].tolist(), self.held or (), strict=self.held is not None)
        return {job: held.place for job, held in known if held.place is not None}


def schedule_of(workload: Workload, given: GivenSchedule) -> Schedule:
    """Return a schedule beside its workload.

    Parameters
    ----------
    workload
        the jobs
    given
        the schedule: a file (see :func:`~simmodel.formats.schedules.read_schedule`), a result, columns ``job``,
        ``start`` and optionally ``end``, ``status``, ``place`` (the partition) and ``nodes`` (tuples of numbers or
        names), or starts (s) by job. ``None``: the recorded waits of the workload. A job without a start is no fault if
        its status says why: rejected, cancelled, still waiting; those that waited hold their place in the queue

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
    workload, _ = distinct_jobs(workload)
    report = Report()
    if isinstance(given, str | Path):
        given = _of_file(given, report)
    jobs, start, end, submit, held, words = _columns(workload, given)
    faults: list[Fault] = []
    rows = {_name(job): row for row, job in reversed(list(enumerate(workload["job"].tolist())))}
    later, others = _submitted(workload, rows, jobs, submit)
    faults += others
    notes = [f"of the schedule: {line}" for line in report.lines()]
    if later:
        notes.append(f"the times of the schedule are shifted by {later:.10g} s, as its submissions are")
    start, end = start + later, end + later
    found: dict[int, tuple[float, float, int]] = {}
    without: dict[int, tuple[str, float]] = {}
    silent: set[int] = set()
    for number, (job, begin, over) in enumerate(zip(jobs, start.tolist(), end.tolist(), strict=True)):
        row = rows.get(_name(job))
        if row is None:
            faults.append(Fault("unknown job", job, begin, f"job {shown(job)} is not in the workload"))
        elif row in found or row in without:
            faults.append(Fault("doubled job", job, begin, f"job {shown(job)} is in the schedule more than once"))
        elif begin == begin:
            found[row] = (begin, over, number)
        elif words is not None and _explains(words[number]):
            without[row] = (words[number].lower(), over)
        else:
            silent.add(row)
    if not found and not without:
        message = f"must be a schedule of {workload.name}, got {len(jobs)} jobs, none of which is in it"
        raise InputError(message if len(jobs) else "must have jobs, got none", place="schedule")
    missing = list(_missing(workload, found.keys() | without.keys(), silent))
    if given is not None:
        faults += missing
    elif missing:
        notes.append(f"{len(missing):,} jobs without a recorded start are left out")
    left = _left(workload, without, np.concatenate((start, end)))
    left[list(found)] = np.nan
    gone = Counter(without[row][0] if row in without else "cancelled" for row in np.flatnonzero(left >= 0).tolist())
    gone.update(word for row, (word, _) in without.items() if not left[row] >= 0)
    if gone:
        kinds = ", ".join(f"{count:,} {word}" for word, count in sorted(gone.items()))
        notes.append(f"{counted(gone.total(), 'job')} without a start: {kinds}")
    order = sorted({*found, *np.flatnonzero(left >= 0).tolist()})
    known = [found.get(row, (np.nan, np.nan)) for row in order]
    begin, over = (np.array([times[which] for times in known], dtype=np.float64) for which in (0, 1))
    at = np.array(order, dtype=np.intp)
    everything = _as_scheduled(workload.where(at), begin, over, left[at])
    here, begin = everything.where(np.isfinite(begin)), begin[np.isfinite(begin)]
    where = None if held is None else tuple(held[found[row][2]] for row in order if row in found)
    return Schedule(here, everything, begin, begin + here["run"], tuple(faults), tuple(notes), where)


_NEVER_QUEUED = ("rejected", "unsubmitted", "not_submitted")


def _explains(word: str) -> bool:
    """Whether a status says why a job has no start."""
    try:
        return word != "" and outcome_in(word) not in ("completed", "timeout")
    except ValueError:
        return False


def _left(
    workload: Workload, without: Mapping[int, tuple[str, float]], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return when each job left the queue without a start (s); nan: it started, or was not in the queue.

    Those that still wait leave after the last instant that is known.
    """
    left = np.full(len(workload), np.nan)
    if "cancel" in workload:
        left = np.where(cancelled_waiting(workload.table), workload["cancel"], left)
    after = np.nextafter(np.nanmax(times, initial=0.0), np.inf)
    for row, (word, end) in without.items():
        still = end if end == end else np.fmin(left[row], after)
        left[row] = np.nan if word in _NEVER_QUEUED else still
    return left


def _as_scheduled(
    workload: Workload, start: NDArray[np.float64], end: NDArray[np.float64], left: NDArray[np.float64]
) -> Workload:
    """Return the jobs with the run times of the schedule; their requested times stay, also if these were run times."""
    run = workload["run"].astype(np.float64)
    made = np.maximum(0.0, np.where(np.isnan(end), run, end - start))
    made[np.isfinite(left)] = np.nan
    requested = workload.get("requested", np.nan).astype(np.float64)
    requested = np.where(requested > 0, requested, run)
    changed: dict[str, Any] = {"run": made, "requested": requested}
    if "cancel" in workload or np.isfinite(left).any():
        changed["cancel"] = left
    return workload.replace(**changed)


def _missing(workload: Workload, found: Container[int], silent: Container[int]) -> Iterator[Fault]:
    jobs, submit = workload["job"].tolist(), workload["submit"].tolist()
    run, processors = workload["run"].tolist(), workload["processors"].tolist()
    for row, job in enumerate(jobs):
        if row not in found and run[row] >= 0 and processors[row] > 0:
            lacks = (
                "has no start in the schedule, nor a status that says why"
                if row in silent
                else "is not in the schedule"
            )
            yield Fault("missing job", job, submit[row], f"job {job}, submitted at {submit[row]:g} s, {lacks}")


def _name(job: int | str) -> str:
    """Return the text that identifies a job: a number and its text are the same."""
    return str(job)


def _submitted(
    workload: Workload, rows: Mapping[str, int], jobs: list[Any], submit: NDArray[np.float64] | None
) -> tuple[float, list[Fault]]:
    """Return the seconds by which the clock of a schedule is behind that of its workload, and the jobs that disagree.

    Submissions may differ by a second, since some files round them.
    """
    known = [
        (rows[_name(job)], at)
        for job, at in zip(jobs, () if submit is None else submit.tolist(), strict=False)
        if _name(job) in rows and at == at
    ]
    if not known:
        return 0.0, []
    here = np.array([row for row, _ in known], dtype=np.intp)
    behind = workload["submit"][here] - np.array([at for _, at in known])
    later = float(np.sort(behind)[len(behind) // 2])
    if abs(later) <= 1 or (np.abs(behind - later) > 1).mean() > 0.5:
        later = float(behind[0]) if np.ptp(behind) <= 1e-6 else 0.0
    faults = []
    for at in np.flatnonzero(np.abs(behind - later) > 1).tolist():
        row, there = known[at]
        job, asked = workload["job"][row : row + 1].tolist()[0], float(workload["submit"][row])
        text = f"job {job} is submitted at {there + later:.10g} s in the schedule, at {asked:.10g} s in the workload"
        faults.append(Fault("other submission", job, asked, text))
    return later, faults


_LOGS = ("sacct", "pbs", "gwf")


def _of_file(source: str | Path, report: Report) -> Table | Workload:
    """Return the schedule in a file, or the log that it is: its recorded starts are a schedule, too."""
    file = held(source)
    try:
        return read_schedule(file, report=report)
    except InputError:
        if not isinstance(file, Path):
            file.seek(0)
        elif not file.is_file():
            raise
        if not any(looks_like(file, format) for format in _LOGS):
            raise
    report.skipped.clear()
    log: Workload = read_file(file, "workload", FORMATS, None, {})
    report.skipped.update(log.report.skipped)
    return log


def _columns(workload: Workload, given: Workload | JobRecord | Table | Mapping[Any, Any] | None) -> _Given:
    """Return the columns of a schedule: jobs, starts, ends and, if given, submissions and held nodes."""
    if isinstance(given, JobRecord):
        given = _of_record(given)
    if given is None:
        if np.isnan(workload.recorded_starts()).all():
            raise InputError("must be given: the workload has no recorded waits", place="schedule")
        given = workload
    if isinstance(given, Workload):
        given, _ = distinct_jobs(given)
        start = given.recorded_starts()
        end = np.where(start == start, given.get("recorded_end", np.nan).astype(np.float64), np.nan)
        end = np.where(np.isfinite(end), end, start + given["run"].astype(np.float64))
        return _Given(given["job"].tolist(), start, end)
    if isinstance(given, Table) or "start" in given:
        jobs = _cells(given, "job").tolist()
        start = _cells(given, "start").astype(np.float64)
        end = _cells(given, "end").astype(np.float64) if "end" in given else np.full(len(jobs), np.nan)
        submit = _cells(given, "submit").astype(np.float64) if "submit" in given else None
        words = [str(word) for word in _cells(given, "status").tolist()] if "status" in given else None
        return _Given(jobs, start, end, submit, _held(given, len(jobs)), words)
    try:
        start = np.array(list(given.values()), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("must be starts (s) by job, or columns 'job' and 'start'", place="schedule") from None
    return _Given(list(given), start, np.full(len(start), np.nan))


def _of_record(record: JobRecord) -> Table:
    """Return the jobs of a record, with the places and nodes of those that ran once."""
    jobs, runs = record.jobs, record.runs
    times = Counter(runs["job"].tolist())
    rows = {job: row for row, job in enumerate(runs["job"].tolist()) if times[job] == 1}
    columns: dict[str, Any] = {}
    for name in ("place", "nodes", "cores", "gpus", "memory", "devices"):
        if name in runs:
            cells = runs[name].tolist()
            columns[name] = column = np.full(len(jobs), None, dtype=object)
            column[:] = [cells[rows[job]] if job in rows else None for job in jobs["job"].tolist()]
    return jobs.with_columns(**columns)


def _held(given: Mapping[str, Any] | Table, count: int) -> list[Held] | None:
    """Return where the jobs of a schedule run, if it says so."""
    if "place" not in given and "nodes" not in given:
        return None
    nothing = [None] * count
    places, nodes = (list(given[name]) if name in given else nothing for name in ("place", "nodes"))
    amounts: list[Any] = nothing
    if all(name in given for name in ("cores", "gpus", "memory")):
        parts = zip(*(list(given[name]) for name in ("cores", "gpus", "memory")), strict=True)
        amounts = [None if None in each else tuple(zip(*each, strict=True)) for each in parts]
    told = list(given["devices"]) if "devices" in given else nothing
    held = []
    for place, on, *known in zip(places, nodes, amounts, told, strict=True):
        named = tuple(on) if on is not None else ()
        parts_of, devices = (each if each is not None and len(each) == len(named) else None for each in known)
        held.append(Held(None if place is None else str(place), named, parts_of, devices))
    return held


def _cells(columns: Mapping[str, Any] | Table, name: str) -> NDArray[Any]:
    if name not in columns:
        known = ", ".join(columns.names if isinstance(columns, Table) else map(str, columns))
        raise InputError(f"must have a column {name!r}, got {known}", place="schedule")
    return np.asarray(columns[name])
