"""Parts of what a job holds: more of it, and less."""

from __future__ import annotations

from simmodel.resources.allocation import Allocation
from simmodel.work.job import LiveJob

__all__ = ["cut", "joined", "probe"]


def probe(job: LiveJob, processors: int, requested: float) -> LiveJob:
    """Return a job of no queue that requests so many processors of the place of another, for some seconds."""
    found = LiveJob(f"{processors} processors for {job.id}", -1, 0.0, processors, requested, requested, requested)
    found.place = job.place
    return found


def joined(first: Allocation, second: Allocation) -> Allocation:
    """Return two allocations as one.

    >>> joined(Allocation.of([(0, 4, 1, 0)]), Allocation.of([(0, 2, 0, 0), (3, 8, 0, 0)])).rows
    ((0, 6, 1, 0), (3, 8, 0, 0))
    """
    parts: dict[int, list[float]] = {}
    for row in (*first.rows, *second.rows):
        mine = parts.setdefault(row[0], [0, 0, 0])
        for i, amount in enumerate(row[1:]):
            mine[i] += amount
    return Allocation.of([(node, *amounts) for node, amounts in parts.items()])  # type: ignore[misc]


def cut(held: Allocation, processors: int, *, whole: bool) -> Allocation:
    """Return the part of an allocation that has so many processors, on the nodes with the lowest numbers.

    ``whole``: nodes are kept or given back whole.

    >>> cut(Allocation.of([(1, 8, 0, 0), (4, 8, 0, 0)]), 11, whole=False).rows
    ((1, 8, 0, 0), (4, 3, 0, 0))
    >>> cut(Allocation.of([(1, 8, 0, 0), (4, 8, 0, 0)]), 5, whole=True).rows
    ((1, 8, 0, 0),)
    """
    left, kept = processors, []
    for node, cores, gpus, memory in held.rows:
        if left <= 0:
            break
        kept.append((node, cores if whole else min(cores, left), gpus, memory))
        left -= cores
    return Allocation.of(kept)
