"""Jobs that may run in several partitions: which ones, and one entry of the job for the queue of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError, unknown
from simmodel.work.job import ANY, LiveJob, Refusal, rule_of

if TYPE_CHECKING:
    from simmodel.resources.pools.pool import Pool
    from simmodel.systems.cluster.core import ClusterCore
    from simmodel.work.job import Job

__all__ = ["able", "bind", "check_partitions", "entries_of", "places_of", "places_to_wait"]


def places_of(spec: Job, core: ClusterCore) -> list[Pool]:
    """Return the pools of the ``partitions`` of a job, in order of preference, without reservations beside others.

    Raises
    ------
    InputError
        if one is unknown
    """
    names = [str(name) for name in spec.partitions]
    if names == [ANY] and ANY not in core.pools:
        names = list(core.pools)
    for name in names:
        if name not in core.pools:
            raise InputError(f"job {spec.id}: {unknown('partition', name, core.pools).message}")
    places = [core.pools[name] for name in names]
    return [place for place in places if place.part_of is None] or places[:1]


def check_partitions(job: Job, core: ClusterCore, label: object) -> None:
    """Check that a job does not name a reservation beside other partitions.

    Raises
    ------
    InputError
        if it does; the error calls the job by the label
    """
    for name in job.partitions if len(job.partitions) > 1 else ():
        if core.pools[str(name)].part_of is not None:
            raise InputError(f"job {label}: partitions: must name reservation {name} alone, got {job.partition_text}")


def bind(job: LiveJob, place: Pool) -> None:
    """Bind a job that is in no queue to a place."""
    before = job.place
    job.place = place
    if before is not None:
        job.priority += place.priority - before.priority
    job.width = job.processors
    if job._job is not None:
        job.request = place.request_of(job._job)
    job.changed()


def able(job: LiveJob, places: Sequence[Pool]) -> tuple[list[Pool], Refusal]:
    """Return those of several places that can ever run a job, and why the others cannot."""
    spec, request = job._job, job.request
    assert spec is not None
    found, reasons = [], {}
    for place in places:
        job.request = place.request_of(spec)
        reason = place.why_not(job) or place.limits_why_not(job)
        if reason is None:
            found.append(place)
        else:
            reasons[reason] = rule_of(reason)
    job.request = request
    return found, Refusal("; ".join(reasons), "; ".join(dict.fromkeys(reasons.values())))


def entries_of(job: LiveJob, places: Sequence[Pool]) -> tuple[LiveJob, ...]:
    """Return the entries of a job for the queues of several places: the job itself for the first, copies for others."""
    if job.place is not places[0]:
        bind(job, places[0])
    return job, *(_copy(job, place) for place in places[1:])


def places_to_wait(job: LiveJob, core: ClusterCore) -> list[Pool]:
    """Return the places in whose queues a job waits, in order of preference: those of its partitions that can run it.

    A suspended job waits for the place where it was suspended.
    """
    spec = job._job
    if spec is None or not spec.partitions or core.only_pool is not None or (job.past is not None and job.past.resumes):
        return [job.place]
    return able(job, places_of(spec, core))[0] or [job.place]


def _copy(job: LiveJob, place: Pool) -> LiveJob:
    copy = LiveJob(job.id, job.index, job.submit, job.processors, job.planned, job.expected, job._duration)
    copy.seq, copy.user, copy.priority, copy.place = job.seq, job.user, job.priority, job.place
    copy.rules, copy._job, copy._outcome = job.rules, job._job, job._outcome
    copy.attempts, copy.past, copy.watched, copy.unrequested = job.attempts, job.past, True, job.unrequested
    bind(copy, place)
    return copy
