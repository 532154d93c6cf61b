"""When each node has room for a request, by the expected ends of the work that runs there."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.pools.allocation import Request
    from simmodel.resources.pools.running import Entry, RunningIndex

    Part = tuple[float, int, float, float, float]  # expected end (s), number; cores, GPUs and bytes

__all__ = ["NodeTimes", "Shape", "shape_of"]

INFINITY = float("inf")
_LOG = 20_000  # changes of nodes kept

Shape = tuple[float, float, float, bool]
"""What is asked of one node: cores, GPUs, bytes, and whether nobody else may be there."""


def shape_of(request: Request) -> Shape:
    """Return what a request for nodes asks of each of them."""
    return request.cores_per_node, request.gpus_per_node, request.memory_per_node, request.exclusive


class NodeTimes:
    """The running parts of each node, and the instants at which nodes have room for a shape.

    It watches the index of running work. An answer for a shape is kept, and computed again only for the nodes that
    changed since.

    Parameters
    ----------
    capacity
        shape (3, nodes): cores, GPUs and bytes of each node
    running
        the executions; those with an end at infinity hold their nodes for ever

    Attributes
    ----------
    capacity, cores, gpus
        (cores, GPUs, bytes) of each node; the first two as arrays
    held
        the running parts of each node: (expected end in s, number, cores, GPUs, bytes), by end

    >>> from simmodel.resources.pools.running import RunningIndex
    >>> times = NodeTimes(np.array([[4.0, 8], [0, 1], [9, 9]]), RunningIndex())
    >>> times.free_from((4, 1, 0, False)).tolist()
    [inf, -inf]
    """

    __slots__ = ("_found", "_log", "_running", "capacity", "cores", "gpus", "held")

    def __init__(self, capacity: NDArray[np.float64], running: RunningIndex) -> None:
        self.capacity: list[tuple[float, float, float]] = list(zip(*capacity.tolist(), strict=True))
        self.cores, self.gpus = capacity[0], capacity[1]
        self.held: list[list[Part]] = [[] for _ in self.capacity]
        self._log: list[int] = []
        self._found: dict[Shape, tuple[NDArray[np.float64], int]] = {}  # the answer, and the length of the log then
        self._running = running
        for entry in running.entries():
            self.started(entry)
        running.watch(self)

    @property
    def first_end(self) -> float:
        """The earliest expected end of the running work, in seconds."""
        return self._running.first_end

    def started(self, entry: Entry) -> None:
        """Note an execution that was added."""
        end, number, _, run = entry
        allocation = run.grant.allocation
        nodes = allocation.nodes.tolist()
        for node, *amounts in zip(nodes, *allocation.amounts.tolist(), strict=True):
            insort(self.held[node], (end, number, *amounts))
        self._note(nodes)

    def ended(self, entry: Entry) -> None:
        """Note an execution that was removed."""
        end, number, _, run = entry
        nodes = run.grant.allocation.nodes.tolist()
        for node in nodes:
            held = self.held[node]
            del held[bisect_left(held, (end, number))]
        self._note(nodes)

    def _note(self, nodes: list[int]) -> None:
        self._log += nodes
        if len(self._log) > _LOG:
            self._log.clear()
            self._found.clear()

    def free_from(self, shape: Shape) -> NDArray[np.float64]:
        """Return the instant (s) from which each node has room; -inf: it has now, inf: never. Read-only."""
        found = self._found.get(shape)
        if found is None:
            since = np.array([self._since(node, shape) for node in range(len(self.held))], dtype=np.float64)
        else:
            since, position = found
            for node in set(self._log[position:]):
                since[node] = self._since(node, shape)
        self._found[shape] = since, len(self._log)
        return since

    def _since(self, node: int, shape: Shape) -> float:
        """Return the end at which a shape begins to fit: the latest parts are taken away first."""
        cores, gpus, memory, exclusive = shape
        has_cores, has_gpus, has_memory = self.capacity[node]
        has_cores -= cores
        has_gpus -= gpus
        has_memory -= memory
        if has_cores < 0 or has_gpus < 0 or has_memory < 0:
            return INFINITY
        held = self.held[node]
        if exclusive:
            return held[-1][0] if held else -INFINITY
        for end, _, with_cores, with_gpus, with_memory in reversed(held):
            has_cores -= with_cores
            has_gpus -= with_gpus
            has_memory -= with_memory
            if has_cores < 0 or has_gpus < 0 or has_memory < 0:
                return end
        return -INFINITY
