"""Checkpoints of the jobs of a cluster: what an execution has kept, and what the next one has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simmodel.work.checkpoint import Kept
from simmodel.work.prepare import planned_seconds

if TYPE_CHECKING:
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.systems.cluster.saves import Saves
    from simmodel.work.job import LiveJob, Run

__all__ = ["count_kept", "plan_rest"]


def count_kept(core: ClusterCore, saves: Saves, run: Run, status: str) -> None:
    """Count what an execution that ends now has kept: it is suspended, completed or stopped.

    Observers hear ``job_checkpointed(run, kept, lost)``; ``lost``: the seconds of this execution that are done again.
    """
    job = run.job
    spec, past = job._job, job.remember()
    assert spec is not None
    assert spec.checkpoint is not None
    assert spec.run is not None
    before = past.kept or Kept()
    speed = run.place.speed_of(job, run.grant.nodes)
    elapsed = float(core.env._now - run.started)
    if status == "suspended":
        past.kept = before._replace(ran=before.ran + elapsed * speed)
        past.progress = saves.pause(run)
        return
    counted = saves.end(run, status)
    past.progress = None
    if counted is not None:
        kept = counted
    elif status == "completed":
        kept = spec.checkpoint.completed(spec.run, before)
    else:
        kept = spec.checkpoint.stopped(elapsed * speed, before)
    past.kept = kept
    lost = (kept.lost - before.lost) / speed if status in ("preempted", "requeued") else 0.0
    past.executed += elapsed - lost
    core.tell("job_checkpointed", run, kept, lost)


def plan_rest(core: ClusterCore, job: LiveJob) -> None:
    """Plan a job that has been requeued with the work that its checkpoints have not kept."""
    spec, past = job._job, job.past
    assert spec is not None
    assert past is not None
    assert past.kept is not None
    seconds = spec.seconds(past.kept.saved)
    limit = seconds if spec.requested is None else spec.requested
    requested, expected, duration = map(float, planned_seconds(seconds, limit, core.estimates, core.overrun))
    if job.predicted:
        requested, expected = job.planned, job.expected
    if not past.suspended:
        past._whole = job.planned, job.expected, job._duration
    job.plan(requested, expected, duration)
    job._outcome = "timeout" if core.overrun == "stop" and limit < seconds else "completed"
