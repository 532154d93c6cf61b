"""The services that a machine provides to its processors."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.data.memory import MemoryPool
from simmodel.work.taskset import LiveData, LiveTask

__all__ = ["STAMPS", "Core", "CoreTicket", "Moved", "Mover", "ProcessorServices", "Room", "take_core"]


class CoreTicket(Event):
    """A request for one of several CPU cores: an event whose value is the :class:`Core` granted.

    ``number``: its position in the order of requests.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.number = next(env._eid)

    def drop(self) -> None:
        """Give it up: a core that it has been granted goes to the next request."""
        if self.triggered:
            self._value.release()
        else:
            self._ok, self._value = True, None


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


STAMPS = (
    "taken",
    "setup_start",
    "setup_end",
    "reconfiguration_end",
    "transfer_start",
    "transfer_end",
    "start",
    "end",
)
"""The instants of a task on its processor, in order; the number recorded so far identifies its phase."""


class Moved(NamedTuple):
    """A data movement between memory pools: bytes, start and end (s)."""

    object: str
    bytes: float
    source: str
    destination: str
    start: float
    end: float
    task: LiveTask | None
    cause: str
    objects: int = 1


class Room(Protocol):
    """Makes room in memory pools for waiting tasks."""

    def claim(self, pool: MemoryPool, task: LiveTask) -> Event:
        """Queue a task for room; the value of the event is the list of data that the task must bring."""
        ...


class Shares(Protocol):
    """The bandwidth of links that tasks hold while they run."""

    def fits(self, task: LiveTask) -> bool:
        """Return whether the shares of a task are free, and nobody before it asks for them."""
        ...

    def claim(self, task: LiveTask, since: float, place: int) -> Event | None:
        """Return the event of the instant at which a task has its shares; ``None`` if it asks for none."""
        ...

    def take(self, task: LiveTask) -> None:
        """Take the shares of a task that runs already."""
        ...

    def give_back(self, task: LiveTask) -> None:
        """Take back the shares of a task that has ended or was stopped."""
        ...


class Mover(Protocol):
    """Moves data between the memory pools of a machine."""

    parallel: bool

    @property
    def room(self) -> Room:
        """The service that makes room in the pools."""
        ...

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool with room reserved for them; return the event of their arrival."""
        ...

    def fetch(self, missing: Sequence[LiveData], pool: MemoryPool, task: LiveTask, cause: str) -> Event:
        """Start to move data to a pool one after another; return an event that happens when all have arrived."""
        ...

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool over otherwise idle links; 0 if they are already there."""
        ...


class ProcessorServices(Protocol):
    """The machine of a processor."""

    env: Environment
    shares: Shares | None
    """The bandwidth that its tasks hold; ``None`` until a task asks for some."""

    @property
    def mover(self) -> Mover:
        """The service that moves data between its pools."""
        ...

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task."""
        ...

    def held_core(self, core: Core, task: LiveTask, what: str, since: float) -> None:
        """Record which task held a CPU core without running on it."""
        ...

    def note(self, task: LiveTask, name: str, value: float) -> None:
        """Record a number about a task, a column of that name in the result."""
        ...

    def finished(self, task: LiveTask, processor: Any, stamps: list[float]) -> None:
        """Report that a task is done."""
        ...

    def stopped(self, task: LiveTask, processor: Any, goes_back: bool) -> None:
        """Report that a task was stopped before its end."""
        ...
