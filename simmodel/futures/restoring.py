"""Restore a live system of any kind from a snapshot, to continue under a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.futures.branches import Branch, Following, PoliciesBelow, follow
from simmodel.systems.broker.policies import policies_of_places
from simmodel.systems.kinds import kind_of_snapshot, work_of

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.snapshots.snapshot import Snapshot
    from simmodel.systems.system import System

__all__ = ["check_branch", "restored"]


def check_branch(snapshot: Snapshot, branch: Branch) -> None:
    """Check that a branch can continue from a snapshot.

    Raises
    ------
    InputError
        if a policy is unknown, the policy of the snapshot was given as an object, a place is unknown, an instant is
        past, or a job is submitted to a system that runs tasks
    """
    kind = kind_of_snapshot(snapshot)
    kind.policy_of(snapshot, branch.policy)
    for _, policy in branch.then:
        kind.policy_of(snapshot, policy)
    branch.check(snapshot.now)
    if branch.submitted and work_of(snapshot) != "jobs":
        raise InputError(f"branch '{branch}': cannot submit a job to a {kind.name}: it runs tasks")
    if branch.policies is not None:
        _check_below(snapshot, branch.policies)
    kind.check_data(snapshot, branch.data)


def _check_below(snapshot: Snapshot, policies: PoliciesBelow) -> None:
    kinds = {each.name: kind_of_snapshot(each) for each in snapshot.below}
    if not kinds:
        raise InputError(f"must be None for a {snapshot.system}, whose places have no policies", place="policies")
    given = policies_of_places(policies, kinds)
    for each in snapshot.below:
        own, below = given[each.name]
        if own is not None:
            kinds[each.name].policy_of(each, own)
        if below is not None:
            _check_below(each, below)


def restored(env: Environment, snapshot: Snapshot, branch: Branch) -> System[Any]:
    """Return the live system that continues from a snapshot under a branch, without its submissions."""
    kind = kind_of_snapshot(snapshot)
    policy = follow(branch, kind.policy_of(snapshot, branch.policy), lambda given: kind.policy_of(snapshot, given))
    data = {} if branch.data is None else {"data": branch.data}
    system = kind.restore(env, snapshot, policy, policies=branch.policies, **data)
    own = system.scheduler.policy
    if isinstance(own, Following) and own.system is None:
        own.attach(system)
    return system
