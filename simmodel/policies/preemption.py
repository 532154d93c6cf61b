"""Preemption: jobs of some queues give way to jobs of others.

Source: the best-effort queue of OAR: Capit et al., "A batch scheduler with high level components", CCGrid 2005; also
the preemption by partition priority or QOS of Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simmodel.policies.backfilling import Easy
from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.protocol import Decision, Preempt, Start, View
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.resources.pool import Pool
    from simmodel.work.job import JobRequest, LiveJob, Run

__all__ = ["Preemptive"]


class Preemptive(Policy):
    """A job at the head of the queue that does not fit stops jobs that its queue may preempt; then another policy.

    The latest started go first, no more than needed, and none where that would not make enough room. Which queue may
    preempt which, and whether its jobs start again or go on later, is said by the platform
    (:class:`~simmodel.platform.cluster.QueueSpec`).

    Parameters
    ----------
    policy
        what decides about the rest; it has an ``order``, which is that of the queue here too

    >>> Preemptive(Easy("sjf")).name
    'preemptive sjf+easy'
    """

    decides = "jobs"
    preempts = True
    tries_every_submission = True

    def __init__(self, policy: PolicyLike | None = None) -> None:
        self.policy = Easy() if policy is None else policy_of(policy)
        self.order = getattr(self.policy, "order", self.policy)
        self.name = f"preemptive {self.policy.name}"

    def forget(self) -> None:
        """Have the other policy forget what its last decision found."""
        self.policy.forget()

    def state(self) -> Any:
        """Return what the other policy remembers, for a snapshot."""
        return self.policy.state()

    def restore(self, values: Any) -> None:
        """Have the other policy remember it."""
        self.policy.restore(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Start heads, with preemption where it helps; then let the other policy decide."""
        for place in view.places:
            yield from self._heads(view, place)
        yield from self.policy.decide(view) or ()

    def _heads(self, view: View, place: Pool) -> Iterator[Decision]:
        queue = view.waiting.at(place).by(self.order)
        while (job := queue.head()) is not None:
            if not place.fits(job):
                victims = _victims(place, job, view.now)
                if not victims:
                    return
                for run in victims:
                    yield Preempt(run.job, run.job.rules.spec.preemptible, f"gives way to job {job.id}")
                if not place.fits(job) or job.state != "waiting":
                    return  # a body takes its time to stop; the scheduler wakes when it has
            yield Start(job, place)


def _victims(place: Pool, job: LiveJob, now: float) -> list[Run]:
    """Return the executions to stop so that the job fits, the latest first; none where that is not enough."""
    rules = job.rules
    if rules is None or not rules.spec.preempts:
        return []
    stopping = [run for run in place.running if getattr(run, "stopping", None) is not None]  # bodies that clean up
    if stopping and place.fits_without(job, stopping):
        return []
    candidates = [
        run
        for run in place.running
        if (other := getattr(run.work, "rules", None)) is not None
        and other.spec.name in rules.spec.preempts
        and other.spec.preemptible is not None
        and _allows(run.work.spec, other.spec.preemptible)
        and run.stopping is None
        and (run.started < now or not _stopped_before(run.work))  # else two could stop each other for ever
    ]
    candidates.sort(key=lambda run: (-run.started, -run.work.seq))
    chosen: list[Run] = []
    for run in candidates:
        chosen.append(run)
        if place.fits_without(job, stopping + chosen):
            return chosen
    return []


def _stopped_before(job: LiveJob) -> bool:
    return job.attempts > 1 or (job.past is not None and job.past.suspended)


def _allows(spec: JobRequest | None, mode: str) -> bool:
    """Whether the job may be stopped so; one with a body cannot be suspended."""
    return spec is None or (spec.on_preempt != "no" and (not spec.has_body or mode != "suspend"))
