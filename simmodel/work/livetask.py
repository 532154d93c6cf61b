"""The live state of tasks and data objects in one simulation."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.work.taskset import TaskSet

__all__ = ["LiveData", "LiveTask"]


_GUARDED = ("speeds", "cores", "memory", "priority", "inputs", "outputs", "family")
"""The fields of a live task that nothing but its system changes."""


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

    __slots__ = ("coming", "copies", "kept", "name", "readers", "size", "written")

    def __init__(self, name: str, size: float) -> None:
        self.name = name
        self.size = size
        self.copies: tuple[Any, ...] = ()
        self.coming: Any = None
        self.written = False
        self.readers = 0
        self.kept = False

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
        :data:`~simmodel.resources.services.STAMPS`)
    core, core_since
        the CPU core held by its setup or transfer; for a transfer, since when (s)
    attempts, done_share
        number of times it started; share of its work done before it was suspended
    """

    __slots__ = (
        "_cores",
        "_error",
        "_family",
        "_inputs",
        "_memory",
        "_outputs",
        "_priority",
        "_speeds",
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
        self.speeds = self._speeds = speeds  # _speeds and the like are compared at a start
        self._error = error  # from -1 to 1, multiplied by the model error of the processor
        self.inputs = self._inputs = inputs
        self.outputs = self._outputs = outputs
        self.missing = missing
        self.children: tuple[LiveTask, ...] | list[LiveTask] = ()
        self.submission = submission
        self.submit = self.ready = self.assigned = self.core_since = nan
        self.share = self.done_share = 0.0
        self.memory = self._memory = 0.0
        self.priority = self._priority = 0.0
        self.attempts = 0
        self.stamps: list[float] | None = None
        self.core: Any = None
        self.cores: float = 1
        self._cores: float = 1
        self.family: Any = self
        self._family: Any = self

    @property
    def requested(self) -> float:
        """Its least expected run time in seconds over all processors, as orders of waiting work use it."""
        return min(self.speeds)

    def fix(self) -> None:
        """Keep the present values of its request, which nothing but its system changes."""
        self._speeds = self.speeds
        self._cores = self.cores
        self._memory = self.memory
        self._priority = self.priority
        self._inputs = self.inputs
        self._outputs = self.outputs
        self._family = self.family

    def altered(self) -> str | None:
        """Return how other code, such as a policy, has changed its request, or ``None``."""
        if (
            self.speeds is self._speeds
            and self.cores == self._cores
            and self.memory == self._memory
            and self.priority == self._priority
            and self.inputs is self._inputs
            and self.outputs is self._outputs
            and self.family is self._family
        ):
            return None
        for name in _GUARDED:
            before, now = getattr(self, f"_{name}"), getattr(self, name)
            if now is not before and now != before:
                return f"cannot change {name} from {before!r} to {now!r}: tasks are read-only"
        return None

    def __repr__(self) -> str:
        return f"<LiveTask {self.id}: {self.state}>"
