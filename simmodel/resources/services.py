"""What processors are mounted on: what a machine does for them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from simpy.events import Event

from simmodel.environment import Environment
from simmodel.platform.machine import ProcessorSpec
from simmodel.resources.cores import Core
from simmodel.resources.memory import MemoryPool
from simmodel.work.livetask import LiveData, LiveTask

__all__ = ["STAMPS", "Moved", "Mover", "ProcessorServices", "Room"]

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
"""The instants of a task on its processor, in order; how many of them there are says which phase it is in."""


class Moved(NamedTuple):
    """Data that went from one pool to another: bytes, and from when until when (s)."""

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
    """What makes room in pools for tasks that wait for it."""

    def claim(self, pool: MemoryPool, task: LiveTask) -> Event:
        """Let a task wait for room; the event happens when it has it, with the data that it must bring."""
        ...


class Mover(Protocol):
    """What moves data between the pools of a machine."""

    parallel: bool

    @property
    def room(self) -> Room:
        """What makes room in the pools."""
        ...

    def bring(self, data: LiveData, pool: MemoryPool, task: LiveTask | None, cause: str) -> Event:
        """Start to move data to a pool that keeps room for them; return the event of their arrival."""
        ...

    def transfer_time(self, data: LiveData, pool: MemoryPool) -> float:
        """Return the seconds to move data to a pool, with the links to themselves; 0 where they are there."""
        ...


class ProcessorServices(Protocol):
    """What a processor is mounted on: a machine."""

    env: Environment

    @property
    def mover(self) -> Mover:
        """What moves data between its pools."""
        ...

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task."""
        ...

    def held_core(self, core: Core, task: LiveTask, what: str, since: float) -> None:
        """Take down who held a CPU core without running on it."""
        ...

    def finished(self, task: LiveTask, processor: Any, stamps: list[float]) -> None:
        """A task is done."""
        ...

    def stopped(self, task: LiveTask, processor: Any, goes_back: bool) -> None:
        """A task was stopped before its end."""
        ...
