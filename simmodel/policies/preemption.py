"""Preemption: jobs of some queues stop jobs of other queues.

Source: the best-effort queue of OAR: Capit et al., "A batch scheduler with high level components", CCGrid 2005; also
the preemption by partition priority or QOS of Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from simmodel.policies.backfilling import Easy
from simmodel.policies.ordering import at_each_place
from simmodel.scheduling.protocol import Decision, Policy, Preempt, Start, View
from simmodel.scheduling.registry import PolicyLike, policy as policy_of

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.resources.pools.pool import Pool
    from simmodel.work.job import JobRequest, LiveJob, Run

__all__ = ["Preemptive"]


class Batch(Protocol):
    """A cluster."""

    @property
    def spec(self) -> ClusterSpec:
        """Its platform, with its queues."""
        ...


class Preemptive(Policy):
    """Let a head of the queue that does not fit preempt jobs of other queues; then let another policy decide.

    The latest started jobs are stopped first, no more than needed, and none if that would not make enough room. The
    platform specifies which queues may preempt which, and whether preempted jobs are requeued or suspended
    (:class:`~simmodel.platform.cluster.QueueSpec`).

    Parameters
    ----------
    policy
        the policy for the other jobs; its ``order`` is also the order of the heads

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

    def notes(self, system: Batch, /) -> tuple[str, ...]:
        """Return a sentence if no queue of the system may preempt another."""
        if any(queue.preempts for queue in system.spec.queues):
            return self.policy.notes(system)
        text = f"policy {self.name} preempts nothing: no queue of the platform may preempt another"
        return (text, *self.policy.notes(system))

    def forget(self) -> None:
        """Reset the other policy: yet another one has decided since."""
        self.policy.forget()

    def state(self) -> Any:
        return self.policy.state()

    def restore(self, values: Any) -> None:
        self.policy.restore(values)

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Start heads, with preemption if it helps; then yield the decisions of the other policy."""
        yield from at_each_place(view, self._heads)
        yield from self.policy.decide(view) or ()

    def _heads(self, view: View, place: Pool) -> Iterator[Decision]:
        queue = view.waiting.at(place).by(self.order)
        while (job := queue.head()) is not None:
            if not place.fits(job):
                if any(entry.place.fits(entry) for entry in view.choices.get(job, ())):
                    return
                victims = _victims(place, job, view.now)
                if not victims:
                    return
                for run in victims:
                    yield Preempt(run.job, run.job.rules.spec.preemptible, f"gives way to job {job.id}")
                if not place.fits(job) or job.state != "waiting":
                    return  # a body takes time to stop; the scheduler wakes when it has stopped
            yield Start(job, place)


def _victims(place: Pool, job: LiveJob, now: float) -> list[Run]:
    """Return the executions to stop so that the job fits, latest start first; empty if that is not enough."""
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
        and (run.started < now or not _stopped_before(run.work))  # else two jobs could stop each other forever
    ]
    candidates.sort(key=lambda run: (-run.started, -run.work.seq))
    chosen: list[Run] = []
    for run in candidates:
        chosen.append(run)
        if place.fits_without(job, stopping + chosen):
            return chosen
    return []


def _stopped_before(job: LiveJob) -> bool:
    return job.attempts > 1 or (job.history is not None and job.history.suspended)


def _allows(spec: JobRequest | None, mode: str) -> bool:
    """Whether a job may be preempted in this mode; a job with a body cannot be suspended."""
    return spec is None or (spec.on_preempt != "no" and (not spec.has_body or mode != "suspend"))
