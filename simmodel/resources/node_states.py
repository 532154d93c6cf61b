"""The nodes of a pool as backfilling asks about them: which jobs fit, and when which nodes come free.

Requests are of a number of nodes of a shape: cores, GPUs and bytes of memory of each. The nodes that satisfy each shape
of a waiting job are counted, and the counts follow each change of a node.
"""

from __future__ import annotations

from bisect import insort
from heapq import heapify, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from simmodel.resources.allocation import Allocation, NodeTable, Request
    from simmodel.resources.running import Entry
    from simmodel.work.job import LiveJob

    Amounts = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Rows = NDArray[np.intp]
    Part = tuple[float, int, float, float, float]  # expected end, number, cores, GPUs, bytes of memory
    Free = tuple[float, float, float, float]  # cores, GPUs, bytes of memory; the cores of the node

__all__ = ["NodeStates", "WaitingJobs"]

INFINITY = float("inf")
_NEVER = 2**62  # nodes requested by a row without a job


class WaitingJobs(Protocol):
    """A queue that keeps indexes of its jobs."""

    def keep(self, index: Any) -> None:
        """Fill an index with the waiting jobs, and keep it up to date from now on."""
        ...


class NodeStates:
    """Nodes that differ or are shared: the waiting jobs that fit now, and the expected ends on each node.

    It is also an index of the pool's queue.

    Parameters
    ----------
    table
        the free capacity of each node
    exclusive
        whether jobs get whole nodes
    entries
        the running work

    Attributes
    ----------
    down
        whether any node is down
    odd
        number of waiting jobs that are not for a number of nodes, or must have certain nodes, or are planned with
        another time than they will be while they run
    """

    def __init__(self, table: NodeTable, exclusive: bool, entries: Iterable[Entry]) -> None:
        self.table = table
        self.exclusive = exclusive
        self.odd = 0
        self._odd_jobs: dict[LiveJob, None] = {}
        # The waiting jobs, one row each, and the shapes that they request, one column each:
        self._rows: dict[LiveJob, int] = {}
        self._jobs: list[LiveJob | None] = []
        self._spare_rows: list[int] = []
        self._wanted = np.zeros(256, dtype=np.int64)
        self._shape_of = np.zeros(256, dtype=np.intp)
        self.requested: Amounts = np.zeros(256)
        self._columns: dict[tuple[float, float, float], int] = {}
        self._users = [0] * 64
        self._spare_columns: list[int] = list(range(63, -1, -1))
        self._shapes: Amounts = np.full((3, 64), np.inf)
        self._there = np.zeros(64, dtype=np.int64)  # nodes that satisfy each shape now
        # The running parts of each node, by expected end:
        self._parts: list[list[Part]] = []
        self.first_end: Amounts
        self.last_end: Amounts
        self._held: dict[int, list[tuple[tuple[int, ...], Part]]] = {}  # the parts, each of some nodes, by allocation
        # What is free of each node, and which shapes that satisfies:
        self._free: list[Free] = []
        self._met: dict[Free, NDArray[np.int64]] = {}
        self._capacity: list[list[float]] = table.capacity.T.tolist()
        self._most_cores = float(table.capacity[0].max())
        self._ables: dict[tuple[float, float, float], Mask] = {}
        self.down = False
        self._numbers = 0
        self.restart(entries)

    # ------------------------------------------------------------------ waiting jobs

    def add(self, job: LiveJob) -> None:
        """Add a waiting job."""
        request = job.request
        if (
            request is None
            or request.nodes is None
            or job.expected != job.requested
            or (job.past is not None and job.past.resumes)
        ):
            self._odd_jobs[job] = None
            self.odd += 1
            return
        column = self._column(request)
        self._users[column] += 1
        if self._spare_rows:
            row = self._spare_rows.pop()
            self._jobs[row] = job
        else:
            row = len(self._jobs)
            self._jobs.append(job)
            if row == len(self._wanted):
                self._wanted = np.concatenate([self._wanted, np.zeros_like(self._wanted)])
                self._shape_of = np.concatenate([self._shape_of, np.zeros_like(self._shape_of)])
                self.requested = np.concatenate([self.requested, np.zeros_like(self.requested)])
        self._rows[job] = row
        self._wanted[row] = request.nodes
        self._shape_of[row] = column
        self.requested[row] = job.requested

    def remove(self, job: LiveJob) -> None:
        """Remove a job that no longer waits."""
        row = self._rows.pop(job, None)
        if row is None:
            if job in self._odd_jobs:
                del self._odd_jobs[job]
                self.odd -= 1
            return
        self._jobs[row] = None
        self._wanted[row] = _NEVER
        self._spare_rows.append(row)
        column = int(self._shape_of[row])
        self._users[column] -= 1

    def _column(self, request: Request) -> int:
        """Return the column of the shape of a request, a new one if necessary."""
        shape = request.cores_per_node, request.gpus_per_node, request.memory_per_node
        column = self._columns.get(shape)
        if column is not None:
            return column
        if not self._spare_columns:
            self._clear_columns()
        column = self._columns[shape] = self._spare_columns.pop()
        self._shapes[:, column] = shape
        self._met.clear()
        self._there[column] = np.count_nonzero(self.satisfying(shape))
        return column

    def _clear_columns(self) -> None:
        """Free the columns of shapes that nobody waits for; double them if most are in use."""
        for shape, column in list(self._columns.items()):
            if not self._users[column]:
                del self._columns[shape]
                self._spare_columns.append(column)
                self._shapes[:, column] = np.inf
                self._there[column] = 0
        size = len(self._users)
        if len(self._spare_columns) < size // 2:
            self._users += [0] * size
            self._spare_columns = [*range(2 * size - 1, size - 1, -1), *self._spare_columns]
            self._shapes = np.concatenate([self._shapes, np.full((3, size), np.inf)], axis=1)
            self._there = np.concatenate([self._there, np.zeros(size, dtype=np.int64)])

    def fits(self, job: LiveJob) -> bool | None:
        """Whether enough nodes satisfy a waiting job now; ``None`` if it is not known here."""
        row = self._rows.get(job)
        return None if row is None else bool(self._wanted[row] <= self._there[self._shape_of[row]])

    def fitting(self, among: Sequence[LiveJob] | None = None) -> Rows:
        """Return the rows of the waiting jobs, or of some of them, for which enough nodes are there now."""
        if among is None:
            count = len(self._jobs)
            return (self._wanted[:count] <= self._there[self._shape_of[:count]]).nonzero()[0]
        return np.array([self._rows[job] for job in among if self.fits(job)], dtype=np.intp)

    def jobs(self, rows: Rows) -> list[LiveJob]:
        """Return the jobs of rows, which have one."""
        found = [self._jobs[row] for row in rows.tolist()]
        return [job for job in found if job is not None]

    def asked(self, rows: Rows) -> tuple[NDArray[np.int64], Amounts]:
        """Return the numbers of nodes, and the shapes as columns, that the jobs of rows request."""
        return self._wanted[rows], self._shapes[:, self._shape_of[rows]]

    # ------------------------------------------------------------------ changes of nodes

    def restart(self, entries: Iterable[Entry]) -> None:
        """Note the running work anew."""
        count = len(self.table)
        self._parts = [[] for _ in range(count)]
        self.first_end = np.full(count, np.inf)
        self.last_end = np.zeros(count)
        self._held.clear()
        for end, _, _, run in entries:
            self._put(run.grant.allocation, end)
        self.renew()

    def renew(self) -> None:
        """Count anew which nodes satisfy the shapes, after nodes went down or came up."""
        self.down = not self.table.complete
        self._free = list(zip(*self.table.free.tolist(), self.table.capacity[0].tolist(), strict=True))
        for shape, column in self._columns.items():
            self._there[column] = np.count_nonzero(self.satisfying(shape))

    def take(self, allocation: Allocation, end: float) -> None:
        """Note parts of nodes that were taken, until an expected end (s)."""
        self._changed(allocation, -1)
        self._put(allocation, end)

    def give_back(self, allocation: Allocation) -> None:
        """Note parts of nodes that were given back."""
        self._changed(allocation, 1)
        first, last = self.first_end, self.last_end
        for nodes, part in self._held.pop(id(allocation)):
            for node in nodes:
                parts = self._parts[node]
                parts.remove(part)
                if parts:
                    first[node] = parts[0][0]
                    last[node] = parts[-1][0]
                else:
                    first[node] = INFINITY
                    last[node] = 0.0

    def _put(self, allocation: Allocation, end: float) -> None:
        number = self._numbers = self._numbers + 1
        held = self._held[id(allocation)] = []
        first, last = self.first_end, self.last_end
        for nodes, (cores, gpus, memory) in allocation.groups():
            part = end, number, cores, gpus, memory
            held.append((nodes, part))
            for node in nodes:
                parts = self._parts[node]
                insort(parts, part)
                first[node] = parts[0][0]
                last[node] = parts[-1][0]

    def _changed(self, allocation: Allocation, sign: int) -> None:
        """Count the shapes that the nodes satisfy no more (-1: taken) or again (1: given back), by transitions."""
        free, met = self._free, self._met
        if len(met) > 4096:
            met.clear()
        for nodes, (cores, gpus, memory) in allocation.groups():
            counts: dict[Free, int] = {}
            after: dict[Free, Free] = {}
            for node in nodes:
                before = free[node]
                if before in counts:
                    counts[before] += 1
                else:
                    counts[before] = 1
                    c, g, m, own = before
                    after[before] = c + sign * cores, g + sign * gpus, m + sign * memory, own
                free[node] = after[before]
            missing = [each for each in (*after, *after.values()) if each not in met]
            if missing:
                self._meet(missing)
            for before, count in counts.items():
                change = met[after[before]] - met[before]
                self._there += change if count == 1 else change * count

    def _meet(self, found: Sequence[Free]) -> None:
        """Note which shapes are satisfied by nodes of which so much is free."""
        cores, gpus, memory, own = np.array(found).T[:, :, None]
        shapes = self._shapes[:, None, :]
        met = shapes[0] <= cores
        met &= shapes[1] <= gpus
        met &= shapes[2] <= memory
        if self.exclusive:
            met &= cores == own
        self._met.update(zip(found, met.astype(np.int64), strict=True))

    # ------------------------------------------------------------------ questions about a shape

    def satisfying(self, shape: tuple[float, float, float]) -> Mask:
        """Return the mask of nodes that satisfy a shape now."""
        free = self.table.free
        mask: Mask = free[0] >= shape[0]
        if self.exclusive:
            mask &= free[0] == self.table.capacity[0]
        for amount, there in zip(shape[1:], free[1:], strict=True):
            if amount:
                mask &= there >= amount
        return mask

    def ends(self, shape: tuple[float, float, float], nodes: int, now: float) -> tuple[float, Mask]:
        """Return the earliest instant (s) at which so many nodes satisfy a shape, and which do then.

        The instant is infinite if too few ever do by the expected ends. Work past its expected end is expected to end
        now. Nodes whose later ends cannot matter are not looked at.
        """
        there = self.satisfying(shape)
        missing = nodes - int(np.count_nonzero(there))
        later = self._able(shape) & ~there
        if self.down:
            later &= self.table.free[0] >= 0
        candidates = later.nonzero()[0]
        if len(candidates) < missing:
            return INFINITY, there
        last = self.last_end[candidates]
        latest = max(float(np.partition(last, missing - 1)[missing - 1]), now)
        if self.exclusive or shape[0] > self._most_cores - 1:  # any job is in the way
            return latest, there | (later & (self.last_end <= latest)) if latest < INFINITY else there
        tight = self.table.capacity[0, candidates] < shape[0] + 1
        ends = np.full(len(self.table), np.inf)
        by = candidates[tight]
        ends[by] = self.last_end[by]
        loose = candidates[~tight]
        loose = loose[self.first_end[loose] <= latest]
        self._search(shape, loose, last[tight].tolist(), missing, now, ends)
        at = max(float(np.partition(ends, missing - 1)[missing - 1]), now)
        return at, there | (ends <= at) if at < INFINITY else there

    def _able(self, shape: tuple[float, float, float]) -> Mask:
        """Return the mask of nodes that satisfy a shape when nothing runs."""
        if shape not in self._ables:
            if len(self._ables) > 64:
                self._ables.clear()
            cores, gpus, memory = self.table.capacity
            self._ables[shape] = (cores >= shape[0]) & (gpus >= shape[1]) & (memory >= shape[2])
        return self._ables[shape]

    def _search(
        self,
        shape: tuple[float, float, float],
        nodes: NDArray[np.intp],
        found: list[float],
        missing: int,
        now: float,
        ends: Amounts,
    ) -> None:
        """Set when the shape fits on shared nodes, as far as that may be among the first ``missing`` ends."""
        firsts = self.first_end[nodes]
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

    def free_from(self, node: int, shape: tuple[float, float, float]) -> float:
        """Return the expected end (s) from which a shared node satisfies a shape; 0 if it does now."""
        cores, gpus, memory = self._capacity[node]
        cores -= shape[0]
        gpus -= shape[1]
        memory -= shape[2]
        for end, _, c, g, m in reversed(self._parts[node]):
            cores -= c
            gpus -= g
            memory -= m
            if cores < 0 or gpus < 0 or memory < 0:
                return end
        return 0.0

    def rest(self, shape: tuple[float, float, float], at: float, nodes: Mask) -> Amounts:
        """Return what is left of each node at an instant (s) beside a shape on these nodes: infinite on the others."""
        rest = np.full(self.table.free.shape, np.inf)
        if self.exclusive:
            rest[:, nodes] = -1.0
            return rest
        numbers = np.flatnonzero(nodes)
        rest[:, numbers] = self.table.capacity[:, numbers] - np.array(shape)[:, None]
        for node in numbers[self.last_end[numbers] > at].tolist():
            column = rest[:, node]
            for end, _, cores, gpus, memory in reversed(self._parts[node]):
                if end <= at:
                    break
                column -= (cores, gpus, memory)
        return rest
