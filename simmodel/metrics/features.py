"""Tables for machine learning: a row per job or task, with features known at its submission, and its outcomes.

A feature is known just before the submission: it does not change if everything later is unknown. The data set of grids
has such a table, too (:data:`simmodel.records.grid_events.GRID_JOBS`).
"""

from __future__ import annotations

import heapq
import json
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError, optional_imports
from simmodel.foundation.writing import write_text
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord
    from simmodel.records.task_record import TaskRecord

__all__ = [
    "JOB_FEATURES",
    "JOB_OUTCOMES",
    "TASK_FEATURES",
    "TASK_OUTCOMES",
    "export_features",
    "job_features",
    "schema",
    "task_features",
]

JOB_FEATURES: Mapping[str, str] = {
    "submit": "s, the instant of its submission",
    "hour": "hour of the day of the submission, the log beginning at midnight",
    "weekday": "day of the week of the submission, the log beginning on day 0",
    "processors": "processors requested",
    "requested": "s, requested time; nan: unknown",
    "queued": "jobs that wait",
    "queued_processors": "processors that they request",
    "queued_work": "processor seconds that they request",
    "oldest_wait": "s for which the oldest of them has waited",
    "running": "jobs that run",
    "running_processors": "processors that they hold",
    "running_work": "processor seconds that they may still use, by their requests",
    "recent_wait": "s, mean wait of the last ten jobs that started",
    "user_queued": "jobs of its user that wait",
    "user_running": "jobs of its user that run",
    "user_ended": "jobs of its user that have ended",
    "user_run": "s, mean run time of the last two of them; nan: fewer",
    "user_share": "mean share of their requests that the last ten of them used; nan: none, or unknown",
}
"""The features of a job: values known just before its submission."""

JOB_OUTCOMES: Mapping[str, str] = {
    "wait": "s from its submission to its start; nan: not started",
    "run": "s from its start to its end; nan: not ended",
    "start": "s, the instant of its start",
    "turnaround": "s from its submission to its end",
}
"""The outcomes of a job."""

TASK_FEATURES: Mapping[str, str] = {
    "submit": "the instant of its submission",
    "ready": "the instant at which all tasks before it have ended",
    "family": "its family",
    "waiting": "tasks that are ready and have not started",
    "executing": "tasks that execute",
    "ended": "tasks that have ended",
    "family_ended": "tasks of its family that have ended",
    "family_run": "mean execution time of the last two of them; nan: fewer",
    "run_best": "its least expected run time over all processors",
}
"""The features of a task, in the time unit of the machine: values known just before it is ready."""

TASK_OUTCOMES: Mapping[str, str] = {
    "processor": "its processor",
    "queue_time": "from ready to the start of its execution, with setup and transfers",
    "run": "from start to end of its execution",
    "start": "the instant of its start",
}
"""The outcomes of a task, in the time unit of the machine."""

_RECENT = 10


