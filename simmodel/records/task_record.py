"""Records of machines as columns: their tasks, processors, links and memory pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import InputError
from simmodel.platform.machine import MachineSpec
from simmodel.records.steps import Steps
from simmodel.resources.processors.services import STAMPS
from simmodel.work.table import Columns, Table
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import topological_order
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CPU_USE",
    "FIRST_COLUMNS",
    "HELD",
    "MOMENTS",
    "PHASES",
    "STOPPED",
    "TRANSFERS",
    "WORKING",
    "TaskRecord",
    "completed",
    "cpu_table",
    "family_seconds",
    "from_sets",
    "joined_edges",
    "positions",
    "recorded_instants",
    "runs_by_kind",
    "stopped_table",
    "transfer_table",
]

FIRST_COLUMNS = ("task", "processor", "ready", *STAMPS[1:])
MOMENTS = ("submit", "ready", *STAMPS)
"""The instants of a task in order; its phases lie between consecutive ones."""
PHASES = (
    "blocked on dependencies",
    "blocked on setup",
    "waiting for setup",
    "setup",
    "reconfiguration",
    "waiting for memory",
    "transfer",
    "waiting for core",
    "execution",
)
"""The phases of a task, each from one of the :data:`MOMENTS` to the next. Blocked on setup: the processor is busy;
waiting for setup: the task holds the processor, and the CPU core for its setup is busy; waiting for memory: for room in
the pool, or for the CPU core that moves the data; waiting for core: a CPU core is busy with other tasks again."""
HELD = PHASES[2:]
"""The phases in which the task holds its processor."""
WORKING = ("setup", "reconfiguration", "transfer", "execution")
"""The phases in which a processor is busy; it is idle while its task waits for a CPU core or for memory."""

TRANSFERS = ("object", "bytes", "source", "destination", "start", "end", "task", "cause", "count")
CPU_USE = ("core", "task", "what", "start", "end")
STOPPED = ("task", "processor", *STAMPS, "cores")
"""The columns of stopped executions, from the instant at which the task got its processor."""
_EMPTY_TYPES = {"bytes": float, "count": np.int64, "cores": float, **dict.fromkeys(MOMENTS, float)}


def _filled(given: Columns | None, names: Sequence[str]) -> Table:
    table = Table(given or {})
    if len(table):
        return table
    return Table({name: np.zeros(0, dtype=_EMPTY_TYPES.get(name, "U1")) for name in names})


def transfer_table(given: Columns | None) -> Table:
    """Return the table of transfers; by default an empty one.

    >>> list(transfer_table(None).names)[:3]
    ['object', 'bytes', 'source']
    """
    return _filled(given, TRANSFERS)


def cpu_table(given: Columns | None) -> Table:
    """Return the table of setups and transfers by CPU cores; by default an empty one.

    >>> list(cpu_table(None).names)
    ['core', 'task', 'what', 'start', 'end']
    """
    return _filled(given, CPU_USE)


def stopped_table(given: Columns | None) -> Table:
    """Return the table of stopped executions; by default an empty one.

    >>> stopped_table(None).names == STOPPED
    True
    """
    return _filled(given, STOPPED)


def completed(given: Columns) -> Table:
    """Return the table of tasks, with missing columns derived from others.

    Raises
    ------
    InputError
        ``task``, ``processor``, ``start`` or ``end`` is missing

    >>> completed({"task": ["a"], "processor": ["cpu"], "start": [1.0], "end": [3.0]})["ready"]
    array([1.])
    """
    columns = {name: np.asarray(column) for name, column in given.items()}
    missing = [name for name in ("task", "processor", "start", "end") if name not in columns]
    if missing:
        raise InputError(f"columns: missing {', '.join(missing)}")
    count = len(columns["task"])
    for name in ("processor", "setup_core", "family", "pool"):
        if name in columns and columns[name].dtype.kind != "U":
            columns[name] = np.array(["" if each is None else str(each) for each in columns[name]], dtype=str)
    later = columns["end"].astype(np.float64)
    for name in reversed(MOMENTS):
        found = columns[name].astype(np.float64) if name in columns else later
        if name == "submit" and name not in columns:
            found = np.zeros(count)
        later = columns[name] = np.where(np.isnan(found), later, found)
    ran = columns["end"] - columns["start"]
    defaults: dict[str, Any] = {
        "assigned": columns["taken"],
        "set": np.zeros(count, dtype=np.int64),
        "status": np.where(np.isfinite(columns["end"]), "done", np.where(np.isfinite(columns["start"]), "running", "")),
        "attempts": np.isfinite(columns["start"]).astype(np.int64),
        "expected_run": ran,
        "run_best": ran,
        "setup_core": np.full(count, ""),
        "family": np.full(count, ""),
        "pool": np.full(count, ""),
        "cores": np.ones(count),
    }
    known = {**defaults, **columns}
    order = dict.fromkeys((*FIRST_COLUMNS, "submit", "assigned", "taken", *defaults, *known))
    return Table({name: known[name] for name in order})


def positions(values: NDArray[np.generic], known: Sequence[str]) -> NDArray[np.int64]:
    """Return the position of each value among the known ones; -1 if unknown.

    >>> positions(np.array(["b", "x"]), ["a", "b"])
    array([ 1, -1])
    """
    names, of = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    rows = {name: i for i, name in enumerate(known)}
    found = np.array([rows.get(name, -1) for name in names.tolist()], dtype=np.int64)
    return found[of.reshape(-1)] if len(found) else np.zeros(0, dtype=np.int64)


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class TaskRecord(Shown):
    """The record of a machine that ran tasks.

    Times are in the ``time_unit`` of the machine, sizes in bytes.

    Parameters
    ----------
    tasks
        one row per task, in order of submission: ``task, processor`` and the instants ``ready, setup_start, setup_end,
        reconfiguration_end, transfer_start, transfer_end, start, end`` (:data:`MOMENTS`), then ``submit``, ``assigned``
        (decision of the policy), ``taken`` (begin of its hold on the processor), ``set`` (position of its task set),
        ``status`` (done, running, assigned, waiting, blocked), ``attempts``, ``expected_run`` (on its processor),
        ``run_best`` (least expected run time over all processors), ``setup_core``, ``family``, ``pool``, ``cores``.
        nan: not reached
    spec
        the machine
    transfers
        transfers between pools: ``object, bytes, source, destination, start, end, task, cause, count``; the cause is
        "input", "overlap", "write-back" or "spill", or "failed" (with a link, after these bytes; sent again later),
        ``count`` the number of data objects in the row
    memory, peaks
        by pool: bytes used over time, and their maximum
    cpu_phases
        setups and transfers by CPU cores: ``core, task, what, start, end``
    stopped
        stopped executions: ``task, processor``, instants from ``taken`` to ``end``, ``cores``
    sets
        the task sets in order of submission; their tasks are consecutive in ``tasks``
    plan
        the plan of a planner: ``task, processor, start, end``
    speeds
        expected seconds, tasks x architectures; ``inf`` if no processor of the architecture can run the task
    reasons
        those that the policy gave with its decisions, as of :class:`~simmodel.records.job_record.JobRecord`
    started, ended
        first and last instant; default: derived from the tasks
    decisions, report, scenario, name
        count, seconds, mean, min and max of the decisions of the policy; items skipped or repaired; the document from
        which the run can be repeated; name of the run in tables and plots

    >>> from simmodel.platform import ArchitectureSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="cpu", count=2, type="CPUCore", architecture="x86", pool="ram")])
    >>> tasks = {"task": ["a", "b"], "processor": ["cpu0", "cpu1"], "start": [0, 0], "end": [4, 6]}
    >>> record = TaskRecord(spec=spec, tasks=tasks)
    >>> record.ended, record.busy("cpu0").integral()
    (6.0, 4.0)
    """

    tasks: Table = attrs.field(converter=completed)
    spec: MachineSpec
    transfers: Table = attrs.field(default=None, converter=transfer_table)
    memory: Mapping[str, Any] = attrs.field(factory=dict)
    peaks: Mapping[str, float] = attrs.field(factory=dict)
    cpu_phases: Table = attrs.field(default=None, converter=cpu_table)
    stopped: Table = attrs.field(default=None, converter=stopped_table)
    sets: Sequence[TaskSet] = ()
    plan: Table | None = None
    reasons: Table | None = None
    speeds: NDArray[np.float64] | None = None
    started: float = attrs.field()
    ended: float = attrs.field()
    decisions: dict[str, float] = attrs.field(factory=dict)
    report: Report = attrs.field(factory=Report)
    scenario: dict[str, Any] = attrs.field(factory=dict)
    name: str = "run"

    @started.default
    def _started_default(self) -> float:
        return float(np.nanmin(self.tasks["submit"])) if len(self.tasks) else 0.0

    @ended.default
    def _ended_default(self) -> float:
        ends = self.tasks["end"]
        return max(float(ends[np.isfinite(ends)].max(initial=self.started)), self.started)

    def __attrs_post_init__(self) -> None:
        self.memory = {
            pool: each if isinstance(each, Steps) else Steps(each[0], each[1], max(self.ended, self.started))
            for pool, each in self.memory.items()
        }

    # ------------------------------------------------------------------ tables

    @cached_property
    def processors(self) -> Table:
        """One row per processor, in order: ``processor, type, architecture, pool, cores, idle_power, load_power``."""
        each = list(self.spec.each_processor())
        fields = ("type", "architecture", "pool", "cores", "idle_power", "load_power")
        return Table(
            {
                "processor": [name for name, _ in each],
                **{field: [getattr(spec, field) for _, spec in each] for field in fields},
            }
        )

    @property
    def time_unit(self) -> str:
        """The unit of time: ``"s"``, or that of the machine."""
        return self.spec.time_unit

    @cached_property
    def placed(self) -> NDArray[np.int64]:
        """For each task the row of its processor in ``processors``; -1 if it has none."""
        return positions(self.tasks["processor"], self.processors["processor"].tolist())

    @cached_property
    def edges(self) -> Table:
        """The dependencies: rows of ``parent`` and ``child`` in :attr:`tasks`, by child in topological order."""
        return joined_edges(self.sets)

    @cached_property
    def kind_runs(self) -> NDArray[np.float64]:
        """Expected seconds, tasks x kinds of processors (``spec.processors``); ``inf`` if a kind cannot run a task."""
        return runs_by_kind(self.spec, self.sets, self.speeds, len(self.tasks))

    @cached_property
    def family_seconds(self) -> list[dict[str, float]]:
        """For each task set the seconds to load a family, for the families that it specifies."""
        return family_seconds(self.sets)

    @cached_property
    def recorded(self) -> Table | None:
        """Recorded ``row, start, end`` of tasks, since the start of their workflow; ``None``: unknown."""
        return recorded_instants(self.sets)

    @cached_property
    def set_table(self) -> Table:
        """One row per task set: ``set`` (its name), ``tasks``, and ``first`` (its first row in :attr:`tasks`)."""
        return from_sets(self.sets, len(self.tasks))

    # ------------------------------------------------------------------ phases

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """The :data:`MOMENTS` of each task, 10 x tasks, non-decreasing; nan: not reached.

        Transfers that overlap another task on the processor count from the instant at which it becomes free.
        """
        bounds = np.stack([self.tasks[name].astype(np.float64) for name in MOMENTS])
        return np.asarray(np.maximum.accumulate(bounds, axis=0))

    @cached_property
    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Starts and ends of the :data:`PHASES`, 9 x tasks each; an unfinished phase ends with the record."""
        start, end = self.moments[:-1], self.moments[1:]
        return start, np.where(np.isnan(end) & np.isfinite(start), np.fmax(self.ended, start), end)

    @cached_property
    def phases(self) -> Table:
        """Phases of positive length and all executions, in order of tasks: ``task, phase, place, start, end``.

        The place is the processor, or the CPU core while the task waits for it or is set up by it; empty while the task
        is blocked on dependencies.
        """
        start, end = (each.T for each in self.spans)
        kept = end > start
        kept[:, -1] |= np.isfinite(start[:, -1])
        row, phase = np.nonzero(kept)
        processor, core = self.tasks["processor"][row], self.tasks["setup_core"][row]
        by_core = np.isin(phase, (2, 3)) & (core != "")
        place = np.where(phase == 0, "", np.where(by_core, core, processor))
        return Table(
            {
                "task": self.tasks["task"][row],
                "phase": np.array(PHASES)[phase],
                "place": place,
                "start": start[kept],
                "end": end[kept],
            }
        )

    def busy(self, processor: str | None = None) -> Steps:
        """Return the number of processors that execute tasks over time; one with several cores counts by busy share."""
        placed = self.placed if processor is None else np.where(self.tasks["processor"] == processor, self.placed, -1)
        start, end = self.spans[0][-1], self.spans[1][-1]
        ran = np.isfinite(start) & (placed >= 0)
        weight = (self.tasks["cores"] / self.processors["cores"][placed])[ran]
        start, end = start[ran], end[ran]
        if len(self.stopped):
            cut = self.stopped if processor is None else self.stopped.where(self.stopped["processor"] == processor)
            placed = positions(cut["processor"], self.processors["processor"].tolist())
            weight = np.append(weight, cut["cores"] / self.processors["cores"][placed])
            start, end = np.append(start, cut["start"]), np.append(end, cut["end"])
        return Steps.from_changes(
            np.append(start, end), np.append(weight, -weight), self.started, max(self.ended, self.started)
        )

    # ------------------------------------------------------------------ the form common to all kinds of work

    def outcomes(self) -> Table:
        """Return one row per task, with the columns of :meth:`JobRecord.outcomes
        <simmodel.records.job_record.JobRecord.outcomes>`.

        A task counts as submitted when it is ready, as started when it gets its processor, and requests its expected
        run time. ``since`` is the instant from which its wait counts; nan for a task without a processor.
        """
        tasks = self.tasks
        since = np.where(np.isfinite(tasks["taken"]), tasks["ready"], np.nan)
        return Table(
            {
                "work": tasks["task"],
                "since": since,
                "wait": tasks["taken"] - since,
                "delay": tasks["taken"] - since,
                "run": tasks["end"] - tasks["taken"],
                "submit": tasks["ready"],
                "start": tasks["taken"],
                "end": tasks["end"],
                "processors": tasks["cores"],
                "requested": np.where(np.isnan(tasks["expected_run"]), tasks["run_best"], tasks["expected_run"]),
                "status": tasks["status"],
            }
        )

    def executions(self) -> Table:
        """Return one row per task that got its processor: ``work, place, start`` (of its hold on the processor)."""
        taken = self.tasks.where(np.isfinite(self.tasks["taken"]))
        return Table({"work": taken["task"], "place": taken["processor"], "start": taken["taken"]})

    def used(self, begin: float, end: float) -> float:
        """Return the processor time used by executions between two instants."""
        return self.busy().integral(begin, end)

    def room(self, begin: float, end: float) -> float:
        """Return the processor time available between two instants."""
        return (end - begin) * len(self.processors)

    def _cells(self) -> Cells:
        rows = [["tasks", f"{len(self.tasks):,}"], ["processors", f"{len(self.processors):,}"]]
        rows += [["transfers", f"{len(self.transfers):,}"], ["started", f"{self.started:g}"]]
        return [["", "value"], *rows, ["ended", f"{self.ended:g}"]]

    def __repr__(self) -> str:
        count = len(self.processors)
        processors = "1 processor" if count == 1 else f"{count} processors"
        return f"<{type(self).__name__} {self.name}: {len(self.tasks)} tasks on {processors}>"


