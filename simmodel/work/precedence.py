"""Precedence graphs given as parents and children: topological order, levels and longest paths."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from simmodel.foundation.errors import InputError

__all__ = ["levels_of", "longest_path", "topological_order"]

K = TypeVar("K", bound=int | str)


def topological_order(parents: Mapping[K, Sequence[K]], children: Mapping[K, Sequence[K]]) -> tuple[K, ...]:
    """Return the keys in topological order, parents first; ties in the order of declaration.

    Raises
    ------
    InputError
        the graph has a cycle; the message names its keys

    >>> topological_order({"c": ["a"], "a": [], "b": []}, {"a": ["c"], "b": [], "c": []})
    ('a', 'c', 'b')
    """
    keys = list(parents)
    rank = {key: i for i, key in enumerate(keys)}
    missing = [len(found) for found in parents.values()]
    free = [i for i, count in enumerate(missing) if not count]
    order: list[K] = []
    while free:
        key = keys[heapq.heappop(free)]
        order.append(key)
        for child in children[key]:
            i = rank[child]
            missing[i] -= 1
            if not missing[i]:
                heapq.heappush(free, i)
    if len(order) < len(keys):
        raise InputError(f"tasks form a cycle: {_cycle(parents, set(order))}")
    return tuple(order)


def _cycle(parents: Mapping[K, Sequence[K]], done: Collection[K]) -> str:
    at = next(key for key in parents if key not in done)
    path: dict[K, int] = {}
    while at not in path:
        path[at] = len(path)
        at = next(parent for parent in parents[at] if parent not in done)
    cycle = [str(key) for key in (at, *reversed(list(path)[path[at] :]))]
    return " -> ".join(cycle if len(cycle) <= 12 else [*cycle[:10], "...", str(at)])


def levels_of(order: Sequence[K], parents: Mapping[K, Sequence[K]]) -> tuple[tuple[K, ...], ...]:
    """Return the keys by level, the number of edges of the longest path from a root; in a level as declared.

    >>> levels_of(["a", "c", "b"], {"c": ["a"], "a": [], "b": []})
    (('a', 'b'), ('c',))
    """
    level: dict[K, int] = {}
    for key in order:
        level[key] = 1 + max((level[parent] for parent in parents[key]), default=-1)
    found: list[list[K]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for key in parents:
        found[level[key]].append(key)
    return tuple(map(tuple, found))


def longest_path(
    order: Sequence[K],
    parents: Mapping[K, Sequence[K]],
    time: Callable[[K], float],
    between: Mapping[tuple[K, K], float],
) -> tuple[float, tuple[K, ...]]:
    """Return the length of a longest path and its keys; ties go to the keys that are first in the order.

    Parameters
    ----------
    order, parents
        a topological order, and the parents of each key
    time
        seconds of a key
    between
        seconds from a parent to a child; 0 if missing

    >>> longest_path("abc", {"a": "", "b": "a", "c": "a"}, {"a": 1, "b": 2, "c": 2}.get, {("a", "c"): 3})
    (6, ('a', 'c'))
    """
    ends: dict[K, float] = {}
    before: dict[K, K] = {}
    for key in order:
        start: float = 0
        for parent in parents[key]:
            ready = ends[parent] + between.get((parent, key), 0)
            if key not in before or ready > start:
                start, before[key] = ready, parent
        ends[key] = start + time(key)
    if not ends:
        return 0, ()
    at = max(ends, key=ends.__getitem__)
    length, path = ends[at], [at]
    while at in before:
        at = before[at]
        path.append(at)
    return length, tuple(reversed(path))
