"""Logs whose jobs request more than processors and time: each row becomes a ``Job`` before its submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError, unknown
from simmodel.work.job import ANY, Job
from simmodel.work.rows import jobs_of_rows, shares_in
from simmodel.work.task import SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator

    from simmodel.systems.system import Offers
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Report, Workload

__all__ = [
    "LeftOut",
    "as_queue",
    "check_names",
    "check_specs",
    "known_here",
    "name_of",
    "needs_specs",
    "note_left_out",
    "specs",
]

_DETAILS = ("preceding", "priority", "cancel", "checkpoint_interval")
_OF_NODES = ("gpus_per_node", "memory_per_node")
_SHAPES = ("nodes", "cores_per_node", *_OF_NODES)


def needs_specs(workload: Workload, offers: Offers, *, sizes: bool = False) -> bool:
    """Whether the jobs request more than processors and time, or the system distinguishes queues or nodes.

    Columns about nodes matter only if nodes are identified; those about the sizes of elastic jobs, only if ``sizes``.
    """
    details = (*_DETAILS, *(_SHAPES if offers.nodes else ()), *(("maximum",) if sizes else ()))
    return bool(
        workload.specs is not None
        or offers.queues
        or (offers.shares and any(_any(workload[f"{SHARE}{name}"]) for name in shares_in(workload.table)))
        or any(name in workload and _any(workload[name]) for name in details)
    )


def _any(column: Any) -> bool:
    if column.dtype.kind == "f":
        return bool((np.nan_to_num(column) > 0).any())
    if column.dtype.kind in "iu":
        return bool((column > 0).any())
    return any(value not in (None, "", -1) for value in column.tolist())


def specs(workload: Workload, prepared: Prepared, on_nodes: bool = True) -> Iterator[tuple[int, Job]]:
    """Yield (row, job) for the rows that can run, in order of submission; node requests only if ``on_nodes``."""
    rows = prepared.rows.tolist()
    if workload.specs is not None:
        return zip(rows, map(workload.specs.__getitem__, rows), strict=True)
    return jobs_of_rows(workload.table, rows, prepared.processors, prepared.report.repaired, on_nodes)


class LeftOut:
    """The requests of a log that the platform ignores: GPUs, memory, partitions."""

    def __init__(self) -> None:
        self.partitions: set[object] = set()
        self.asking = 0
        self.sharing = 0

    def note(self, report: Report) -> None:
        """Add the sentences to a report."""
        if len(self.partitions) > 1:
            report.note(f"the log's {len(self.partitions)} partitions are simulated as one machine")
        if self.asking:
            report.note(f"{self.asking:,} jobs request memory per processor, which is not simulated")
        if self.sharing:
            report.note(f"{self.sharing:,} jobs request bandwidth of storages or links that the platform does not have")

    def add(self, workload: Workload, offers: Offers, report: Report) -> None:
        """Count the requests of a log, or of a part of one."""
        if workload.specs is not None:
            return
        if "partition" in workload and not offers.partitions:
            cells = {value for value in set(workload["partition"].tolist()) if value not in (None, "", -1)}
            self.partitions |= {name for cell in cells for name in str(cell).split(",")}
        if "requested_memory" in workload:
            asked = np.nan_to_num(np.asarray(workload["requested_memory"], dtype=np.float64)) > 0
            self.asking += int(asked.sum())
        if not offers.shares:
            rates = [np.nan_to_num(workload[f"{SHARE}{name}"]) for name in shares_in(workload.table)]
            self.sharing += int((np.max(rates, axis=0) > 0).sum()) if rates else 0
        if not offers.nodes:
            _count_left_out(workload, report)


def note_left_out(workload: Workload, offers: Offers, report: Report) -> None:
    """Count or note requests of a log that the platform ignores: GPUs, memory, partitions."""
    left_out = LeftOut()
    left_out.add(workload, offers, report)
    left_out.note(report)


def _count_left_out(workload: Workload, report: Report) -> None:
    asked = np.zeros(len(workload), dtype=bool)
    for name in _OF_NODES:
        if name in workload:
            asked |= np.nan_to_num(np.asarray(workload[name], dtype=np.float64)) > 0
    if asked.any():
        report.repaired["GPUs or memory not on the platform: request ignored"] += int(asked.sum())


def as_queue(spec: Job, queues: Collection[str], partitions: Collection[str]) -> Job:
    """Return a job whose partition is here the name of a queue as one of that queue.

    So a log of a scheduler runs on the platform that describes it: partitions that share nodes are queues there.
    """
    name = spec.partition
    if name is None or str(name) in partitions or str(name) not in queues:
        return spec
    return attrs.evolve(spec, partition=None, queue=str(name))


def known_here(offers: Offers, spec: Job, report: Report) -> Job:
    """Return the job of a log without a queue or partition that this platform does not have; count the repair."""
    spec = as_queue(spec, offers.queues, offers.partitions)
    if spec.queue is not None and offers.queues and str(spec.queue) not in offers.queues:
        report.repaired["queue not on the platform: ignored"] += 1
        spec = attrs.evolve(spec, queue=None)
    if spec.partition is not None and offers.partitions and str(spec.partition) not in offers.partitions:
        report.repaired["partition not on the platform: ignored"] += 1
        spec = attrs.evolve(spec, partition=None)
    if any(name not in offers.shares for name in spec.bandwidth):
        report.repaired["bandwidth of storages and links not on the platform: ignored"] += 1
        left = {name: rate for name, rate in spec.bandwidth.items() if name in offers.shares}
        spec = attrs.evolve(spec, bandwidth=left)
    if spec.partitions and offers.partitions:
        names = tuple(name for name in spec.partitions if name == ANY or str(name) in offers.partitions)
        if names != spec.partitions:
            report.repaired["partition not on the platform: ignored"] += 1
            spec = attrs.evolve(spec, partitions=names)
    return spec


def check_specs(
    jobs: Iterable[tuple[object, Job]], known: Container[object], check: Callable[[Job, object], None]
) -> None:
    """Check the ids, queues and partitions of the jobs of a script; unknown ones of logs are ignored.

    Parameters
    ----------
    jobs
        the jobs with their names in errors
    known
        the ids of earlier jobs
    check
        ``check(job, label)`` checks the queue and the partition of a job

    Raises
    ------
    InputError
        if an id occurs twice, or a queue or partition is unknown
    """
    seen: set[object] = set()
    for label, job in jobs:
        if job.id is not None:
            if job.id in seen or job.id in known:
                raise InputError(f"duplicate job id {job.id!r}")
            seen.add(job.id)
        check(job, label)


def name_of(job: Job, number: int, known: Container[object]) -> int | str:
    """Return the name of a job: its id, its own name, or the first number from ``number`` on that is no known id."""
    if job.id is not None or job.name:
        return job.id if job.id is not None else str(job.name)
    while number in known:
        number += 1
    return number


def check_names(job: Job, label: object, queues: Collection[str], partitions: Collection[str]) -> None:
    """Check that the queue and the partition of a job, if it names any, are among those of a system.

    Raises
    ------
    InputError
        if one is not
    """
    several = () if job.partitions == (ANY,) else job.partitions
    named = [("partition", name, partitions) for name in (job.partition, *several)]
    for kind, name, names in (("queue", job.queue, queues), *named):
        if name is not None and str(name) not in names:
            raise InputError(f"job {label}: {unknown(kind, str(name), names).message}")
