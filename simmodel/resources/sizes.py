"""Jobs that start at another size than they prefer, grow and shrink: the questions to a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.resources.allocation import Allocation
from simmodel.resources.counts import COUNTED
from simmodel.resources.hosts import HostPool
from simmodel.resources.nodes import NodePool
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.resources.claims import Grant
    from simmodel.resources.pool import Pool

__all__ = ["can_resize", "cut", "fits_at", "joined", "resized", "why_rigid"]


def why_rigid(pool: Pool) -> str | None:
    """Return why the jobs of a pool keep their size, or ``None``."""
    if isinstance(pool, HostPool):
        return f"each job of {pool.name} runs on one host"
    if isinstance(pool, NodePool) and pool.spec.placed_by in _WHOLE:
        return f"the placement of {pool.name} is {pool.spec.placed_by!r}"
    return None


_WHOLE = ("contiguous", "exclusive-by-switch")


def _probe(job: LiveJob, processors: int, requested: float) -> LiveJob:
    """Return a job of no queue that requests so many processors of the place of another."""
    probe = LiveJob(f"{processors} processors for {job.id}", -1, 0.0, processors, requested, requested, requested)
    probe.place = job.place
    return probe


def fits_at(pool: Pool, job: LiveJob, processors: int) -> bool:
    """Whether a waiting elastic job could start now on a number of processors."""
    if job.elastic is None or job.elastic.why_not(processors) is not None:
        return False
    longer = job.elastic.speed(job.processors) / job.elastic.speed(processors)
    return pool.fits(_probe(job, processors, job.requested * longer))


def can_resize(pool: Pool, job: LiveJob, processors: int) -> bool:
    """Whether a running elastic job could have another number of processors now."""
    if job.elastic is None or job.run is None or job.elastic.why_not(processors) is not None:
        return False
    if not isinstance(pool, NodePool) and not pool.windows:
        return processors - job.processors <= pool.free
    return why_rigid(pool) is None and resized(pool, job, job.run.grant, processors) is not None


def resized(pool: Pool, job: LiveJob, grant: Grant, processors: int) -> Any:
    """Return what a running job would hold on another number of processors; ``None``: too few are free.

    A job that grows keeps what it holds; one that shrinks gives back the nodes with the highest numbers.
    """
    held = grant.allocation
    more = processors - (job.processors if held is None else held.processors)
    if held is None:
        if pool.simple:
            return COUNTED if more <= pool.free else None
        return COUNTED if more <= 0 or pool.fits(_probe(job, more, _left(pool, job, processors))) else None
    if more <= 0:
        return cut(held, processors, whole=pool.spec.exclusive)
    assert isinstance(pool, NodePool)
    extra = pool.allocate(_probe(job, more, _left(pool, job, processors)))
    return None if extra is None else joined(held, extra)


def _left(pool: Pool, job: LiveJob, processors: int) -> float:
    """Return the requested seconds that a running job has left on another number of processors."""
    assert job.elastic is not None
    elapsed = (pool.env.now - (job.started or 0.0)) if job.run is not None else 0.0
    return max(0.0, job.requested - elapsed) * job.elastic.speed(job.processors) / job.elastic.speed(processors)


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
