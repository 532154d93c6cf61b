"""The expected ends of the work on each node, and when nodes have room for a shape."""

from __future__ import annotations

from bisect import insort
from heapq import heapify, heappush, heapreplace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from simmodel.resources.pools.allocation import NodeTable, Request

    Amounts = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Numbers = NDArray[np.intp]
    Part = tuple[float, int, float, float, float]  # expected end, number, cores, GPUs, bytes of memory

__all__ = ["NodeEnds", "Shape", "shape_of"]

INFINITY = float("inf")

Shape = tuple[float, float, float]
"""What is asked of one node: cores, GPUs, bytes."""


def shape_of(request: Request) -> Shape:
    """Return the cores, GPUs and bytes of memory that a request is for on each node."""
    return request.cores_per_node, request.gpus_per_node, request.memory_per_node


class NodeEnds:
    """The expected ends of the running work on each node.

    A node on which one job has all cores has no parts: its last end is that of the job.

    Parameters
    ----------
    table
        the free capacity of each node
    exclusive
        whether jobs get whole nodes

    Attributes
    ----------
    down
        whether any node is down
    first, last
        the first and the last expected end on each node (s): infinite and 0 where nothing runs
    """

    __slots__ = ("_ables", "_capacity", "_exclusive", "_parts", "_table", "down", "first", "last")

    def __init__(self, table: NodeTable, exclusive: bool) -> None:
        self._table = table
        self._exclusive = exclusive
        self._capacity: list[list[float]] = table.capacity.T.tolist()
        self._ables: dict[Shape, tuple[Mask, bool]] = {}
        self.down = False
        self.clear()

    def clear(self) -> None:
        """Note that nothing runs."""
        count = len(self._table)
        self._parts: list[list[Part]] = [[] for _ in range(count)]
        self.first: Amounts = np.full(count, np.inf)
        self.last: Amounts = np.zeros(count)

    # ------------------------------------------------------------------ changes

    def hold(self, nodes: Numbers, end: float) -> None:
        """Note a job that has all cores of some nodes, until an expected end (s)."""
        self.first[nodes] = self.last[nodes] = end

    def leave(self, nodes: Numbers) -> None:
        """Note that nothing runs on some nodes any more, on which a job had all cores."""
        self.first[nodes] = INFINITY
        self.last[nodes] = 0.0

    def add(self, nodes: Sequence[int], part: Part) -> None:
        """Note the same part of each of some nodes."""
        first, last = self.first, self.last
        for node in nodes:
            parts = self._parts[node]
            insort(parts, part)
            first[node] = parts[0][0]
            last[node] = parts[-1][0]

    def remove(self, nodes: Sequence[int], part: Part) -> None:
        """Forget a part of each of some nodes."""
        first, last = self.first, self.last
        for node in nodes:
            parts = self._parts[node]
            parts.remove(part)
            if parts:
                first[node] = parts[0][0]
                last[node] = parts[-1][0]
            else:
                first[node] = INFINITY
                last[node] = 0.0

    # ------------------------------------------------------------------ questions about a shape

    def satisfying(self, shape: Shape) -> Mask:
        """Return the mask of nodes that satisfy a shape now."""
        free = self._table.free
        mask: Mask = free[0] >= shape[0]
        if self._exclusive:
            mask &= free[0] == self._table.capacity[0]
        for amount, there in zip(shape[1:], free[1:], strict=True):
            if amount:
                mask &= there >= amount
        return mask

    def _able(self, shape: Shape) -> tuple[Mask, bool]:
        """Return the nodes that satisfy a shape when nothing runs, and whether any job is in the way on all of them."""
        found = self._ables.get(shape)
        if found is None:
            if len(self._ables) > 64:
                self._ables.clear()
            cores, gpus, memory = self._table.capacity
            able = (cores >= shape[0]) & (gpus >= shape[1]) & (memory >= shape[2])
            alone = self._exclusive or not (cores[able] >= shape[0] + 1).any()
            found = self._ables[shape] = able, bool(alone)
        return found

    def alone(self, shape: Shape) -> bool:
        """Whether any job is in the way of a shape, on each node that is large enough for it."""
        return self._able(shape)[1]

    def earliest(self, shape: Shape, nodes: int, now: float, hint: float) -> tuple[float, Mask]:
        """Return the earliest instant (s) at which so many nodes satisfy a shape, and which do then.

        The instant is infinite if too few ever do by the expected ends. Work past its expected end is expected to end
        now.

        Parameters
        ----------
        shape, nodes
            what is asked for
        now
            seconds
        hint
            an instant (s) that is tried first
        """
        able, alone = self._able(shape)
        if self.down:
            able = able & (self._table.free[0] >= 0)
        if not alone:
            return self._beside_others(shape, nodes, now, able)
        last = self.last
        if hint > now:
            then: Mask = last <= hint
            then &= able
            if np.count_nonzero(then) >= nodes > np.count_nonzero((last < hint) & able):
                return hint, then
        ends = last[able]
        if len(ends) < nodes:
            return INFINITY, able
        at = max(float(np.partition(ends, nodes - 1)[nodes - 1]), now)
        return at, (last <= at) & able

    def _beside_others(self, shape: Shape, nodes: int, now: float, able: Mask) -> tuple[float, Mask]:
        """Do :meth:`earliest` for a shape that may fit beside other work; ends that cannot matter are not looked at."""
        there = self.satisfying(shape)
        missing = nodes - int(np.count_nonzero(there))
        if missing <= 0:
            return now, there
        candidates = (able & ~there).nonzero()[0]
        if len(candidates) < missing:
            return INFINITY, there
        last = self.last[candidates]
        latest = max(float(np.partition(last, missing - 1)[missing - 1]), now)
        tight = self._table.capacity[0, candidates] < shape[0] + 1
        ends = np.full(len(self._table), np.inf)
        by = candidates[tight]
        ends[by] = self.last[by]
        loose = candidates[~tight]
        loose = loose[self.first[loose] <= latest]
        self._search(shape, loose, last[tight].tolist(), missing, now, ends)
        at = max(float(np.partition(ends, missing - 1)[missing - 1]), now)
        return at, there | (ends <= at) if at < INFINITY else there

    def _search(
        self, shape: Shape, nodes: Numbers, found: list[float], missing: int, now: float, ends: Amounts
    ) -> None:
        """Set when the shape fits on shared nodes, as far as that may be among the first ``missing`` ends."""
        firsts = self.first[nodes]
        order = np.argsort(firsts, kind="stable")
        latest = sorted(found)[:missing]
        heap = [-end for end in latest]
        heapify(heap)
        for node, first in zip(nodes[order].tolist(), firsts[order].tolist(), strict=True):
            if len(heap) == missing and first > max(-heap[0], now):
                return
            end = ends[node] = self.free_from(node, shape)
            if len(heap) < missing:
                heappush(heap, -end)
            elif end < -heap[0]:
                heapreplace(heap, -end)

    def free_from(self, node: int, shape: Shape) -> float:
        """Return the expected end (s) from which a shared node satisfies a shape; 0 if it does now."""
        parts = self._parts[node]
        if not parts:
            return float(self.last[node])
        cores, gpus, memory = self._capacity[node]
        cores -= shape[0]
        gpus -= shape[1]
        memory -= shape[2]
        for end, _, c, g, m in reversed(parts):
            cores -= c
            gpus -= g
            memory -= m
            if cores < 0 or gpus < 0 or memory < 0:
                return end
        return 0.0

    def rest(self, shape: Shape, at: float, nodes: Mask) -> Amounts:
        """Return what is left of each node at an instant (s) beside a shape on these nodes: infinite on the others."""
        rest = np.full(self._table.free.shape, np.inf)
        numbers = np.flatnonzero(nodes)
        rest[:, numbers] = self._table.capacity[:, numbers] - np.array(shape)[:, None]
        for node in numbers[self.last[numbers] > at].tolist():
            column = rest[:, node]
            for end, _, cores, gpus, memory in reversed(self._parts[node]):
                if end <= at:
                    break
                column -= (cores, gpus, memory)
        return rest
