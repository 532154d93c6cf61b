"""What a run returns: tables of what happened, and everything that can be asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.records.steps import Steps
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.view.plots import ResultPlots
    from simmodel.work.workload import Workload

__all__ = ["Result", "recorded"]

ENDED_WELL = ("completed", "timeout")
AGAIN = ("preempted", "requeued")  # how executions end after which the job waits again
_FIRST_COLUMNS = ("job", "submit", "start", "end", "processors", "status")


def _complete(jobs: Mapping[str, Any]) -> Table:
    """Add the columns that follow from others, where they are missing."""
    columns = {name: np.asarray(column) for name, column in jobs.items()}
    missing = [name for name in ("submit", "start", "end", "processors") if name not in columns]
    if missing:
        raise ValueError(f"columns submit, start, end and processors expected, {', '.join(missing)} missing")
    for name in ("submit", "start", "end"):
        columns[name] = columns[name].astype(np.float64, copy=False)
    submit, start, end = columns["submit"], columns["start"], columns["end"]
    columns.setdefault("job", np.arange(1, len(submit) + 1))
    columns.setdefault("run", end - start)
    columns.setdefault("wait", start - columns.get("eligible", submit))
    columns.setdefault("requested", columns["run"])
    if "status" not in columns:
        columns["status"] = np.where(np.isnan(start), "waiting", np.where(np.isnan(end), "running", "completed"))
    columns.setdefault("attempts", np.isfinite(start).astype(np.int32))
    first = {name: columns[name] for name in _FIRST_COLUMNS}
    return Table({**first, **columns})


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class Result:
    """What happened in a run.

    Parameters
    ----------
    jobs
        one row a job: ``job, submit, start, end, processors, status, requested, run, wait, attempts`` and what the
        workload had of ``user, group, queue, partition``. Times in s; nan where it has not happened. ``start`` is the
        first start, ``end`` the last end, ``run`` the seconds executed whose work was not thrown away, ``wait`` the
        seconds from the submission (or from ``eligible``, where dependencies held the job back) to the first start. The
        status is completed, timeout (stopped at its requested time), failed, cancelled, lost, rejected (with a
        ``reason``), waiting, running, suspended or unsubmitted. Of ``job, run, wait, requested, status, attempts``
        those missing are made from the others
    processors
        processors of the machine; default: the most that were ever busy
    name
        what tables and plots call this run
    runs
        one row an execution: ``job, attempt, start, end, place, processors, status, nodes``; made from ``jobs`` where
        it is not given
    events
        each state change with the state of its place: ``time, event, job, place, free, waiting, running, detail``
    places
        ``place, processors, nodes, idle_power, load_power`` (W a node, or a processor where nodes are not identified)
    changes
        what places had from when on: ``time, place, cause, processors, down``
    choices
        of a portfolio of policies: ``time, policy, score, chosen``, one row a policy at each choice; the column
        ``started_by`` of ``jobs`` says which of them started each job
    nodes
        of places where they are identified: ``place, node, processors, idle_power, load_power``; default: all alike
    started, ended
        first and last instant in s; default: of the jobs
    report, decisions, scenario
        what was repaired or rejected; count, seconds, mean and max of the policy's decisions; what repeats the run

    >>> result = Result(jobs={"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}, processors=4)
    >>> result.jobs["wait"]
    array([ 0., 10.])
    >>> round(result.metrics()["utilisation"], 3)
    0.667
    """

    jobs: Table = attrs.field(converter=_complete)
    name: str = "run"
    _runs: Table | None = None
    events: Table | None = None
    changes: Table | None = None
    choices: Table | None = None
    nodes: Table | None = None
    report: Report = attrs.field(factory=Report)
    decisions: dict[str, float] = attrs.field(factory=dict)
    scenario: dict[str, Any] = attrs.field(factory=dict)
    started: float = attrs.field()
    ended: float = attrs.field()
    processors: int = attrs.field()
    places: Table = attrs.field()

    @started.default
    def _started_default(self) -> float:
        return _extreme(np.fmin, self.jobs["submit"], self.jobs["start"])

    @ended.default
    def _ended_default(self) -> float:
        return max(_extreme(np.fmax, self.jobs["end"], self.jobs["start"]), self.started)

    @processors.default
    def _processors_default(self) -> int:
        return int(self.busy().max())

    @places.default
    def _places_default(self) -> Table:
        return Table(
            {
                "place": ["machine"],
                "processors": [self.processors],
                "nodes": [0],
                "idle_power": [0.0],
                "load_power": [0.0],
            }
        )

    @property
    def runs(self) -> Table:
        """One row an execution: ``job, attempt, start, end, place, processors, status, nodes``."""
        if self._runs is None:
            started = np.isfinite(self.jobs["start"])
            jobs = self.jobs.where(started)
            order = np.argsort(jobs["start"], kind="stable")
            place = str(self.places["place"][0]) if len(self.places) else "machine"
            columns = {name: jobs[name][order] for name in ("job", "start", "end", "processors", "status")}
            self._runs = Table(
                {
                    "job": columns["job"],
                    "attempt": np.ones(len(order), dtype=np.int32),
                    "start": columns["start"],
                    "end": columns["end"],
                    "place": np.full(len(order), place),
                    "processors": columns["processors"],
                    "status": columns["status"],
                    "nodes": np.full(len(order), None, dtype=object),
                }
            )
        return self._runs

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs metrics count: those that ran to their end (completed, or stopped at their requested time)."""
        return np.isin(self.jobs["status"], ENDED_WELL)

    # ------------------------------------------------------------------ over time

    def _part(self, place: str | None) -> Table:
        if self._runs is None and place is None:
            return self.jobs.where(np.isfinite(self.jobs["start"]))
        return self.runs if place is None else self.runs.where(self.runs["place"] == place)

    def busy(self, place: str | None = None) -> Steps:
        """Return the number of busy processors over time, of all places or of one."""
        runs = self._part(place)
        start, end = runs["start"], np.where(np.isnan(runs["end"]), self.ended, runs["end"])
        amount = runs["processors"]
        return Steps.from_changes(
            np.append(start, end), np.append(amount, -amount.astype(np.float64)), self.started, self.ended
        )

    def capacity(self, place: str | None = None) -> Steps:
        """Return the number of processors that were up over time, of all places or of one."""
        total: Steps | None = None
        for name, size in zip(self.places["place"].tolist(), self.places["processors"].tolist(), strict=True):
            if place in (None, name):
                steps = self._capacity(name, size)
                total = steps if total is None else total + steps
        if total is None:
            raise ValueError(f"no place {place!r}; there are {', '.join(self.places['place'].tolist())}")
        return total

    def _capacity(self, place: str, size: float) -> Steps:
        if self.changes is None or not (here := self.changes["place"] == place).any():
            return Steps([self.started], [size], self.ended)
        times, sizes = self.changes["time"][here], self.changes["processors"][here]
        return Steps.from_changes(
            np.append(self.started, times), np.diff(np.append([0.0, size], sizes)), self.started, self.ended
        )

    def utilisation(self, place: str | None = None) -> Steps:
        """Return the busy share of the processors that were up over time, of all places or of one."""
        return self.busy(place).combine(self.capacity(place), _share)

    def queue_length(self) -> Steps:
        """Return the number of jobs that wait over time."""
        return self._queued(np.ones(len(self.jobs)))

    def queued_processors(self) -> Steps:
        """Return the processors that the waiting jobs ask for over time."""
        return self._queued(self.jobs["processors"].astype(np.float64))

    def _queued(self, amount: NDArray[np.float64]) -> Steps:
        jobs = self.jobs
        submit = jobs["eligible"] if "eligible" in jobs else jobs["submit"]
        leaves = np.where(np.isnan(jobs["start"]), jobs["end"], jobs["start"])
        entered = ~np.isin(jobs["status"], ("rejected",)) & ~(leaves < submit)
        left = entered & np.isfinite(leaves)
        times, change = [submit[entered], leaves[left]], [amount[entered], -amount[left]]
        if self._runs is not None and np.isin(self._runs["status"], AGAIN).any():
            for instants, rows, sign in self._queued_again(self._runs):
                times.append(instants)
                change.append(sign * amount[rows])
        return Steps.from_changes(np.concatenate(times), np.concatenate(change), self.started, self.ended)

    def _queued_again(self, runs: Table) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64], int]]:
        """Yield the instants at which interrupted jobs enter or leave the queue again, their rows, and +1 or -1."""
        ids, first_row = np.unique(self.jobs["job"], return_index=True)
        row = first_row[np.searchsorted(ids, runs["job"])]
        back = np.isin(runs["status"], AGAIN)
        attempt = runs["attempt"].astype(np.int64)
        _, first = np.unique(row * (attempt.max() + 1) + attempt, return_index=True)
        again = first[attempt[first] > 1]
        yield runs["end"][back], row[back], 1
        yield runs["start"][again], row[again], -1
        entered, left = (np.bincount(row[which], minlength=len(self.jobs)) for which in (back, again))
        withdrawn = np.flatnonzero((entered > left) & np.isfinite(self.jobs["end"]))
        yield self.jobs["end"][withdrawn], withdrawn, -1

    # ------------------------------------------------------------------ numbers

    def metrics(self, **options: Any) -> dict[str, Any]:
        """Return the metrics of the run; options (warmup ...) as of :func:`simmodel.metrics.batch.summary`."""
        from simmodel.metrics.batch import summary

        return summary(self, **options)

    def summary(self, **options: Any) -> str:
        """Return the metrics as a short table of text, for people; options as of :meth:`metrics`."""
        from simmodel.metrics.report import summary_text

        return summary_text(self, **options)

    # ------------------------------------------------------------------ stores

    def schedule_csv(self, path: str | Path) -> None:
        """Write the table of jobs: columns ``job,submit,start,end,processors,status`` first, times as in the log."""
        rest = [name for name in self.jobs if name not in _FIRST_COLUMNS]
        Table({name: self.jobs[name] for name in (*_FIRST_COLUMNS, *rest)}).to_csv(path)

    def to_csv(self, folder: str | Path) -> None:
        """Write one CSV file a table, and ``meta.json``, into a folder (made where it is missing)."""
        from simmodel.results.stores import write_csv

        write_csv(self, folder)

    def to_parquet(self, folder: str | Path) -> None:
        """Write one Parquet file a table, and ``meta.json``, into a folder; needs pyarrow."""
        from simmodel.results.stores import write_parquet

        write_parquet(self, folder)

    def to_sqlite(self, path: str | Path) -> None:
        """Write an SQLite database with the tables jobs, runs, events, places and so on; replaces the file."""
        from simmodel.results.stores import write_sqlite

        write_sqlite(self, path)

    def to_json(self, path: str | Path | None = None, *, jobs: bool = False, **options: Any) -> str:
        """Return metrics, report, decisions and scenario as JSON, and with ``jobs`` their table; a path: write it.

        What is not a number is ``null`` there. Options as of :meth:`metrics`.
        """
        from simmodel.results.stores import json_text, meta

        document = {**meta(self), "metrics": self.metrics(**options)}
        if jobs:
            document["jobs"] = {name: column.tolist() for name, column in self.jobs.items()}
        return json_text(document, path, compact=jobs)

    def to_perfetto(self, path: str | Path, **options: Any) -> None:
        """Write a trace for ui.perfetto.dev; options as of :func:`simmodel.formats.perfetto.write_trace`."""
        from simmodel.formats.perfetto import write_trace

        write_trace(self, path, **options)

    # ------------------------------------------------------------------ looks

    @cached_property
    def plot(self) -> ResultPlots:
        """Pictures of the run: ``result.plot.gantt()``, ``.utilisation()``, ``.queue()``, ``.overview()`` and so on."""
        from simmodel.view.plots import ResultPlots

        return ResultPlots(self)

    def _repr_html_(self) -> str:
        from simmodel.view.html import result_html

        return result_html(self)

    def __repr__(self) -> str:
        return f"<Result {self.name}: {len(self.jobs)} jobs on {self.processors} processors>"


