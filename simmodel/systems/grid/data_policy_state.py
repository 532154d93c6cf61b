"""The data policy of a restored grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simmodel.foundation.errors import InputError
from simmodel.policies.data import made_of
from simmodel.scheduling.registry import unused
from simmodel.systems.policy_state import recall

if TYPE_CHECKING:
    from simmodel.scheduling.registry import PolicyLike
    from simmodel.snapshots.grid import DataPolicyState
    from simmodel.systems.grid.core import GridCore

__all__ = ["chosen_data_policy", "remember_data"]


class EndedJob:
    """What a data policy may still ask about a job that has ended: its id and its inputs."""

    __slots__ = ("id", "inputs")

    def __init__(self, id: int | str, inputs: tuple[str, ...]) -> None:
        self.id = id
        self.inputs = inputs

    @property
    def needs_files(self) -> bool:
        """Whether it had inputs."""
        return bool(self.inputs)


def chosen_data_policy(state: DataPolicyState, given: PolicyLike | None) -> PolicyLike:
    """Return the data policy to continue with: the given one without its memory, or else that of a snapshot.

    Raises
    ------
    InputError
        if none is given and that of the snapshot was passed as an object of a class of a script
    """
    if given is not None:
        return unused(given)
    if state.policy.known_as is not None:
        return state.policy.known_as
    if state.made is None:
        message = f"{state.policy.name!r} was passed as an object: pass it again to continue from the snapshot"
        raise InputError(message, place="data")
    try:
        return made_of(state.made)
    except InputError as error:
        raise InputError(error.message, place="data.made") from None


def remember_data(grid: GridCore, state: DataPolicyState, chosen: PolicyLike, jobs: dict[int, Any]) -> None:
    """Restore the memory of the data policy; another one begins anew."""
    scheduler = grid.data_scheduler
    if scheduler.policy.name != state.policy.name:
        scheduler.use(chosen)
        return
    recall(scheduler.policy, state.policy, "data.policy.state")
    for row, site, name, inputs in state.assigned:
        job = EndedJob(name, inputs) if row is None else jobs[row]
        scheduler.view.assigned.append((job, grid.places[site]))
    scheduler.view.added.extend(state.added)
    scheduler.go_on(state.alarms, due=state.policy.due)
