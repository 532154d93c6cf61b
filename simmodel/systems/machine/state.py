"""The state of a machine: its parts, its tasks and its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.systems.system import System
from simmodel.work.livetask import LiveTask

if TYPE_CHECKING:
    from array import array

    from simmodel.platform.machine import MachineSpec, ProcessorSpec
    from simmodel.platform.options import MachineOptions
    from simmodel.resources.data.memory import MemoryPool
    from simmodel.resources.network.network import Network
    from simmodel.resources.processors.processor import Processor
    from simmodel.resources.processors.services import Shares
    from simmodel.scheduling.ready_tasks import ReadyTasks
    from simmodel.systems.machine.arrivals import LiveSet
    from simmodel.systems.machine.mover import DataMover

__all__ = ["CoreUse", "CutExecution", "MachineState", "TaskSpeedKey"]


class TaskSpeedKey(NamedTuple):
    """The properties of a processor that determine whether, and how long, a task runs on it.

    ``own``: the position of its spec, if its model has run times of its own.
    """

    architecture: str
    type: str
    cores: int
    pool: str
    own: int | None = None


class CutExecution(NamedTuple):
    """An execution stopped before its end, with the instants (s) of its phases."""

    task: LiveTask
    place: Processor
    stamps: tuple[float, ...]


class CoreUse(NamedTuple):
    """A CPU core held without a task running on it: for which task, for what, from when until when (s)."""

    core: str
    task: LiveTask
    what: str
    start: float
    end: float


class MachineState(System[LiveTask]):
    """The parts of a machine and the record of its run; :class:`Machine` adds the behaviour.

    Attributes
    ----------
    spec, options, stream
        its spec and options; the prefix of the names of its random streams
    network, pools, home, mover
        its links, its memory pools by name, the pool of initial data, the mover of data between pools
    shares
        the bandwidth of links that its tasks hold; ``None`` until a task asks for some
    processors, places, kinds
        its processors by name and in order, and their distinct kinds
    waiting
        tasks that no decision has placed yet
    tasks, sets
        all submitted tasks and task sets, in order
    done, phases
        the done tasks, and the instants of their phases (s), one after the other
    cut, core_use
        stopped executions; CPU cores held without a task running on them
    loads
        for each family, the position of its reconfiguration time in the interval of a processor, 0 to 1
    notes
        the numbers that processors recorded about tasks, by name
    """

    kind = "machine"
    work = "tasks"

    spec: MachineSpec
    options: MachineOptions
    stream: str
    network: Network
    shares: Shares | None
    pools: dict[str, MemoryPool]
    home: MemoryPool
    mover: DataMover
    processors: Mapping[str, Processor]
    places: tuple[Processor, ...]
    kinds: list[TaskSpeedKey]
    waiting: ReadyTasks
    tasks: list[LiveTask]
    sets: list[LiveSet]
    done: list[LiveTask]
    phases: array[float]
    cut: list[CutExecution]
    core_use: list[CoreUse]
    loads: dict[Any, float]
    notes: dict[str, dict[LiveTask, float]]

    def arrive(self, tasks: Sequence[LiveTask]) -> None:
        """Accept submitted tasks that arrive now."""
        raise NotImplementedError

    def release(self, task: LiveTask) -> None:
        """Release the children of a done task that have no other parent left."""
        raise NotImplementedError

    def note(self, task: LiveTask, name: str, value: float) -> None:
        """Record a number about a task, a column of that name in the result."""
        self.notes.setdefault(name, {})[task] = value

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task; drawn once per family."""
        fixed = task.set.reconfiguration.get(task.family) if task.set.reconfiguration else None
        if fixed is not None:
            return fixed
        least, most = spec.reconfiguration
        return least if least == most else least + (most - least) * self.loads[task.family]

    def draw_loads(self, tasks: Sequence[LiveTask]) -> None:
        """Draw, for each new family, the position of its reconfiguration time in the interval of a processor."""
        if all(spec.reconfiguration[0] == spec.reconfiguration[1] for spec in self.spec.processors):
            return
        new = [family for family in dict.fromkeys(task.family for task in tasks) if family not in self.loads]
        draws = self.env.rng(f"{self.stream}.reconfiguration").random(len(new))
        self.loads.update(zip(new, draws.tolist(), strict=True))
