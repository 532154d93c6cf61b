"""The stored tables of the record of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.table import Table

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from simmodel.platform.machine import MachineSpec
    from simmodel.records.task_record import TaskRecord

__all__ = ["memory_steps", "numbers", "stored_tables"]


def stored_tables(record: TaskRecord) -> dict[str, Table]:
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


def memory_steps(stored: Table, spec: MachineSpec) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return times and bytes of each pool with rows in a stored table of memory."""
    return {
        pool.name: (stored["time"][here], stored["bytes"][here])
        for pool in spec.pools
        if len(stored) and (here := stored["pool"] == pool.name).any()
    }


def numbers(column: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return a column as numbers; nan for an empty column, which a store reads back as text."""
    return np.full(len(column), np.nan) if column.dtype.kind == "U" else column.astype(np.float64)
