"""What happened to tasks, as columns: what the tasks, processors, links and memories of a machine did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.platform.machine import MachineSpec
from simmodel.records.steps import Steps
from simmodel.records.task_columns import family_seconds, from_sets, joined_edges, recorded_instants, runs_by_kind
from simmodel.records.task_moments import (
    MOMENTS,
    PHASES,
    completed,
    cpu_table,
    positions,
    stopped_table,
    transfer_table,
)
from simmodel.work.table import Table
from simmodel.work.taskset import TaskSet
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TaskRecord"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class TaskRecord:
    """What happened when a machine ran tasks.

    Parameters
    ----------
    tasks
        one row a task, in order of submission: ``task, processor`` and the instants ``ready, setup_start, setup_end,
        reconfiguration_end, transfer_start, transfer_end, start, end`` (:data:`MOMENTS`), then ``submit``, ``assigned``
        (a policy decided), ``taken`` (the processor was its own), ``set`` (the position of its task set), ``status``
        (done, running, assigned, waiting, blocked), ``attempts``, ``expected_run`` (on its processor), ``run_best``
        (the least expected one of all processors), ``setup_core``, ``family``, ``pool``, ``cores``. nan: not yet
    spec
        the machine
    transfers
        ``object, bytes, source, destination, start, end, task, cause, count``: what moved between pools, why ("input",
        "overlap", "write-back", "spill"), and how many data objects a row stands for
    memory, peaks
        of each pool: bytes used over time, and the most
    cpu_phases
        ``core, task, what, start, end``: which CPU core set up a processor, or moved data, for which task
    stopped
        executions that did not come to their end: ``task, processor``, instants from ``taken`` to ``end``, ``cores``
    sets
        the task sets in order of submission; their tasks follow each other in ``tasks``
    plan
        ``task, processor, start, end`` as a planner planned them
    speeds
        tasks x architectures: expected seconds; ``inf`` where no processor of it can run the task
    started, ended
        first and last instant; default: of the tasks
    decisions, report, scenario, name
        count, seconds, mean, min and max of the policy's decisions; what was skipped or repaired; what repeats the run;
        what tables and plots call it

    Times are in the machine's ``time_unit``, sizes in bytes.

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

    # ------------------------------------------------------------------ what there is

    @cached_property
    def processors(self) -> Table:
        """One row a processor, in order: ``processor, type, architecture, pool, cores, idle_power, load_power``."""
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
        """What a unit of time stands for: ``"s"``, or what the machine says."""
        return self.spec.time_unit

    @cached_property
    def placed(self) -> NDArray[np.int64]:
        """Of each task: the row of its processor in :attr:`processors`; -1 where it has none."""
        return positions(self.tasks["processor"], self.processors["processor"].tolist())

    @cached_property
    def edges(self) -> Table:
        """Who waits for whom: rows of ``parent`` and ``child`` in :attr:`tasks`, by child in a topological order."""
        return joined_edges(self.sets)

    @cached_property
    def kind_runs(self) -> NDArray[np.float64]:
        """Tasks x kinds of processors (``spec.processors``): expected seconds; ``inf`` where a kind cannot run it."""
        return runs_by_kind(self.spec, self.sets, self.speeds, len(self.tasks))

    @cached_property
    def family_seconds(self) -> list[dict[str, float]]:
        """Of each task set: the seconds to load a family, where the set says them."""
        return family_seconds(self.sets)

    @cached_property
    def recorded(self) -> Table | None:
        """``row, start, end``: when tasks ran where the workflow was recorded, since its start; ``None``: not known."""
        return recorded_instants(self.sets)

    @cached_property
    def set_table(self) -> Table:
        """One row a task set: ``set`` (its name), ``tasks``, and its first row in :attr:`tasks`."""
        return from_sets(self.sets, len(self.tasks))

    # ------------------------------------------------------------------ phases

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """The :data:`MOMENTS` of each task, 10 x tasks, never falling; nan: not yet.

        Data that are fetched while the processor is busy with another task count from when it is free.
        """
        bounds = np.stack([self.tasks[name].astype(np.float64) for name in MOMENTS])
        return np.asarray(np.maximum.accumulate(bounds, axis=0))

    @cached_property
    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Starts and ends of the :data:`PHASES`, 9 x tasks each; one under way ends where the record does."""
        start, end = self.moments[:-1], self.moments[1:]
        return start, np.where(np.isnan(end) & np.isfinite(start), np.fmax(self.ended, start), end)

    @cached_property
    def phases(self) -> Table:
        """``task, phase, place, start, end``: what took time of each task, and each execution, in order of tasks.

        The place is the processor, and the core while a task waits for it or is set up by it; empty while it is blocked
        on dependencies.
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
        """Return how many processors execute tasks over time, or whether one does; shares of it where it has cores."""
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

    # ------------------------------------------------------------------ as records of all kinds of work

    def outcomes(self) -> Table:
        """Return one row a task: ``work, submit, since, start, end, processors, requested, status``.

        A task is submitted when it is ready, starts when a processor is its own, and asks for its expected run time.
        ``since``: from when its wait counts: that of a task without a processor does not (nan).
        """
        tasks = self.tasks
        return Table(
            {
                "work": tasks["task"],
                "since": np.where(np.isfinite(tasks["taken"]), tasks["ready"], np.nan),
                "submit": tasks["ready"],
                "start": tasks["taken"],
                "end": tasks["end"],
                "processors": tasks["cores"],
                "requested": np.where(np.isnan(tasks["expected_run"]), tasks["run_best"], tasks["expected_run"]),
                "status": tasks["status"],
            }
        )

    def executions(self) -> Table:
        """Return one row a task that has a processor: ``work, place, start`` (when the processor was its own)."""
        taken = self.tasks.where(np.isfinite(self.tasks["taken"]))
        return Table({"work": taken["task"], "place": taken["processor"], "start": taken["taken"]})

    def used(self, begin: float, end: float) -> float:
        """Return the processor time that tasks were executed in between two instants."""
        return self.busy().integral(begin, end)

    def room(self, begin: float, end: float) -> float:
        """Return the processor time that there was between two instants."""
        return (end - begin) * len(self.processors)

    def __repr__(self) -> str:
        count = len(self.processors)
        processors = "1 processor" if count == 1 else f"{count} processors"
        return f"<{type(self).__name__} {self.name}: {len(self.tasks)} tasks on {processors}>"
