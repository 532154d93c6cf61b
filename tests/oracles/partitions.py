"""Schedules of jobs for several partitions, job by job in one queue, by rescanning plain lists.

All jobs have the same priority and end at their requested times, so that one order holds in all partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Asked", "schedule"]


class Asked(NamedTuple):
    """A job: its instant of submission, processors, run time and partitions in order of preference."""

    submit: int
    processors: int
    run: int
    partitions: tuple[int, ...]


def schedule(
    sizes: Sequence[int], jobs: Sequence[Asked], key: Callable[[Asked], float] = lambda job: 0, *, easy: bool = False
) -> list[tuple[int, int]]:
    """Return the start and the partition of each job, each of which fits into its partitions."""
    found: dict[int, tuple[int, int]] = {}
    now = min(job.submit for job in jobs)

    def order() -> list[int]:
        waiting = [i for i, job in enumerate(jobs) if i not in found and job.submit <= now]
        return sorted(waiting, key=lambda i: (key(jobs[i]), jobs[i].submit, i))

    def running(part: int) -> list[tuple[int, int]]:
        """Return (end, processors) of what runs in a partition, by end."""
        runs = [(at + jobs[i].run, jobs[i].processors) for i, (at, where) in found.items() if where == part]
        return sorted((end, n) for end, n in runs if end > now)

    def free(part: int) -> int:
        return sizes[part] - sum(n for _, n in running(part))

    def earliest(i: int, part: int) -> tuple[int, int]:
        """Return when a job fits by the ends of running jobs, and the processors free beside it then."""
        there, at = free(part) - jobs[i].processors, now
        ends = running(part)
        while there < 0:
            at = ends[0][0]
            while ends and ends[0][0] == at:
                there += ends.pop(0)[1]
        return at, there

    def heads() -> dict[int, int] | None:
        """Start the first job that may start and return ``None``, or return the job that each partition is held for."""
        held: dict[int, int] = {}
        for i in order():
            left = [part for part in jobs[i].partitions if part not in held]
            if fitting := [part for part in left if free(part) >= jobs[i].processors]:
                found[i] = now, fitting[0]
                return None
            if not easy:
                held |= dict.fromkeys(left, i)
            elif left:
                held[min(left, key=lambda part: earliest(i, part)[0])] = i
        return held

    def backfill(held: dict[int, int]) -> bool:
        """Start the first job that delays no other; return whether there is one."""
        for i in order():
            for part in jobs[i].partitions:
                if free(part) < jobs[i].processors or held.get(part) in (i, None):
                    continue
                at, extra = earliest(held[part], part)
                if now + jobs[i].run <= at or jobs[i].processors <= extra:
                    found[i] = now, part
                    return True
        return False

    while len(found) < len(jobs):
        while (held := heads()) is None or (easy and backfill(held)):
            pass
        ends = [at + jobs[i].run for i, (at, _) in found.items()]
        now = min((at for at in (*ends, *(job.submit for job in jobs)) if at > now), default=now)
    return [found[i] for i in range(len(jobs))]
