"""Metrics of several clusters under a broker: waits by size and by requested time, and flows between clusters.

Sources: the tables by size and by requested time, and turnaround before and after: the CQSim+ papers of the SPEAR group
at Illinois Institute of Technology.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.display import text_table
from simmodel.errors import InputError
from simmodel.loading import check_count
from simmodel.metrics.batch import job_values
from simmodel.metrics.bins import BINS, binned
from simmodel.metrics.report import duration
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.broker_record import BrokerRecord
    from simmodel.records.job_record import JobRecord

__all__ = ["WEEK", "by_cluster", "by_origin", "moved", "moved_turnaround", "side_by_side", "weekly"]

WEEK = 7 * 86400.0  # s
_WALLTIME = ("asked", "requested")


def side_by_side(
    results: Sequence[JobRecord],
    by: str = "processors",
    bins: Sequence[float] | None = None,
    value: str = "wait",
    *,
    unit: float = 60.0,
) -> Table:
    """Return the mean of a value in bins, one column per result, and the change from the first to the last.

    Parameters
    ----------
    results
        of the same jobs; their names are the columns
    by
        ``"processors"``; ``"walltime"``: the requested time; or any ``by`` of :func:`~simmodel.metrics.bins.binned`
    bins
        edges; default: :data:`~simmodel.metrics.bins.BINS`
    value
        as of :func:`~simmodel.metrics.bins.binned`
    unit
        seconds per unit of the results: 60 for minutes

    Returns
    -------
    Table
        columns ``bin, jobs``, one per result, and ``change`` (0.1 is 10 % more); the last row is of all jobs; empty
        bins are left out

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [60, 600], "end": [900, 900], "processors": [8, 512]}
    >>> before = JobRecord(jobs=jobs, name="random")
    >>> after = JobRecord(jobs={**jobs, "start": [60, 300]}, name="sgs-t")
    >>> for row in side_by_side([before, after]).rows(): print(*row.values())
    (0,128] 1 1.0 1.0 0.0
    (256,512] 1 10.0 5.0 -0.5
    all 2 5.5 3.0 -0.45454545454545453
    """
    if not results:
        raise InputError("must have at least one result, got none", place="results")
    if by == "walltime":
        by = "asked" if "asked" in results[0].jobs else "requested"
    minutes = by in _WALLTIME
    if bins is None and minutes:
        bins = BINS["requested"]
    tables = [binned(result, by, bins, value) for result in results]
    rows = np.flatnonzero(tables[0]["jobs"] > 0)
    names = tables[0]["bin"][rows].tolist()
    if minutes:
        edges = zip(tables[0]["low"][rows].tolist(), tables[0]["high"][rows].tolist(), names, strict=True)
        names = [name if math.isnan(low) else f"({low / 60:g},{high / 60:g}] min" for low, high, name in edges]
    columns: dict[str, Any] = {"bin": [*names, "all"], "jobs": [*tables[0]["jobs"][rows], int(tables[0]["jobs"].sum())]}
    for result, table in zip(results, tables, strict=True):
        values = job_values(result, value)[result.counted]
        values = values[~np.isnan(values)]
        everything = float(values.mean()) if len(values) else math.nan
        columns[result.name] = np.append(table[value][rows], everything) / unit
    if len(results) > 1:
        first, last = columns[results[0].name], columns[results[-1].name]
        columns["change"] = np.divide(last - first, first, out=np.full(len(first), np.nan), where=first != 0)
    return Table(columns)


def by_origin(result: BrokerRecord, values: Sequence[str] = ("wait", "turnaround")) -> Table:
    """Return jobs, their processor seconds and mean values, by home and destination.

    Parameters
    ----------
    values
        as of :func:`~simmodel.metrics.bins.binned`; times in s

    Returns
    -------
    Table
        columns ``origin, destination, jobs, processor_seconds`` and one per value; pairs without jobs are left out
    """
    counted = result.counted
    jobs = result.jobs.where(counted)
    columns: dict[str, list[Any]] = {"origin": [], "destination": [], "jobs": [], "processor_seconds": []}
    columns |= {value: [] for value in values}
    known = {value: job_values(result, value)[counted] for value in values}
    work = jobs["processors"] * jobs["run"]
    for origin in ["", *result.clusters]:
        for destination in result.clusters:
            here = (jobs["origin"] == origin) & (jobs["destination"] == destination)
            if here.any():
                columns["origin"].append(origin)
                columns["destination"].append(destination)
                columns["jobs"].append(int(here.sum()))
                columns["processor_seconds"].append(float(work[here].sum()))
                for value in values:
                    columns[value].append(float(known[value][here].mean()))
    return Table(columns)


def moved(result: BrokerRecord) -> NDArray[np.bool_]:
    """Return a mask of the jobs whose destination is not their home."""
    origin, destination = result.jobs["origin"], result.jobs["destination"]
    which: NDArray[np.bool_] = (origin != "") & (destination != "") & (origin != destination)
    return which


def moved_turnaround(siloed: BrokerRecord, brokered: BrokerRecord) -> Table:
    """Return the mean turnaround of moved jobs before (at home) and after, by origin and destination.

    Parameters
    ----------
    siloed, brokered
        results of the same jobs in the same order; the jobs that moved in the second are compared

    Returns
    -------
    Table
        columns ``origin, destination, jobs, before, after`` (s) and ``change``; the last row is of all moved jobs

    Raises
    ------
    InputError
        if the jobs differ
    """
    a, b = siloed.jobs, brokered.jobs
    if len(a) != len(b) or not (np.array_equal(a["job"], b["job"]) and np.array_equal(a["origin"], b["origin"])):
        raise InputError(f"results {siloed.name!r} and {brokered.name!r} must have the same jobs")
    which = moved(brokered) & siloed.counted & brokered.counted
    before, after = (each["end"] - each["submit"] for each in (a, b))
    rows: list[tuple[Any, ...]] = []
    for origin in brokered.clusters:
        for destination in brokered.clusters:
            here = which & (b["origin"] == origin) & (b["destination"] == destination)
            if here.any():
                rows.append((origin, destination, int(here.sum()), before[here].mean(), after[here].mean()))
    if which.any():
        rows.append(("all", "all", int(which.sum()), before[which].mean(), after[which].mean()))
    names = ("origin", "destination", "jobs", "before", "after")
    columns: dict[str, Any] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    columns["change"] = [row[4] / row[3] - 1 if row[3] else math.nan for row in rows]
    return Table(columns)


def weekly(result: BrokerRecord, interval: float = WEEK) -> Table:
    """Return the jobs submitted at and handed over to each cluster, and its utilisation, week by week.

    Parameters
    ----------
    interval
        s

    Returns
    -------
    Table
        columns ``week`` (from 0 on), ``start`` (s), ``cluster``, ``submitted`` (jobs whose home it is), ``handed``
        (jobs handed to it) and ``utilisation`` (busy share of the processors that were up; the last week is cut at the
        end of the run)

    Raises
    ------
    InputError
        the interval is not positive, or so short that there are too many
    """
    if not interval > 0:
        raise InputError(f"must be > 0 s, got {interval!r}", place="interval")
    check_count("weeks", (result.ended - result.started) / interval)
    edges = np.append(np.arange(result.started, max(result.ended, result.started + 1e-9), interval), result.ended)
    weeks = len(edges) - 1
    jobs = result.jobs
    week = np.clip(((jobs["submit"] - result.started) // interval).astype(np.int64), 0, weeks - 1)
    columns: dict[str, list[Any]] = {name: [] for name in ("cluster", "submitted", "handed", "utilisation")}
    for name, own in result.clusters.items():
        columns["cluster"] += [name] * weeks
        for column, what in (("origin", "submitted"), ("destination", "handed")):
            columns[what] += np.bincount(week[jobs[column] == name], minlength=weeks).tolist()
        columns["utilisation"] += _shares(own, edges).tolist()
    count = len(result.clusters)
    return Table({"week": list(range(weeks)) * count, "start": edges[:-1].tolist() * count, **columns})


def _shares(result: JobRecord, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the busy share of a cluster between these instants (s); it is idle before its start and after its end."""
    hours = np.zeros((2, len(edges) - 1))
    for row, steps in zip(hours, (result.busy(), result.capacity()), strict=True):
        inside = np.clip(edges, steps.start, steps.end)
        some = np.diff(inside) > 0
        if some.any():
            low, high = inside[:-1][some], inside[1:][some]
            means = [float(steps.averages(np.array(pair))[0]) for pair in zip(low, high, strict=True)]
            row[some] = np.array(means) * (high - low)
    full = result.processors * np.diff(edges)
    lost = result.processors * np.array(
        [max(0.0, min(high, result.ended) - max(low, result.started)) for low, high in pairwise(edges.tolist())]
    )
    up = full - lost + hours[1]
    shares: NDArray[np.float64] = np.divide(hours[0], up, out=np.zeros(len(up)), where=up > 0)
    return shares


