"""Metrics of jobs in bins (of size, of requested time, of anything) and by user, queue or partition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.metrics.batch import TAU, job_values
from simmodel.work.table import Table, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.job_record import JobRecord

__all__ = ["BINS", "binned", "distribution", "grouped"]

# Half-open bins (low, high], as common for logs of large machines: sizes in processors, requested times in s.
BINS: dict[str, tuple[float, ...]] = {
    "processors": (0, 128, 256, 512, 1024, math.inf),
    "requested": tuple(60.0 * minutes for minutes in (10, 30, 60, 120, 250, 500, 1000, 1500)),
}

_STEPS = 2000  # most steps of a distribution


def distribution(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps of an empirical distribution: values in ascending order, and the share of all up to each.

    Values that are missing or infinite do not count; of more than 2,000 different values so many are returned, with
    their exact shares.

    >>> distribution(np.array([90.0, 0.0, 0.0, 0.0]))
    (array([ 0., 90.]), array([0.75, 1.  ]))
    """
    known = np.sort(values[np.isfinite(values)])
    last = np.flatnonzero(np.append(known[1:] != known[:-1], True)[: len(known)])  # of equal values
    shown = last[np.unique(np.linspace(0, len(last) - 1, _STEPS).astype(np.int64))] if len(last) else last
    return known[shown], (shown + 1) / max(len(known), 1)


Statistic: TypeAlias = "str | Callable[[NDArray[np.float64]], float]"


def _statistic(statistic: Statistic) -> Callable[[NDArray[np.float64]], float]:
    if not isinstance(statistic, str):
        return statistic
    if statistic.startswith("p") and statistic[1:].replace(".", "", 1).isdigit() and float(statistic[1:]) <= 100:
        return lambda values: float(np.percentile(values, float(statistic[1:])))
    known: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "mean": np.mean,
        "median": np.median,
        "min": np.min,
        "max": np.max,
        "sum": np.sum,
        "std": np.std,
    }
    if statistic not in known:
        accepted = f"{', '.join(known)}, p0 to p100 or a function"
        raise InputError(f"must be one of {accepted}, got {statistic!r}", place="statistic")
    return known[statistic]


def _of(values: NDArray[np.float64], function: Callable[[NDArray[np.float64]], float]) -> float:
    known = values[~np.isnan(values)]
    return float(function(known)) if len(known) else math.nan


def binned(
    result: JobRecord,
    by: str = "processors",
    bins: Sequence[float] | None = None,
    value: str = "wait",
    statistic: Statistic = "mean",
    *,
    tau: float = TAU,
) -> Table:
    """Return a statistic of the counted jobs in bins ``(low, high]``, with a last row for jobs outside them.

    Parameters
    ----------
    by
        the value that is binned: a column of the jobs, or a value as of :func:`~simmodel.metrics.batch.job_values`
    bins
        edges, increasing, in the unit of ``by`` (times in s); default: :data:`BINS` for processors and requested
    value
        the value that is averaged: wait, turnaround, slowdown, bounded_slowdown, per_processor_slowdown or a column
    statistic
        mean, median, min, max, sum, std, a percentile such as ``p95``, or a function of an array

    Returns
    -------
    Table
        columns ``bin`` (its name), ``low, high, jobs`` and one named after the value; the last row is ``outside``

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0, 0], "start": [1, 2, 3], "end": [9, 9, 9], "processors": [128, 129, 130]}
    >>> table = binned(JobRecord(jobs=jobs), bins=[0, 128, 129])
    >>> list(zip(table["bin"].tolist(), table["jobs"].tolist(), table["wait"].tolist()))
    [('(0,128]', 1, 1.0), ('(128,129]', 1, 2.0), ('outside', 1, 3.0)]
    """
    if bins is None:
        if by not in BINS:
            raise InputError(f"missing bins for {by!r}; only {' and '.join(BINS)} have default bins")
        edges = np.array(BINS[by])
    else:
        edges = np.asarray(bins, dtype=np.float64)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InputError(f"must be two or more increasing edges, got {edges.tolist()}", place="bins")
    function = _statistic(statistic)
    counted = result.counted
    keys = job_values(result, by, tau)[counted]
    values = job_values(result, value, tau)[counted]
    where = np.searchsorted(edges, keys, side="left") - 1  # -1 below, len(edges) - 1 above (and nan)
    where = np.where((where < 0) | (where >= len(edges) - 1), len(edges) - 1, where)
    order = np.argsort(where, kind="stable")
    parts = np.split(values[order], np.cumsum(np.bincount(where, minlength=len(edges)))[:-1])
    scale, unit = (60.0, " min") if by == "requested" and bins is None else (1.0, "")
    names = [f"({low / scale:g},{high / scale:g}]{unit}" for low, high in pairwise(edges)]
    return Table(
        {
            "bin": [*names, "outside"],
            "low": np.append(edges[:-1], math.nan),
            "high": np.append(edges[1:], math.nan),
            "jobs": [len(part) for part in parts],
            value: [_of(part, function) for part in parts],
        }
    )


def grouped(
    result: JobRecord,
    by: str = "user",
    values: Sequence[str] = ("wait", "bounded_slowdown"),
    statistic: Statistic = "mean",
    *,
    tau: float = TAU,
) -> Table:
    """Return a statistic of the counted jobs for each user, group, queue or partition, in order of their names.

    Parameters
    ----------
    by
        a column of the jobs
    values, statistic
        as of :func:`binned`

    Returns
    -------
    Table
        columns ``by``, ``jobs``, ``processor_seconds`` (work done) and one per value

    >>> from simmodel.records import JobRecord
    >>> jobs = {"submit": [0, 0], "start": [1, 2], "end": [9, 9], "processors": [2, 1], "user": ["ann", "bob"]}
    >>> for row in grouped(JobRecord(jobs=jobs), values=["wait"]).rows(): print(row)
    {'user': 'ann', 'jobs': 1, 'processor_seconds': 16.0, 'wait': 1.0}
    {'user': 'bob', 'jobs': 1, 'processor_seconds': 7.0, 'wait': 2.0}
    """
    counted, function = result.counted, _statistic(statistic)
    names, which = distinct(result.jobs[by][counted])
    jobs = np.bincount(which, minlength=len(names))
    order, splits = np.argsort(which, kind="stable"), np.cumsum(jobs)[:-1]
    work = (result.jobs["run"] * result.jobs["processors"])[counted]
    columns: dict[str, Any] = {
        by: names,
        "jobs": jobs,
        "processor_seconds": np.bincount(which, weights=work, minlength=len(names)),
    }
    for value in values:
        parts = np.split(job_values(result, value, tau)[counted][order], splits) if len(names) else []
        columns[value] = np.array([_of(part, function) for part in parts])
    return Table(columns)
