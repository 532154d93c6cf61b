"""Metrics of several results side by side, of jobs or of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS, TAU, Cut, job_values
from simmodel.metrics.statistics import Interval, series_interval
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.records.job_record import JobRecord

__all__ = ["METRICS_OF", "Measured", "compare", "metrics_known", "wait_difference", "weekly_sums"]

METRICS_OF: Mapping[str, Mapping[str, tuple[str, str]]] = {"jobs": JOB_METRICS, "tasks": MACHINE_METRICS}
"""The metrics that are numbers, by the kind of work: unit and label of each."""


class Measured(Protocol):
    """A result with metrics.

    ``METRICS``: those that are numbers, each with its unit and label; ``COUNTS``: those that count the work;
    :meth:`metric_text`: one with its unit as text.
    """

    @property
    def METRICS(self) -> Mapping[str, tuple[str, str]]:
        """The metrics that are numbers."""
        ...

    @property
    def COUNTS(self) -> tuple[str, ...]:
        """The metrics that count the work."""
        ...

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    def metrics(self) -> dict[str, Any]:
        """Return the metrics by name; those of jobs take ``warmup``, ``cooldown`` and ``tau``."""
        ...

    def metric_text(self, name: str, value: float) -> str:
        """Return a metric with its unit."""
        ...


def metrics_known(results: Sequence[Measured]) -> dict[str, tuple[str, str]]:
    """Return the metrics that some of several results have: unit and label of each."""
    return {name: about for result in results for name, about in result.METRICS.items()}


def compare(
    results: Sequence[Measured],
    metrics: Sequence[str] | None = None,
    *,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
) -> Table:
    """Return a table with one row per result: ``result``, its counts, and one column per metric.

    Parameters
    ----------
    results
        at least one, all of one kind of work
    metrics
        names of their ``METRICS``; default: all that one of them has; nan for a result without it
    warmup, cooldown, tau
        of metrics of jobs, as of :func:`simmodel.metrics.batch.summary`

    Raises
    ------
    InputError
        if a metric is unknown, or metrics of tasks get an option of metrics of jobs

    >>> from simmodel import Result
    >>> jobs = {"submit": [0], "start": [2], "end": [9], "processors": [1]}
    >>> for row in compare([Result(name="a", jobs=jobs), Result(name="b", jobs=jobs)], ["wait_mean"]).rows():
    ...     print(row)
    {'result': 'a', 'jobs': 1, 'counted': 1, 'wait_mean': 2.0}
    {'result': 'b', 'jobs': 1, 'counted': 1, 'wait_mean': 2.0}
    """
    known = metrics_known(results)
    wanted = tuple(known) if metrics is None else tuple(metrics)
    for name in wanted:
        if name not in known:
            raise unknown("metric", name, known)
    found = [_metrics(result, warmup, cooldown, tau) for result in results]
    columns = {name: np.array([each.get(name, np.nan) for each in found]) for name in (*results[0].COUNTS, *wanted)}
    return Table({"result": np.array([result.name for result in results], dtype=str), **columns})


def _metrics(result: Measured, warmup: Cut, cooldown: Cut, tau: float) -> dict[str, Any]:
    if (warmup, cooldown, tau) == (None, None, TAU):
        return result.metrics()
    if result.METRICS == MACHINE_METRICS:
        raise InputError("warmup, cooldown and tau are options of metrics of jobs, not of tasks", source=result.name)
    of_jobs: Any = result
    found: dict[str, Any] = of_jobs.metrics(warmup=warmup, cooldown=cooldown, tau=tau)
    return found


def wait_difference(result: JobRecord, other: JobRecord, level: float = 0.95) -> Interval:
    """Return how much longer the same jobs wait under one result than under another, s: the mean with its interval.

    Jobs are paired by name and taken in order of submission; those that have not started under both are left out. As
    the waits of successive jobs depend on each other, the interval is that of
    :func:`~simmodel.metrics.statistics.series_interval`, which says where none would hold.

    >>> from simmodel import Result
    >>> times = {"submit": [0, 1], "end": [9, 9], "processors": [1, 1]}
    >>> runs = [Result(jobs={**times, "start": [start, 1]}) for start in (4, 2)]
    >>> print(wait_difference(*runs))
    1 (no interval: worth 2 independent observations, 250 needed)
    """
    known = dict(zip(other.jobs["job"].tolist(), other.jobs["wait"].tolist(), strict=True))
    order = np.argsort(result.jobs["submit"], kind="stable")
    before = np.array([known.get(job, np.nan) for job in result.jobs["job"][order].tolist()])
    more = result.jobs["wait"][order] - before
    return series_interval(more[np.isfinite(more)], level)


_WEEK = 604_800.0
_BY_JOB = ("wait", "turnaround", "slowdown", "bounded_slowdown", "per_processor_slowdown")


def weekly_sums(result: JobRecord, kept: bool = True) -> dict[str, Table]:
    """Return sums over the counted jobs submitted in each week, as ``weeks``: ``week, jobs``, and by metric of means.

    >>> from simmodel import Result
    >>> jobs = {"submit": [0, 9, 700_000], "start": [1, 10, 700_002], "end": [9, 12, 700_005], "processors": [1, 1, 1]}
    >>> weekly_sums(Result(jobs=jobs))["weeks"]["wait_mean"]
    array([2., 2.])
    """
    counted = result.counted
    weeks = ((result.jobs["submit"] - np.min(result.jobs["submit"], initial=np.inf))[counted] // _WEEK).astype(np.int64)
    sums = {f"{name}_mean": np.bincount(weeks, job_values(result, name)[counted]) for name in _BY_JOB}
    jobs = np.bincount(weeks)
    return {"weeks": Table({"week": np.arange(len(jobs)), "jobs": jobs, **sums})}
