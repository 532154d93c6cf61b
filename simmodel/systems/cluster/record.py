"""Columns of the record: of the jobs of a log, or of those that had not ended in a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.job_columns import join

if TYPE_CHECKING:
    from simmodel.snapshots.cluster import ClusterSnapshot
    from simmodel.snapshots.jobs import WorkState
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["columns_of", "columns_of_log", "works_of"]

_OF_SPECS = {"group": "group", "queue": "queue", "partition": "partition_text"}


def works_of(snapshot: ClusterSnapshot) -> list[WorkState]:
    """Return all jobs of a snapshot in order of submission, which are the rows of the record."""
    works = [run.work for run in snapshot.running]
    works += [*snapshot.waiting, *snapshot.held, *snapshot.blocked, *snapshot.arrivals]
    return sorted(works, key=lambda work: work.number)


def columns_of(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the columns of a snapshot's jobs for a recorder."""
    works = works_of(snapshot)
    columns: dict[str, Any] = {
        "job": _names([work.id for work in works]),
        "submit": np.array([work.submit for work in works], dtype=np.float64),
        "processors": np.array([work.processors for work in works], dtype=np.int64),
        "requested": np.array([_requested(work) for work in works], dtype=np.float64),
    }
    columns["user"] = [work.user for work in works]
    for name, field in _OF_SPECS.items():
        columns[name] = [None if work.spec is None else getattr(work.spec, field) for work in works]
    for name in ("user", *_OF_SPECS):
        if any(value is not None for value in columns[name]):
            columns[name] = _names(columns[name])
        else:
            del columns[name]
    return columns


def _requested(work: WorkState) -> float:
    """Return the requested time; for a suspended job, that before suspension."""
    return work.requested if work.past is None or work.past.whole is None else work.past.whole[0]


def _names(values: list[Any]) -> Any:
    return join(np.zeros(0, dtype=np.int64), values)


def columns_of_log(workload: Workload, prepared: Prepared) -> dict[str, Any]:
    """Return the columns of a workload for the record."""
    columns = {name: workload[name] for name in workload.table.names if name not in ("wait", "status", "run")}
    return columns | {
        "processors": prepared.processors,
        "requested": prepared.requested,
        "recorded_run": workload["run"],
    }
