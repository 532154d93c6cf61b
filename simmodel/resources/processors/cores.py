"""CPU cores as resources that setups and transfers hold, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from simpy.events import Event

from simmodel.environment import Environment

__all__ = ["Core", "CoreTicket", "take_core"]


class CoreTicket(Event):
    """A request for one of several CPU cores: an event whose value is the :class:`Core` granted.

    ``number``: its position in the order of requests.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.number = next(env._eid)


class Core:
    """A CPU core with one holder at a time: a task that runs on it, a setup, or a transfer without DMA.

    Parameters
    ----------
    name
        the name of its processor

    >>> env = Environment()
    >>> core = Core("cpu0")
    >>> core.take(), core.take()
    (True, False)
    >>> ticket = take_core(env, [core]); ticket.triggered
    False
    >>> core.release(); ticket.value is core, core.busy
    (True, True)
    """

    __slots__ = ("_tickets", "busy", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.busy = False
        self._tickets: deque[CoreTicket] = deque()

    def take(self) -> bool:
        """Take the core if it is free; return whether it was."""
        if self.busy:
            return False
        self.busy = True
        return True

    def queue(self, env: Environment) -> CoreTicket:
        """Return a ticket for this core only."""
        ticket = CoreTicket(env)
        self._tickets.append(ticket)
        return ticket

    def release(self) -> None:
        """Release the core to the first waiting ticket."""
        tickets = self._tickets
        while tickets:
            ticket = tickets.popleft()
            if not ticket.triggered:  # otherwise another core was free first
                ticket.succeed(self)
                return
        self.busy = False


def take_core(env: Environment, cores: Sequence[Core]) -> Core | CoreTicket:
    """Take and return the first free core, or return a ticket to wait for if all are busy."""
    for core in cores:
        if core.take():
            return core
    ticket = CoreTicket(env)
    for core in cores:
        core._tickets.append(ticket)
    return ticket
