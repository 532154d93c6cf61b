"""Results of runs of machines: the record with metrics, plots, files and exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simmodel.formats.documents import Value
from simmodel.foundation.errors import Plain
from simmodel.metrics.batch import MACHINE_METRICS
from simmodel.platform.kinds import to_dict
from simmodel.platform.toml import from_dict
from simmodel.records.task_record import FIRST_COLUMNS, MOMENTS, TaskRecord
from simmodel.results.stored import Common, Stored
from simmodel.results.stores import json_text
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.machine import MachineSpec
    from simmodel.view.machine_plots import MachinePlots
    from simmodel.view.page.document import Page

__all__ = ["MachineResult"]


class MachineResult(Stored, TaskRecord):
    """The result of a run of tasks on a machine: its record, metrics, plots and files.

    Fields and parameters are those of :class:`~simmodel.records.task_record.TaskRecord`.

    >>> from simmodel.platform import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
    >>> spec = MachineSpec(pools=[MemoryPoolSpec(name="ram")], architectures=[ArchitectureSpec(name="x86")],
    ...     processors=[ProcessorSpec(name="cpu", count=2, type="CPUCore", architecture="x86", pool="ram")])
    >>> tasks = {"task": ["a", "b"], "processor": ["cpu0", "cpu1"], "start": [0, 0], "end": [4, 6]}
    >>> MachineResult(spec=spec, tasks=tasks).metrics()["makespan"]
    6.0
    """

    TABLES: ClassVar = (
        "tasks",
        "transfers",
        "memory",
        "cpu_phases",
        "stopped",
        "sets",
        "edges",
        "runs",
        "plan",
        "recorded",
        "reasons",
    )

    COUNTS: ClassVar = ("tasks",)

    # ------------------------------------------------------------------ metrics

    @property
    def METRICS(self) -> Mapping[str, tuple[str, str]]:
        """The metrics that are numbers: unit and label of each."""
        return MACHINE_METRICS

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run by name; see :func:`simmodel.metrics.workflow.summary`."""
        from simmodel.metrics.workflow import summary

        return summary(self)

    def summary(self) -> str:
        """Return the metrics as a short table of text."""
        from simmodel.metrics.workflow import summary_text

        return summary_text(self)

    def metric_text(self, name: str, value: float) -> str:
        """Return one of the ``METRICS`` with its unit as text."""
        return self.metric_texts()(name, value)

    def metric_texts(self) -> Callable[[str, float], str]:
        """Return a function like :meth:`metric_text` that can be kept, and sent, without the result."""
        from simmodel.metrics.workflow import machine_text

        return partial(machine_text, unit=self.spec.time_unit)

    def load(self) -> Table:
        """Return the load of each processor; see :func:`simmodel.metrics.processors.load`."""
        from simmodel.metrics.processors import load

        return load(self)

    def links(self) -> Table:
        """Return the load of each link; see :func:`simmodel.metrics.processors.links`."""
        from simmodel.metrics.processors import links

        return links(self)

    def critical_path(self) -> Table:
        """Return the critical path, step by step; see :func:`simmodel.metrics.critical.critical_path`."""
        from simmodel.metrics.critical import critical_path

        return critical_path(self)

    def planned(self) -> Table:
        """Return planned and actual executions; see :func:`simmodel.metrics.workflow.planned`."""
        from simmodel.metrics.workflow import planned

        return planned(self)

    def against_recorded(self) -> Table:
        """Return recorded and simulated executions; see :func:`simmodel.metrics.workflow.against_recorded`."""
        from simmodel.metrics.workflow import against_recorded

        return against_recorded(self)

    def by_set(self) -> Table:
        """Return makespan and SLR of each task set; see :func:`simmodel.metrics.workflow.by_set`."""
        from simmodel.metrics.workflow import by_set

        return by_set(self)

    # ------------------------------------------------------------------ stores

    def schedule_csv(self, path: str | Path) -> None:
        """Write the table of tasks as CSV; the columns of HetSim's phases first (see :data:`FIRST_COLUMNS`)."""
        rest = [name for name in self.tasks.names if name not in FIRST_COLUMNS]
        Table({name: self.tasks[name] for name in (*FIRST_COLUMNS, *rest)}).to_csv(path)

    def stored_tables(self) -> dict[str, Table]:
        """Return the tables that are stored."""
        return _stored_tables(self)

    def stored_meta(self) -> dict[str, Any]:
        """Return the document that is stored beside the tables, without the fields of all results."""
        return {
            "kind": "machine",
            "machine": to_dict(self.spec),
            "peaks": self.peaks,
            "families": self.family_seconds,
        }

    @classmethod
    def from_stored(cls, tables: Mapping[str, Table], about: Mapping[str, Plain], common: Common) -> MachineResult:
        """Return the result of stored tables and of the document of :meth:`stored_meta`; it has no task sets.

        Raises
        ------
        InputError
            the tables contradict themselves or each other
        """
        from simmodel.results.checks import check_tasks

        said = Value(dict(about), "")
        spec: MachineSpec = from_dict(said["machine"].table())
        peaks = {pool: said["peaks"][pool].number() for pool in said["peaks"].table()}
        families = [{name: each[name].number() for name in each.table()} for each in said["families"].list()]
        check_tasks(tables, [name for name, _ in spec.each_processor()], len(spec.processors))
        tasks = tables["tasks"]
        result = cls(
            spec=spec,
            tasks=tasks.with_columns(**{name: _numbers(tasks[name]) for name in (*MOMENTS, "assigned")}),
            transfers=tables.get("transfers"),
            cpu_phases=tables.get("cpu_phases"),
            stopped=tables.get("stopped"),
            plan=tables.get("plan"),
            reasons=tables.get("reasons"),
            memory=_memory_steps(tables["memory"], spec),
            peaks=peaks,
            **common,
        )
        result.edges = Table({name: column.astype(np.int64) for name, column in tables["edges"].items()})
        runs = np.stack([_numbers(column) for column in tables["runs"].values()], axis=1)
        result.kind_runs = runs if np.isnan(runs).all() else np.where(np.isnan(runs), inf, runs)  # JSON has no infinity
        result.set_table = tables["sets"]
        result.family_seconds = families
        result.recorded = tables.get("recorded")
        return result

    def to_json(self, path: str | Path | None = None, *, tasks: bool = False) -> str:
        """Return metrics, report, decisions and scenario as JSON; numbers that are not finite are ``null``.

        Parameters
        ----------
        path
            a file to write as well
        tasks
            add all tables
        """
        metrics = {name: value for name, value in self.metrics().items() if not name.startswith("decision_")}
        document = {**self.meta(), "metrics": metrics}
        if tasks:
            document["tables"] = {
                name: {key: column.tolist() for key, column in table.items()}
                for name, table in self.stored_tables().items()
            }
        return json_text(document, path, compact=tasks)

    def to_perfetto(self, path: str | Path, *, limit: int = 500_000, points: int = 20_000) -> None:
        """Write a trace for ui.perfetto.dev; see :func:`simmodel.formats.perfetto.write_task_trace`."""
        from simmodel.formats.perfetto import write_task_trace

        write_task_trace(self, path, limit=limit, points=points)

    # ------------------------------------------------------------------ views

    @cached_property
    def plot(self) -> MachinePlots:
        """Plots of the run: ``result.plot.gantt()``, ``.memory()``, ``.links()``, ``.plan()``, ``.overview()``."""
        from simmodel.view.machine_plots import MachinePlots

        return MachinePlots(self)

    def page(self, explained: Mapping[int, str] | None = None) -> Page:
        """Return the page of the run; see :meth:`to_html`."""
        from simmodel.view.page.results import machine_page

        return machine_page(self, explained)

    def ids(self) -> list[int | str]:
        """Return the ids of the tasks, in the order of their table."""
        return list(self.tasks["task"].tolist())

    def _repr_html_(self) -> str:
        from simmodel.view.html import machine_html

        return machine_html(self) + self._framed()


