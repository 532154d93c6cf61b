"""The nodes of a pool as backfilling asks about them: which waiting jobs may fit, and the nodes that they request.

Requests are of a number of nodes of a shape: cores, GPUs and bytes of memory of each. Shapes with the same cores and
GPUs, and memory between the same powers of two, are in one class. For each class of a waiting job, the nodes are
counted that satisfy the least of its shapes. The counts follow each change of a node: a job for more nodes does not
fit.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from heapq import heapify, heappop, heappush, heapreplace
from itertools import groupby
from math import frexp
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simmodel.resources.pools.allocation import AWAY
from simmodel.resources.pools.promises import INFINITY, Promise, Promising
from simmodel.work.job import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
    from simmodel.resources.pools.promises import JobOrder, WaitingJobs
    from simmodel.resources.pools.running import Entry
    from simmodel.work.job import LiveJob

    Amounts = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Numbers = NDArray[np.intp]
    Class = tuple[float, float, int]  # cores, GPUs, exponent of the bytes of memory
    Move = tuple[Class | None, Class | None]  # what is free of a node before and after; None: no cores
    Part = tuple[float, int, float, float, float]  # expected end, number, cores, GPUs, bytes of memory
    Held = tuple[tuple[int, ...], Numbers, Part | None]  # nodes, twice; a part of each, None: all their cores

__all__ = ["NodeEnds", "NodePromise", "NodeStates", "Shape", "shape_of"]

Shape = tuple[float, float, float]
"""The amounts requested of one node: cores, GPUs, bytes."""


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
        """Return the earliest instant (s) at which enough nodes satisfy a shape, and which do then.

        The instant is infinite if too few ever do by the expected ends. Work past its expected end is expected to end
        now.

        Parameters
        ----------
        shape, nodes
            the amounts requested of each node, and the number of nodes
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
        """Return the amounts left on these nodes at an instant (s) beside a shape on each; infinite on the others."""
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