# ---------------------------------------------------------------------- the columns of tasks


def _first_rows(sets: Sequence[TaskSet]) -> list[int]:
    return list(accumulate((len(each) for each in sets), initial=0))


def from_sets(sets: Sequence[TaskSet], count: int) -> Table:
    """Return name, number of tasks and first row of each task set; without sets, one of all ``count`` tasks.

    >>> from_sets([TaskSet([1.0, 2.0], name="a"), TaskSet([3.0], name="b")], 3)["first"]
    array([0, 2])
    """
    if not sets:
        return Table(
            {"set": ["tasks"], "tasks": [count], "first": [0]} if count else {"set": [], "tasks": [], "first": []}
        )
    return Table(
        {"set": [each.name for each in sets], "tasks": [len(each) for each in sets], "first": _first_rows(sets)[:-1]}
    )


def joined_edges(sets: Sequence[TaskSet]) -> Table:
    """Return the dependencies as rows over all sets: ``parent, child``, by child in topological order.

    >>> joined_edges([TaskSet([1.0]), TaskSet([1.0, 2.0], parents=[(), (0,)])])["child"]
    array([2])
    """
    parents: list[int] = []
    children: list[int] = []
    for first, each in zip(_first_rows(sets), sets, strict=False):
        if each.parents is None:
            continue
        order: Sequence[int] = range(len(each))
        if any(parent > child for child, found in enumerate(each.parents) for parent in found):
            assert each.children is not None
            order = topological_order(dict(enumerate(each.parents)), dict(enumerate(each.children)))
        for child in order:
            for parent in each.parents[child]:
                parents.append(first + parent)
                children.append(first + child)
    return Table({"parent": np.array(parents, dtype=np.int64), "child": np.array(children, dtype=np.int64)})


