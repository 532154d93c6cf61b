"""Conversion of live jobs to their state in snapshots, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import SnapshotError
from simmodel.resources.pools.claims import Grant
from simmodel.resources.pools.counts import COUNTED
from simmodel.snapshots.jobs import Past, Whole, WorkState, seen_work
from simmodel.work.job import Booting, History, LiveJob
from simmodel.work.live_job import kept_state, seen_by

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool

__all__ = ["actual_state", "grant_of", "history_of", "job_of", "past_of", "seen_state", "shares", "work_of"]


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


def _made(job: LiveJob) -> WorkState:
    return work_of(job, past_of(job))


def _made_seen(job: LiveJob) -> WorkState:
    return seen_work(kept_state(job, _made))


def actual_state(job: LiveJob) -> WorkState:
    """Return the state of a job from which it can continue exactly.

    Raises
    ------
    SnapshotError
        if it has a body, or is suspended in the midst of a save
    """
    if job._job is not None and job._job.has_body:
        raise SnapshotError(
            f"job {job.id} cannot be copied: {job._job.program} (snapshot(actual=False) has what policies know of it)"
        )
    if job.history is not None and job.history.progress is not None:  # suspended
        raise shares(job)
    state: WorkState = kept_state(job, _made)
    return state


seen_state: Callable[[LiveJob], WorkState] = seen_by(_made_seen)
"""Returns the state of a job as policies see it."""


def shares(job: LiveJob) -> SnapshotError:
    """Return the error of a job that is in the midst of an execution whose end depends on who else saves."""
    assert job._job is not None
    assert job._job.checkpoint is not None
    return SnapshotError(
        f"job {job.id} cannot be copied before it ends: it saves to {job._job.checkpoint.to}, which others share "
        "(snapshot(actual=False) has what policies know of it)"
    )


def job_of(work: WorkState, row: int, place: Pool) -> LiveJob:
    """Return the live job of a snapshot state, at a row of the record."""
    duration = work.expected if work.duration is None else work.duration
    job = LiveJob(work.id, row, work.submit, work.processors, work.requested, work.expected, duration)
    job.seq, job.user, job.priority, job.place = work.number, work.user, work.priority, place
    job._job, job._outcome, job.unrequested = work.spec, work.outcome, work.unrequested
    job.request = None if work.spec is None else place.request_of(work.spec)
    return job


def past_of(job: LiveJob) -> Past | None:
    """Return the history of a job before its present execution; ``None``: it has none."""
    past, attempts = job.history, job.attempts - (job.run is not None and not isinstance(job.run, Booting))
    if past is None:
        return Past(attempts) if attempts else None
    whole = None if past._whole is None else Whole(*map(float, past._whole))
    return Past(
        attempts,
        past.eligible,
        past.first_start,
        past.attempt_start,
        past.last_start,
        past.executed,
        whole,
        None if not past.resumes else past.resumes.allocation or True,
        None if past.bound is None else past.bound.allocation,
        past.kept,
        past.done,
        past.interruptions,
        past.waited,
        past.paused,
        past.lost,
        past.overhead,
        past.stopped,
        past.level,
    )


def history_of(past: Past) -> History:
    """Return the live history of a job."""
    history = History()
    history.eligible = past.eligible
    history.first_start = past.first_start
    history.attempt_start = past.attempt_start
    history.last_start = past.last_start
    history.executed = past.executed
    if past.whole is not None:
        requested, expected, duration = past.whole
        history._whole = requested, expected, expected if duration is None else duration
    if past.resumes is not None:
        history.resumes = grant_of(None if past.resumes is True else past.resumes)
    if past.bound is not None:
        history.bound = grant_of(past.bound)
    history.kept, history.done, history.level = past.kept, past.done, past.level
    history.interruptions, history.stopped = past.interruptions, past.stopped
    history.waited, history.paused, history.lost, history.overhead = past.waited, past.paused, past.lost, past.overhead
    return history


def grant_of(held: Any) -> Grant:
    """Return the grant of an allocation of nodes; ``None``: of counted processors."""
    return COUNTED if held is None else Grant(held.processors, tuple(held.nodes.tolist()), held)
