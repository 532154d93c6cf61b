"""Stretches of execution, and the table of executions built from them and the jobs that ran once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.resources.allocation import Allocation

__all__ = ["Stretch", "allocation_columns", "run_table"]


class Stretch(NamedTuple):
    """One execution, or the part of it before or after a suspension, of the job in this row."""

    row: int
    attempt: int
    start: float
    end: float
    place: str
    processors: int
    status: str
    nodes: tuple[int, ...] | None
    counts: bool  # whether its work was kept
    allocation: Allocation | None = None  # of identified nodes


def run_table(jobs: Table, stretches: Sequence[Stretch], place: NDArray[np.generic]) -> Table:
    """Return one row per execution, by start: the stretches, and the jobs without stretches.

    Parameters
    ----------
    jobs
        the table of jobs
    stretches
        the stretches of some of these jobs
    place
        the name of the place of each job

    >>> jobs = Table({"job": [7, 8], "start": [0.0, 5.0], "end": [4.0, 9.0], "processors": [1, 2],
    ...               "status": ["completed", "completed"]})
    >>> first = Stretch(1, 1, 1.0, 3.0, "pool", 2, "preempted", None, False)
    >>> table = run_table(jobs, [first, Stretch(1, 2, 5.0, 9.0, "pool", 2, "completed", None, True)],
    ...                   np.array(["pool", "pool"], dtype=object))
    >>> table["job"], table["start"]
    (array([7, 8, 8]), array([0., 1., 5.]))
    """
    rest = np.isfinite(jobs["start"])
    rest[[stretch.row for stretch in stretches]] = False
    rows = np.flatnonzero(rest)
    which = np.array([stretch.row for stretch in stretches] + rows.tolist(), dtype=np.int64)
    start = np.append([stretch.start for stretch in stretches], jobs["start"][rows])
    texts = {"place": place, "status": np.asarray(jobs["status"], dtype=object)}
    columns = {"job": jobs["job"][which], "attempt": np.ones(len(which), dtype=np.int32), "start": start}
    columns["attempt"][: len(stretches)] = [stretch.attempt for stretch in stretches]
    columns["end"] = np.append([stretch.end for stretch in stretches], jobs["end"][rows])
    columns["processors"] = np.append([stretch.processors for stretch in stretches], jobs["processors"][rows])
    for name, column in texts.items():
        values = np.array([getattr(stretch, name) for stretch in stretches], dtype=object)
        columns[name] = np.append(values, column[rows]).astype(str)
    columns["processors"] = columns["processors"].astype(np.int64)
    order = ("job", "attempt", "start", "end", "place", "processors", "status")
    given = [(stretch.nodes, stretch.allocation) for stretch in stretches]
    held = allocation_columns([*given, *[(None, None)] * len(rows)], columns["processors"])
    table = Table({**{name: columns[name] for name in order}, **held})
    return table.where(np.lexsort((which, start)))


def allocation_columns(
    held: Sequence[tuple[tuple[int, ...] | None, Allocation | None]], processors: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    """Return the columns of what executions hold: ``nodes`` and, if nodes are identified, what they hold of each.

    ``cores``, ``gpus`` and ``memory`` (bytes) are tuples with one number per node; ``allocated`` are the cores in all,
    more than ``processors`` if whole nodes were allocated.
    """
    nodes = np.full(len(held), None, dtype=object)
    nodes[:] = [each for each, _ in held]
    if all(allocation is None for _, allocation in held):
        return {"nodes": nodes}
    columns: dict[str, NDArray[np.generic]] = {"nodes": nodes, "allocated": processors.copy()}
    for name in ("cores", "gpus", "memory"):
        columns[name] = np.full(len(held), None, dtype=object)
    for row, (_, allocation) in enumerate(held):
        if allocation is not None:
            columns["allocated"][row] = allocation.processors
            for name, amounts in zip(("cores", "gpus", "memory"), allocation.columns, strict=True):
                columns[name][row] = amounts
    return columns