_NEVER = 2**62  # nodes requested by a row without a job
_FEW = 4  # jobs that are looked at one by one


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
        number of waiting jobs that are not for a number of nodes alike, or get whole nodes where others share them, or
        must have certain nodes, or are planned with another time than they will be while they run
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
        self.requested: Amounts = np.zeros(256)
        self._columns: dict[Class, int] = {}
        self._users = [0] * 64
        self._spare_columns: list[int] = list(range(63, -1, -1))
        self._there = [0] * 64  # nodes that satisfy the least of each class now
        # The columns whose counts a change of a node changes, and by how many nodes; the capacity of each node:
        self._changes: dict[Move, list[tuple[int, int]]] = {}
        self._satisfies: dict[Class, frozenset[int]] = {}
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
            or request.chunks
            or request.exclusive != self.exclusive
            or job.expected != job.planned
            or (job.history is not None and job.history.resumes)
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
        self.requested[row] = job.planned

    def _lengthen(self) -> None:
        """Double the columns of the waiting jobs."""
        self._wanted = np.concatenate([self._wanted, np.zeros_like(self._wanted)])
        self._class_of = np.concatenate([self._class_of, np.zeros_like(self._class_of)])
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
        self._changes.clear()
        self._satisfies.clear()
        self._there[column] = self._count(kind)
        return column

    def _clear_columns(self) -> None:
        """Free the columns of classes that nobody waits for; double them if most are in use."""
        for kind, column in list(self._columns.items()):
            if not self._users[column]:
                del self._columns[kind]
                self._spare_columns.append(column)
                self._there[column] = 0
        size = len(self._users)
        if len(self._spare_columns) < size // 2:
            self._users += [0] * size
            self._spare_columns = [*range(2 * size - 1, size - 1, -1), *self._spare_columns]
            self._there += [0] * size

    def _count(self, kind: Class) -> int:
        return int(np.count_nonzero(self.ends.satisfying(_least(kind))))

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
            return (self._wanted[:count] <= np.array(self._there)[self._class_of[:count]]).nonzero()[0]
        there = [job for job in among if job in self._rows]  # others have left: they started in another partition
        return np.array([self._rows[job] for job in there if self.fits(job) is not False], dtype=np.intp)

    def jobs(self, rows: Numbers) -> list[LiveJob]:
        found = self._jobs
        return [found[row] for row in rows.tolist()]

    def within(self, rows: Numbers, of: Numbers, nodes: Callable[[Shape], Numbers], extra: int) -> Mask:
        """Whether the jobs of rows request no more nodes than there are of the least of their classes, and ``extra``.

        Asks for the nodes of those classes alone that the rows ``of`` are in.
        """
        there = np.zeros(len(self._there), dtype=np.int64)
        late = set(self._class_of[of].tolist())
        for kind, column in self._columns.items():
            if column in late:
                there[column] = extra + len(nodes(_least(kind)))
        found: Mask = self._wanted[rows] <= there[self._class_of[rows]]
        return found

    # ------------------------------------------------------------------ changes of nodes

    def restart(self, entries: Iterable[Entry]) -> None:
        """Note the running work anew."""
        self.ends.clear()
        self._held.clear()
        for end, _, _, run in entries:
            self._put(run.grant.allocation, end)
        self._down = set(np.flatnonzero(self.table.free[0] < 0).tolist())
        self.ends.down = bool(self._down)
        for kind, column in self._columns.items():
            self._there[column] = self._count(kind)

    def renew(self, nodes: Sequence[int]) -> None:
        """Count which classes some nodes satisfy no more, or again, after they went down or came up."""
        counts: Counter[Move] = Counter()
        for node, (cores, gpus, memory) in zip(nodes, self.table.free[:, list(nodes)].T.tolist(), strict=True):
            if cores >= 0 and node in self._down:
                self._down.discard(node)
                counts[None, _class(cores, gpus, memory) if cores else None] += 1
            elif cores < 0 and node not in self._down:
                self._down.add(node)
                before = cores + AWAY
                counts[_class(before, gpus, memory) if before else None, None] += 1
        self.ends.down = bool(self._down)
        self._count_moves(counts)

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
        """Whether ``cores`` is the number of all cores of each of some nodes."""
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
            alike: dict[Shape, int] = {}
            for free in zip(*self.table.free.take(index, axis=1).tolist(), strict=True):
                alike[free] = alike.get(free, 0) + 1
            for (c, g, m), count in alike.items():
                now = (c, g, frexp(m)[1]) if c > 0 else None
                c -= sign * cores
                move = (c, g - sign * gpus, frexp(m - sign * memory)[1]) if c > 0 else None, now
                counts[move] = counts.get(move, 0) + count
        self._count_moves(counts)

    def _count_moves(self, counts: Mapping[Move, int]) -> None:
        there = self._there
        for move, count in counts.items():
            changes = self._changes.get(move)
            if changes is None:
                changes = self._change(move)
            for column, change in changes:
                there[column] += change * count

    def _change(self, move: Move) -> list[tuple[int, int]]:
        """Return the columns of the classes that a node satisfies again (1) or no more (-1) after a change."""
        if len(self._changes) > 4096:
            self._changes.clear()
            self._satisfies.clear()
        before, after = (self._satisfied(free) for free in move)
        found = [(column, 1) for column in after - before] + [(column, -1) for column in before - after]
        self._changes[move] = found
        return found

    def _satisfied(self, free: Class | None) -> frozenset[int]:
        """Return the columns of the classes whose least shape fits on a node with a free capacity."""
        if free is None:
            return frozenset()
        found = self._satisfies.get(free)
        if found is None:
            cores, gpus, memory = free
            found = self._satisfies[free] = frozenset(
                [column for (c, g, m), column in self._columns.items() if c <= cores and g <= gpus and m <= memory]
            )
        return found


def _class(cores: float, gpus: float, memory: float) -> Class:
    """Return the class of a shape, or of a free capacity."""
    return cores, gpus, frexp(memory)[1]


def _least(kind: Class) -> Shape:
    cores, gpus, power = kind
    return cores, gpus, 2.0 ** (power - 1) if power else 0.0


class _Offering(Promising, Protocol):
    def offer(self, job: LiveJob, prefer: Numbers) -> Allocation | None: ...


