"""Metrics of grids: per site and of the whole grid, and the error against recorded times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.display import text_table
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import show_quantity
from simmodel.metrics.report import duration
from simmodel.work.prepare import told_apart
from simmodel.work.table import Table, distinct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from simmodel.records.broker_record import GridRecord
    from simmodel.records.job_record import JobRecord
    from simmodel.work.prepare import TimedWorkflow

__all__ = [
    "SITE_COLUMNS",
    "SiteSums",
    "by_site",
    "by_workflow",
    "geometric_mean_error",
    "recorded_errors",
    "site_lines",
]


def by_site(record: GridRecord) -> Table:
    """Return one row per site and a last one of the whole grid.

    Columns: ``site, cores, jobs, finished, failed, queue_time`` and ``walltime`` (means, s), ``cpu_efficiency`` (the
    share of the held core seconds in which jobs executed), ``utilisation``, ``throughput`` (jobs that ended well a
    day), ``attempts``; ``bytes_in``, those that came to the site from others; ``bytes_out``, those that its jobs wrote.
    """
    sums = SiteSums(record.places, record.flows)
    sums.add(record.jobs)
    used = [record.utilisation(site).mean() for site in (*sums.sites, None)]
    return sums.table(np.array(used), record.ended - record.started)


def by_workflow(record: GridRecord, flows: Sequence[TimedWorkflow], speed: float | None = None) -> Table:
    """Return one row per workflow whose tasks ran as jobs of a grid.

    Columns: ``workflow, tasks, finished``; ``makespan``, from its submission until its last outputs are written (s; nan
    if a task has not finished); ``slr``: that over its longest path at ``speed``, without transfers; ``bytes``, those
    that were moved between sites for its tasks, whoever began that.

    Parameters
    ----------
    flows
        all workflows of the run, as they were submitted
    speed
        default: that of the fastest hosts, so that no SLR is below 1

    Raises
    ------
    InputError
        a task is no job of the record, or the record is of an earlier version and lacks the speeds of its hosts
    """
    if speed is None:
        if "speed" not in record.places:
            message = (
                "must be that of the fastest hosts: the record is of an earlier version, without the speeds of hosts"
            )
            raise InputError(message, place="speed")
        speed = float(record.places["speed"].max())
    fastest = speed
    row = {str(job): i for i, job in enumerate(record.jobs["job"].tolist())}
    columns: dict[str, list[Any]] = {name: [] for name in _WORKFLOWS}
    for given in told_apart(flows):
        flow = given[1] if isinstance(given, tuple) else given
        for task in flow.tasks:
            if str(task) not in row:
                raise InputError(f"must be a job of {record.name}, got another", place=f"{flow.name}, task {task!r}")
        jobs = record.jobs.where(np.array([row[str(task)] for task in flow.tasks], dtype=np.intp))
        well = jobs["state"] == "finished"
        makespan = float(jobs["finished"].max() - jobs["submit"].min()) if len(jobs) and well.all() else float("nan")
        shortest = flow.critical_path_length(lambda task: task.run_time() / fastest)
        slr = makespan / shortest if shortest else float("nan")
        slr = 1.0 if 1 - 1e-9 < slr < 1 else slr  # the end less the submission may be rounded down
        values = (flow.name, len(flow), int(well.sum()), makespan, slr)
        for name, value in zip(_WORKFLOWS, (*values, float(jobs["bytes_in"].sum())), strict=True):
            columns[name].append(value)
    return Table(columns)


_WORKFLOWS = ("workflow", "tasks", "finished", "makespan", "slr", "bytes")


class SiteSums:
    """Sums over jobs that come in parts, for :func:`by_site`: per site, those of all jobs last.

    Parameters
    ----------
    places, flows
        the sites of the record; the transfers between them

    Attributes
    ----------
    sites, cores
        their names; their cores, those of all last
    """

    def __init__(self, places: Table, flows: Table) -> None:
        self.sites: list[str] = [str(name) for name in places["place"].tolist()]
        self.cores = np.append(places["processors"], places["processors"].sum()).astype(np.int64)
        self._number = {name: i for i, name in enumerate(self.sites)}
        self._sums = {name: np.zeros(len(self.sites) + 1) for name in _SUMS}
        self._came = self._per_site(self._numbers(flows["destination"]), None, flows["bytes"])

    def add(self, jobs: Table) -> None:
        """Add jobs."""
        number = self._numbers(jobs["site"])
        wait, start, end = jobs["wait"], jobs["start"], jobs["end"]
        ran, waited = np.isfinite(start) & np.isfinite(end), np.isfinite(wait)
        well, failed = jobs["state"] == "finished", jobs["state"] == "failed"
        for name, rows, amount in (
            ("jobs", None, None),
            ("finished", well, None),
            ("failed", failed, None),
            ("waited", waited, None),
            ("wait", waited, wait),
            ("ran", ran, None),
            ("wall", ran, end - start),
            ("held", ran, (end - start) * jobs["processors"]),
            ("used", ran, (end - jobs["executing"]) * jobs["processors"]),
            ("attempts", None, jobs["attempts"]),
            ("bytes_out", None, jobs["bytes_out"]),
        ):
            self._sums[name] += self._per_site(number, rows, amount)

    def _numbers(self, sites: NDArray[Any]) -> NDArray[np.intp]:
        names, which = distinct(sites)
        return np.array([self._number.get(str(name), -1) for name in names.tolist()], dtype=np.intp)[which]

    def _per_site(
        self, number: NDArray[np.intp], rows: NDArray[np.bool_] | None, amount: NDArray[Any] | None
    ) -> NDArray[np.float64]:
        """Return a sum over some rows for each site and for all; ``None``: all rows; an amount of 1."""
        if rows is not None:
            number, amount = number[rows], None if amount is None else amount[rows]
        weights = np.ones(len(number)) if amount is None else amount.astype(np.float64)
        at_sites = np.bincount(number[number >= 0], weights=weights[number >= 0], minlength=len(self.sites))
        return np.append(at_sites, weights.sum())

    def held(self, runs: Table, ended: float) -> NDArray[np.float64]:
        """Return the core seconds of executions at each site and in all; those that go on last to an instant (s)."""
        end = np.where(np.isnan(runs["end"]), ended, runs["end"])
        return self._per_site(self._numbers(runs["place"]), None, (end - runs["start"]) * runs["processors"])

    def table(self, utilisation: NDArray[np.float64], seconds: float) -> Table:
        """Return the table, given the utilisation of each site and of all, and the length of the run in s."""
        sums, whole = self._sums, {name: self._sums[name].astype(np.int64) for name in _COUNTS}
        with np.errstate(divide="ignore", invalid="ignore"):
            days = np.float64(seconds) / 86400
            return Table(
                {
                    "site": np.array([*self.sites, "all"]),
                    "cores": self.cores,
                    "jobs": whole["jobs"],
                    "finished": whole["finished"],
                    "failed": whole["failed"],
                    "queue_time": sums["wait"] / sums["waited"],
                    "walltime": sums["wall"] / sums["ran"],
                    "cpu_efficiency": np.where(sums["held"] > 0, sums["used"] / sums["held"], np.nan),
                    "utilisation": utilisation,
                    "throughput": sums["finished"] / days if days else np.full(len(self.cores), np.nan),
                    "attempts": whole["attempts"],
                    "bytes_in": self._came,
                    "bytes_out": sums["bytes_out"],
                }
            )


SITE_COLUMNS = (
    *("submit", "wait", "start", "end", "executing", "processors"),
    *("site", "state", "attempts", "bytes_out"),
)
"""The columns of jobs that the table of sites needs."""
_COUNTS = ("jobs", "finished", "failed", "attempts")
_SUMS = (*_COUNTS, "waited", "wait", "ran", "wall", "held", "used", "bytes_out")


def site_lines(table: Table, states: Mapping[str, int]) -> list[str]:
    """Return the lines of a summary: the numbers of jobs by state, and those of the busiest sites."""
    cells = [["site", "cores", "jobs", "failed", "queue time", "used", "in", "out"]]
    rows = list(table.rows())
    for row in [*sorted(rows[:-1], key=lambda row: -row["jobs"])[:_SHOWN], rows[-1]]:
        counts = [f"{row[name]:,}" for name in ("cores", "jobs", "failed")]
        moved = [show_quantity(float(f"{row[name]:.3g}"), "B") for name in ("bytes_in", "bytes_out")]
        cells.append([row["site"][:23], *counts, duration(row["queue_time"]), _share(row["utilisation"]), *moved])
    lines = ["  states  " + ", ".join(f"{count:,} {state}" for state, count in states.items())]
    lines += text_table(cells, indent=2)
    if len(rows) - 1 > _SHOWN:
        lines.append(f"  and {len(rows) - 1 - _SHOWN:,} more sites")
    return lines


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"


_SHOWN = 12  # sites in a summary


def recorded_errors(record: JobRecord) -> Table:
    """Return CGSim's error of walltimes and queue times against the recorded ones, per site and class.

    One row for each site and class of jobs (``single`` and ``multi`` core) with recorded times: ``site, class, jobs,
    walltime, queue_time``, the relative mean absolute errors mean(abs(simulated - recorded)) / mean(recorded).

    Raises
    ------
    InputError
        no job has recorded times

    Source: CGSim's calibration against PanDA.
    """
    jobs = record.jobs
    if "recorded_start" not in jobs or not (known := _known(jobs)).any():
        raise InputError("must have jobs with recorded_start and recorded_end, got none", place="result")
    rows = []
    for site in dict.fromkeys(jobs["site"][known].tolist()):
        for name, several in (("single", False), ("multi", True)):
            here = known & (jobs["site"] == site) & ((jobs["processors"] > 1) == several)
            if here.any():
                of = jobs.where(here)
                walls = of["end"] - of["start"], of["recorded_end"] - of["recorded_start"]
                waits = of["wait"], of["recorded_start"] - of["submit"]
                rows.append((site, name, int(here.sum()), _error(*walls), _error(*waits)))
    names = ("site", "class", "jobs", "walltime", "queue_time")
    return Table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))


def _known(jobs: Table) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = np.isfinite(jobs["recorded_start"]) & np.isfinite(jobs["recorded_end"])
    known &= np.isfinite(jobs["start"]) & np.isfinite(jobs["end"])
    return known


def _error(simulated: NDArray[np.float64], recorded: NDArray[np.float64]) -> float:
    mean = float(recorded.mean())
    return float(np.abs(simulated - recorded).mean()) / mean if mean > 0 else float("nan")


def geometric_mean_error(errors: Table, what: str = "walltime") -> float:
    """Return the geometric mean of an error over sites and classes, each counted once.

    >>> errors = Table({"walltime": [0.1, 0.4]})
    >>> round(geometric_mean_error(errors), 3)
    0.2
    """
    values = errors[what].astype(np.float64)
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if len(values) else float("nan")
