"""Ranks of tasks: upward and downward ranks, and the optimistic costs of PEFT.

Sources: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing",
IEEE TPDS 13(3), 2002 (ranks); Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic
cost table", IEEE TPDS 25(3), 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from simmodel.policies.planners.timetable import MANY
from simmodel.scheduling.problem import Problem

__all__ = ["downward_ranks", "optimistic_costs", "optimistic_ranks", "upward_ranks"]


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