def _stored_tables(record: TaskRecord) -> dict[str, Table]:
    """Return the tables of a stored result of a machine."""
    names = _unlike([kind.name for kind in record.spec.processors])
    tables = {
        "tasks": record.tasks,
        "transfers": record.transfers,
        "memory": _memory_table(record),
        "cpu_phases": record.cpu_phases,
        "stopped": record.stopped,
        "sets": record.set_table,
        "edges": record.edges,
        "runs": Table({name: record.kind_runs[:, i] for i, name in enumerate(names)}),
    }
    if record.plan is not None:
        tables["plan"] = record.plan
    if record.reasons is not None:
        tables["reasons"] = record.reasons
    if record.recorded is not None:
        tables["recorded"] = record.recorded
    return tables


def _unlike(names: Sequence[str]) -> list[str]:
    """Return column names that differ also in a database that ignores case."""
    return [f"{i}_{name}" for i, name in enumerate(names)]


def _memory_table(record: TaskRecord) -> Table:
    steps = record.memory.items()
    return Table(
        {
            "pool": np.array([pool for pool, each in steps for _ in range(len(each.times))], dtype=str),
            "time": np.concatenate([np.zeros(0), *(each.times for _, each in steps)]),
            "bytes": np.concatenate([np.zeros(0), *(each.values for _, each in steps)]),
        }
    )


def _memory_steps(stored: Table, spec: MachineSpec) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return times and bytes of each pool with rows in a stored table of memory."""
    return {
        pool.name: (stored["time"][here], stored["bytes"][here])
        for pool in spec.pools
        if len(stored) and (here := stored["pool"] == pool.name).any()
    }


def _numbers(column: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return a column as numbers; nan for an empty column, which a store reads back as text."""
    return np.full(len(column), np.nan) if column.dtype.kind == "U" else column.astype(np.float64)
