"""Large task sets as columns: independent tasks, and database queries whose results are gathered."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.draws import Amount, Count, Streams, amounts, counts, streams, whole
from simmodel.work.taskset import TaskSet

__all__ = ["changed", "database", "random_tasks"]

_NONE: tuple[int, ...] = ()


def random_tasks(
    tasks: int = 100,
    *,
    run: Amount = (10, 500),
    objects: Count = 0,
    size: Amount = (4e6, 300e6),
    results: Count = 0,
    cores: Count = 1,
    memory: Amount = 0,
    priority: Count = 0,
    rng: np.random.Generator | Streams,
) -> TaskSet:
    """Generate independent tasks.

    Parameters
    ----------
    tasks
        number of tasks
    run
        run time on the reference processor, s
    objects, results
        number of data objects that a task reads, and writes, or an interval of it; tasks share none
    size
        size of each data object, bytes
    cores, priority
        of each task: a whole number or an interval
    memory
        memory of a task in addition to its data, bytes
    rng
        the random stream, or one each for run times, data sizes and everything else

    Raises
    ------
    InputError
        a parameter is invalid

    >>> work = random_tasks(1000, objects=(1, 5), rng=np.random.default_rng(1))
    >>> work, min(work.run) >= 10, max(work.run) <= 500
    (<TaskSet random: 1000 tasks, 2921 data objects>, True, True)
    """
    n = whole("tasks", tasks, least=1)
    other, running, sizing = streams(rng)
    read, written = counts("objects", objects, n, other), counts("results", results, n, other)
    columns: dict[str, Any] = {}
    for name, given, plain in (("cores", cores, 1), ("priority", priority, 0)):
        if given != plain:
            columns[name] = counts(name, given, n, other).tolist()
    if columns.get("cores") and min(columns["cores"]) < 1:
        raise InputError("must be a whole number >= 1, got 0", place="cores")
    if memory != 0:
        columns["memory"] = amounts("memory", memory, n, other, unit="B").tolist()
    first = np.concatenate([[0], np.cumsum(np.stack([read, written], axis=1).ravel())]).tolist()
    spans = [tuple(range(a, b)) if b > a else _NONE for a, b in pairwise(first)] if first[-1] else []
    if spans:
        columns |= {"inputs": spans[::2], "outputs": spans[1::2]}
        columns["sizes"] = amounts("size", size, first[-1], sizing, unit="B").tolist()
    return TaskSet(amounts("run", run, n, running).tolist(), parents=[_NONE] * n, name="random", **columns)


def database(
    tasks: int = 1000,
    *,
    run: Amount = (10, 500),
    merge: Amount = (1, 5),
    table: Amount = 1e9,
    result: Amount = 4096,
    fan_in: int = 64,
    queries: int = 1,
    rng: np.random.Generator | Streams,
) -> TaskSet:
    """Generate queries that all read one large object, and tasks that gather their results into one.

    Each query writes a small result. Results are gathered in a tree: a gathering task reads ``fan_in`` results, of
    queries or of other gathering tasks, and writes one of the same size; the last task may read fewer. Of n tasks the
    last (n - 1) / ``fan_in``, rounded up, gather, and a path from a query to the last task has about log(n) /
    log(``fan_in``) steps: the tree is that of a heap, in reverse order.

    Parameters
    ----------
    tasks
        number of queries and gathering tasks
    run, merge
        run time of a query, and of a gathering task, on the reference processor, s
    table, result
        size of the object that all queries read, and of each result, bytes
    fan_in
        number of results that a gathering task reads
    queries
        number of kinds of queries: families ``query``, or ``query0``, ``query1`` ... drawn uniformly; gathering tasks
        have the family ``gather``
    rng
        the random stream, or one each for run times, data sizes and everything else

    Raises
    ------
    InputError
        a parameter is invalid

    >>> work = database(7, fan_in=3, rng=np.random.default_rng(1))
    >>> work.inputs[:3], work.inputs[5:]
    ([(0,), (0,), (0,)], [(1, 2, 3), (4, 5, 6)])
    >>> work.parents[5:], work.sizes[:2], work.families[4:]
    ([(0, 1, 2), (3, 4, 5)], [1000000000.0, 4096.0], ['query', 'gather', 'gather'])
    """
    n, arity = whole("tasks", tasks, least=1), whole("fan_in", fan_in, least=2)
    kinds = whole("queries", queries, least=1)
    other, running, _ = streams(rng)
    gathering = -(-(n - 1) // arity)
    asking = n - gathering
    # A heap of n nodes has its root first; in reverse order that is the last task. Node h reads the results of nodes
    # arity * h + 1 to arity * h + arity write, those tasks n - 1 - (arity * h + arity) to n - 1 - (arity * h + 1).
    parents = [tuple(range(max(n - 1 - arity * (h + 1), 0), n - 1 - arity * h)) for h in reversed(range(gathering))]
    names = [f"query{i}" for i in range(kinds)] if kinds > 1 else ["query"]
    drawn = other.integers(0, kinds, asking).tolist() if kinds > 1 else None
    times = np.concatenate([amounts("run", run, asking, running), amounts("merge", merge, gathering, running)])
    (table_size,), (result_size,) = (
        amounts(name, given, 1, other, unit="B").tolist() for name, given in (("table", table), ("result", result))
    )
    return TaskSet(
        times.tolist(),
        families=[*([names[i] for i in drawn] if drawn else names * asking), *["gather"] * gathering],
        inputs=[*[(0,)] * asking, *(tuple(range(found[0] + 1, found[-1] + 2)) for found in parents)],
        outputs=list(zip(range(1, n + 1))),
        sizes=[table_size, *[result_size] * n],
        parents=[*[_NONE] * asking, *parents],
        name="database",
    )


def changed(tasks: TaskSet, **columns: Any) -> TaskSet:
    """Return a task set with some columns replaced.

    >>> changed(TaskSet([1.0, 2.0]), submit=[0.0, 5.0]).submit
    [0.0, 5.0]
    """
    names = ("ids", "families", "implementations", "inputs", "outputs", "sizes", "names", "parents", "submit", "flop")
    kept: Mapping[str, Any] = {
        name: getattr(tasks, name)
        for name in (*names, "run_on", "cores", "memory", "priority", "amounts", "reconfiguration", "name", "report")
    }
    if kept["parents"] is None:  # no parents, so that none are derived from the data
        kept = {**kept, "parents": [_NONE] * len(tasks)}
    return TaskSet(columns.pop("run", tasks.run), **{**kept, **columns})
