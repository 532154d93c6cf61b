"""The input and the output of planners: tasks, processors and data as plain lists of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from simmodel.foundation.errors import InputError

__all__ = ["Plan", "Problem"]


class Plan(NamedTuple):
    """The planned processor, start and end of each task.

    Attributes
    ----------
    processor, start, finish
        of each task: the index of its processor, its start and its end, s
    order
        the tasks by planned start, then by end, then in topological order: queued in this order, no task is behind one
        that waits for it
    taken
        of each task: the instant from which it occupies its processor, before setup and transfers, s
    held
        the intervals in which tasks hold a CPU core without running on it: core, task, from, to (s)

    >>> problem = Problem([[3.0, 5.0], [4.0, 2.0]], parents=[(), ((0, 100.0),)], latency=[[0, 0], [0, 0]],
    ...                   per_byte=[[0, 0.01], [0.01, 0]])
    >>> Plan.of(problem, [0, 1], [0.0, 4.0], [3.0, 6.0]).makespan
    6.0
    """

    processor: list[int]
    start: list[float]
    finish: list[float]
    order: list[int]
    taken: list[float]
    held: tuple[tuple[int, int, float, float], ...] = ()

    @classmethod
    def of(
        cls,
        problem: Problem,
        processor: list[int],
        start: list[float],
        finish: list[float],
        taken: list[float] | None = None,
        held: Sequence[tuple[int, int, float, float]] = (),
    ) -> Plan:
        """Return the plan with these columns, and the order of its tasks."""
        turn = problem.turn
        order = sorted(range(len(start)), key=lambda task: (start[task], finish[task], turn[task]))
        return cls(processor, start, finish, order, start if taken is None else taken, tuple(held))

    @property
    def makespan(self) -> float:
        """The instant at which the last task ends, s."""
        return max(self.finish, default=0.0)


class Problem:
    """Tasks to place on processors, as lists.

    Parameters
    ----------
    run
        n x p: expected seconds of each task on each processor; ``inf`` if it cannot run there
    parents
        of each task: pairs (index, bytes) of its parents that are planned too
    latency, per_byte
        p x p: seconds, and seconds per byte, from the memory of one processor to that of another; 0 within a pool. With
        ``pools``: q x q, from pool to pool
    pools
        of each processor: the index of its pool. Default: processors at distance 0 from each other and equal distances
        to all others share one
    now
        the instant of planning, s
    available
        of each processor: the instant from which it is idle, s; default: ``now``
    arrival
        n x p, or ``None``: the instant at which all inputs of a task that are not outputs of tasks planned here can be
        in the pool of a processor, s
    cores, capacity
        cores of each task, and of each processor; default: 1
    setup
        of each processor: setup seconds per task; default: 0
    setup_core
        of each processor: the index of the processor that runs its setups, or several, of which the first available is
        used; ``None``: none
    reconfiguration, family, loaded, reconfigures
        of each task: seconds to load its family, and a label of the family; of each processor: the label of the loaded
        family (``None``: none), and whether it reconfigures
    dma, overlap
        of each processor: whether data move without another CPU core (default: yes), and whether they move while it is
        still busy with earlier tasks (default: no)
    parallel
        whether the inputs of a task move in parallel or one after another
    sizes, reads, writes, copies
        bytes of the data objects; of each task: the indexes of its inputs, in the order of their transfers, and of its
        outputs; of each object: the pools that hold it, with the instants from which they do (s). Default: every pair
        in ``parents`` is an object, and ``arrival`` covers the others
    tasks, places
        the tasks of the rows and the places of the columns

    Planners that model a machine as processors and distances only use the parameters up to ``arrival``.

    Attributes
    ----------
    children
        of each task: pairs (index, bytes) of its children
    order, turn
        the tasks in topological order, and the position of each task in it
    links
        q x q: pairs (latency, seconds per byte) from pool to pool
    first
        of each pool: its first processor

    Raises
    ------
    InputError
        tasks form a cycle

    >>> problem = Problem([[3.0, 5.0], [4.0, 2.0]], parents=[(), ((0, 100.0),)], latency=[[0, 0], [0, 0]],
    ...                   per_byte=[[0, 0.01], [0.01, 0]])
    >>> problem.children, problem.order, problem.mean_transfer(100.0)
    ([((1, 100.0),), ()], [0, 1], 1.0)
    """

    __slots__ = (
        "arrival",
        "available",
        "capacity",
        "children",
        "copies",
        "cores",
        "dma",
        "family",
        "first",
        "links",
        "loaded",
        "now",
        "order",
        "overlap",
        "parallel",
        "parents",
        "places",
        "pools",
        "reads",
        "reconfiguration",
        "reconfigures",
        "run",
        "setup",
        "setup_core",
        "sizes",
        "tasks",
        "turn",
        "writes",
    )

    def __init__(
        self,
        run: Sequence[Sequence[float]],
        parents: Sequence[Sequence[tuple[int, float]]],
        latency: Sequence[Sequence[float]],
        per_byte: Sequence[Sequence[float]],
        *,
        pools: Sequence[int] | None = None,
        now: float = 0.0,
        available: Sequence[float] | None = None,
        arrival: Sequence[Sequence[float]] | None = None,
        cores: Sequence[float] | None = None,
        capacity: Sequence[float] | None = None,
        setup: Sequence[float] | None = None,
        setup_core: Sequence[int | Sequence[int] | None] | None = None,
        reconfiguration: Sequence[float] | None = None,
        family: Sequence[Any] | None = None,
        loaded: Sequence[Any] | None = None,
        reconfigures: Sequence[bool] | None = None,
        dma: Sequence[bool] | None = None,
        overlap: Sequence[bool] | None = None,
        parallel: bool = False,
        sizes: Sequence[float] = (),
        reads: Sequence[Sequence[int]] | None = None,
        writes: Sequence[Sequence[int]] | None = None,
        copies: Sequence[Mapping[int, float]] | None = None,
        tasks: Sequence[Any] = (),
        places: Sequence[Any] = (),
    ) -> None:
        n = len(run)
        self.run = run
        self.parents = parents
        if pools is None:
            self.pools, distinct = _alike(latency, per_byte)
            self.links = [[(latency[i][j], per_byte[i][j]) for j in distinct] for i in distinct]
        else:
            self.pools = list(pools)
            self.links = [list(zip(*rows, strict=True)) for rows in zip(latency, per_byte, strict=True)]
        p = len(self.pools)
        self.first = [self.pools.index(q) if q in self.pools else -1 for q in range(len(self.links))]
        self.now = now
        self.available = [now] * p if available is None else available
        self.arrival = arrival
        self.cores = [1] * n if cores is None else cores
        self.capacity = [1] * p if capacity is None else capacity
        self.setup = [0.0] * p if setup is None else setup
        self.setup_core: Sequence[int | Sequence[int] | None] = [None] * p if setup_core is None else setup_core
        self.reconfiguration = [0.0] * n if reconfiguration is None else reconfiguration
        self.family = list(range(n)) if family is None else family
        self.loaded = [None] * p if loaded is None else loaded
        self.reconfigures = [False] * p if reconfigures is None else reconfigures
        self.dma = [True] * p if dma is None else dma
        self.overlap = [False] * p if overlap is None else overlap
        self.parallel = parallel
        self.sizes = sizes
        self.reads = reads
        self.writes = writes
        self.copies = copies
        self.tasks = tasks
        self.places = places
        found: list[list[tuple[int, float]]] = [[] for _ in range(n)]
        for child, given in enumerate(parents):
            for parent, size in given:
                found[parent].append((child, size))
        self.children: list[tuple[tuple[int, float], ...]] = list(map(tuple, found))
        self.order = self._topological()
        if len(self.order) < n:
            stuck = sorted(set(range(n)).difference(self.order))
            raise InputError(f"tasks form a cycle: {', '.join(map(str, stuck[:12]))}")
        self.turn = [0] * n
        for turn, task in enumerate(self.order):
            self.turn[task] = turn

    def __repr__(self) -> str:
        return f"<Problem: {len(self.run)} tasks, {len(self.pools)} processors, {len(self.links)} pools>"

    def _topological(self) -> list[int]:
        """Return the tasks, each after its parents, otherwise in their given order."""
        missing = [len(found) for found in self.parents]
        order = [i for i, count in enumerate(missing) if not count]
        for i in order:
            for child, _ in self.children[i]:
                missing[child] -= 1
                if not missing[child]:
                    order.append(child)
        return order

    def mean_run(self, task: int) -> float:
        """Return the mean expected run time of a task over the processors that can run it, s."""
        row = self.run[task]
        total = sum(row)
        if total < inf:
            return total / len(row)
        found = [seconds for seconds in row if seconds < inf]
        if not found:
            raise InputError(f"no processor can run task {task}")
        return sum(found) / len(found)

    def mean_link(self, *, unlike_pools: bool = False) -> tuple[float, float]:
        """Return the mean latency (s) and seconds per byte over the ordered pairs of different processors.

        With ``unlike_pools``: only over pairs that do not share a pool.
        """
        q = len(self.links)
        count = [self.pools.count(i) for i in range(q)]
        latency = per_byte = 0.0
        pairs = 0
        for i in range(q):
            for j in range(q):
                weight = count[i] * count[j] if i != j else 0 if unlike_pools else count[i] * (count[i] - 1)
                if not weight:  # a pool without processors may have no route
                    continue
                pairs += weight
                latency += weight * self.links[i][j][0]
                per_byte += weight * self.links[i][j][1]
        return (latency / pairs, per_byte / pairs) if pairs else (0.0, 0.0)

    def mean_transfer(self, size: float) -> float:
        """Return the mean seconds to move ``size`` bytes over all ordered pairs of different processors."""
        latency, per_byte = self.mean_link()
        return latency + size * per_byte


def _alike(latency: Sequence[Sequence[float]], per_byte: Sequence[Sequence[float]]) -> tuple[list[int], list[int]]:
    """Return the pool of each processor, and the first processor of each pool."""
    columns = [tuple(zip(*rows, strict=True)) for rows in (latency, per_byte)]
    known: dict[Any, int] = {}
    pools: list[int] = []
    distinct: list[int] = []
    for i in range(len(latency)):
        row = (tuple(latency[i]), tuple(per_byte[i]), columns[0][i], columns[1][i])
        pool = known.setdefault(row, len(distinct))
        if pool == len(distinct):
            distinct.append(i)
        pools.append(pool)
    return pools, distinct
