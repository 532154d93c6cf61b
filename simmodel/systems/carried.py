"""The record of a run that goes on from a snapshot: what happened before, as far as jobs that are not over need it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.columns import join
from simmodel.records.recorder import JobRecorder

if TYPE_CHECKING:
    from simmodel.scheduling.snapshot import Snapshot, Work
    from simmodel.systems.cluster import Cluster
    from simmodel.work.job import LiveJob, Run

__all__ = ["carried", "columns_of"]

_OF_SPECS = ("group", "queue", "partition")


def carried(cluster: Cluster, runs: Iterable[Run], jobs: Iterable[LiveJob], rows: int) -> JobRecorder:
    """Return a recorder of so many jobs that begins now and knows what runs and waits."""
    recorder = JobRecorder(cluster.env, expected=rows, late=True, places=cluster.places)
    for run in runs:
        recorder.carry_over(run.job)
    for job in jobs:
        recorder.carry_over(job)
    return recorder


def works_of(snapshot: Snapshot) -> list[Work]:
    """Return all jobs of a snapshot, in the order of submission: the rows of the record."""
    works = [run.work for run in snapshot.running]
    works += [*snapshot.waiting, *snapshot.held, *snapshot.blocked, *snapshot.arrivals]
    return sorted(works, key=lambda work: work.number)


def columns_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the columns of a snapshot's jobs, as a recorder takes them."""
    works = works_of(snapshot)
    columns: dict[str, Any] = {
        "job": _names([work.id for work in works]),
        "submit": np.array([work.submit for work in works], dtype=np.float64),
        "processors": np.array([work.processors for work in works], dtype=np.int64),
        "requested": np.array([_requested(work) for work in works], dtype=np.float64),
    }
    columns["user"] = [work.user for work in works]
    for name in _OF_SPECS:
        columns[name] = [None if work.spec is None else getattr(work.spec, name) for work in works]
    for name in ("user", *_OF_SPECS):
        if any(value is not None for value in columns[name]):
            columns[name] = _names(columns[name])
        else:
            del columns[name]
    return columns


def _requested(work: Work) -> float:
    """Return what it asked for: before it was suspended, where it was."""
    return work.requested if work.past is None or work.past.whole is None else work.past.whole[0]


def _names(values: list[Any]) -> Any:
    return join(np.zeros(0, dtype=np.int64), values)
