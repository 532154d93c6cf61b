"""The present decisions of a policy, its starts and promises, made on a copy of a cluster as in simulations."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import attrs

from simmodel.environment import Environment
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.observer import Observer
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.kinds import kind_of_snapshot

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import Place
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.snapshot import PolicyState
    from simmodel.work.job import LiveJob, Run

__all__ = ["Question", "promised_now", "started_now"]


class Question:
    """A copy of a cluster at the question which jobs start now.

    Parameters
    ----------
    seen
        a cluster as a policy may see it: see :meth:`ClusterSnapshot.expected
        <simmodel.snapshots.cluster.ClusterSnapshot.expected>`
    policy
        default: that of the snapshot
    memory
        the memory of the policy; default: as in the snapshot

    Attributes
    ----------
    seen
        the snapshot, with all waiting jobs as new ones and a decision due
    system, simulation
        the copy, at its instant; no decision has been made
    runs
        the executions that the decisions have started
    promises
        by id, the starts (s) that the decisions have promised

    >>> from simmodel import Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> question = Question(cluster.snapshot().expected(), "easy")
    >>> question.simulation.decide(), [run.job.id for run in question.runs]
    (1, [3])
    """

    def __init__(
        self, seen: ClusterSnapshot, policy: PolicyLike | None = None, *, memory: PolicyState | None = None
    ) -> None:
        asked = attrs.evolve(
            seen,
            policy=attrs.evolve(memory or seen.policy, due=True, asked=True),
            options=attrs.evolve(seen.options, decide_on="instant"),
            new=tuple([work.number for work in seen.waiting]),
        )
        self.seen = asked
        self.system = Cluster.from_snapshot(Environment(asked.now, 0), asked, policy, record=False)
        self.simulation = Simulation(self.system)
        self.runs: list[Run] = []
        self.promises: dict[int | str, float] = {}
        view = self.simulation.next_decision()
        assert view is not None
        assert view.now == asked.now
        self.system.env.observe(_Decided(self.runs, self.promises))


class _Decided(Observer):
    """Collects the executions that start, and the starts that are promised."""

    def __init__(self, runs: list[Run], promises: dict[int | str, float]) -> None:
        self._runs = runs
        self._promises = promises

    def job_started(self, run: Run) -> None:
        self._runs.append(run)

    def job_promised(self, job: LiveJob, _place: Place, at: float) -> None:
        self._promises[job.id] = min(float(at), self._promises.get(job.id, inf))


def started_now(seen: ClusterSnapshot, policy: PolicyLike | None = None) -> set[int | str]:
    """Return the ids of the jobs that a policy starts at the instant of a snapshot, as a policy may see it.

    >>> from simmodel import Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> started_now(cluster.snapshot().expected(), "easy")
    {3}
    """
    question = Question(seen, policy)
    question.simulation.decide()
    return {run.job.id for run in question.runs}


def promised_now(seen: ClusterSnapshot, policy: PolicyLike | None = None) -> dict[int | str, float]:
    """Return the starts (s) that a policy promises at the instant of a snapshot, by id, whether it records them or not.

    >>> from simmodel import Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 3): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> promised_now(cluster.snapshot().expected(), "conservative"), promised_now(cluster.snapshot().expected(), "easy")
    ({2: 10.0, 3: 20.0}, {2: 10.0})
    """
    promising = kind_of_snapshot(seen).policy_of(seen, policy).promising()
    if promising is None:
        return {}
    question = Question(seen, promising)
    question.simulation.decide()
    return question.promises
