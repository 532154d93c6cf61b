"""What a planner plans, and the plan: tasks, processors and data as plain lists of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from simmodel.errors import InputError

__all__ = ["Plan", "Problem"]


class Plan(NamedTuple):
    """Where and when each task is planned to run.

    Attributes
    ----------
    processor, start, finish
        of each task: the position of its processor, and the instants at which it starts to run and ends, s
    order
        the tasks by their planned start, those of one instant by their end, then in topological order: in this order
        they can be queued, and no task stands behind one that waits for it
    taken
        of each task: the instant from which its processor is its own (before setup and transfers), s
    held
        when tasks hold the time of a CPU core on which they do not run: core, task, from, to (s)

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
        """Return the plan with these columns, its tasks put in order."""
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
        n x p: expected seconds of each task on each processor; ``inf`` where it cannot run there
    parents
        of each task: pairs (position, bytes) of the tasks that it waits for and that are planned too
    latency, per_byte
        p x p: seconds, and seconds per byte, from the memory of one processor to that of another; 0 within a pool. With
        ``pools``: q x q, from pool to pool
    pools
        of each processor: the position of its pool. Default: processors with nothing between them that are equally far
        from all others share one
    now
        the instant of planning, s
    available
        of each processor: the instant from which it has nothing to do, s; default: ``now``
    arrival
        n x p, or ``None``: the instant at which everything that a task reads of what is not planned here (data that lie
        somewhere, tasks planned before) can be in the pool of a processor, s
    cores, capacity
        cores that each task asks for, and that each processor has; default: 1
    setup
        of each processor: seconds that each task must be set up for; default: 0
    setup_core
        of each processor: the position of the processor whose time a setup takes, or several of them, of which the one
        that can begin first is taken; ``None``: nobody's
    reconfiguration, family, loaded
        of each task: seconds to load its family on a processor that reconfigures, and a label of it; of each processor:
        the label of what is loaded (``None``: nothing), and ``reconfigures`` says whether it does so at all
    dma, overlap
        of each processor: whether data move without the time of another CPU core (default: yes), and whether they move
        while it is still busy with earlier tasks (default: no)
    parallel
        whether the data that one task reads all move at once, or one after another
    sizes, reads, writes, copies
        bytes of the data objects; of each task: the positions of those that it reads, in the order in which they move,
        and that it writes; of each object: the pools in which it lies, each with the instant from which it does (s).
        Default: every pair in ``parents`` is an object of its own, and ``arrival`` says the rest
    tasks, places
        what the rows and columns stand for

    Planners for which a machine is processors and distances use the first half of this, up to ``arrival``.

    Attributes
    ----------
    children
        of each task: pairs (position, bytes) of the tasks that wait for it
    order, turn
        the tasks in topological order, and the place of each task in it
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
        """Return the positions, each after its parents; among those free to go, as they came."""
        missing = [len(found) for found in self.parents]
        order = [i for i, count in enumerate(missing) if not count]
        for i in order:
            for child, _ in self.children[i]:
                missing[child] -= 1
                if not missing[child]:
                    order.append(child)
        return order

    def mean_run(self, task: int) -> float:
        """Return the mean of the expected seconds of a task over the processors that can run it."""
        row = self.run[task]
        total = sum(row)
        if total < inf:
            return total / len(row)
        found = [seconds for seconds in row if seconds < inf]
        if not found:
            raise InputError(f"a task that some processor can run expected, found task {task}")
        return sum(found) / len(found)

    def mean_link(self, *, unlike_pools: bool = False) -> tuple[float, float]:
        """Return the mean latency (s) and seconds per byte over the ordered pairs of unlike processors.

        With ``unlike_pools``: over those pairs alone that do not share a pool.
        """
        q = len(self.links)
        count = [self.pools.count(i) for i in range(q)]
        latency = per_byte = 0.0
        pairs = 0
        for i in range(q):
            for j in range(q):
                weight = count[i] * count[j] if i != j else 0 if unlike_pools else count[i] * (count[i] - 1)
                if not weight:  # from a pool without processors there may be no way at all
                    continue
                pairs += weight
                latency += weight * self.links[i][j][0]
                per_byte += weight * self.links[i][j][1]
        return (latency / pairs, per_byte / pairs) if pairs else (0.0, 0.0)

    def mean_transfer(self, size: float) -> float:
        """Return the mean seconds to move bytes over all ordered pairs of unlike processors."""
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
