"""What a policy remembers: kept by a snapshot, and given to the scheduler that goes on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.errors import InputError, SnapshotError
from simmodel.scheduling.policy_base import Policy
from simmodel.scheduling.registry import PolicyLike, unused
from simmodel.snapshots.snapshot import PolicyState, Snapshot

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.scheduler import Scheduler

__all__ = ["check_instant", "chosen_policy", "policy_state", "remember", "stream_states"]


def policy_state(scheduler: Scheduler) -> PolicyState:
    """Return the policy of a scheduler with what it remembers and when it wants to be asked.

    Raises
    ------
    SnapshotError
        where what it remembers is not of plain values

    >>> from simmodel import Environment
    >>> from simmodel import Cluster
    >>> policy_state(Cluster(Environment(), 4, "easy").scheduler).known_as
    'easy'
    """
    values = scheduler.policy.state()
    if values is not None:
        try:
            import json

            values = json.loads(json.dumps(values))
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"policy {scheduler.policy_name} cannot be copied: {error}") from None
    return PolicyState(scheduler.policy_name, scheduler.known_as, values, scheduler.due, scheduler.asked_for)


def chosen_policy(snapshot: Snapshot, policy: PolicyLike | None) -> str | Policy:
    """Return the policy to go on with: a name, or a policy with nothing remembered.

    Raises
    ------
    InputError
        where none is given and that of the snapshot is not known by a name
    """
    if policy is None:
        if snapshot.policy.known_as is None:
            raise InputError(
                f"the policy {snapshot.policy.name!r} was given as an object: give it again, to go on from the snapshot"
            )
        return snapshot.policy.known_as
    return unused(policy)


def remember(scheduler: Scheduler, given: PolicyState) -> bool:
    """Have the policy of a scheduler remember what it did; return whether it is the one of the snapshot.

    Another one remembers nothing, and is asked at once.
    """
    if scheduler.policy_name != given.name:
        scheduler.wake()
        return False
    if given.state is not None:
        scheduler.policy.restore(given.state)
    scheduler.asked_for = given.asked
    if given.due:
        scheduler.wake()
    return True


def check_instant(env: Environment, snapshot: Snapshot) -> None:
    """Raise ``InputError`` unless the time of an environment is that of a snapshot."""
    if env.now != snapshot.now:
        raise InputError(f"an environment at {snapshot.now:g} s expected, as the snapshot, found one at {env.now:g} s")


def stream_states(env: Environment, prefix: str = "") -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the random streams of an environment whose names begin so, with their states, by name."""
    return tuple(
        (name, dict(stream.bit_generator.state))
        for name, stream in sorted(env._streams.items())
        if name.startswith(prefix)
    )
