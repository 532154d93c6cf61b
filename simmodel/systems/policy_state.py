"""The memory of policies in snapshots: how it is saved, and restored in the scheduler that continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError, SnapshotError, shown
from simmodel.scheduling.protocol import Policy
from simmodel.scheduling.registry import PolicyLike, unused
from simmodel.snapshots.snapshot import PolicyState, Snapshot

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.scheduling.scheduler import Scheduler

__all__ = [
    "check_instant",
    "chosen_policy",
    "plain_state",
    "policy_state",
    "recall",
    "remember",
    "restore_streams",
    "stream_states",
]


def policy_state(scheduler: Scheduler) -> PolicyState:
    """Return the policy of a scheduler with its memory, and whether it is due to be asked.

    Raises
    ------
    SnapshotError
        if its memory does not consist of plain values

    >>> from simmodel import Cluster, Environment
    >>> policy_state(Cluster(Environment(), 4, "easy").scheduler).known_as
    'easy'
    """
    values = plain_state(scheduler.policy)
    return PolicyState(scheduler.policy_name, scheduler.known_as, values, scheduler.due, scheduler.asked_for)


def plain_state(policy: Policy) -> Any:
    """Return the memory of a policy; raises ``SnapshotError`` if it does not consist of plain values."""
    values = policy.state()
    if values is not None:
        try:
            import json

            values = json.loads(json.dumps(values))
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"policy {policy.name} cannot be copied: {error}") from None
    return values


def chosen_policy(snapshot: Snapshot, policy: PolicyLike | None) -> str | Policy:
    """Return the policy to continue with: the snapshot's name for it, or the given policy without its memory.

    Raises
    ------
    InputError
        if none is given and that of the snapshot was passed as an object
    """
    if policy is None:
        if snapshot.policy.known_as is None:
            raise InputError(
                f"policy {snapshot.policy.name!r} was passed as an object: pass it again to continue from the snapshot"
            )
        return snapshot.policy.known_as
    return unused(policy)


def recall(policy: Policy, given: PolicyState, place: str = "policy.state") -> None:
    """Restore the memory of a policy; raises ``InputError`` if it is not such a memory."""
    if given.state is not None:
        try:
            policy.restore(given.state)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            message = f"must be the state of policy {given.name}: {type(error).__name__} {error}"
            raise InputError(message, place=place) from None


def remember(scheduler: Scheduler, given: PolicyState) -> bool:
    """Restore the memory of a scheduler's policy; return whether it has the name of the saved one.

    A policy of another name starts without memory and is asked at once.
    """
    if scheduler.policy_name != given.name:
        scheduler.wake()
        return False
    recall(scheduler.policy, given)
    scheduler.asked_for = given.asked
    if given.due:
        scheduler.wake()
    return True


def check_instant(env: Environment, snapshot: Snapshot) -> None:
    """Raise ``InputError`` unless an environment is at the time of a snapshot."""
    if env.now != snapshot.now:
        raise InputError(f"must be {snapshot.now:g} s, the time of the snapshot, got {env.now:g} s", place="env.now")


def stream_states(env: Environment, prefix: str = "") -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return (name, state) of the random streams of an environment whose names start with a prefix, by name."""
    return tuple(
        (name, dict(stream.bit_generator.state))
        for name, stream in sorted(env._streams.items())
        if name.startswith(prefix)
    )


def restore_streams(env: Environment, snapshot: Snapshot) -> None:
    """Give the random streams of an environment the states that they have in a snapshot.

    Raises
    ------
    InputError
        a state is not one of a random stream
    """
    for name, state in snapshot.streams:
        try:
            env.rng(name).bit_generator.state = state
        except (KeyError, TypeError, ValueError, OverflowError):
            message = f"must be the state of a PCG64 generator, got {shown(state)}"
            raise InputError(message, place=f"streams.{name}") from None
