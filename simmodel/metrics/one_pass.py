"""The metrics of batch systems in one pass over a record that stays on disk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.metrics.batch import (
    METRICS,
    TAU,
    Cut,
    bounded_slowdown,
    cut_window,
    jain,
    per_processor_slowdown,
    slowdown,
)
from simmodel.records.job_record import ended_well, never_started
from simmodel.work.table import Words, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.table import Table

__all__ = ["COLUMNS", "NotSorted", "Span", "Spool", "Sweep", "summary_in_one_pass"]

COLUMNS = (
    "submit",
    "eligible",
    "start",
    "end",
    "processors",
    "status",
    "run",
    "wait",
    "attempts",
    "user",
    "outcome",
    "reason",
)
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
        self.unstarted: Counter[str] = Counter()
        self.first, self.last = math.inf, -math.inf
        self.users: dict[Any, list[float]] | None = {}

    def add(self, jobs: Table) -> None:
        """Add a part of the jobs."""
        seconds = [name for name in _SECONDS if name in jobs]
        jobs = jobs.with_columns(**{name: jobs[name].astype(np.float64, copy=False) for name in seconds})
        status = Words.of(jobs["status"])
        self.sweep.add(jobs, status)
        self.unstarted.update(never_started(jobs))
        for word, count in status.counts().items():
            self.status[word] = self.status.get(word, 0) + count
        submit, start, end = jobs["submit"], jobs["start"], jobs["end"]
        inside = (submit >= self.low) & (submit <= self.high)
        if not self._cut:
            inside |= start >= self.low
        well = ended_well(jobs)
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
    total: dict[str, Any] = {name: counts[name] for name in ("jobs", "counted", "outside_window")}
    status = dict(sorted(found.status.items()))
    total |= {"status": status, "interrupted": counts["interrupted"]}
    if found.unstarted:
        total["never_started"] = dict(sorted(found.unstarted.items()))
    return {**total, **{name: values[name] for name in METRICS}}


_QUEUE, _ASKED, _BUSY, _INSIDE = range(4)  # waiting jobs, processors they ask for, busy processors, jobs in the system
_FIELDS = ("since", "start", "leave", "gone", "processors", "area")


class NotSorted(InputError):
    """Jobs are not sorted by submit time."""


class Sweep:
    """Goes along time with the jobs of a record, part by part.

    A change is known once every job submitted before it has been read. Jobs are kept until their last change.

    Parameters
    ----------
    started, ended
        first and last instant of the run, s
    low, high
        the interval of the integrals, s

    Attributes
    ----------
    integrals
        of the waiting jobs, the processors that they ask for, the busy processors and the jobs in the system
    deepest
        the longest queue
    done, unfair
        the processor-seconds done, and those that an equal division would have given to other jobs (twice)
    """

    def __init__(self, started: float, ended: float, low: float, high: float) -> None:
        self._started, self._ended, self._low, self._high = started, ended, low, high
        self._at = started
        self._reached = -math.inf  # all changes before it have been made
        self._values = np.zeros(4)
        self._area = 0.0  # of the share of each job in the system
        self.integrals = np.zeros(4)
        self.deepest = self.done = self.unfair = 0.0
        self._jobs: dict[str, NDArray[np.float64]] = {name: np.zeros(0) for name in _FIELDS}

    def add(self, jobs: Table, status: Words) -> None:
        """Add jobs, none of which was submitted before those of the part before."""
        submit = jobs["submit"]
        since = submit
        if "eligible" in jobs:
            since = np.where(np.isnan(jobs["eligible"]), submit, jobs["eligible"])
        start, end = jobs["start"], jobs["end"]
        ran = np.isfinite(start)
        gone = np.where(ran, start, np.where(np.isnan(end), math.inf, end))  # from the queue
        queued = ~status.isin(("rejected",)) & ~(gone < since)
        leave = np.where(ran, np.where(np.isnan(end), self._ended, end), np.nan)
        kept = (queued | ran) & np.isfinite(since) & ((since < self._ended) | (since <= self._started))
        first = submit[kept & queued]
        if len(first):
            self._advance(float(first.min()))
        new = {
            "since": np.where(ran | queued, since, np.nan),
            "start": start,
            "leave": leave,
            "gone": np.where(queued, gone, np.nan),
            "processors": jobs["processors"].astype(np.float64),
            "area": np.full(len(since), np.nan),
        }
        self._jobs = {name: np.append(self._jobs[name], new[name][kept]) for name in _FIELDS}

    def finish(self) -> None:
        """Go to the end of the run."""
        self._advance(math.inf)
        jobs = self._jobs
        running = np.isfinite(jobs["start"])
        self._count_fairness({name: column[running] for name, column in jobs.items()}, self._area)

    def _advance(self, until: float) -> None:
        """Make all changes before an instant (s)."""
        if until < self._reached:
            raise NotSorted("must be sorted by submit time for metrics in one pass: load_result() reads all of it")
        begin, self._reached = self._reached, until
        times, changes = self._changes(begin, until)
        order = np.argsort(times, kind="stable")
        times, changes = times[order], np.cumsum(changes[order], axis=0)
        last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else np.zeros(0, dtype=np.intp)
        times, values = times[last], self._values + changes[last]
        edges = np.concatenate([[self._at], times, [self._ended] if until == math.inf else []])
        held = np.vstack([self._values, values])[: len(edges) - 1]
        self._integrate(edges, held)
        inside = held[:, _INSIDE]
        share = np.divide(held[:, _BUSY], inside, out=np.zeros(len(inside)), where=inside > 0)
        areas = np.append(0.0, np.cumsum(share * np.diff(edges))) + self._area
        if len(values):
            self._values = values[-1]
        self._at, self._area = float(edges[-1]), float(areas[-1])
        self._leave_behind(begin, until, edges, areas)

    def _changes(self, begin: float, until: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the instants of the changes between two instants, and what changes."""
        jobs = self._jobs
        size, zero, one = jobs["processors"], np.zeros(len(jobs["since"])), np.ones(len(jobs["since"]))
        queued, ran = ~np.isnan(jobs["gone"]), ~np.isnan(jobs["start"])
        found = [
            (jobs["since"], (one * queued, size * queued, zero, one * ran)),
            (jobs["gone"], (-one, -size, zero, zero)),
            (jobs["start"], (zero, zero, size, zero)),
            (jobs["leave"], (zero, zero, -size, -one)),
        ]
        times, changes = [], []
        for at, amounts in found:
            in_time = (at < self._ended) | (at <= self._started)
            here = np.flatnonzero((at >= begin) & (at < until) & in_time)
            times.append(np.maximum(at[here], self._started))
            changes.append(np.stack(amounts, axis=1)[here])
        return np.concatenate(times), np.concatenate(changes)

    def _integrate(self, edges: NDArray[np.float64], held: NDArray[np.float64]) -> None:
        inside = np.diff(np.clip(edges, self._low, self._high))
        self.integrals += inside @ held
        lasting = np.diff(edges) > 0
        self.done += float(held[:, _BUSY] @ np.diff(edges))
        if lasting.any():
            self.deepest = max(self.deepest, float(held[lasting, _QUEUE].max()))

    def _leave_behind(self, begin: float, until: float, edges: NDArray[np.float64], areas: NDArray[np.float64]) -> None:
        """Count the fairness to jobs that have left, and forget those without changes to come."""
        jobs = self._jobs
        came = (jobs["since"] >= begin) & (jobs["since"] < until)
        jobs["area"] = np.where(came, np.interp(jobs["since"], edges, areas), jobs["area"])
        left = (jobs["leave"] >= begin) & (jobs["leave"] < min(until, self._ended))
        parts = {name: column[left] for name, column in jobs.items()}
        self._count_fairness(parts, np.interp(parts["leave"], edges, areas))
        over = np.where(np.isnan(jobs["start"]), jobs["gone"] < until, left | (jobs["leave"] < begin))
        self._jobs = {name: column[~over] for name, column in jobs.items()}

    def _count_fairness(self, jobs: dict[str, NDArray[np.float64]], area: NDArray[np.float64] | float) -> None:
        received = (jobs["leave"] - jobs["start"]) * jobs["processors"]
        self.unfair += float(np.abs(received - (area - jobs["area"])).sum())


