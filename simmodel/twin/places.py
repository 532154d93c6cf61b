"""Partitions as a scheduler names them, on a platform on which those that share nodes are queues of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.twin.events import Request

__all__ = ["Places"]


class Places:
    """What the names of partitions mean on a platform.

    A queue that belongs to a partition stands for a partition of the scheduler: its jobs go to that partition, in that
    queue. Other names mean what they say, but on such a platform a queue that it lacks is none.

    >>> from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
    >>> from simmodel.twin import Request
    >>> queues = [QueueSpec(name="batch", partition="batch"), QueueSpec(name="debug", partition="batch")]
    >>> spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], queues=queues)
    >>> Places(spec).request(Request(partition="debug", queue="normal"))
    Request(queue='debug', partition='batch')
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self._queues = {queue.name for queue in spec.queues}
        self._partitions = {queue.name: queue.partition for queue in spec.queues if queue.partition is not None}

    def partition(self, name: str) -> str:
        """Return the partition of the platform."""
        return self._partitions.get(name, name)

    def request(self, request: Request) -> Request:
        """Return a request in the terms of the platform; of several partitions, the first one gives the queue."""
        if not self._partitions:
            return request
        names = [] if request.partition is None else str(request.partition).split(",")
        own = request.queue if request.queue is None or str(request.queue) in self._queues else None
        queue = next((name for name in names if name in self._partitions), own)
        partition = ",".join(dict.fromkeys(map(self.partition, names))) or None
        return attrs.evolve(request, partition=partition, queue=queue)
