"""The metrics of batch systems in one pass over a record that stays on disk."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.metrics.batch import bounded_slowdown, cut_window, per_processor_slowdown, slowdown
from simmodel.metrics.fairness import jain
from simmodel.metrics.names import METRICS, TAU, Cut
from simmodel.metrics.spool import Spool
from simmodel.metrics.sweep import Sweep
from simmodel.records.job_record import ENDED_WELL
from simmodel.work.table import distinct
from simmodel.work.word_columns import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.table import Table

__all__ = ["COLUMNS", "Span", "summary_in_one_pass"]

COLUMNS = ("submit", "eligible", "start", "end", "processors", "status", "run", "wait", "attempts", "user")
"""The columns of jobs that the metrics need, as far as there are any."""
_SECONDS = ("submit", "eligible", "start", "end", "run", "wait")


@attrs.frozen(kw_only=True)
class Span:
    """The fields of a record about its run besides its jobs: instants (s) and processors.

    ``first`` and ``last`` are the first and the last submit time, needed for cuts only.
    """

    started: float
    ended: float
    processors: float
    first: float = math.nan
    last: float = math.nan


class _Mean:
    """The mean, the standard deviation and the maximum of values that come in parts; nan are left out."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares, self.most = 0, 0.0, 0.0, math.nan

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values [Chan, Golub, LeVeque 1979]."""
        values = values[~np.isnan(values)]
        if not len(values):
            return
        count, mean = len(values), float(values.mean())
        total = self.count + count
        apart = mean - self.mean
        self.squares += float(((values - mean) ** 2).sum()) + apart**2 * self.count * count / total
        self.mean += apart * count / total
        self.count = total
        self.most = float(np.fmax(self.most, values.max()))

    @property
    def known(self) -> float:
        """The mean; nan if there are no values."""
        return self.mean if self.count else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation; nan if there are no values."""
        return math.sqrt(self.squares / self.count) if self.count else math.nan


class _Pass:
    """The accumulators of one pass over the jobs."""

    def __init__(self, span: Span, low: float, high: float, cut: bool, tau: float, waits: Spool, slow: Spool) -> None:
        self.low, self.high, self._cut, self._tau = low, high, cut, tau
        self.sweep = Sweep(span.started, span.ended, low, high)
        self._waits, self._slow = waits, slow
        self.means = {name: _Mean() for name in ("wait", "turnaround", "slowdown", "bounded", "per_processor")}
        self.counts = dict.fromkeys(("jobs", "counted", "outside_window", "interrupted", "ended"), 0)
        self.status: dict[str, int] = {}
        self.first, self.last = math.inf, -math.inf
        self.users: dict[Any, list[float]] | None = {}

    def add(self, jobs: Table) -> None:
        """Add a part of the jobs."""
        seconds = [name for name in _SECONDS if name in jobs]
        jobs = jobs.with_columns(**{name: jobs[name].astype(np.float64, copy=False) for name in seconds})
        status = Words.of(jobs["status"])
        self.sweep.add(jobs, status)
        for word, count in status.counts().items():
            self.status[word] = self.status.get(word, 0) + count
        submit, start, end = jobs["submit"], jobs["start"], jobs["end"]
        inside = (submit >= self.low) & (submit <= self.high)
        if not self._cut:
            inside |= start >= self.low
        well = status.isin(ENDED_WELL)
        counted = well & inside
        ended = np.isfinite(end)
        self.counts["jobs"] += len(jobs)
        self.counts["counted"] += int(counted.sum())
        self.counts["outside_window"] += int((~inside).sum())
        self.counts["interrupted"] += int((jobs["attempts"] > 1).sum())
        self.counts["ended"] += int((ended & (end >= self.low) & (end <= self.high) & well).sum())
        if len(jobs):
            self.first = float(np.minimum(self.first, submit.min()))  # nan stays
        self.last = max(self.last, float(end[ended].max(initial=-math.inf)))
        self._values(jobs.where(counted))

    def _values(self, jobs: Table) -> None:
        wait, run, processors = jobs["wait"], jobs["run"], jobs["processors"]
        since = jobs["submit"]
        if "eligible" in jobs:
            since = np.where(np.isnan(jobs["eligible"]), since, jobs["eligible"])
        bounded = bounded_slowdown(wait, run, self._tau)
        self.means["wait"].add(wait)
        self.means["turnaround"].add(jobs["end"] - since)
        self.means["slowdown"].add(slowdown(wait, run))
        self.means["bounded"].add(bounded)
        self.means["per_processor"].add(per_processor_slowdown(wait, run, processors, self._tau))
        self._waits.add(wait)
        self._slow.add(bounded)
        if "user" not in jobs:
            self.users = None
        elif self.users is not None:
            names, which = distinct(jobs["user"])
            sums, counts = np.bincount(which, weights=bounded), np.bincount(which)
            for name, total, count in zip(names.tolist(), sums.tolist(), counts.tolist(), strict=True):
                known = self.users.setdefault(name, [0.0, 0])
                known[0] += total
                known[1] += count


