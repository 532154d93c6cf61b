"""Conversion of live jobs to their state in snapshots, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.snapshots.jobs import Past, WorkState
from simmodel.work.job import LiveJob

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool

__all__ = ["job_of", "work_of"]


def work_of(job: LiveJob, past: Past | None = None) -> WorkState:
    """Return the state of a job for a snapshot; ``past`` is its history before the present execution."""
    return WorkState(
        job.id,
        job.seq,
        float(job.submit),
        job.processors,
        float(job.planned),
        float(job.expected),
        float(job._duration),
        job.user,
        float(job.priority),
        job.place.name,
        job._outcome,
        job._job,
        past,
        job.elastic if job._job is None else None,
        job.unrequested,
    )


def job_of(work: WorkState, row: int, place: Pool) -> LiveJob:
    """Return the live job of a snapshot state, at a row of the record."""
    duration = work.expected if work.duration is None else work.duration
    job = LiveJob(work.id, row, work.submit, work.processors, work.requested, work.expected, duration)
    job.seq, job.user, job.priority, job.place = work.number, work.user, work.priority, place
    job._job, job._outcome, job.unrequested = work.spec, work.outcome, work.unrequested
    job.request = None if work.spec is None else place.request_of(work.spec)
    return job
