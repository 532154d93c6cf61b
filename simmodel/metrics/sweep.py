"""Queue and machine over time in one pass over jobs that are sorted by submit time, in memory that does not grow."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.foundation.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.table import Table
    from simmodel.work.word_columns import Words

__all__ = ["NotSorted", "Sweep"]

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
        self._reached = -inf  # all changes before it have been made
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
        gone = np.where(ran, start, np.where(np.isnan(end), inf, end))  # from the queue
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
        self._advance(inf)
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
        edges = np.concatenate([[self._at], times, [self._ended] if until == inf else []])
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
        """Return the instants of the changes between two instants, and the amounts that change there."""
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
