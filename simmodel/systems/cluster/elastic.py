"""The sizes of elastic jobs: starts at another one than the preferred, and changes while they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.resources.pools.elastic import fits_at, resized
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.scheduling.protocol import Resize, Start

__all__ = ["carry_resize", "carry_sized_start"]


class Sizing(Protocol):
    """The part that starts and resizes jobs: the execution of a cluster."""

    @property
    def places(self) -> Sequence[Pool]:
        """The places on which jobs run."""
        ...

    def start(self, work: LiveJob, place: Pool, /, *, processors: int | None = None) -> None:
        """Start a waiting job at a size."""
        ...

    def resize(self, job: LiveJob, processors: int, held: Any, /) -> None:
        """Give a running job another size, with the capacity that it holds from now on."""
        ...


def carry_sized_start(execution: Sizing, decision: Start) -> str | None:
    """Start a waiting elastic job at the size that a decision names, or return why this is impossible."""
    job, place, _, allocation, processors = decision
    assert processors is not None
    if job.state != "waiting" or job.place is not place:
        return f"cannot start {job!r} on {place.name}: it does not wait for it"
    if job.elastic is None:
        return f"processors: must be None for a job that is not elastic, got {processors!r}"
    if allocation is not None:
        return f"allocation: must be None beside a size, got {allocation!r}"
    reason: str | None = job.elastic.why_not(processors)
    if reason is None and processors != job.preferred:
        reason = place.why_rigid
    if reason is not None:
        return reason
    if job.past is not None and job.past.resumes:
        return f"processors: must be None for a suspended job, which resumes as it was, got {processors!r}"
    if not fits_at(place, job, processors):
        return f"does not fit: {processors} processors, {place.free} of {place.capacity} are free"
    execution.start(job, place, processors=processors)
    return None


def carry_resize(execution: Sizing, decision: Resize) -> str | None:
    """Give a running job another size, or return why this is impossible."""
    job, processors = decision.work, decision.processors
    if not isinstance(job, LiveJob) or job.run is None or job.run.released:
        return f"cannot resize {job!r}: it is not running"
    place = job.run.place
    if place not in execution.places:
        return f"cannot resize {job!r}: it is running on another system"
    if job.elastic is None:
        return f"cannot resize {job!r}: it is not elastic"
    reason = job.elastic.why_not(processors) or place.why_rigid
    if reason is not None or processors == job.processors:
        return reason
    held: Any = resized(place, job, job.run.grant, processors)
    if held is None:
        more = processors - job.processors
        return f"does not fit: {more} more processors, {place.free} of {place.capacity} are free"
    execution.resize(job, processors, held)
    return None
