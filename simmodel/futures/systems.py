"""The systems that a what-if can be of: clusters, brokers with their clusters, and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from simmodel.errors import InputError
from simmodel.futures.branches import Branch, follow
from simmodel.scheduling.registry import policy as policy_named
from simmodel.snapshots.cluster import ClusterSnapshot
from simmodel.snapshots.machine import MachineSnapshot
from simmodel.systems.cluster.restore import restore
from simmodel.systems.machine.restore import restore_machine
from simmodel.systems.policy_state import chosen_policy

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.snapshots.jobs import RunningWork

__all__ = ["SYSTEMS", "check_branch", "job_names", "restored", "running"]

SYSTEMS = ("cluster", "broker", "machine")
"""The systems whose snapshots a what-if can begin with."""


def running(snapshot: Any) -> Iterator[RunningWork]:
    """Yield what runs, in all clusters of the snapshot."""
    for cluster in _clusters(snapshot):
        yield from cluster.running


def job_names(snapshot: Any) -> list[int | str]:
    """Return the ids of all jobs, or tasks, of a snapshot that have been submitted."""
    names: list[int | str] = snapshot.ids
    return names


def _clusters(snapshot: Any) -> tuple[ClusterSnapshot, ...]:
    return (snapshot,) if isinstance(snapshot, ClusterSnapshot) else snapshot.places


def check_branch(snapshot: Any, branch: Branch) -> None:
    """Refuse a branch that cannot be one of this snapshot.

    Raises
    ------
    InputError
        where a policy is not known or not to be had, a cluster is not there, or an instant is past
    """
    branch.check(snapshot.now, _named(snapshot))
    if isinstance(snapshot, MachineSnapshot) and (branch.then or branch.actions or branch.clusters):
        raise InputError(f"branch '{branch}': a policy alone expected for a machine, found more")
    names = (
        []
        if isinstance(snapshot, (ClusterSnapshot, MachineSnapshot))
        else [cluster.name for cluster in snapshot.places]
    )
    for name in branch.clusters:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "the snapshot is of one cluster"
            raise InputError(f"branch '{branch}': cluster {name!r} is not there; {there}")
    if branch.policy is None:
        _first(snapshot, branch)


def _named(snapshot: Any) -> Callable[[Any], Any]:
    if isinstance(snapshot, (ClusterSnapshot, MachineSnapshot)):
        return policy_named
    from simmodel.policies.brokers import broker_policy

    return broker_policy


def _first(snapshot: Any, branch: Branch) -> Any:
    """Return the policy that a branch begins with, nothing remembered."""
    if isinstance(snapshot, (ClusterSnapshot, MachineSnapshot)):
        return chosen_policy(snapshot, branch.policy)
    from simmodel.policies.brokers import broker_policy

    if branch.policy is None:
        if snapshot.policy.known_as is None:
            raise InputError(f"the broker {snapshot.policy.name!r} was given as an object: give it again")
        return broker_policy(snapshot.policy.known_as, ties=snapshot.ties)
    policy = broker_policy(branch.policy)
    return policy.fresh() if policy is branch.policy and hasattr(policy, "fresh") else policy


def restored(env: Environment, snapshot: Any, branch: Branch) -> Any:
    """Return the live system that goes on from a snapshot as a branch says, but for what that submits."""
    if isinstance(snapshot, MachineSnapshot):
        return restore_machine(env, snapshot, _first(snapshot, branch))
    policy = follow(branch, _first(snapshot, branch), _named(snapshot))
    if isinstance(snapshot, ClusterSnapshot):
        return restore(env, snapshot, policy)
    from simmodel.systems.broker.system import Broker

    broker = Broker.from_snapshot(env, snapshot, policy, branch.clusters)
    if hasattr(policy, "attach"):
        policy.attach(broker)
    return broker