def schema(features: Mapping[str, str], outcomes: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the description of the columns of such a table as a plain document.

    >>> schema({"submit": "s, the instant"}, {})
    [{'column': 'submit', 'role': 'feature', 'about': 's, the instant'}]
    """
    roles = (("feature", features), ("outcome", outcomes))
    return [{"column": name, "role": role, "about": about} for role, part in roles for name, about in part.items()]


def export_features(table: Table, path: str | Path) -> Path:
    """Write a table of jobs or tasks as CSV or Parquet, and its schema beside it as JSON; return the schema's path.

    Parameters
    ----------
    table
        of :func:`job_features` or :func:`task_features`
    path
        a name that ends in ``.csv`` or ``.parquet``

    Raises
    ------
    InputError
        the name ends otherwise, or cannot be written
    MissingExtra
        pandas or pyarrow is not installed, for Parquet
    """
    path = Path(path)
    tasks = "task" in table
    columns = schema(TASK_FEATURES, TASK_OUTCOMES) if tasks else schema(JOB_FEATURES, JOB_OUTCOMES)
    if path.suffix == ".csv":
        table.to_csv(path)
    elif path.suffix == ".parquet":
        with optional_imports():
            table.to_pandas().to_parquet(path)
    else:
        raise InputError("must end in .csv or .parquet", source=str(path))
    beside = path.with_suffix(".schema.json")
    about = {"rows": len(table), "key": "task" if tasks else "job", "columns": columns}
    write_text(beside, json.dumps(about, indent=1) + "\n")
    return beside


def job_features(record: JobRecord, *, requests: bool | None = None) -> Table:
    """Return a row per submitted job, in order of submission: ``job``, :data:`JOB_FEATURES`, :data:`JOB_OUTCOMES`.

    Parameters
    ----------
    record
        the record of the run
    requests
        whether the requested times are those of the users; default: unless each equals the run time of its job, of
        those that were not stopped at it, as in a table that fills them in. A job without one (nan) has none anyhow

    Raises
    ------
    InputError
        a job ran more than once, so that its state between is not in the record

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 1, 2], "start": [0, 10, 10], "end": [10, 30, 15], "processors": [4, 2, 1]}
    >>> table = job_features(JobRecord(jobs=jobs | {"requested": [20, 20, 20]}))
    >>> table["queued"].tolist(), table["running_work"].tolist(), table["wait"].tolist()
    ([0, 0, 1], [0.0, 76.0, 72.0], [0.0, 9.0, 8.0])
    """
    jobs = record.jobs
    if len(jobs) and int(jobs["attempts"].max()) > 1:
        raise InputError("must be of jobs that run once: between attempts their state is unknown", source=record.name)
    never = np.isin(jobs["status"].astype(str), ("rejected", "unsubmitted"))
    rows = np.flatnonzero(np.isfinite(jobs["submit"]) & ~never)
    rows = rows[np.argsort(jobs["submit"][rows], kind="stable")]
    found = _JobSweep(jobs, rows, requests).features()
    submit, start, end = (jobs[name][rows] for name in ("submit", "start", "end"))
    columns: dict[str, Any] = {"job": jobs["job"][rows], **found}
    columns |= {"wait": start - submit, "run": end - start, "start": start, "turnaround": end - submit}
    return Table(columns)


class _JobSweep:
    """Goes through starts, ends and submissions in order of time, and keeps the state of the cluster."""

    def __init__(self, jobs: Table, rows: NDArray[np.intp], requests: bool | None) -> None:
        self.rows = rows
        self.submit, self.start, self.end = (jobs[name].tolist() for name in ("submit", "start", "end"))
        self.processors = jobs["processors"].tolist()
        requested = np.array(jobs["requested"], dtype=np.float64)
        run = jobs["end"] - jobs["start"]
        judged = np.isfinite(run) & (requested > 0) & (jobs["status"] == "completed")
        if requests is None:
            requests = not judged.any() or bool((requested[judged] != run[judged]).any())
        if not requests:
            requested = np.full(len(requested), np.nan)
        self.requested = np.where((requested > 0) & np.isfinite(requested), requested, np.nan).tolist()
        self.users = jobs["user"].tolist() if "user" in jobs else [None] * len(jobs)
        self.starts = _in_order(jobs["start"])
        self.ends = _in_order(jobs["end"])
        self.queued = self.queued_processors = self.running = self.running_processors = 0
        self.queued_work = self.promised = 0.0  # of running jobs: processors x the instant of their limit
        self.limited = 0  # processors of running jobs with a request
        self.oldest: list[tuple[float, int]] = []
        self.waits: deque[float] = deque(maxlen=_RECENT)
        self.user_queued: defaultdict[Any, int] = defaultdict(int)
        self.user_running: defaultdict[Any, int] = defaultdict(int)
        self.user_ended: defaultdict[Any, int] = defaultdict(int)
        self.user_runs: defaultdict[Any, deque[float]] = defaultdict(lambda: deque(maxlen=2))
        self.user_shares: defaultdict[Any, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))

    def features(self) -> dict[str, NDArray[Any]]:
        """Return the columns."""
        found: dict[str, list[Any]] = {name: [] for name in JOB_FEATURES}
        started = ended = 0
        for row in self.rows.tolist():
            now = self.submit[row]
            while ended < len(self.ends) and self.end[self.ends[ended]] < now:
                started = self._started_until(self.end[self.ends[ended]], started)
                self._end(self.ends[ended])
                ended += 1
            started = self._started_until(np.nextafter(now, -np.inf), started)
            for name, value in zip(JOB_FEATURES, self._now(row, now), strict=True):
                found[name].append(value)
            self._submit(row)
        return {name: np.array(values) for name, values in found.items()}

    def _started_until(self, until: float, started: int) -> int:
        while started < len(self.starts) and self.start[self.starts[started]] <= until:
            self._begin(self.starts[started])
            started += 1
        return started

    def _submit(self, row: int) -> None:
        self.queued += 1
        self.queued_processors += self.processors[row]
        self.queued_work += self._asked(row)
        self.user_queued[self.users[row]] += 1
        heapq.heappush(self.oldest, (self.submit[row], row))

    def _leave(self, row: int) -> None:
        self.queued -= 1
        self.queued_processors -= self.processors[row]
        self.queued_work -= self._asked(row)
        self.user_queued[self.users[row]] -= 1

    def _begin(self, row: int) -> None:
        processors, user = self.processors[row], self.users[row]
        self._leave(row)
        self.running += 1
        self.running_processors += processors
        self.user_running[user] += 1
        if np.isfinite(self.requested[row]):
            self.promised += processors * (self.start[row] + self.requested[row])
            self.limited += processors
        self.waits.append(self.start[row] - self.submit[row])

    def _end(self, row: int) -> None:
        if not np.isfinite(self.start[row]):  # cancelled while it waited
            self._leave(row)
            return
        processors, user, run = self.processors[row], self.users[row], self.end[row] - self.start[row]
        self.running -= 1
        self.running_processors -= processors
        self.user_running[user] -= 1
        self.user_ended[user] += 1
        self.user_runs[user].append(run)
        if np.isfinite(self.requested[row]):
            self.promised -= processors * (self.start[row] + self.requested[row])
            self.limited -= processors
            self.user_shares[user].append(run / self.requested[row])

    def _left(self, row: int, now: float) -> bool:
        """Whether a job has left the queue before an instant."""
        return bool(self.start[row] < now or self.end[row] < now)

    def _asked(self, row: int) -> float:
        seconds = self.requested[row]
        return float(self.processors[row] * seconds) if np.isfinite(seconds) else 0.0

    def _now(self, row: int, now: float) -> tuple[float, ...]:
        """Return the features of a job just before its submission, in order."""
        while self.oldest and self._left(self.oldest[0][1], now):
            heapq.heappop(self.oldest)
        user = self.users[row]
        runs, shares = self.user_runs[user], self.user_shares[user]
        return (
            now,
            now % 86400 / 3600,
            now // 86400 % 7,
            self.processors[row],
            self.requested[row],
            self.queued,
            self.queued_processors,
            self.queued_work if self.queued else 0.0,
            now - self.oldest[0][0] if self.oldest else 0.0,
            self.running,
            self.running_processors,
            max(0.0, self.promised - now * self.limited) if self.limited else 0.0,
            sum(self.waits) / len(self.waits) if self.waits else 0.0,
            self.user_queued[user],
            self.user_running[user],
            self.user_ended[user],
            sum(runs) / 2 if len(runs) == 2 else np.nan,
            sum(shares) / len(shares) if shares else np.nan,
        )


def _in_order(instants: NDArray[np.float64]) -> list[int]:
    rows = np.flatnonzero(np.isfinite(instants))
    return [int(row) for row in rows[np.argsort(instants[rows], kind="stable")]]


def task_features(record: TaskRecord) -> Table:
    """Return a row per task that became ready, in that order: ``task``, :data:`TASK_FEATURES`, :data:`TASK_OUTCOMES`.

    >>> from simmodel import Task, Workflow, simulate
    >>> work = Workflow([Task(id=i, run=10, family="f") for i in range(3)])
    >>> table = task_features(simulate("multicore-2x10", work, "hrr"))
    >>> table["waiting"].tolist(), table["run"].tolist()
    ([0, 1, 2], [10.0, 10.0, 10.0])
    """
    tasks = record.tasks
    ready, start, end = (np.array(tasks[name], dtype=np.float64) for name in ("ready", "start", "end"))
    rows = np.array(_in_order(ready), dtype=np.intp)
    families = tasks["family"].tolist() if "family" in tasks else [""] * len(tasks)
    starts, ends = _in_order(start), _in_order(end)
    before = np.searchsorted
    now = ready[rows]
    started = before(start[starts], now, side="left")
    ended = before(end[ends], now, side="left")
    family_ended, family_run = _of_families(families, start, end, ends, rows.tolist(), ended.tolist())
    columns: dict[str, Any] = {
        "task": tasks["task"][rows],
        "submit": tasks["submit"][rows],
        "ready": now,
        "family": np.array([families[row] for row in rows.tolist()]),
        "waiting": np.arange(len(rows)) - started,
        "executing": started - ended,
        "ended": ended,
        "family_ended": family_ended,
        "family_run": family_run,
        "run_best": tasks["run_best"][rows],
        "processor": tasks["processor"][rows],
        "queue_time": start[rows] - now,
        "run": end[rows] - start[rows],
        "start": start[rows],
    }
    return Table(columns)


def _of_families(
    families: list[str],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    ends: list[int],
    rows: list[int],
    ended: list[int],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many tasks of the family of each row have ended, and the mean run time of the last two of them."""
    counts: defaultdict[str, int] = defaultdict(int)
    last: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=2))
    at, found, means = 0, [], []
    for row, until in zip(rows, ended, strict=True):
        for other in ends[at:until]:
            counts[families[other]] += 1
            last[families[other]].append(float(end[other] - start[other]))
        at = max(at, until)
        runs = last[families[row]]
        found.append(counts[families[row]])
        means.append(sum(runs) / 2 if len(runs) == 2 else np.nan)
    return np.array(found, dtype=np.int64), np.array(means, dtype=np.float64)
