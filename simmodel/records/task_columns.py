"""Columns for results of machines, over the tasks of all task sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simmodel.platform.machine import MachineSpec
from simmodel.work.precedence import topological_order
from simmodel.work.table import Table
from simmodel.work.taskset import TaskSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["family_seconds", "from_sets", "joined_edges", "recorded_instants", "runs_by_kind"]


def _first_rows(sets: Sequence[TaskSet]) -> list[int]:
    return list(accumulate((len(each) for each in sets), initial=0))


def from_sets(sets: Sequence[TaskSet], count: int) -> Table:
    """Return name, number of tasks and first row of each task set; without sets, one of all ``count`` tasks.

    >>> from_sets([TaskSet([1.0, 2.0], name="a"), TaskSet([3.0], name="b")], 3)["first"]
    array([0, 2])
    """
    if not sets:
        return Table(
            {"set": ["tasks"], "tasks": [count], "first": [0]} if count else {"set": [], "tasks": [], "first": []}
        )
    return Table(
        {"set": [each.name for each in sets], "tasks": [len(each) for each in sets], "first": _first_rows(sets)[:-1]}
    )


def joined_edges(sets: Sequence[TaskSet]) -> Table:
    """Return the dependencies as rows over all sets: ``parent, child``, by child in topological order.

    >>> joined_edges([TaskSet([1.0]), TaskSet([1.0, 2.0], parents=[(), (0,)])])["child"]
    array([2])
    """
    parents: list[int] = []
    children: list[int] = []
    for first, each in zip(_first_rows(sets), sets, strict=False):
        if each.parents is None:
            continue
        order: Sequence[int] = range(len(each))
        if any(parent > child for child, found in enumerate(each.parents) for parent in found):
            assert each.children is not None
            order = topological_order(dict(enumerate(each.parents)), dict(enumerate(each.children)))
        for child in order:
            for parent in each.parents[child]:
                parents.append(first + parent)
                children.append(first + child)
    return Table({"parent": np.array(parents, dtype=np.int64), "child": np.array(children, dtype=np.int64)})


def runs_by_kind(
    spec: MachineSpec, sets: Sequence[TaskSet], speeds: NDArray[np.float64] | None, count: int
) -> NDArray[np.float64]:
    """Return the expected seconds, tasks x kinds of processors; ``inf``: cannot run it, nan: unknown.

    Parameters
    ----------
    spec
        the machine
    sets
        the task sets, with the processor types and cores that their tasks need
    speeds
        tasks x architectures: expected seconds
    count
        number of tasks
    """
    if speeds is None:
        return np.full((count, len(spec.processors)), np.nan)
    rows = {each.name: i for i, each in enumerate(spec.architectures)}
    runs = np.array(speeds, dtype=np.float64)[:, [rows[kind.architecture] for kind in spec.processors]]
    cores = np.array([kind.cores for kind in spec.processors], dtype=np.float64)
    for first, each in zip(_first_rows(sets), sets, strict=False):
        here = runs[first : first + len(each)]
        if each.implementations is not None:
            can = {
                types: [types is None or kind.type in types for kind in spec.processors]
                for types in dict.fromkeys(each.implementations)
            }
            here[~np.array([can[types] for types in each.implementations], dtype=bool).reshape(here.shape)] = inf
        if each.cores is not None:
            here[np.asarray(each.cores, dtype=np.float64)[:, None] > cores] = inf
    return np.asarray(runs)


def family_seconds(sets: Sequence[TaskSet]) -> list[dict[str, float]]:
    """Return for each set the seconds to load its families."""
    return [dict(each.reconfiguration) for each in sets]


def recorded_instants(sets: Sequence[TaskSet]) -> Table | None:
    """Return ``row, start, end`` of the tasks with recorded instants; ``None`` if there are none.

    >>> from simmodel import Task, Workflow
    >>> flow = Workflow([Task(id="a", run=2, started=1.0, ended=3.0), Task(id="b", run=2)])
    >>> recorded_instants([TaskSet.of(flow)])["end"]
    array([3.])
    """
    found: list[tuple[int, float, float]] = []
    for first, each in zip(_first_rows(sets), sets, strict=False):
        if each.known_workflow is None:  # built from columns, which have no recorded instants
            continue
        found += [
            (row, task.started, task.ended)
            for row, task in enumerate(each.known_workflow, start=first)
            if task.started is not None and task.ended is not None
        ]
    if not found:
        return None
    rows, start, end = zip(*found, strict=True)
    return Table({"row": np.array(rows), "start": np.array(start, float), "end": np.array(end, float)})
