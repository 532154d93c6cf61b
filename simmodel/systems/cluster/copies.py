"""The part of a cluster that is copied: its snapshots, and what would happen from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.systems.cluster.system import Cluster

__all__ = ["Snapshots"]


class Snapshots:
    """The part of a cluster that snapshots are taken of and made from."""

    def snapshot(self, *, actual: bool = True) -> ClusterSnapshot:
        """Return the state of the cluster as a plain value, from which a simulation can be started.

        Best taken between events, after the decisions of the instant. With ``actual`` it holds what continuing needs:
        how long jobs will run, what is still to arrive and to fail. Without, only what a policy may know (see
        :meth:`ClusterSnapshot.expected <simmodel.snapshots.cluster.ClusterSnapshot.expected>`).

        Raises
        ------
        SnapshotError
            with ``actual``, where a process holds or waits for part of the cluster, or a job is a process: a generator
            cannot be copied; and where the memory of the policy is not of plain values

        >>> from simmodel import Cluster, Environment, Job
        >>> env = Environment()
        >>> cluster = Cluster(env, 4)
        >>> for _ in range(3): _ = cluster.submit(Job(processors=2, run=10, requested=20))
        >>> env.run(until=5)
        >>> cluster.snapshot()
        <ClusterSnapshot of cluster at 5 s: 2 running, 1 waiting, 0 to arrive>
        """
        from simmodel.systems.cluster.capture import capture

        return capture(cast("Cluster", self), actual)

    @classmethod
    def from_snapshot(
        cls, env: Environment, snapshot: ClusterSnapshot, policy: Any = None, *, record: bool = True, rank: int = 1
    ) -> Cluster:
        """Return a cluster that goes on where a snapshot was taken.

        Parameters
        ----------
        env
            an environment whose time is that of the snapshot
        policy
            default: that of the snapshot; one of the same name remembers what that one did
        record, rank
            as of the class

        Raises
        ------
        InputError
            where the time is another, the policy is not known by a name, or the snapshot contradicts itself

        >>> from simmodel import Cluster, Environment, Job
        >>> env = Environment()
        >>> cluster = Cluster(env, 4)
        >>> for _ in range(3): _ = cluster.submit(Job(processors=2, run=10, requested=20))
        >>> env.run(until=5)
        >>> later = Environment(5)
        >>> again = Cluster.from_snapshot(later, cluster.snapshot())
        >>> later.run(); again.result().jobs["end"]
        array([10., 10., 20.])
        """
        from simmodel.systems.cluster.restore import restore

        return restore(env, snapshot, policy, record=record, rank=rank)

    def _simulate(self, policy: Any, **options: Any) -> Any:
        from simmodel.systems.cluster.whatif import simulate_from

        return simulate_from(cast("Cluster", self), policy, **options)
