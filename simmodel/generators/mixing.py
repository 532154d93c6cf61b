"""Merge several task sets into one, as they are or in given shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.generators.draws import whole, whole_counts
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

__all__ = ["mix", "mixture"]

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
    works: Sequence[TaskSet | Workflow],
    *,
    order: str = "shuffled",
    name: str = "mixture",
    rng: np.random.Generator,
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