def by_cluster(result: BrokerRecord) -> Table:
    """Return one row per cluster, and a last one of all clusters together.

    Returns
    -------
    Table
        columns ``cluster, processors, jobs`` (that ended well there), ``wait, turnaround`` (means, s),
        ``bounded_slowdown, utilisation`` (from the first to the last instant of the whole run)
    """
    counted = result.counted
    values = {name: job_values(result, name)[counted] for name in ("wait", "turnaround", "bounded_slowdown")}
    destination = result.jobs["destination"][counted]
    columns: dict[str, list[Any]] = {"cluster": [], "processors": [], "jobs": []}
    columns |= {name: [] for name in (*values, "utilisation")}
    edges = np.array([result.started, max(result.ended, result.started + 1e-9)])
    busy, up = 0.0, 0.0
    for name, own in [*result.clusters.items(), ("all", None)]:
        here = np.ones(len(destination), dtype=bool) if own is None else destination == name
        columns["cluster"].append(name)
        columns["processors"].append(result.processors if own is None else own.processors)
        columns["jobs"].append(int(here.sum()))
        for value, all_values in values.items():
            columns[value].append(float(all_values[here].mean()) if here.any() else math.nan)
        if own is None:
            columns["utilisation"].append(busy / up if up else 0.0)
        else:
            share = float(_shares(own, edges)[0])
            columns["utilisation"].append(share)
            busy += share * own.processors
            up += own.processors
    return Table(columns)


def cluster_cells(result: BrokerRecord) -> list[list[str]]:
    """Return the head and the rows of :func:`by_cluster` as texts."""
    rows = [["", "processors", "jobs", "mean wait", "mean turnaround", "utilisation"]]
    for row in by_cluster(result).rows():
        share = f"{100 * row['utilisation']:.1f} %"
        times = [duration(row["wait"]), duration(row["turnaround"])]
        rows.append([str(row["cluster"]), f"{row['processors']:,}", f"{row['jobs']:,}", *times, share])
    return rows


def cluster_lines(result: BrokerRecord) -> list[str]:
    """Return :func:`by_cluster` as lines of text."""
    return text_table(cluster_cells(result), indent=2)
