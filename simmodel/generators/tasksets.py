"""Large task sets as columns: independent tasks, database queries whose results are gathered, and several merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.distributions import Amount, Count, Streams, amounts, counts, streams, whole, whole_counts
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

__all__ = ["changed", "database", "mix", "mixture", "random_tasks"]


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


ORDERS = ("shuffled", "blocks")

# The value in each column for tasks of a set that lacks the column.
_MISSING: dict[str, Any] = {
    "families": None,
    "implementations": None,
    "inputs": (),
    "outputs": (),
    "submit": 0.0,
    "flop": None,
    "run_on": None,
    "cores": 1,
    "memory": 0.0,
    "priority": 0.0,
    "amounts": None,
    "parents": (),
}


def mix(
    works: Sequence[TaskSet | Workflow], *, order: str = "shuffled", name: str = "mixture", rng: np.random.Generator
) -> TaskSet:
    """Merge several task sets into one; each task depends only on tasks of its own set.

    Families with the same name are one family. Ids stay if they are unique; otherwise tasks are renumbered from 0 if
    all ids are numbers, and else ids are prefixed with the name of their set.

    Parameters
    ----------
    works
        the task sets
    order
        ``"shuffled"``: random interleaving that keeps the order within each set; ``"blocks"``: one set after another
    name
        name of the new set
    rng
        the random stream

    Raises
    ------
    InputError
        no sets, or two sets with different times to load the same family

    >>> one, two = TaskSet([1.0] * 2), TaskSet([2.0] * 3, parents=[(), (0,), (1,)])
    >>> work = mix([one, two], rng=np.random.default_rng(3))
    >>> work.run, work.parents
    ([2.0, 2.0, 1.0, 2.0, 1.0], [(), (0,), (), (1,), ()])
    """
    sets = [TaskSet.of(work) for work in works]
    if not sets:
        raise InputError("must be at least one task set, got none", place="works")
    if order not in ORDERS:
        raise InputError(f"must be {' or '.join(map(repr, ORDERS))}, got {order!r}", place="order")
    lengths = [len(each) for each in sets]
    belongs = np.repeat(np.arange(len(sets)), lengths)
    if order == "shuffled":
        belongs = rng.permutation(belongs)
    rows = [np.flatnonzero(belongs == k).tolist() for k in range(len(sets))]  # rows of each set in the new one
    names = _unique([each.name for each in sets])
    n = sum(lengths)
    columns: dict[str, Any] = {}
    first = np.concatenate([[0], np.cumsum([len(each.sizes) for each in sets])]).tolist()  # offset of each set's data
    for column, missing in _MISSING.items():
        found = [getattr(each, column) for each in sets]
        if all(each is None for each in found) and column != "parents":
            continue
        values: list[Any] = [missing] * n
        for k, given in enumerate(found):
            for row, value in zip(rows[k], _moved(column, given, first[k], rows[k]) if given else (), strict=False):
                values[row] = value
        columns[column] = values
    run = [0.0] * n
    for k, each in enumerate(sets):
        for row, seconds in zip(rows[k], each.run, strict=True):
            run[row] = seconds
    return TaskSet(
        run,
        ids=_ids(sets, names, rows, n),
        sizes=[size for each in sets for size in each.sizes],
        names=_data_names(sets, names),
        reconfiguration=_reconfiguration(sets),
        name=name,
        report=sum((each.report for each in sets), Report()),
        **columns,
    )


def _moved(column: str, values: Sequence[Any], data: int, rows: list[int]) -> Sequence[Any]:
    """Return a column with its positions of data or of tasks shifted to those in the new set."""
    if column in ("inputs", "outputs") and data:
        return [tuple(each + data for each in found) if found else () for found in values]
    if column == "parents":
        return [tuple(rows[each] for each in found) if found else () for found in values]
    return values


def _unique(names: list[str]) -> list[str]:
    twice = len(dict.fromkeys(names)) < len(names)
    return [f"{name}{k}" for k, name in enumerate(names)] if twice else names


def _ids(sets: list[TaskSet], names: list[str], rows: list[list[int]], n: int) -> Sequence[int | str] | None:
    if all(isinstance(each.ids, range) for each in sets):
        return None
    every = [id_ for each in sets for id_ in each.ids]
    if len(dict.fromkeys(every)) == n:
        new: list[list[int | str]] = [list(each.ids) for each in sets]
    elif all(isinstance(id_, int) for id_ in every):
        return None
    else:
        new = [[f"{name}/{id_}" for id_ in each.ids] for each, name in zip(sets, names, strict=True)]
    found: list[int | str] = [0] * n
    for placed, ids in zip(rows, new, strict=True):
        for row, id_ in zip(placed, ids, strict=True):
            found[row] = id_
    return found


def _data_names(sets: list[TaskSet], names: list[str]) -> list[str] | None:
    if all(each.names is None for each in sets):
        return None
    every = [name for each in sets for name in each.names or ()]
    if all(each.names is not None for each in sets) and len(dict.fromkeys(every)) == len(every):
        return every
    return [
        f"{name}/{each.data_name(d)}" for each, name in zip(sets, names, strict=True) for d in range(len(each.sizes))
    ]


def _reconfiguration(sets: list[TaskSet]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in sets:
        for family, seconds in each.reconfiguration.items():
            if found.setdefault(family, seconds) != seconds:
                both = f"{found[family]:g} and {seconds:g}"
                raise InputError(f"must have one time to load family {family!r}, got {both} s", place="reconfiguration")
    return found


def mixture(
    tasks: int,
    parts: Sequence[tuple[float, Callable[[int, np.random.Generator], TaskSet | Workflow]]],
    *,
    order: str = "shuffled",
    name: str = "mixture",
    rng: np.random.Generator,
) -> TaskSet:
    """Generate several task sets in given shares and merge them.

    Parameters
    ----------
    tasks
        total number of tasks
    parts
        a share > 0 and a function ``make(n, rng)`` for each part; the numbers of tasks are rounded by the largest
        remainders, so that they add up
    order, name, rng
        as for :func:`mix`

    Raises
    ------
    InputError
        a share is not positive, or a part would have no tasks

    >>> from simmodel.generators import database, random_tasks
    >>> parts = [(3, lambda n, rng: random_tasks(n, rng=rng)), (1, lambda n, rng: database(n, rng=rng))]
    >>> work = mixture(1000, parts, rng=np.random.default_rng(1))
    >>> len(work), work.families.count(None), work.families.count("query")
    (1000, 750, 246)
    """
    n = whole("tasks", tasks, least=1)
    if not parts:
        raise InputError("must not be empty", place="parts")
    for k, (part, _) in enumerate(parts):
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part < np.inf:
            raise InputError(f"must be a share > 0, got {part!r}", place=f"parts[{k}].share")
    counts = whole_counts(np.array([part for part, _ in parts], float) / sum(part for part, _ in parts), n)
    if not counts.all():
        raise InputError(f"must be at least one task for each of {len(parts)} parts, got {n}", place="tasks")
    mixing, *drawing = rng.spawn(1 + len(parts))
    works = [make(count, each) for (_, make), count, each in zip(parts, counts.tolist(), drawing, strict=True)]
    return mix(works, order=order, name=name, rng=mixing)
