"""The live state of tasks and data objects in one simulation."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.work.taskset import TaskSet

__all__ = ["LiveData", "LiveTask"]


_NOTHING: Mapping[str, float] = MappingProxyType({})


class LiveData:
    """A data object in one simulation.

    Attributes
    ----------
    name, size
        its name, and its size in bytes
    copies
        the memory pools that hold a copy, in the order in which they received it
    coming
        the memory pool in which a task is writing it
    written
        whether it exists: written by a task, or an input of the workflow
    readers
        number of submitted tasks that have yet to read it
    kept
        whether it is a result: written, and read by no task
    """

    __slots__ = ("_name", "coming", "copies", "kept", "readers", "size", "written")

    def __init__(self, name: str | int, size: float) -> None:
        self._name = name  # a number: of nameless data
        self.size = size
        self.copies: tuple[Any, ...] = ()
        self.coming: Any = None
        self.written = False
        self.readers = 0
        self.kept = False

    @property
    def name(self) -> str:
        """Its name."""
        return f"d{self._name}" if type(self._name) is int else str(self._name)

    def __repr__(self) -> str:
        where = ", ".join(pool.name for pool in self.copies) or "no pool"
        return f"<LiveData {self.name}: {self.size:g} bytes in {where}>"


class LiveTask:
    """A task in one simulation, as systems and policies handle it.

    Attributes
    ----------
    id, set, row, index
        its name; its task set and its row there; its row in the machine's record
    state
        ``"to come"``, ``"blocked"`` (parents not done), ``"waiting"`` (for a decision), ``"assigned"`` (in the queue
        of a processor), ``"running"`` (holds its processor), ``"done"`` or ``"cancelled"``
    place
        the processor that it was assigned to
    speeds
        expected seconds by kind of processor (see ``Processor.kind``); ``inf`` if it cannot run there
    family, cores, memory, priority
        as in :class:`~simmodel.work.task.Task`; a task without a family is a family by itself
    inputs, outputs
        the data objects that it reads and writes
    submit, ready, assigned
        instants in seconds; nan until reached
    missing, children
        number of its parents that are not done; the tasks that wait for it
    share
        expected seconds that it adds to the queue of its processor
    stamps
        while a processor works on it: the instants (s) at which its phases began so far (see
        :data:`~simmodel.resources.processors.services.STAMPS`)
    core, core_since
        the CPU core held by its setup or transfer; for a transfer, since when (s)
    attempts, done_share
        number of times it started; share of its work done before it was suspended
    """

    __slots__ = (
        "_error",
        "assigned",
        "attempts",
        "children",
        "core",
        "core_since",
        "cores",
        "done_share",
        "family",
        "id",
        "index",
        "inputs",
        "memory",
        "missing",
        "outputs",
        "place",
        "priority",
        "ready",
        "row",
        "set",
        "share",
        "speeds",
        "stamps",
        "state",
        "submission",
        "submit",
    )

    def __init__(
        self,
        id: int | str,
        set: TaskSet,
        row: int,
        index: int,
        speeds: tuple[float, ...],
        error: float,
        inputs: tuple[LiveData, ...],
        outputs: tuple[LiveData, ...],
        missing: int,
        submission: Any,
    ) -> None:
        self.id = id
        self.set = set
        self.row = row
        self.index = index
        self.state = "to come"
        self.place: Any = None
        self.speeds = speeds
        self._error = error  # from -1 to 1, multiplied by the model error of the processor
        self.inputs = inputs
        self.outputs = outputs
        self.missing = missing
        self.children: tuple[LiveTask, ...] | list[LiveTask] = ()
        self.submission = submission
        self.submit = self.ready = self.assigned = self.core_since = nan
        self.share = self.done_share = 0.0
        self.memory = self.priority = 0.0
        self.attempts = 0
        self.stamps: list[float] | None = None
        self.core: Any = None
        self.cores: float = 1
        self.family: Any = self

    @property
    def planned(self) -> float:
        """Its least expected run time in seconds over all processors, as orders of waiting work use it."""
        return min(self.speeds)

    requested = planned

    @property
    def amounts(self) -> Mapping[str, float]:
        """Numbers by name that models of processors read; read-only."""
        column = self.set.amounts
        return (None if column is None else column[self.row]) or _NOTHING

    def altered(self) -> str | None:
        """Return how other code, such as a policy, has changed its request, or ``None``."""
        row, tasks, live = self.row, self.set, self.submission
        families = tasks.families
        if (
            self.speeds is live.rows[row]
            and self.inputs is live.inputs[row]
            and self.outputs is live.outputs[row]
            and self.family is ((families[row] if families is not None else None) or self)
            and self.cores == (1 if tasks.cores is None else tasks.cores[row])
            and self.memory == (0 if tasks.memory is None else tasks.memory[row])
            and self.priority == (0 if tasks.priority is None else tasks.priority[row])
        ):
            return None
        return self._altered()

    def _altered(self) -> str | None:
        row, tasks, live = self.row, self.set, self.submission
        asked = (
            ("speeds", live.rows[row]),
            ("cores", 1 if tasks.cores is None else tasks.cores[row]),
            ("memory", 0.0 if tasks.memory is None else tasks.memory[row]),
            ("priority", 0.0 if tasks.priority is None else tasks.priority[row]),
            ("inputs", live.inputs[row]),
            ("outputs", live.outputs[row]),
            ("family", self if tasks.families is None or tasks.families[row] is None else tasks.families[row]),
        )
        for name, before in asked:
            now = getattr(self, name)
            if now is not before and now != before:
                return f"cannot change {name} from {before!r} to {now!r}: tasks are read-only"
        return None

    def __repr__(self) -> str:
        return f"<LiveTask {self.id}: {self.state}>"
