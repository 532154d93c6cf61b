"""List scheduling: HEFT, CPOP, PEFT and HEFT with lookahead, as functions of a problem.

Sources: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002 (HEFT, CPOP); Arabnejad, Barbosa, IEEE TPDS 25(3), 2014 (PEFT);
Bittencourt, Sakellariou, Madeira, "DAG scheduling using a lookahead variant of the heterogeneous earliest finish time
algorithm", PDP 2010.

Ties, in all of them: among tasks of equal priority, the first in a topological order that keeps the order of
submission; among equally good processors, the first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np

from simmodel.policies.planners.timetable import MANY, Slot, Timetable
from simmodel.scheduling.problem import Plan, Problem

__all__ = [
    "by_rank",
    "cpop",
    "critical_path",
    "critical_processor",
    "downward_ranks",
    "heft",
    "lookahead_heft",
    "optimistic_costs",
    "optimistic_ranks",
    "peft",
    "ready_first",
    "upward_ranks",
]


def upward_ranks(problem: Problem, means: Sequence[float] | None = None) -> list[float]:
    """Return the upward ranks (s): the longest path from the start of each task to the end, in means over processors.

    Parameters
    ----------
    problem
        the scheduling problem
    means
        seconds to count for each task; default: the mean of its run times

    >>> upward_ranks(Problem([[2.0, 4.0], [6.0, 6.0]], [(), ((0, 5.0),)], [[0, 0], [0, 0]], [[0, 1], [1, 0]]))
    [14.0, 6.0]
    """
    latency, per_byte = problem.mean_link()
    children = problem.children
    ranks = list(map(problem.mean_run, range(len(children)))) if means is None else list(means)
    for task in reversed(problem.order):
        found = children[task]
        if found:
            ranks[task] += max([latency + size * per_byte + ranks[child] for child, size in found])
    return ranks


def downward_ranks(problem: Problem) -> list[float]:
    """Return the downward ranks (s): the longest path from the beginning to each start, in means over processors.

    >>> downward_ranks(Problem([[2.0, 4.0], [6.0, 6.0]], [(), ((0, 5.0),)], [[0, 0], [0, 0]], [[0, 1], [1, 0]]))
    [0.0, 8.0]
    """
    latency, per_byte = problem.mean_link()
    means = list(map(problem.mean_run, range(len(problem.run))))
    ranks = [0.0] * len(problem.run)
    for task in problem.order:
        found = problem.parents[task]
        if found:
            ranks[task] = max([ranks[parent] + means[parent] + (latency + size * per_byte) for parent, size in found])
    return ranks


def optimistic_costs(problem: Problem, costs: Sequence[Sequence[float]] | None = None) -> list[list[float]]:
    """Return the optimistic cost table: the least seconds from the end of each task to the end of all.

    Every descendant runs where this is least, without waiting for a free processor. Transfers cost nothing within a
    pool, and between pools the mean over pairs of processors in different pools; so the costs are equal for all
    processors of a pool.

    Parameters
    ----------
    problem
        the scheduling problem
    costs
        n x p: seconds to count for each task on each processor; default: its run times

    Returns
    -------
    list
        n x q: seconds after each task, by the pool in which it has run

    >>> optimistic_costs(Problem([[2.0, 4.0], [6.0, 3.0]], [(), ((0, 5.0),)], [[0, 0], [0, 0]], [[0, 1], [1, 0]]))
    [[6.0, 3.0], [0.0, 0.0]]
    """
    latency, per_byte = problem.mean_link(unlike_pools=True)
    costs = problem.run if costs is None else costs
    q = len(problem.links)
    members = [[j for j, pool in enumerate(problem.pools) if pool == i] for i in range(q)]
    alone = len(problem.pools) == q and problem.pools == list(range(q))
    table: list[list[float]] = [[]] * len(costs)
    least: list[list[float]] = [[]] * len(costs)  # by task and pool: seconds from its start there to the end of all
    lowest: list[float] = [0.0] * len(costs)
    for task in reversed(problem.order):
        after = [0.0] * q
        found = problem.children[task]
        if len(found) * q >= MANY:
            moves = np.array([[latency + size * per_byte + lowest[child]] for child, size in found])
            after = np.minimum([least[child] for child, _ in found], moves).max(axis=0).tolist()
            found = ()
        for child, size in found:
            moved = latency + size * per_byte + lowest[child]
            after = [
                now if now >= (then := here if here <= moved else moved) else then
                for now, here in zip(after, least[child], strict=True)
            ]
        table[task] = after
        row = costs[task]
        if alone:
            least[task] = [cost + then for cost, then in zip(row, after, strict=True)]
        else:
            least[task] = [
                min([row[j] for j in group], default=inf) + then for group, then in zip(members, after, strict=True)
            ]
        lowest[task] = min(least[task])
    return table


def optimistic_ranks(problem: Problem, table: Sequence[Sequence[float]]) -> list[float]:
    """Return for each task the mean of its row of the table over the processors that can run it (s)."""
    ranks = []
    pools = problem.pools
    p = len(pools)
    members = [pools.count(i) for i in range(len(problem.links))]
    for row, costs in zip(problem.run, table, strict=True):
        if sum(row) < inf:
            total = sum([cost * count for cost, count in zip(costs, members, strict=True)])
            ranks.append(total / p)
        else:
            found = [costs[pools[j]] for j, seconds in enumerate(row) if seconds < inf]
            ranks.append(sum(found) / len(found))
    return ranks


def by_rank(problem: Problem, ranks: Sequence[float]) -> list[int]:
    """Return the tasks by descending rank; ties in topological order."""
    turn = problem.turn
    return sorted(problem.order, key=lambda task: (-ranks[task], turn[task]))


def ready_first(problem: Problem, priorities: Sequence[float]) -> Iterator[int]:
    """Yield the tasks; next is always the one of highest priority among those whose parents were yielded."""
    turn = problem.turn
    missing = [len(found) for found in problem.parents]
    heap = [(-priorities[task], turn[task], task) for task, count in enumerate(missing) if not count]
    heapq.heapify(heap)
    while heap:
        task = heapq.heappop(heap)[2]
        yield task
        for child, _ in problem.children[task]:
            missing[child] -= 1
            if not missing[child]:
                heapq.heappush(heap, (-priorities[child], turn[child], child))


def heft(problem: Problem, *, insertion: bool = True) -> Plan:
    """Return the plan of HEFT: tasks by descending upward rank, each on the processor where it ends first.

    Parameters
    ----------
    problem
        the scheduling problem
    insertion
        whether a task may fill a gap between others; else it is appended

    >>> problem = Problem([[4.0, 6.0], [3.0, 9.0], [3.0, 2.0]], parents=[(), ((0, 1.0),), ((0, 1.0),)],
    ...                   latency=[[0, 0], [0, 0]], per_byte=[[0, 1], [1, 0]])
    >>> plan = heft(problem)
    >>> plan.processor, plan.start, plan.makespan
    ([0, 0, 1], [0.0, 4.0, 5.0], 7.0)
    """
    table = Timetable(problem, insertion=insertion)
    ready, best, place = table.ready, table.best, table.place
    for task in by_rank(problem, upward_ranks(problem)):
        place(task, best(task, ready(task)))
    return table.plan()


def critical_path(problem: Problem, ranks: Sequence[float] | None = None) -> list[int]:
    """Return the tasks of the longest path through the graph, in means over the processors.

    Parameters
    ----------
    problem
        the scheduling problem
    ranks
        its upward ranks, if known

    >>> critical_path(Problem([[2.0], [1.0], [5.0]], [(), ((0, 0.0),), ((0, 0.0),)], [[0]], [[0]]))
    [0, 2]
    """
    ranks = upward_ranks(problem) if ranks is None else ranks
    latency, per_byte = problem.mean_link()
    ahead = [task for task in problem.order if not problem.parents[task]]
    path: list[int] = []
    cost: Callable[[int], float] = ranks.__getitem__
    while ahead:
        task = max(ahead, key=cost)
        path.append(task)
        sizes = dict(problem.children[task])
        ahead = list(sizes)

        def cost(child: int, sizes: dict[int, float] = sizes) -> float:
            return latency + sizes[child] * per_byte + ranks[child]

    return path


def critical_processor(problem: Problem, path: Sequence[int]) -> int:
    """Return the processor that runs the tasks of a path in the least time.

    If no processor can run all of them: among those that can run the most, the one that takes the least time.
    """

    def cost(j: int) -> tuple[int, float]:
        found = [problem.run[task][j] for task in path if problem.run[task][j] < inf]
        return -len(found), sum(found)

    return min(range(len(problem.pools)), key=cost)


def cpop(problem: Problem, *, insertion: bool = True) -> Plan:
    """Return the plan of CPOP: the critical path on one processor, all other tasks where they end first.

    The priority of a task is its upward plus its downward rank. Tasks of the critical path that its processor cannot
    run are placed where they end first.

    >>> problem = Problem([[4.0, 6.0], [3.0, 9.0], [3.0, 2.0]], parents=[(), ((0, 1.0),), ((0, 1.0),)],
    ...                   latency=[[0, 0], [0, 0]], per_byte=[[0, 1], [1, 0]])
    >>> cpop(problem).processor
    [0, 0, 1]
    """
    upward = upward_ranks(problem)
    priorities = [up + down for up, down in zip(upward, downward_ranks(problem), strict=True)]
    path = critical_path(problem, upward)
    processor = critical_processor(problem, path)
    critical = {task for task in path if problem.run[task][processor] < inf}
    table = Timetable(problem, insertion=insertion)
    pool = problem.pools[processor]
    for task in ready_first(problem, priorities):
        ready = table.ready(task)
        if task in critical:
            table.place(task, table.slot(task, processor, ready[pool]))
        else:
            table.place(task, table.best(task, ready))
    return table.plan()


def peft(problem: Problem, *, insertion: bool = True) -> Plan:
    """Return the plan of PEFT: each task where the sum of its end and its optimistic cost is least.

    >>> problem = Problem([[4.0, 6.0], [3.0, 9.0], [3.0, 2.0]], parents=[(), ((0, 1.0),), ((0, 1.0),)],
    ...                   latency=[[0, 0], [0, 0]], per_byte=[[0, 1], [1, 0]])
    >>> peft(problem).processor
    [0, 0, 1]
    """
    costs = optimistic_costs(problem)
    pools = problem.pools
    table = Timetable(problem, insertion=insertion)
    for task in ready_first(problem, optimistic_ranks(problem, costs)):
        row = costs[task]
        table.place(task, table.best(task, table.ready(task), [row[pool] for pool in pools]))
    return table.plan()


def lookahead_heft(problem: Problem, *, insertion: bool = True) -> Plan:
    """Return the plan of HEFT with lookahead: each task where the last of its children ends first.

    On trial, the task is placed on each processor, followed by its children by descending rank, each where it ends
    first given those of its parents that are placed. A task without children is placed where it ends first itself.

    >>> problem = Problem([[4.0, 6.0], [3.0, 9.0], [3.0, 2.0]], parents=[(), ((0, 1.0),), ((0, 1.0),)],
    ...                   latency=[[0, 0], [0, 0]], per_byte=[[0, 1], [1, 0]])
    >>> lookahead_heft(problem).processor
    [0, 0, 1]
    """
    ranks = upward_ranks(problem)
    table = Timetable(problem, insertion=insertion)
    tasks = by_rank(problem, ranks)
    turn = [0] * len(tasks)
    for i, task in enumerate(tasks):
        turn[task] = i
    for task in tasks:
        ready = table.ready(task)
        children = sorted([child for child, _ in problem.children[task]], key=turn.__getitem__)
        slot = _with_lookahead(table, task, ready, children) if children else table.best(task, ready)
        table.place(task, slot)
    return table.plan()


_Trial = tuple[int, list[float], list[tuple[int, float]]]


def _with_lookahead(table: Timetable, task: int, ready: list[float], children: list[int]) -> Slot:
    """Return the slot of a task with which its last child ends first."""
    problem = table.problem
    moved = {task, *children}
    trials: list[_Trial] = [
        (child, table.ready(child), [pair for pair in problem.parents[child] if pair[0] in moved]) for child in children
    ]
    best, least = None, inf
    for j, seconds in enumerate(problem.run[task]):
        if seconds < inf:
            slot = table.slot(task, j, ready[problem.pools[j]])
            end = _try(table, task, slot, trials, least)
            if best is None or end < least:
                best, least = slot, end
    assert best is not None
    return best


def _try(table: Timetable, task: int, slot: Slot, trials: list[_Trial], least: float) -> float:
    """Return the end of the last child (infinity if not before ``least``), and restore the table."""
    end = 0.0
    before = {slot[0]: table.remember(slot[0])}
    table.place(task, slot)
    placed = [task]
    for child, ready, parents in trials:
        there = table.best(child, table.with_parents(ready, parents))
        if there[2] >= least:
            end = inf
            break
        end = max(end, there[2])
        if there[0] not in before:
            before[there[0]] = table.remember(there[0])
        table.place(child, there)
        placed.append(child)
    for j, free in before.items():
        table.restore(j, free)
    for each in placed:
        table.processor[each] = -1
    return end
