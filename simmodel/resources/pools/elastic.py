"""Jobs that start at another size than they prefer, grow and shrink: the questions to a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.resources.pools.allocation import probe

if TYPE_CHECKING:
    from simmodel.resources.pools.claims import Grant
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import LiveJob

__all__ = ["can_resize", "fits_at", "resized"]


def fits_at(pool: Pool, job: LiveJob, processors: int) -> bool:
    """Whether a waiting elastic job could start now on a number of processors."""
    if job.elastic is None or job.elastic.why_not(processors) is not None:
        return False
    return pool.fits(probe(job, processors, job.planned * job.elastic.longer(job.processors, processors)))


def can_resize(pool: Pool, job: LiveJob, processors: int) -> bool:
    """Whether a running elastic job could have another number of processors now."""
    if job.elastic is None or job.run is None or job.elastic.why_not(processors) is not None:
        return False
    return pool.why_rigid is None and resized(pool, job, job.run.grant, processors) is not None


def resized(pool: Pool, job: LiveJob, grant: Grant, processors: int) -> Any:
    """Return a running elastic job's grant or allocation at another size; ``None``: too few processors are free."""
    left = 0.0
    if pool.windows or pool.power is not None:  # the requested seconds that are left then
        assert job.elastic is not None
        elapsed = (pool.env.now - (job.started or 0.0)) if job.run is not None else 0.0
        left = max(0.0, job.planned - elapsed) * job.elastic.longer(job.processors, processors)
    power = pool.power if job.run is not None else None
    if power is not None and not power.allows(job, probe(job, processors, left).request, left):
        return None
    return pool.resized(job, grant, processors, left)
