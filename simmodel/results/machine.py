"""What a run of a machine returns: tables of what its tasks, processors, links and memories did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.platform.machine import MachineSpec
from simmodel.records.steps import Steps
from simmodel.records.task_columns import family_seconds, from_sets, joined_edges, recorded_instants, runs_by_kind
from simmodel.records.task_moments import (
    FIRST_COLUMNS,
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

    from simmodel.view.machine_plots import MachinePlots

__all__ = ["MachineResult"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class MachineResult:
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

    >>> from simmodel.platform.machine import ArchitectureSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="cpu", count=2, type="CPUCore", architecture="x86", pool="ram")])
    >>> tasks = {"task": ["a", "b"], "processor": ["cpu0", "cpu1"], "start": [0, 0], "end": [4, 6]}
    >>> result = MachineResult(spec=spec, tasks=tasks)
    >>> result.metrics()["makespan"], result.busy("cpu0").integral()
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

    # ------------------------------------------------------------------ numbers

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run, as :func:`simmodel.metrics.workflow.summary` does."""
        from simmodel.metrics.workflow import summary

        return summary(self)

    def summary(self) -> str:
        """Return the metrics as a short table of text, for people."""
        from simmodel.metrics.workflow_report import summary_text

        return summary_text(self)

    def load(self) -> Table:
        """Return what each processor did; see :func:`simmodel.metrics.processors.load`."""
        from simmodel.metrics.processors import load

        return load(self)

    def links(self) -> Table:
        """Return what each link carried; see :func:`simmodel.metrics.processors.links`."""
        from simmodel.metrics.processors import links

        return links(self)

    def critical_path(self) -> Table:
        """Return what the makespan came from, step by step; see :func:`simmodel.metrics.critical.critical_path`."""
        from simmodel.metrics.critical import critical_path

        return critical_path(self)

    def planned(self) -> Table:
        """Return the plan beside what happened; see :func:`simmodel.metrics.workflow.planned`."""
        from simmodel.metrics.workflow import planned

        return planned(self)

    def against_recorded(self) -> Table:
        """Return what happened beside what was recorded; see :func:`simmodel.metrics.workflow.against_recorded`."""
        from simmodel.metrics.workflow import against_recorded

        return against_recorded(self)

    def by_set(self) -> Table:
        """Return makespan and SLR of each task set; see :func:`simmodel.metrics.workflow.by_set`."""
        from simmodel.metrics.workflow import by_set

        return by_set(self)

    # ------------------------------------------------------------------ stores

    def schedule_csv(self, path: str | Path) -> None:
        """Write the table of tasks; the columns of HetSim's phases first (see :data:`FIRST_COLUMNS`)."""
        rest = [name for name in self.tasks if name not in FIRST_COLUMNS]
        Table({name: self.tasks[name] for name in (*FIRST_COLUMNS, *rest)}).to_csv(path)

    def stored_tables(self) -> dict[str, Table]:
        """Return everything that a store keeps as tables."""
        from simmodel.records.task_columns import stored_tables

        return stored_tables(self)

    def stored_meta(self) -> dict[str, Any]:
        """Return what a store keeps beside the tables."""
        from simmodel.platform.toml import to_dict

        return {
            "kind": "machine",
            "machine": to_dict(self.spec),
            "peaks": self.peaks,
            "families": self.family_seconds,
        }

    def to_csv(self, folder: str | Path) -> None:
        """Write one CSV file a table, and ``meta.json``, into a folder (made where it is missing)."""
        from simmodel.results.stores import write_csv

        write_csv(self, folder)

    def to_parquet(self, folder: str | Path) -> None:
        """Write one Parquet file a table, and ``meta.json``, into a folder; needs pyarrow."""
        from simmodel.results.stores import write_parquet

        write_parquet(self, folder)

    def to_sqlite(self, path: str | Path) -> None:
        """Write an SQLite database with a table for each of the result's, and meta; replaces the file."""
        from simmodel.results.stores import write_sqlite

        write_sqlite(self, path)

    def to_json(self, path: str | Path | None = None, *, tasks: bool = False) -> str:
        """Return metrics, report, decisions and scenario as JSON, and with ``tasks`` all tables; a path: write it.

        What is not a number is ``null`` there.
        """
        from simmodel.results.stores import json_text, meta

        document = {**meta(self), "metrics": self.metrics()}
        if tasks:
            document["tables"] = {
                name: {key: column.tolist() for key, column in table.items()}
                for name, table in self.stored_tables().items()
            }
        return json_text(document, path, compact=tasks)

    def to_perfetto(self, path: str | Path, **options: Any) -> None:
        """Write a trace for ui.perfetto.dev; options as of :func:`simmodel.formats.perfetto_machine.write_trace`."""
        from simmodel.formats.perfetto_machine import write_trace

        write_trace(self, path, **options)

    # ------------------------------------------------------------------ looks

    @cached_property
    def plot(self) -> MachinePlots:
        """Pictures of the run: ``result.plot.gantt()``, ``.memory()``, ``.links()``, ``.plan()``, ``.overview()``."""
        from simmodel.view.machine_plots import MachinePlots

        return MachinePlots(self)

    def _repr_html_(self) -> str:
        from simmodel.view.machine_html import machine_html

        return machine_html(self)

    def __repr__(self) -> str:
        count = len(self.processors)
        return f"<MachineResult {self.name}: {len(self.tasks)} tasks on {count} processor{'' if count == 1 else 's'}>"