_BLOCK = 1 << 16
_DIGIT = 16  # bits that a pass over the file decides
_SIGN = np.uint64(1 << 63)


class Spool:
    """Values in a temporary file, of which any percentile can be asked.

    A percentile takes four passes over the file, each of which decides 16 more bits of the value at a rank.

    >>> with Spool() as spool:
    ...     spool.add(np.array([3.0, 1.0])); spool.add(np.array([2.0]))
    ...     spool.percentiles(50, 95)
    [2.0, 2.9]
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 # closed by __exit__
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def add(self, values: NDArray[np.float64]) -> None:
        """Add values, none of which is nan."""
        self._file.write(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        self._count += len(values)

    def percentiles(self, *percents: float) -> list[float]:
        """Return percentiles as ``numpy.percentile``, linear between two values; nan if there are no values."""
        if not self._count:
            return [math.nan] * len(percents)
        places = [(self._count - 1) * percent / 100 for percent in percents]
        ranks = sorted({rank for at in places for rank in (math.floor(at), math.ceil(at))})
        values = dict(zip(ranks, self._at(ranks), strict=True))
        found = []
        for at in places:
            low, high = values[math.floor(at)], values[math.ceil(at)]
            found.append(low + (high - low) * (at - math.floor(at)))
        return found

    def _keys(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the values as whole numbers of the same order, block by block."""
        self._file.seek(0)
        while block := self._file.read(8 * _BLOCK):
            bits = np.frombuffer(block, dtype=np.uint64)
            yield np.where(bits & _SIGN, ~bits, bits | _SIGN)

    def _at(self, ranks: list[int]) -> list[float]:
        """Return the values at these ranks, from 0."""
        prefix = dict.fromkeys(ranks, 0)
        left = {rank: rank for rank in ranks}  # the rank among the values with the same prefix
        for shift in range(64 - _DIGIT, -1, -_DIGIT):
            counts = {each: np.zeros(1 << _DIGIT, dtype=np.int64) for each in prefix.values()}
            for keys in self._keys():
                upper = keys >> np.uint64(shift)
                for each, count in counts.items():
                    here = upper[upper >> np.uint64(_DIGIT) == each] if shift < 64 - _DIGIT else upper
                    count += np.bincount((here & np.uint64((1 << _DIGIT) - 1)).astype(np.int64), minlength=1 << _DIGIT)
            for rank in ranks:
                upto = np.cumsum(counts[prefix[rank]])
                digit = int(np.searchsorted(upto, left[rank], side="right"))
                left[rank] -= int(upto[digit - 1]) if digit else 0
                prefix[rank] = prefix[rank] << _DIGIT | digit
        keys = np.array([prefix[rank] for rank in ranks], dtype=np.uint64)
        values: list[float] = np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64).tolist()
        return values
