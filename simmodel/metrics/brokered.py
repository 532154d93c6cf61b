"""Metrics of several clusters under a broker: waits by size and by requested time, and flows between clusters.

Sources: the tables by size and by requested time, and turnaround before and after: the CQSim+ papers of the SPEAR group
at Illinois Institute of Technology.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.display import text_table
from simmodel.foundation.errors import InputError
from simmodel.foundation.loading import check_count
from simmodel.metrics.batch import job_values
from simmodel.metrics.bins import BINS, binned
from simmodel.metrics.report import duration
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.broker_record import BrokerRecord
    from simmodel.records.job_record import JobRecord

__all__ = [
    "WEEK",
    "by_cluster",
    "by_origin",
    "journeys",
    "moved",
    "moved_journeys",
    "moved_turnaround",
    "side_by_side",
    "weekly",
]

WEEK = 7 * 86400.0  # s
_WALLTIME = ("asked", "asked_there", "requested")


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
    clusters = [*result.clusters, ""]
    numbers = [_numbered(jobs[name], list(result.clusters)) for name in ("origin", "destination")]
    for origin, destination, here in _by_pair(*numbers):
        if destination >= 0:
            columns["origin"].append(clusters[origin])
            columns["destination"].append(clusters[destination])
            columns["jobs"].append(len(here))
            columns["processor_seconds"].append(float(work[here].sum()))
            for value in values:
                columns[value].append(float(known[value][here].mean()))
    return Table(columns)


def _numbered(names: NDArray[np.generic], clusters: Sequence[str]) -> NDArray[np.int32]:
    """Return the number of the cluster that each name is; -1: none."""
    distinct, which = np.unique(names.astype(str), return_inverse=True)
    number = {name: i for i, name in enumerate(clusters)}
    return np.array([number.get(name, -1) for name in distinct.tolist()], dtype=np.int32)[which]


def _by_pair(origin: NDArray[np.int32], destination: NDArray[np.int32]) -> Iterator[tuple[int, int, NDArray[np.intp]]]:
    """Yield the rows of each pair of numbers, in the order of the pairs."""
    order = np.lexsort((destination, origin))
    changes = (np.diff(origin[order]) != 0) | (np.diff(destination[order]) != 0)
    for here in np.split(order, np.flatnonzero(changes) + 1):
        if len(here):
            yield int(origin[here[0]]), int(destination[here[0]]), here


def moved(result: BrokerRecord) -> NDArray[np.bool_]:
    """Return a mask of the jobs whose destination is not their home."""
    origin, destination = result.jobs["origin"], result.jobs["destination"]
    which: NDArray[np.bool_] = (origin != "") & (destination != "") & (origin != destination)
    return which


def journeys(result: BrokerRecord) -> Table:
    """Return where each job came from and went: ``origin`` and ``destination`` (numbers of clusters, -1: none), and
    its ``turnaround`` (s; nan: it did not end well).

    >>> from simmodel.records.broker_record import BrokerRecord
    >>> jobs = {"submit": [0], "start": [1], "end": [5], "processors": [1], "origin": [""], "destination": ["b"]}
    >>> list(journeys(BrokerRecord(jobs=jobs, clusters={"a": None, "b": None})).rows())
    [{'origin': -1, 'destination': 1, 'turnaround': 5.0}]
    """
    jobs = result.jobs
    columns = {name: _numbered(jobs[name], list(result.clusters)) for name in ("origin", "destination")}
    return Table({**columns, "turnaround": np.where(result.counted, jobs["end"] - jobs["submit"], np.nan)})


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
    return moved_journeys(journeys(siloed), journeys(brokered), list(brokered.clusters))


def moved_journeys(siloed: Table, brokered: Table, clusters: Sequence[str]) -> Table:
    """Return :func:`moved_turnaround`, given the :func:`journeys` of the same jobs, and the names of the clusters."""
    origin, destination = brokered["origin"], brokered["destination"]
    before, after = siloed["turnaround"], brokered["turnaround"]
    which = (origin >= 0) & (destination >= 0) & (origin != destination) & np.isfinite(before) & np.isfinite(after)
    before, after, moved_rows = before[which], after[which], (origin[which], destination[which])
    rows: list[tuple[Any, ...]] = []
    for home, place, here in _by_pair(*moved_rows):
        rows.append((clusters[home], clusters[place], len(here), before[here].mean(), after[here].mean()))
    if which.any():
        rows.append(("all", "all", len(before), before.mean(), after.mean()))
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


def cluster_cells(clusters: Table) -> list[list[str]]:
    """Return the head and the rows of :func:`by_cluster` as texts."""
    rows = [["", "processors", "jobs", "mean wait", "mean turnaround", "utilisation"]]
    for row in clusters.rows():
        share = f"{100 * row['utilisation']:.1f} %"
        times = [duration(row["wait"]), duration(row["turnaround"])]
        rows.append([str(row["cluster"]), f"{row['processors']:,}", f"{row['jobs']:,}", *times, share])
    return rows


def cluster_lines(clusters: Table) -> list[str]:
    """Return :func:`by_cluster` as lines of text."""
    return text_table(cluster_cells(clusters), indent=2)
