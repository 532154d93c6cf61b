"""The longest time that each job of a workload may request on a cluster: of its partitions, and of its queue."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.work.job import ANY, partitions_in
from simmodel.work.workload import processors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.platform.cluster import ClusterSpec
    from simmodel.work.workload import Workload

__all__ = ["time_limits"]


def time_limits(workload: Workload, spec: ClusterSpec) -> NDArray[np.float64]:
    """Return the limit of each job (s), the longest of the partitions that it may have; infinite: none.

    Of a job that names no partition these are all that have enough processors for it.

    >>> from simmodel import Job
    >>> from simmodel.platform import ClusterSpec, PartitionSpec
    >>> from simmodel.work import Workload
    >>> short = PartitionSpec(name="short", processors=8, max_requested=60)
    >>> spec = ClusterSpec(partitions=[short, PartitionSpec(name="long", processors=4, max_requested=300)])
    >>> jobs = [Job(run=9, processors=8), Job(run=9), Job(run=9, partition="short")]
    >>> time_limits(Workload.from_jobs(jobs), spec).tolist()
    [60.0, 300.0, 60.0]
    """
    partitions = {part.name: part for part in spec.partitions}
    queues = {queue.name: queue for queue in spec.queues}

    @cache
    def limit(partition: Any, queue: Any, processors: int) -> float:
        asked = partitions_in(partition)
        several = str(asked["partitions"]).split(",") if "partitions" in asked else [str(asked["partition"])]
        names = [each.strip() for each in several if each.strip() in partitions]
        if len(several) == 1 and several[0] not in partitions and several[0] in queues:
            queue = several[0]  # a partition that shares its nodes is a queue here
        rules = queues.get(str(queue))
        if not names and ANY not in several:
            usual = (rules.partition if rules is not None else None) or spec.default_partition
            names = [usual] if usual is not None else []
        allowed = [partitions[name] for name in names] or [
            part
            for part in spec.partitions
            if processors <= part.capacity and processors <= (part.max_processors or inf)
        ]
        longest = max((part.max_requested or inf for part in allowed), default=inf)
        return min(longest, (rules.max_requested if rules is not None else None) or inf)

    processors, _ = processors_of(workload.table)
    partition, queue = (workload.get(name).tolist() for name in ("partition", "queue"))
    return np.array([limit(*each) for each in zip(partition, queue, processors.tolist(), strict=True)], dtype=float)
