"""The rules of the policies for malleable jobs, step by step, on counted processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

__all__ = ["OneJob", "malleable_ends"]


@dataclass
class OneJob:
    """A job: its instants and seconds, its sizes, and the serial share of its work."""

    submit: Fraction
    run: Fraction
    requested: Fraction
    sizes: tuple[int, int, int]
    serial: Fraction
    elastic: bool
    left: Fraction = field(init=False)  # seconds at the preferred size
    asked: Fraction = field(init=False)
    size: int = 0
    started: int = -1
    end: Fraction | None = None

    def __post_init__(self) -> None:
        self.left, self.asked = min(self.run, self.requested), self.requested

    def rate(self, size: int) -> Fraction:
        def law(n: int) -> Fraction:
            return 1 / (self.serial + (1 - self.serial) / n)

        return law(size) / law(self.sizes[1])


def malleable_ends(jobs: Sequence[OneJob], processors: int, rule: str) -> list[Fraction]:
    """Return the ends of jobs under a rule: ``keep-preferred``, ``shrink-to-start`` or ``equal-shares``."""
    now = Fraction(0)
    while any(job.end is None for job in jobs):
        for job in jobs:
            if job.started >= 0 and job.end is None and job.left == 0:
                job.end = now
        _decide(jobs, processors, rule, now)
        running = [job for job in jobs if job.started >= 0 and job.end is None]
        times = [job.left / job.rate(job.size) for job in running]
        times += [job.submit - now for job in jobs if job.submit > now]
        if not times:
            break
        step = min(times)
        for job in running:
            job.left -= step * job.rate(job.size)
            job.asked -= step * job.rate(job.size)
        now += step
    return [job.end for job in jobs if job.end is not None]


def _decide(jobs: Sequence[OneJob], processors: int, rule: str, now: Fraction) -> None:
    def running() -> list[OneJob]:
        return sorted((job for job in jobs if job.started >= 0 and job.end is None), key=lambda job: job.started)

    def free() -> int:
        return processors - sum(job.size for job in running())

    def floor(job: OneJob) -> int:
        return job.sizes[1] if rule == "keep-preferred" or not job.elastic else job.sizes[0]

    def room() -> int:
        return free() + sum(job.size - floor(job) for job in running() if job.elastic)

    def begin(job: OneJob, size: int) -> None:
        for other in reversed([each for each in running() if each.elastic]):
            other.size -= max(0, min(other.size - floor(other), size - free()))
        job.started = 1 + max(each.started for each in jobs)
        job.size = size

    waiting = [job for job in jobs if job.started < 0 and job.submit <= now]
    while waiting and floor(waiting[0]) <= room():
        head = waiting.pop(0)
        begin(head, min(head.sizes[1], room()))
    if waiting:
        head, at, extra = waiting[0], None, room() - floor(waiting[0])
        ends = sorted((job.asked / job.rate(job.size), floor(job)) for job in running())
        for left, size in ends:
            if at is not None and left > at:
                break
            extra += size
            if at is None and extra >= 0:
                at = left
        limit = inf if at is None else at
        for job in waiting[1:]:
            size = job.sizes[1]
            if size <= room() and (job.requested <= limit or size <= extra):
                extra -= size if job.requested > limit else 0
                begin(job, size)
    _spread([job for job in running() if job.elastic], free, rule)


def _spread(elastic: list[OneJob], free: Callable[[], int], rule: str) -> None:
    if rule != "equal-shares":
        for which in (1, 2):
            for job in elastic:
                job.size += max(0, min(job.sizes[which] - job.size, free()))
        return
    if free() <= 0:
        return
    for job in elastic:
        job.size = job.sizes[0]
    while free() > 0 and (able := [job for job in elastic if job.size < job.sizes[2]]):
        min(able, key=lambda job: (job.size, job.started)).size += 1