def runs_by_kind(
    spec: MachineSpec, sets: Sequence[TaskSet], speeds: NDArray[np.float64] | None, count: int
) -> NDArray[np.float64]:
    """Return the expected seconds, tasks x kinds of processors; ``inf``: cannot run it, nan: unknown.

    Parameters
    ----------
    spec
        the machine
    sets
        the task sets, with the processor types and cores that their tasks need
    speeds
        tasks x architectures: expected seconds
    count
        number of tasks
    """
    if speeds is None:
        return np.full((count, len(spec.processors)), np.nan)
    rows = {each.name: i for i, each in enumerate(spec.architectures)}
    runs = np.array(speeds, dtype=np.float64)[:, [rows[kind.architecture] for kind in spec.processors]]
    cores = np.array([kind.cores for kind in spec.processors], dtype=np.float64)
    for first, each in zip(_first_rows(sets), sets, strict=False):
        here = runs[first : first + len(each)]
        if each.implementations is not None:
            can = {
                types: [types is None or kind.type in types for kind in spec.processors]
                for types in dict.fromkeys(each.implementations)
            }
            here[~np.array([can[types] for types in each.implementations], dtype=bool).reshape(here.shape)] = inf
        if each.cores is not None:
            here[np.asarray(each.cores, dtype=np.float64)[:, None] > cores] = inf
    return np.asarray(runs)


def family_seconds(sets: Sequence[TaskSet]) -> list[dict[str, float]]:
    """Return for each set the seconds to load its families."""
    return [dict(each.reconfiguration) for each in sets]


def recorded_instants(sets: Sequence[TaskSet]) -> Table | None:
    """Return ``row, start, end`` of the tasks with recorded instants; ``None`` if there are none.

    >>> from simmodel import Task, Workflow
    >>> flow = Workflow([Task(id="a", run=2, started=1.0, ended=3.0), Task(id="b", run=2)])
    >>> recorded_instants([TaskSet.of(flow)])["end"]
    array([3.])
    """
    found: list[tuple[int, float, float]] = []
    for first, each in zip(_first_rows(sets), sets, strict=False):
        if each.known_workflow is None:  # built from columns, which have no recorded instants
            continue
        found += [
            (row, task.started, task.ended)
            for row, task in enumerate(each.known_workflow, start=first)
            if task.started is not None and task.ended is not None
        ]
    if not found:
        return None
    rows, start, end = zip(*found, strict=True)
    return Table({"row": np.array(rows), "start": np.array(start, float), "end": np.array(end, float)})
