"""The live side of tasks and data: what happens to them in one simulation."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simmodel.work.taskset import TaskSet

__all__ = ["LiveData", "LiveTask"]


class LiveData:
    """A data object in one simulation.

    Attributes
    ----------
    name, size
        what it is called, and its bytes
    copies
        the pools that hold it, in the order in which they got it
    coming
        the pool in which a task writes it now
    written
        whether it is there: written by a task, or given from the beginning
    readers
        number of submitted tasks that are still to read it
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
    """A task in one simulation: what systems and policies handle.

    Attributes
    ----------
    id, set, row, index
        its name, the set of which it is a row, and its number in the machine's record
    state
        ``"to come"``, ``"blocked"`` (by tasks that it waits for), ``"waiting"`` (for a decision), ``"assigned"`` (in
        the queue of a processor), ``"running"`` (its processor is its own), ``"done"`` or ``"cancelled"``
    place
        the processor that it was given to
    speeds
        expected seconds by kind of processor (see ``Processor.kind``); ``inf`` where it cannot run
    family, cores, memory, priority
        as of :class:`~simmodel.work.task.Task`; a task without a family is one of its own
    inputs, outputs
        its data
    submit, ready, assigned
        instants in seconds; not a number until they have come
    missing, children
        how many tasks that it waits for are not done; the tasks that wait for it
    share
        expected seconds in the queue of its processor
    stamps
        while a processor works on it: the instants (s) at which its phases began so far (see
        :data:`~simmodel.resources.services.STAMPS`)
    core, core_since
        the CPU core that its setup or its transfer holds now; of a transfer, since when (s)
    attempts, done_share
        how often it began to run, and the share of its work that is done, where it was suspended
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
        speeds: list[float],
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
        self._error = error  # from -1 to 1, times the model error of the processor
        self.inputs = inputs
        self.outputs = outputs
        self.missing = missing
        self.children: tuple[LiveTask, ...] | list[LiveTask] = ()
        self.submission = submission
        self.submit = self.ready = self.assigned = self.core_since = nan
        self.share = self.done_share = self.memory = self.priority = 0.0
        self.attempts = 0
        self.stamps: list[float] | None = None
        self.core: Any = None
        self.cores: float = 1
        self.family: Any = self

    @property
    def requested(self) -> float:
        """The least expected seconds over the processors that can run it: what orders of waiting work go by."""
        return min(self.speeds)

    def __repr__(self) -> str:
        return f"<LiveTask {self.id}: {self.state}>"
