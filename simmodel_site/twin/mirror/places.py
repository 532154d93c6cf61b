"""Partitions as a scheduler names them, on a platform on which those that share nodes are queues of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from simmodel.extending import clipped

if TYPE_CHECKING:
    from simmodel.platform import ClusterSpec
    from simmodel_site.twin.events import Demand

__all__ = ["Places"]


class Places:
    """The meaning of the names of partitions on a platform.

    A queue that belongs to a partition stands for a partition of the scheduler: its jobs go to that partition, in that
    queue. Other names keep their meaning, but on such a platform a queue that it lacks is none. Of several partitions,
    those that the platform lacks are left out, and so are consumables that it lacks: :meth:`unmodelled` names them.

    >>> from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
    >>> from simmodel_site.twin import Demand
    >>> queues = [QueueSpec(name="batch", partition="batch"), QueueSpec(name="debug", partition="batch")]
    >>> spec = ClusterSpec(partitions=[PartitionSpec(processors=8)], queues=queues)
    >>> Places(spec).request(Demand(partition="debug", queue="normal"))
    Demand(queue='debug', partition='batch')
    >>> Places(spec).unmodelled(Demand(partition="debug,gpu", consumables={"matlab": 1}))
    ('partition gpu, which the platform lacks', 'matlab, which the platform lacks')
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self._queues = {queue.name for queue in spec.queues}
        self._partitions = {queue.name: queue.partition for queue in spec.queues if queue.partition is not None}
        self._known = {each.name for each in spec.partitions} | {each.name for each in spec.reservations}
        self._known |= self._partitions.keys()
        self._consumables = {each.name for each in spec.consumables}

    def partition(self, name: str) -> str:
        return self._partitions.get(name, name)

    def request(self, request: Demand) -> Demand:
        """Return a request in the terms of the platform; of several partitions, the first one gives the queue."""
        if request.consumables and request.consumables.keys() - self._consumables:
            held = {name: amount for name, amount in request.consumables.items() if name in self._consumables}
            request = attrs.evolve(request, consumables=held)
        if gone := self._gone(request):
            names = [name for name in str(request.partition).split(",") if name not in gone]
            request = attrs.evolve(request, partition=",".join(names))
        if not self._partitions:
            return request
        names = [] if request.partition is None else str(request.partition).split(",")
        own = request.queue if request.queue is None or str(request.queue) in self._queues else None
        queue = next((name for name in names if name in self._partitions), own)
        partition = ",".join(dict.fromkeys(map(self.partition, names))) or None
        return attrs.evolve(request, partition=partition, queue=queue)

    def unmodelled(self, request: Demand) -> tuple[str, ...]:
        """Return the partitions and consumables of a request that the platform lacks and that are left out of it."""
        names = [f"partition {name}" for name in self._gone(request)]
        names += sorted(request.consumables.keys() - self._consumables)
        return tuple(clipped(f"{name}, which the platform lacks", 100) for name in names)

    def _gone(self, request: Demand) -> tuple[str, ...]:
        """Return those of several partitions that the platform lacks; none if it lacks them all."""
        if request.partition is None:
            return ()
        names = str(request.partition).split(",")
        gone = tuple(name for name in names if name not in self._known)
        return gone if len(gone) < len(names) else ()
