"""What a planner plans: tasks, processors and data as plain lists of numbers, taken from a machine at one instant."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

__all__ = ["Problem"]


class Problem:
    """Tasks to place on processors, as lists; the planner's own world, in which nothing is contended.

    Parameters
    ----------
    run
        n x p: expected seconds of each task on each processor; ``inf`` where it cannot run there
    parents
        of each task: pairs (position, bytes) of the tasks that it waits for and that are planned too
    latency, per_byte
        p x p: seconds, and seconds per byte, from the pool of one processor to that of another; 0 within a pool
    now
        the instant of planning, s
    available
        of each processor: the instant from which it has nothing to do, s; default: ``now``
    arrival
        n x p, or ``None``: the instant at which everything that a task reads of what is not planned here (data that lie
        somewhere, tasks planned before) can be in the pool of a processor, s
    setup
        of each processor: seconds that each task must be set up for; default: 0
    setup_core
        of each processor: the position of the processor whose time a setup takes; ``None``: nobody's
    reconfiguration, family, loaded
        of each task: seconds to load its family on a processor that reconfigures, and a label of it; of each processor:
        the label of what is loaded (``None``: nothing), and ``reconfigures`` says whether it does so at all
    tasks, places
        what the rows and columns stand for

    >>> problem = Problem([[3.0, 5.0], [4.0, 2.0]], parents=[(), ((0, 100.0),)], latency=[[0, 0], [0, 0]],
    ...                   per_byte=[[0, 0.01], [0.01, 0]])
    >>> problem.children, problem.order, problem.mean_transfer(100.0)
    ([((1, 100.0),), ()], [0, 1], 1.0)
    """

    __slots__ = (
        "arrival",
        "available",
        "children",
        "family",
        "latency",
        "loaded",
        "now",
        "order",
        "parents",
        "per_byte",
        "places",
        "reconfiguration",
        "reconfigures",
        "run",
        "setup",
        "setup_core",
        "tasks",
    )

    def __init__(
        self,
        run: Sequence[Sequence[float]],
        parents: Sequence[Sequence[tuple[int, float]]],
        latency: Sequence[Sequence[float]],
        per_byte: Sequence[Sequence[float]],
        *,
        now: float = 0.0,
        available: Sequence[float] | None = None,
        arrival: Sequence[Sequence[float]] | None = None,
        setup: Sequence[float] | None = None,
        setup_core: Sequence[int | None] | None = None,
        reconfiguration: Sequence[float] | None = None,
        family: Sequence[Any] | None = None,
        loaded: Sequence[Any] | None = None,
        reconfigures: Sequence[bool] | None = None,
        tasks: Sequence[Any] = (),
        places: Sequence[Any] = (),
    ) -> None:
        n, p = len(run), len(latency)
        self.run = run
        self.parents = parents
        self.latency = latency
        self.per_byte = per_byte
        self.now = now
        self.available = [now] * p if available is None else available
        self.arrival = arrival
        self.setup = [0.0] * p if setup is None else setup
        self.setup_core: Sequence[int | None] = [None] * p if setup_core is None else setup_core
        self.reconfiguration = [0.0] * n if reconfiguration is None else reconfiguration
        self.family = list(range(n)) if family is None else family
        self.loaded = [None] * p if loaded is None else loaded
        self.reconfigures = [False] * p if reconfigures is None else reconfigures
        self.tasks = tasks
        self.places = places
        found: list[list[tuple[int, float]]] = [[] for _ in range(n)]
        for child, given in enumerate(parents):
            for parent, size in given:
                found[parent].append((child, size))
        self.children: list[tuple[tuple[int, float], ...]] = [tuple(each) for each in found]
        self.order = self._topological()

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
        found = [seconds for seconds in self.run[task] if seconds < inf]
        return sum(found) / len(found)

    def mean_transfer(self, size: float) -> float:
        """Return the mean seconds to move bytes over all ordered pairs of unlike processors."""
        p = len(self.latency)
        pairs = p * (p - 1)
        if not pairs:
            return 0.0
        return (sum(map(sum, self.latency)) + size * sum(map(sum, self.per_byte))) / pairs
