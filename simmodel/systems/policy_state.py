"""What a policy remembers, as a snapshot keeps it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simmodel.errors import SnapshotError
from simmodel.snapshots.cluster import PolicyState

if TYPE_CHECKING:
    from simmodel.scheduling.scheduler import Scheduler

__all__ = ["policy_state"]


def policy_state(scheduler: Scheduler, known_as: str | None) -> PolicyState:
    """Return the policy of a scheduler with what it remembers and when it wants to be asked.

    Parameters
    ----------
    scheduler
        the scheduler
    known_as
        the name under which its policy can be made again; ``None``: it has none

    Raises
    ------
    SnapshotError
        where what it remembers is not of plain values

    >>> from simmodel.environment import Environment
    >>> from simmodel.systems.cluster.system import Cluster
    >>> policy_state(Cluster(Environment(), 4, "easy").scheduler, "easy").known_as
    'easy'
    """
    state = getattr(scheduler.policy, "state", None)
    values = state() if callable(state) else None
    if values is not None:
        try:
            values = json.loads(json.dumps(values))
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"policy {scheduler.policy_name} cannot be copied: {error}") from None
    return PolicyState(scheduler.policy_name, known_as, values, scheduler.due, scheduler.asked_for)
