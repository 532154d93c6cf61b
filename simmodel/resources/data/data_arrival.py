"""Data on their way to a memory pool, and tasks that wait for room in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import Event

if TYPE_CHECKING:
    from simmodel.environment import Environment
    from simmodel.work.livetask import LiveTask

__all__ = ["DataArrival", "RoomClaim"]


class DataArrival:
    """Data on their way to a pool with room reserved for them.

    Attributes
    ----------
    users
        the number of tasks here that wait for them
    under_way, flight
        whether they have left; their transfer, once started
    stale
        whether they were rewritten after they left
    owner
        the task that must bring them
    met
        the event of their arrival, if anybody has asked for it
    part
        the bytes of them that are here already and need not move
    """

    __slots__ = ("env", "flight", "met", "owner", "part", "stale", "under_way", "users")

    def __init__(self, env: Environment, owner: LiveTask | None = None) -> None:
        self.env = env
        self.users = 0
        self.under_way = self.stale = False
        self.owner = owner
        self.flight: Any = None
        self.met: Event | None = None
        self.part = 0.0

    @property
    def event(self) -> Event:
        """An event that happens on their arrival; made on demand, since few of them have a waiter."""
        if self.met is None:
            self.met = Event(self.env)
        return self.met


class RoomClaim(Event):
    """A task's request for room: an event that happens when granted; its value is the data that it must bring."""

    def __init__(self, env: Environment, task: LiveTask) -> None:
        super().__init__(env)
        self.task = task
