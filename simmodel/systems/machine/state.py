"""The state of a machine: what it is made of, the tasks it knows, and what it has recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simmodel.systems.system import System
from simmodel.work.livetask import LiveTask

if TYPE_CHECKING:
    from array import array

    from simmodel.platform.machine import MachineSpec, ProcessorSpec
    from simmodel.platform.options import MachineOptions
    from simmodel.resources.memory import MemoryPool
    from simmodel.resources.network import Network
    from simmodel.resources.processor import Processor
    from simmodel.scheduling.ready_tasks import ReadyTasks
    from simmodel.systems.machine.arrivals import LiveSet
    from simmodel.systems.machine.mover import DataMover

__all__ = ["CoreUse", "CutExecution", "MachineState", "TaskSpeedKey"]


class TaskSpeedKey(NamedTuple):
    """What decides how long a task runs on a processor, and whether it can."""

    architecture: str
    type: str
    cores: int
    pool: str


class CutExecution(NamedTuple):
    """An execution that was stopped before its end, and the instants (s) of its phases."""

    task: LiveTask
    place: Processor
    stamps: tuple[float, ...]


class CoreUse(NamedTuple):
    """A CPU core that was held without a task running on it: for which task, for what, from when until when (s)."""

    core: str
    task: LiveTask
    what: str
    start: float
    end: float


class MachineState(System[LiveTask]):
    """What a machine is made of, and what has happened on it so far; :class:`Machine` gives it its life.

    Attributes
    ----------
    spec, options, stream
        its description and options; what the names of its random streams begin with
    network, pools, home, mover
        its links, its memory pools by name, the pool where data lie at first, what moves data between pools
    processors, places, kinds
        its processors by name and in order, and what tells them apart
    waiting
        tasks that no decision has placed yet
    tasks, sets
        all tasks that were submitted, and the sets they came in, in order
    done, phases
        the tasks that are done, and the instants of their phases (s), one after the other
    cut, core_use
        executions that were stopped; CPU cores that were held without a task running on them
    loads
        of each family: where in the interval of a processor its reconfiguration lies
    """

    kind = "machine"
    work = "tasks"

    spec: MachineSpec
    options: MachineOptions
    stream: str
    network: Network
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

    def arrive(self, tasks: Sequence[LiveTask]) -> None:
        """Take in tasks that have been submitted and arrive now."""
        raise NotImplementedError

    def release(self, task: LiveTask) -> None:
        """Let the children of a task that is done go, where it was their last parent."""
        raise NotImplementedError

    def reconfiguration_time(self, spec: ProcessorSpec, task: LiveTask) -> float:
        """Return the seconds to load the family of a task: one draw per family and interval."""
        fixed = task.set.reconfiguration.get(task.family) if task.set.reconfiguration else None
        if fixed is not None:
            return fixed
        least, most = spec.reconfiguration
        return least if least == most else least + (most - least) * self.loads[task.family]

    def draw_loads(self, tasks: Sequence[LiveTask]) -> None:
        """Draw, for each family that is new, where in the interval of a processor its reconfiguration lies."""
        if all(spec.reconfiguration[0] == spec.reconfiguration[1] for spec in self.spec.processors):
            return
        new = [family for family in dict.fromkeys(task.family for task in tasks) if family not in self.loads]
        draws = self.env.rng(f"{self.stream}.reconfiguration").random(len(new))
        self.loads.update(zip(new, draws.tolist(), strict=True))
