"""The nodes of a pool as backfilling asks about them: which waiting jobs may fit, and the nodes that they request.

Requests are of a number of nodes of a shape: cores, GPUs and bytes of memory of each. Shapes with the same cores and
GPUs, and memory between the same powers of two, are in one class. For each class of a waiting job, the nodes are
counted that satisfy the least of its shapes. The counts follow each change of a node: a job for more nodes does not
fit.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from math import frexp
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.resources.pools.node_ends import NodeEnds, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
    from simmodel.resources.pools.node_ends import Amounts, Numbers, Part
    from simmodel.resources.pools.running import Entry
    from simmodel.work.job import LiveJob

    Class = tuple[float, float, int]  # cores, GPUs, exponent of the bytes of memory
    Move = tuple[Class | None, Class | None]  # what is free of a node before and after; None: no cores
    Held = tuple[tuple[int, ...], Numbers, Part | None]  # nodes, twice; a part of each, None: all their cores
    from simmodel.resources.pools.node_ends import Mask, Numbers

__all__ = ["NodePromise", "NodeStates", "WaitingJobs"]

_NEVER = 2**62  # nodes requested by a row without a job


class WaitingJobs(Protocol):
    """A queue that keeps indexes of its jobs."""

    def keep(self, index: Any) -> None:
        """Fill an index with the waiting jobs, and keep it up to date from now on."""
        ...


class NodeStates:
    """Nodes that differ or are shared, and the jobs that wait for them: it is an index of the pool's queue.

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
    table, exclusive
        as given
    ends
        the expected ends on each node
    odd
        number of waiting jobs that are not for a number of nodes, or must have certain nodes, or are planned with
        another time than they will be while they run
    requested
        requested times (s) by row
    """

    def __init__(self, table: NodeTable, exclusive: bool, entries: Iterable[Entry]) -> None:
        self.table = table
        self.exclusive = exclusive
        self.ends = NodeEnds(table, exclusive)
        self.odd = 0
        self._odd_jobs: dict[LiveJob, None] = {}
        # The waiting jobs, one row each, and the classes of their shapes, one column each:
        self._rows: dict[LiveJob, int] = {}
        self._jobs: list[LiveJob | None] = []
        self._spare_rows: list[int] = []
        self._wanted = np.zeros(256, dtype=np.int64)
        self._class_of = np.zeros(256, dtype=np.intp)
        self._shapes: Amounts = np.zeros((3, 256))
        self.requested: Amounts = np.zeros(256)
        self._columns: dict[Class, int] = {}
        self._users = [0] * 64
        self._spare_columns: list[int] = list(range(63, -1, -1))
        self._least = np.full((3, 64), np.inf)
        self._there = np.zeros(64, dtype=np.int64)  # nodes that satisfy the least of each class now
        # What changes of nodes change in the counts; the capacity of each node:
        self._changes: dict[Move, NDArray[np.int64]] = {}
        classes: dict[Class, Class] = {}
        kinds = [_class(*each) for each in zip(*table.capacity.tolist(), strict=True)]
        self._kind_of = [classes.setdefault(kind, kind) for kind in kinds]
        self._in_runs = len(list(groupby(kinds))) == len(classes)  # nodes of one kind are numbered one after another
        self._cores: list[float] = table.capacity[0].tolist()
        self._alike = len(set(self._cores)) == 1
        # The running work:
        self._held: dict[int, list[Held]] = {}  # by allocation
        self._down: set[int] = set()
        self._numbers = 0
        self.restart(entries)

    # ------------------------------------------------------------------ waiting jobs

    def add(self, job: LiveJob) -> None:
        """Add a waiting job."""
        request = job.request
        if (
            request is None
            or request.nodes is None
            or job.expected != job.planned
            or (job.past is not None and job.past.resumes)
        ):
            self._odd_jobs[job] = None
            self.odd += 1
            return
        if self._spare_rows:
            row = self._spare_rows.pop()
            self._jobs[row] = job
        else:
            row = len(self._jobs)
            self._jobs.append(job)
            if row == len(self._wanted):
                self._lengthen()
        column = self._column(request)
        self._users[column] += 1
        self._rows[job] = row
        self._wanted[row] = request.nodes
        self._class_of[row] = column
        self._shapes[:, row] = shape_of(request)
        self.requested[row] = job.planned

    def _lengthen(self) -> None:
        """Double the columns of the waiting jobs."""
        self._wanted = np.concatenate([self._wanted, np.zeros_like(self._wanted)])
        self._class_of = np.concatenate([self._class_of, np.zeros_like(self._class_of)])
        self._shapes = np.concatenate([self._shapes, np.zeros_like(self._shapes)], axis=1)
        self.requested = np.concatenate([self.requested, np.zeros_like(self.requested)])

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
        self._users[int(self._class_of[row])] -= 1

    def _column(self, request: Request) -> int:
        """Return the column of the class of a request, a new one if necessary."""
        cores, gpus, memory = shape_of(request)
        kind = _class(cores, gpus, memory)
        column = self._columns.get(kind)
        if column is not None:
            return column
        if not self._spare_columns:
            self._clear_columns()
        column = self._columns[kind] = self._spare_columns.pop()
        self._least[:, column] = kind
        self._changes.clear()
        self._there[column] = self._count(kind)
        return column

    def _clear_columns(self) -> None:
        """Free the columns of classes that nobody waits for; double them if most are in use."""
        for kind, column in list(self._columns.items()):
            if not self._users[column]:
                del self._columns[kind]
                self._spare_columns.append(column)
                self._least[:, column] = np.inf
                self._there[column] = 0
        size = len(self._users)
        if len(self._spare_columns) < size // 2:
            self._users += [0] * size
            self._spare_columns = [*range(2 * size - 1, size - 1, -1), *self._spare_columns]
            self._least = np.concatenate([self._least, np.full((3, size), np.inf)], axis=1)
            self._there = np.concatenate([self._there, np.zeros(size, dtype=np.int64)])

    def _count(self, kind: Class) -> int:
        """Return the number of nodes that satisfy the least of a class now."""
        cores, gpus, power = kind
        return int(np.count_nonzero(self.ends.satisfying((cores, gpus, 2.0 ** (power - 1) if power else 0.0))))

    def fits(self, job: LiveJob) -> bool | None:
        """Whether enough nodes satisfy a waiting job now; ``None`` if it is not known here."""
        row = self._rows.get(job)
        if row is None:
            return None
        if job.request.nodes > self._there[self._class_of[row]]:
            return False
        memory = job.request.memory_per_node
        return True if not memory or frexp(memory)[0] == 0.5 else None

    def fitting(self, among: Sequence[LiveJob] | None = None) -> Numbers:
        """Return the rows of the waiting jobs, or of some of them, without some that do not fit now."""
        if among is None:
            count = len(self._jobs)
            return (self._wanted[:count] <= self._there[self._class_of[:count]]).nonzero()[0]
        return np.array([self._rows[job] for job in among if self.fits(job) is not False], dtype=np.intp)

    def row(self, job: LiveJob) -> int:
        """Return the row of a waiting job."""
        return self._rows[job]

    def jobs(self, rows: Numbers) -> list[LiveJob]:
        """Return the jobs of rows, which have one."""
        found = [self._jobs[row] for row in rows.tolist()]
        return [job for job in found if job is not None]

    def asked(self, rows: Numbers) -> tuple[NDArray[np.int64], Amounts]:
        """Return the numbers of nodes, and the shapes as columns, that the jobs of rows request."""
        return self._wanted[rows], self._shapes.take(rows, axis=1)

    # ------------------------------------------------------------------ changes of nodes

    def restart(self, entries: Iterable[Entry]) -> None:
        """Note the running work anew."""
        self.ends.clear()
        self._held.clear()
        for end, _, _, run in entries:
            self._put(run.grant.allocation, end)
        self.renew()

    def renew(self) -> None:
        """Count anew which nodes satisfy the classes, after nodes went down or came up."""
        self._down = set(np.flatnonzero(self.table.free[0] < 0).tolist())
        self.ends.down = bool(self._down)
        for kind, column in self._columns.items():
            self._there[column] = self._count(kind)

    def take(self, allocation: Allocation, end: float) -> None:
        """Note parts of nodes that the table no longer has, until an expected end (s)."""
        for nodes, index, part in self._put(allocation, end):
            self._moved(nodes, index, part, -1)

    def give_back(self, allocation: Allocation) -> None:
        """Note parts of nodes that the table has again."""
        for nodes, index, part in self._held.pop(id(allocation)):
            self._moved(nodes, index, part, 1)
            if part is None:
                self.ends.leave(index)
            else:
                self.ends.remove(nodes, part)

    def _put(self, allocation: Allocation, end: float) -> list[Held]:
        """Note the expected end of parts of nodes, and return them."""
        number = self._numbers = self._numbers + 1
        held = self._held[id(allocation)] = []
        groups = allocation.groups()
        for nodes, each in groups:
            index = allocation.nodes if len(groups) == 1 else np.array(nodes, dtype=np.intp)
            if self._are_whole(nodes, each[0]):
                held.append((nodes, index, None))
                self.ends.hold(index, end)
            else:
                part = end, number, *each
                held.append((nodes, index, part))
                self.ends.add(nodes, part)
        return held

    def _are_whole(self, nodes: tuple[int, ...], cores: float) -> bool:
        """Whether so many cores are all cores of each of some nodes."""
        of = self._cores
        return of[nodes[0]] == cores if self._alike else all(of[node] == cores for node in nodes)

    def _moved(self, nodes: tuple[int, ...], index: Numbers, part: Part | None, sign: int) -> None:
        """Count the classes that nodes satisfy no more (-1: taken) or again (1: given back), by transitions."""
        counts: dict[Move, int] = {}
        if part is None:  # from idle to nothing free, or back
            of = self._kind_of
            if self._in_runs and not self._down and of[nodes[0]] is of[nodes[-1]]:
                kinds = {of[nodes[0]]: len(nodes)}
            else:
                kinds = Counter([of[node] for node in nodes if node not in self._down])
            for kind, count in kinds.items():
                counts[None, kind] = sign * count
        else:
            _, _, cores, gpus, memory = part
            for c, g, m in self.table.free[:, index].T.tolist():
                now = (c, g, frexp(m)[1]) if c > 0 else None
                c -= sign * cores
                move = (c, g - sign * gpus, frexp(m - sign * memory)[1]) if c > 0 else None, now
                counts[move] = counts.get(move, 0) + 1
        changes = self._changes
        for move, count in counts.items():
            change = changes[move] if move in changes else self._change(move)
            self._there += change if count == 1 else change * count

    def _change(self, move: Move) -> NDArray[np.int64]:
        """Return by how many nodes each class changes if what is free of one node changes."""
        if len(self._changes) > 4096:
            self._changes.clear()
        change = np.zeros_like(self._there)
        for free, sign in zip(move, (-1, 1), strict=True):
            if free is not None:
                change += sign * (self._least <= np.array(free)[:, None]).all(axis=0)
        self._changes[move] = change
        return change


def _class(cores: float, gpus: float, memory: float) -> Class:
    """Return the class of a shape, or of a free capacity."""
    return cores, gpus, frexp(memory)[1]


INFINITY = float("inf")


class NodePromise:
    """The earliest instant at which a job can have its nodes, and the room beside it for jobs that run past then.

    A node is hurt by a job if it would satisfy the promise at that instant, and does not with the job on it. As many
    nodes may be hurt as there are to spare.

    Parameters
    ----------
    states
        the nodes
    job
        the promised job, which does not fit now
    now
        seconds
    before
        an earlier promise: if it was to the same job, its instant is likely to hold

    Attributes
    ----------
    at
        the promised instant (s); infinite if the expected ends never free enough nodes
    extra
        number of nodes to spare at that instant
    """

    __slots__ = ("_found", "_rest", "_spared", "_states", "at", "extra", "job")

    def __init__(self, states: NodeStates, job: LiveJob, now: float, before: NodePromise | None = None) -> None:
        self._states = states
        self.job = job
        request: Request = job.request
        assert request.nodes is not None
        shape = shape_of(request)
        hint = before.at if before is not None and before.job is job else 0.0
        self.at: float
        self.at, nodes = states.ends.earliest(shape, request.nodes, now, hint)
        self.extra = 0
        self._spared: Mask | None = None  # the nodes that no job hurts; or what is left of each beside the promise
        self._rest: Amounts | None = None
        if self.at < INFINITY:
            self.extra = int(np.count_nonzero(nodes)) - request.nodes
            if states.ends.alone(shape):
                self._spared = ~nodes
            else:
                self._rest = states.ends.rest(shape, self.at, nodes)

    def possible(self, rows: Numbers, now: float) -> Numbers:
        """Return those of some rows of jobs that do not delay the promise, each by itself, if they fit."""
        if self.at == INFINITY:
            return rows
        states = self._states
        free = states.table.free
        may = states.requested[rows] <= self.at - now
        late = (~may).nonzero()[0]
        if not len(late):
            return rows
        past = rows[late]
        usable = free[0] > 0
        if states.exclusive:
            usable &= free[0] == states.table.capacity[0]
        if self._spared is not None:
            usable &= self._spared
        nodes = usable.nonzero()[0]
        room = free.take(nodes, axis=1)
        if self._rest is not None:
            np.minimum(room, self._rest.take(nodes, axis=1), out=room)
        wanted, shapes = states.asked(past)
        cores, gpus, memory = shapes[:, :, None]
        met = room[0] >= cores
        met &= room[1] >= gpus
        met &= room[2] >= memory
        may[late] = np.add.reduce(met, axis=1) >= wanted - self.extra
        self._found = past, nodes, met
        return rows[may]

    def unhurt(self, row: int) -> Numbers:
        """Return the nodes that the job of a row does not hurt, which was found possible last and runs past then."""
        rows, nodes, met = self._found
        found: Numbers = nodes[met[int((rows == row).argmax())]]
        return found

    def take(self, allocation: Allocation) -> None:
        """Note that a job takes these parts of nodes and runs past the promised instant."""
        nodes = allocation.nodes
        if self._spared is not None:
            self.extra -= len(nodes) - int(np.count_nonzero(self._spared[nodes]))
            self._spared[nodes] = True  # no longer promised
        elif self._rest is not None:
            left: NDArray[np.float64] = self._rest[:, nodes] - allocation.amounts
            hurt = (left < 0).any(axis=0)
            left[:, hurt] = INFINITY
            self.extra -= int(np.count_nonzero(hurt))
            self._rest[:, nodes] = left