def summary_in_one_pass(
    parts: Iterable[Table], span: Span, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU
) -> dict[str, Any]:
    """Return the metrics of jobs that ran once each on a machine of constant size, as :func:`summary` does.

    Medians and percentiles are exact; the values wait in temporary files until all are known.

    Parameters
    ----------
    parts
        the table of jobs, part by part, sorted by submit time; of its columns :data:`COLUMNS` are used
    span
        the run
    warmup, cooldown, tau
        as of :func:`~simmodel.metrics.batch.summary`; not ``"mser-5"``

    >>> from simmodel.work.table import Table
    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2], "run": [10, 20]}
    >>> jobs = Table({**jobs, "wait": [0, 10], "attempts": [1, 1], "status": ["completed"] * 2})
    >>> found = summary_in_one_pass([jobs.where([0]), jobs.where([1])], Span(started=0, ended=30, processors=4))
    >>> found["wait_mean"], round(found["utilisation"], 3)
    (5.0, 0.667)
    """
    if warmup == "mser-5":
        message = "must be seconds or a share for a streamed record, got 'mser-5': load_result() reads all of it"
        raise InputError(message, place="warmup")
    low, high = cut_window(span, span.first, span.last, warmup, cooldown)
    with Spool() as waits, Spool() as slow:
        found = _Pass(span, low, high, warmup is not None or cooldown is not None, tau, waits, slow)
        for part in parts:
            found.add(part)
        found.sweep.finish()
        return _metrics(found, span, waits, slow)


def _metrics(found: _Pass, span: Span, waits: Spool, slow: Spool) -> dict[str, Any]:
    means, counts, sweep = found.means, found.counts, found.sweep
    length = found.high - found.low
    queue, asked, busy, _ = sweep.integrals.tolist()
    capacity = span.processors * max(0.0, min(found.high, span.ended) - max(found.low, span.started))
    users = found.users if counts["counted"] else None
    values = {
        "wait_mean": means["wait"].known,
        **dict(zip(("wait_median", "wait_p95"), waits.percentiles(50, 95), strict=True)),
        "wait_max": means["wait"].most,
        "turnaround_mean": means["turnaround"].known,
        "slowdown_mean": means["slowdown"].known,
        "bounded_slowdown_mean": means["bounded"].known,
        **dict(zip(("bounded_slowdown_median", "bounded_slowdown_p95"), slow.percentiles(50, 95), strict=True)),
        "per_processor_slowdown_mean": means["per_processor"].known,
        "utilisation": busy / capacity if capacity else math.nan,
        "makespan": found.last - found.first if math.isfinite(found.last) else math.nan,
        "throughput": counts["ended"] / length if length > 0 else math.nan,
        "queue_length_mean": queue / length if length > 0 else math.nan,
        "queue_length_max": sweep.deepest,
        "queued_processors_mean": asked / length if length > 0 else math.nan,
        "wait_std": means["wait"].deviation,
        "fairness_users": math.nan if users is None else jain([total / count for total, count in users.values()]),
        "unfairness": sweep.unfair / (2 * sweep.done) if sweep.done else math.nan,
    }
    total = {name: counts[name] for name in ("jobs", "counted", "outside_window")}
    status = dict(sorted(found.status.items()))
    return {**total, "status": status, "interrupted": counts["interrupted"], **{name: values[name] for name in METRICS}}