class NodePromise(Promise):
    """A promise on nodes that differ or are shared.

    A node is hurt by a job if it would satisfy the promise at the promised instant, and does not with the job on it. As
    many nodes may be hurt as there are to spare. A job that runs past the instant gets the nodes that this does not
    hurt first, in the order of the placement, then others.

    Parameters
    ----------
    place, head, waiting, order
        as for any promise
    states
        the nodes
    before
        an earlier promise to the same job: its instant is likely to hold

    Attributes
    ----------
    extra
        number of nodes to spare at the promised instant
    """

    __slots__ = ("_hint", "_met", "_rest", "_rows", "_spared", "_states", "_untried", "extra")
    place: _Offering

    def __init__(
        self,
        place: _Offering,
        head: LiveJob,
        waiting: WaitingJobs,
        order: JobOrder,
        states: NodeStates,
        before: NodePromise | None = None,
    ) -> None:
        super().__init__(place, head, waiting, order)
        self._states = states
        self._rows: Numbers | None = states.fitting()  # of jobs that have not been looked at
        self._untried: list[Any] = []  # the others that are still to be tried: a heap in their order, or jobs
        self._met: dict[Shape, Numbers] = {}  # by shape, the nodes that it does not hurt now
        self._hint: float = 0.0 if before is None else before._hint
        self.extra = 0
        self._spared: Mask | None = None  # the nodes that no job hurts; or what is left of each beside the promise
        self._rest: Amounts | None = None

    def _earliest(self) -> float:
        states, request = self._states, self.head.request
        shape = shape_of(request)
        at, nodes = states.ends.earliest(shape, request.nodes, self.place.env._now, self._hint)
        if at < INFINITY:
            self.extra = int(np.count_nonzero(nodes)) - request.nodes
            if states.ends.alone(shape):
                self._spared = ~nodes
            else:
                self._rest = states.ends.rest(shape, at, nodes)
        self._hint = at
        return at

    def stands(self) -> bool:
        """Whether only new jobs have come since all starts were found, and the promised instant has not."""
        return self.version == self.place.version and (self._at is None or self.place.env._now < self._at)

    def renew(self, jobs: Sequence[LiveJob]) -> None:
        """Try jobs that have come since."""
        self._rows = self._states.fitting(jobs)
        self._met.clear()
        self.version = -1

    def _find(self) -> tuple[LiveJob, Allocation | None] | None:
        place, rows = self.place, self._rows
        if rows is not None:
            self._rows = None
            self._untried = self._sorted(rows) if len(rows) else []
        if not self._untried:
            return None
        left = self.at - place.env._now
        for job in self._in_order():
            if job.state != "waiting":  # held by a limit since another one has started
                continue
            allocation = None
            if job.planned > left:
                nodes = self._unhurt(shape_of(job.request))
                if len(nodes) < job.request.nodes - self.extra or not place.fits(job):
                    continue
                allocation = place.offer(job, nodes)
                if allocation is None:
                    continue
                self._take(allocation)
            elif not place.fits(job):
                continue
            self._met.clear()
            return job, allocation
        return None

    def _sorted(self, rows: Numbers) -> list[Any]:
        """Return the jobs of some rows as they are to be tried, without some that delay the promise."""
        order, states = self._order, self._states
        jobs = states.jobs(self._possible(rows) if len(rows) > _FEW else rows)
        if order.changes:
            return jobs
        entries = [entry_of(job, order.key) for job in jobs]
        heapify(entries)
        return entries

    def _in_order(self) -> Iterator[LiveJob]:
        """Yield the jobs that are still to be tried, in the order of the candidates; they are tried once."""
        untried = self._untried
        if not self._order.changes:
            while untried:
                yield heappop(untried)[-1]
        elif len(untried) == 1:
            yield untried.pop()
        else:
            among = set(untried)
            for job in self._waiting.by(self._order):
                if job in among:
                    untried.remove(job)
                    yield job

    def _possible(self, rows: Numbers) -> Numbers:
        """Return some rows of jobs without some of those that delay the promise, by the least of their classes."""
        left = self.at - self.place.env._now
        if left == INFINITY:
            return rows
        states = self._states
        may = states.requested[rows] <= left
        late = rows[~may]
        if len(late):
            may |= states.within(rows, late, self._unhurt, self.extra)
        return rows[may]

    def _unhurt(self, shape: Shape) -> Numbers:
        """Return the nodes that satisfy a shape now, and the promise beside it."""
        nodes = self._met.get(shape)
        if nodes is None:
            mask = self._states.ends.satisfying(shape)
            if self._spared is not None:
                mask &= self._spared
            elif self._rest is not None:
                for amount, rest in zip(shape, self._rest, strict=True):
                    if amount:
                        mask &= rest >= amount
            nodes = self._met[shape] = mask.nonzero()[0]
        return nodes

    def _take(self, allocation: Allocation) -> None:
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
