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

from simmodel.foundation.errors import ByName, InputError
from simmodel.metrics.batch import (
    CHECKPOINT_METRICS,
    INTERRUPTION_METRICS,
    METRICS,
    TAU,
    Cut,
    cut_window,
    in_window,
    jain,
    values_of,
)
from simmodel.records.job_record import AGAIN, STOPS, ended_well, interrupted, never_started, since as since_of
from simmodel.work.table import Table, Words, distinct, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COLUMNS", "RUN_COLUMNS", "NotSorted", "Span", "Spool", "Sweep", "summary_in_one_pass"]

COLUMNS = (
    *("job", "submit", "eligible", "start", "end", "processors", "status", "run", "wait", "attempts", "user", "site"),
    *("outcome", "reason"),
    *STOPS,
    *CHECKPOINT_METRICS,
)
"""The columns of jobs that the metrics need, as far as there are any."""
RUN_COLUMNS = ("job", "attempt", "start", "end", "processors", "status")
"""The columns of executions that they need where these do not follow from the jobs."""
_SECONDS = ("submit", "eligible", "start", "end", "run", "wait", *STOPS[1:], *CHECKPOINT_METRICS)
_MEANS = ("wait", "turnaround", "slowdown", "bounded_slowdown", "per_processor_slowdown")


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

    def __init__(self, sweep: Sweep, low: float, high: float, cut: bool, tau: float, waits: Spool, slow: Spool) -> None:
        self.low, self.high, self._cut, self._tau = low, high, cut, tau
        self.sweep = sweep
        self._waits, self._slow = waits, slow
        self.means = {name: _Mean() for name in _MEANS}
        self.counts = dict.fromkeys(("jobs", "counted", "outside_window", "interrupted", "ended"), 0)
        self.sums: dict[str, float] = {}  # of the metrics of checkpoints
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
        submit, end = jobs["submit"], jobs["end"]
        inside = in_window(jobs, self.low, self.high, cut=self._cut)
        well = ended_well(jobs)
        counted = well & inside
        ended = np.isfinite(end)
        self.counts["jobs"] += len(jobs)
        self.counts["counted"] += int(counted.sum())
        self.counts["outside_window"] += int((~inside).sum())
        self.counts["interrupted"] += int(interrupted(jobs).sum())
        self.counts["ended"] += int((ended & (end >= self.low) & (end <= self.high) & well).sum())
        if len(jobs):
            self.first = float(np.minimum(self.first, submit.min()))  # nan stays
        self.last = max(self.last, float(end[ended].max(initial=-math.inf)))
        for name in CHECKPOINT_METRICS if "checkpoint_time" in jobs else ():
            amount = float(np.nansum((jobs[name] * jobs["processors"])[inside]))
            self.sums[name] = self.sums.get(name, 0.0) + amount
        for name in INTERRUPTION_METRICS if "interruptions" in jobs else ():
            self.means.setdefault(name.removesuffix("_mean"), _Mean())
        self._values(jobs.where(counted))

    def _values(self, jobs: Table) -> None:
        values = {name: values_of(jobs, name, self._tau) for name in self.means}
        for name, mean in self.means.items():
            mean.add(values[name])
        bounded = values["bounded_slowdown"]
        self._waits.add(values["wait"])
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
    parts: Iterable[Table],
    span: Span,
    *,
    runs: Iterable[Table] | None = None,
    warmup: Cut = None,
    cooldown: Cut = None,
    tau: float = TAU,
) -> dict[str, Any]:
    """Return the metrics of jobs on a machine of constant size, as :func:`summary` does.

    Medians and percentiles are exact; the values wait in temporary files until all are known.

    Parameters
    ----------
    parts
        the table of jobs, part by part, sorted by submit time; of its columns :data:`COLUMNS` are used
    span
        the run
    runs
        the executions, part by part, sorted by start; of their columns :data:`RUN_COLUMNS` are used; ``None``: each job
        that started ran once
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
        sweep = Sweep(span.started, span.ended, low, high, runs)
        found = _Pass(sweep, low, high, warmup is not None or cooldown is not None, tau, waits, slow)
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
        "bounded_slowdown_mean": means["bounded_slowdown"].known,
        **dict(zip(("bounded_slowdown_median", "bounded_slowdown_p95"), slow.percentiles(50, 95), strict=True)),
        "per_processor_slowdown_mean": means["per_processor_slowdown"].known,
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
    further = found.sums | {f"{name}_mean": mean.known for name, mean in means.items() if name not in _MEANS}
    total |= {"status": status, "interrupted": counts["interrupted"]}
    if found.unstarted:
        total["never_started"] = dict(sorted(found.unstarted.items()))
    return ByName("metric", {**total, **further, **{name: values[name] for name in METRICS}})


_QUEUE, _ASKED, _BUSY, _INSIDE = range(4)  # waiting jobs, processors they ask for, busy processors, jobs in the system


class NotSorted(InputError):
    """Jobs are not sorted by submit time, or executions by start."""


class Sweep:
    """Goes along time with the jobs of a record and their executions, part by part.

    A change is known once every job submitted before it has been read, and every execution that starts before it. Jobs
    are kept until their last change.

    Parameters
    ----------
    started, ended
        first and last instant of the run, s
    low, high
        the interval of the integrals, s
    runs
        the parts of the table of executions, by start; ``None``: they follow from the jobs

    Attributes
    ----------
    integrals
        of the waiting jobs, the processors that they ask for, the busy processors and the jobs in the system
    deepest
        the longest queue
    done, unfair
        the processor-seconds done, and those that an equal division would have given to other jobs (twice)
    """

    def __init__(
        self, started: float, ended: float, low: float, high: float, runs: Iterable[Table] | None = None
    ) -> None:
        self._started, self._ended, self._low, self._high = started, ended, low, high
        self._at = started
        self._reached = -math.inf  # all changes before it have been made
        self._values = np.zeros(4)
        self._area = 0.0  # of the share of each job in the system
        self.integrals = np.zeros(4)
        self.deepest = self.done = self.unfair = 0.0
        self._runs = None if runs is None else iter(runs)
        self._next: Table | None = None  # the executions that have been read, but not come to
        self._jobs: Table | None = None  # those that have a change to come
        self._times, self._changes = np.zeros(0), np.zeros((0, 4))  # those to come

    def add(self, jobs: Table, status: Words) -> None:
        """Add jobs, none of which was submitted before those of the part before."""
        since = since_of(jobs)
        start, end = jobs["start"], jobs["end"]
        ran = np.isfinite(start)
        gone = np.where(ran, start, np.where(np.isnan(end), math.inf, end))  # from the queue
        queued = ~status.isin(("rejected",)) & ~(gone < since)
        leave = np.where(np.isnan(end), self._ended, end)
        kept = (queued | ran) & np.isfinite(since) & ((since < self._ended) | (since <= self._started))
        first = jobs["submit"][kept & queued]
        if len(first):
            self._advance(float(first.min()))
        size, zero = jobs["processors"].astype(np.float64), np.zeros(len(since))
        held = size * ran * (self._runs is None)
        self._change(since[kept], queued[kept], (size * queued)[kept], zero[kept], ran[kept])
        self._change(gone[kept], -1.0 * queued[kept], -(size * queued)[kept], zero[kept], zero[kept])
        self._change(start[kept], zero[kept], zero[kept], held[kept], zero[kept])
        self._change(leave[kept], zero[kept], zero[kept], -held[kept], -1.0 * ran[kept])
        new = Table(
            {
                **{name: jobs[name] for name in ("job",) if name in jobs},
                "since": since,
                "leave": np.where(ran, leave, gone),
                "counts": ran,  # in the fairness
                "processors": size,
                "received": np.where(ran, leave - start, 0.0) * held,
                "area": np.full(len(since), np.nan),
                "again": np.zeros(len(since), dtype=bool),  # whether it waits again
            }
        ).where(kept)
        old = self._jobs
        self._jobs = new if old is None else Table({name: np.append(old[name], new[name]) for name in new.names})

    def _change(self, at: NDArray[np.float64], *amounts: NDArray[Any]) -> None:
        """Note changes of the four values at instants (s)."""
        known = np.isfinite(at)
        self._times = np.append(self._times, at[known])
        self._changes = np.append(self._changes, np.stack(amounts, axis=1)[known], axis=0)

    def _executions(self, until: float) -> None:
        """Take the executions that start before an instant (s)."""
        while self._runs is not None:
            if self._next is None or not len(self._next):
                self._next = next(self._runs, None)
                if self._next is None:
                    self._runs = iter(())
                    return
            starts = self._next["start"]
            if len(starts) and starts.min() < self._reached:
                raise NotSorted("must have executions sorted by start for metrics in one pass: load_result() reads all")
            now = starts < until
            self._execute(self._next.where(now & ((starts < self._ended) | (starts <= self._started))))
            self._next = self._next.where(~now)
            if len(self._next):
                return

    def _execute(self, runs: Table) -> None:
        """Note the changes by executions: the processors that they hold, and waits of their jobs after them."""
        jobs = self._jobs
        if jobs is None or not len(runs):
            return
        row = rows_of(jobs["job"], runs["job"])
        order = np.lexsort((runs["attempt"], runs["start"], row))
        runs, row = runs.where(order), row[order]
        start, size = runs["start"], runs["processors"].astype(np.float64)
        end = np.where(np.isnan(runs["end"]), self._ended, runs["end"])
        zero, asked = np.zeros(len(row)), jobs["processors"][row]
        back = np.isin(runs["status"], AGAIN)
        follows = np.append(False, row[1:] == row[:-1])
        waited = np.where(follows, np.append(False, back[:-1]), jobs["again"][row])
        self._change(start, -1.0 * waited, -asked * waited, size, zero)
        self._change(end, back, asked * back, -size, zero)
        np.add.at(jobs["received"], row, (end - start) * size)
        jobs["again"][row] = back  # of the last one

    def finish(self) -> None:
        self._advance(math.inf)
        if self._jobs is not None:
            self._count_fairness(self._jobs, self._area)

    def _advance(self, until: float) -> None:
        """Make all changes before an instant (s)."""
        if until < self._reached:
            raise NotSorted("must be sorted by submit time for metrics in one pass: load_result() reads all of it")
        self._executions(until)
        jobs = self._jobs
        if jobs is not None and (over := jobs["again"] & (jobs["leave"] < until)).any():  # withdrawn while they wait
            gone, size, zero = jobs["leave"][over], jobs["processors"][over], np.zeros(over.sum())
            self._change(gone, zero - 1.0, -size, zero, zero)
        begin, self._reached = self._reached, until
        times, changes = self._due(until)
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
        if jobs is not None:
            self._jobs = self._leave_behind(jobs, begin, until, edges, areas)

    def _due(self, until: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take out the changes before an instant (s)."""
        due = self._times < until
        times, changes = self._times[due], self._changes[due]
        self._times, self._changes = self._times[~due], self._changes[~due]
        in_time = (times < self._ended) | (times <= self._started)
        return np.maximum(times[in_time], self._started), changes[in_time]

    def _integrate(self, edges: NDArray[np.float64], held: NDArray[np.float64]) -> None:
        inside = np.diff(np.clip(edges, self._low, self._high))
        self.integrals += inside @ held
        lasting = np.diff(edges) > 0
        self.done += float(held[:, _BUSY] @ np.diff(edges))
        if lasting.any():
            self.deepest = max(self.deepest, float(held[lasting, _QUEUE].max()))

    def _leave_behind(
        self, jobs: Table, begin: float, until: float, edges: NDArray[np.float64], areas: NDArray[np.float64]
    ) -> Table:
        """Count the fairness to jobs that have left; return the others."""
        came = (jobs["since"] >= begin) & (jobs["since"] < until)
        jobs["area"][came] = np.interp(jobs["since"][came], edges, areas)
        left = jobs["leave"] < min(until, self._ended)
        self._count_fairness(jobs.where(left), np.interp(jobs["leave"][left], edges, areas))
        return jobs.where(~(left | ((jobs["leave"] < until) & ~jobs["counts"])))

    def _count_fairness(self, jobs: Table, area: NDArray[np.float64] | float) -> None:
        unfair = np.abs(jobs["received"] - (area - jobs["area"]))
        self.unfair += float(unfair[jobs["counts"]].sum())


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
