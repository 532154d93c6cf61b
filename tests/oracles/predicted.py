"""EASY with predicted run times, slowly: every decision looks at every job, once per instant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import NamedTuple

INCREMENTS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)


class Asked(NamedTuple):
    """A job: seconds, processors, user."""

    submit: float
    run: float
    requested: float
    processors: int
    user: str


def starts(jobs: Sequence[Asked], capacity: int) -> list[float]:
    """Return the starts of jobs that are planned with the mean of the last two run times of their users."""
    begun: dict[int, float] = {}
    planned: dict[int, float] = {}
    last: dict[str, list[float]] = {}
    waiting: list[int] = []
    lengths = [min(job.run, job.requested) for job in jobs]
    over: set[int] = set()
    now = 0.0
    while len(over) < len(jobs):
        # Ends, in the order of the starts of their jobs, then submissions.
        running = [i for i in begun if i not in over]
        for i in running:
            if begun[i] + lengths[i] <= now:
                over.add(i)
                last.setdefault(jobs[i].user, []).append(lengths[i])
        for i, job in enumerate(jobs):
            if job.submit == now and i not in planned:
                own = last.get(job.user, [])[-2:]
                planned[i] = min(job.requested, max(1.0, sum(own) / 2)) if len(own) == 2 else job.requested
                waiting.append(i)
        _decide(jobs, capacity, now, begun, over, planned, waiting)
        now = min(_next(jobs, now, begun, over, planned, lengths), default=inf)
        if now == inf:
            break
    return [begun[i] for i in range(len(jobs))]


def _expected(i: int, jobs: Sequence[Asked], now: float, begun: dict[int, float], planned: dict[int, float]) -> float:
    """Return the expected end as of now: corrections that are due at this instant have been made."""
    for seconds in accumulate((planned[i], *INCREMENTS)):
        if begun[i] + seconds > now:
            return begun[i] + min(seconds, jobs[i].requested)
    return begun[i] + jobs[i].requested


def _decide(
    jobs: Sequence[Asked],
    capacity: int,
    now: float,
    begun: dict[int, float],
    over: set[int],
    planned: dict[int, float],
    waiting: list[int],
) -> None:
    def free() -> int:
        return capacity - sum(jobs[i].processors for i in begun if i not in over)

    while waiting and jobs[waiting[0]].processors <= free():
        begun[waiting.pop(0)] = now
    if not waiting:
        return
    ends = sorted((_expected(i, jobs, now, begun, planned), jobs[i].processors) for i in begun if i not in over)
    there, at = free(), now
    for end, processors in ends:
        if there >= jobs[waiting[0]].processors and end > at:
            break
        there, at = there + processors, end
    extra = there - jobs[waiting[0]].processors
    for i in waiting[1:]:
        wide = jobs[i].processors
        if wide <= free() and (now + planned[i] <= at or wide <= extra):
            extra -= wide if now + planned[i] > at else 0
            begun[i] = now
            waiting.remove(i)


def _next(
    jobs: Sequence[Asked],
    now: float,
    begun: dict[int, float],
    over: set[int],
    planned: dict[int, float],
    lengths: list[float],
) -> list[float]:
    """Return the instants to come: ends, submissions, corrections."""
    coming = [job.submit for i, job in enumerate(jobs) if i not in planned]
    for i, start in begun.items():
        if i not in over:
            coming.append(start + lengths[i])
            coming.append(_expected(i, jobs, now, begun, planned))
    return [at for at in coming if at > now]