def _share(busy: NDArray[Any], capacity: NDArray[Any]) -> NDArray[Any]:
    """Busy over capacity; 0 where there is none."""
    share: NDArray[Any] = np.divide(busy, capacity, out=np.zeros_like(busy), where=capacity > 0)
    return share


def _extreme(function: np.ufunc, *columns: NDArray[np.float64]) -> float:
    """The least or greatest known value of columns; 0 where there is none."""
    values = np.concatenate(columns)
    values = values[np.isfinite(values)]
    return float(function.reduce(values)) if len(values) else 0.0


def recorded(workload: Workload, *, processors: int | None = None) -> Result:
    """Return what the log itself says happened, its waits and run times as recorded: a result to compare with.

    Jobs without a recorded wait or run time stand there as ``rejected``.

    >>> from simmodel.work.workload import Workload
    >>> log = Workload({"submit": [0, 5], "wait": [0, 7], "run": [10, 10], "processors": [1, 4]}, processors=4)
    >>> recorded(log).jobs["start"]
    array([ 0., 12.])
    """
    wait, run = workload.get("wait"), workload["run"]
    known = (wait >= 0) & (run >= 0) & (workload["processors"] > 0)
    start = np.where(known, workload["submit"] + wait, np.nan)
    report = Report()
    if not known.all():
        report.rejected["wait, run time or processors not recorded"] += int((~known).sum())
    columns = {
        "job": workload["job"],
        "submit": workload["submit"],
        "start": start,
        "end": start + run,
        "processors": workload["processors"],
        "status": np.where(known, "completed", "rejected"),
    }
    for name in ("requested", "user", "group", "queue", "partition"):
        if name in workload:
            columns[name] = workload[name]
    size = processors or workload.processors
    options: dict[str, Any] = {"processors": size} if size else {}
    return Result(
        jobs=Table(columns),
        name=f"{workload.name} as recorded",
        report=workload.report + report,
        **options,
    )
