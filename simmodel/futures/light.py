"""The light futures of one snapshot under several policies, on any executor, by a deadline: ``view.simulate_all``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, NamedTuple

import attrs

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, SimmodelError
from simmodel.futures.executors import run_all
from simmodel.futures.in_worker import Watch
from simmodel.scheduling.protocol import Policy
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.snapshot import PolicyState
from simmodel.systems.cluster.future.replay import Course, Prediction, follow, memory_of
from simmodel.systems.cluster.system import Cluster

if TYPE_CHECKING:
    from simmodel.scheduling.registry import PolicyLike

__all__ = ["FutureMissed", "LightFutures", "predict"]


class FutureMissed(SimmodelError):
    """A future is missing: its deadline passed, or its policy failed."""


def predict(
    snapshot: ClusterSnapshot,
    policy: PolicyLike | None = None,
    *,
    until: float | None = None,
    observers: Sequence[object] = (),
) -> Prediction:
    """Simulate from a snapshot to its end, or to an instant (s), and record starts and ends only.

    Uses everything in the snapshot, including actual run times; pass ``snapshot.expected()`` to exclude information
    that policies do not have.

    Parameters
    ----------
    snapshot
        the snapshot to start from
    policy
        default: that of the snapshot
    until
        instant at which to stop, in s; excludes events at that instant
    observers
        objects with the hooks of schedulers, such as ``decided``

    >>> from simmodel import Job
    >>> env = Environment(); cluster = Cluster(env, 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> env.run(until=1)
    >>> predict(cluster.snapshot(actual=False), "easy").starts
    [(3, 'batch', 1.0), (2, 'batch', 10.0)]
    """
    env = Environment(snapshot.now, snapshot.seed)
    for observer in observers:
        env.observe(observer)
    return follow(Cluster.from_snapshot(env, snapshot, policy, record=False), snapshot, until)


class _Task(NamedTuple):
    policy: Policy
    memory: PolicyState
    until: float | None


def _expected(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return snapshot.expected()


@attrs.frozen
class LightFutures:
    """The futures of a snapshot of a cluster, as ``view.simulate`` returns them, but of several policies at once.

    Parameters
    ----------
    snapshot
        the snapshot; only the parts that policies may know are used
    executor
        runs the simulations; default: this process
    deadline
        wall-clock seconds from each call on

    >>> from simmodel import Cluster, Environment, Job
    >>> from simmodel.scheduling.registry import policy
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> futures = LightFutures(cluster.snapshot())
    >>> [future.starts for future in futures.of([policy("fcfs"), policy("easy")])]
    [[(2, 'batch', 10.0), (3, 'batch', 10.0)], [(3, 'batch', 1.0), (2, 'batch', 10.0)]]
    """

    snapshot: ClusterSnapshot = attrs.field(converter=_expected)
    executor: Executor | None = None
    deadline: float | None = None

    def of(
        self, policies: Sequence[Policy], *, horizon: float | None = None, estimates: str | None = None
    ) -> list[Prediction]:
        """Return the future under each policy, with its memory; ``horizon``: seconds to simulate.

        Raises
        ------
        FutureMissed
            a simulation did not end by the deadline, or failed
        InputError
            the estimates are not those that policies have
        """
        if estimates is not None:
            raise InputError(f"must be None: actual run times are not known, got {estimates!r}", place="estimates")
        until = None if horizon is None else self.snapshot.now + horizon
        tasks = [_Task(each.fresh(), memory_of(each), until) for each in policies]
        found = []
        for policy, how in zip(
            policies,
            run_all(_course, self.snapshot, tasks, executor=self.executor, deadline=self.deadline),
            strict=True,
        ):
            if how.status != "finished":
                raise FutureMissed(f"future under {policy.name}: {how.reason}")
            found.append(Prediction(self.snapshot, how.value))
        return found


def _course(snapshot: ClusterSnapshot, task: _Task, left: float | None) -> Course:
    """Simulate one future; runs in the workers."""
    seen = attrs.evolve(snapshot, policy=task.memory)
    watches = () if left is None else (Watch(left),)
    return predict(seen, task.policy, until=task.until, observers=watches).course
