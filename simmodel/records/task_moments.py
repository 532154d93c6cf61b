"""Columns of records of tasks: the instants of each task, the phases between them, and derived columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.resources.processors.services import STAMPS
from simmodel.work.table import Columns, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CPU_USE",
    "FIRST_COLUMNS",
    "HELD",
    "MOMENTS",
    "PHASES",
    "STOPPED",
    "TRANSFERS",
    "completed",
    "cpu_table",
    "positions",
    "stopped_table",
    "transfer_table",
]

FIRST_COLUMNS = ("task", "processor", "ready", *STAMPS[1:])
MOMENTS = ("submit", "ready", *STAMPS)
"""The instants of a task in order; its phases lie between consecutive ones."""
PHASES = (
    "blocked on dependencies",
    "blocked on setup",
    "waiting for setup",
    "setup",
    "reconfiguration",
    "waiting for memory",
    "transfer",
    "waiting for core",
    "execution",
)
"""The phases of a task, each from one of the :data:`MOMENTS` to the next. Blocked on setup: the processor is busy;
waiting for setup: the task holds the processor, and the CPU core for its setup is busy; waiting for memory: for room in
the pool, or for the CPU core that moves the data; waiting for core: a CPU core is busy with other tasks again."""
HELD = PHASES[2:]
"""The phases in which the task holds its processor."""

TRANSFERS = ("object", "bytes", "source", "destination", "start", "end", "task", "cause", "count")
CPU_USE = ("core", "task", "what", "start", "end")
STOPPED = ("task", "processor", *STAMPS, "cores")
"""The columns of stopped executions, from the instant at which the task got its processor."""
_EMPTY_TYPES = {"bytes": float, "count": np.int64, "cores": float, **dict.fromkeys(MOMENTS, float)}


def _filled(given: Columns | None, names: Sequence[str]) -> Table:
    table = Table(given or {})
    if len(table):
        return table
    return Table({name: np.zeros(0, dtype=_EMPTY_TYPES.get(name, "U1")) for name in names})


def transfer_table(given: Columns | None) -> Table:
    """Return the table of transfers; by default an empty one.

    >>> list(transfer_table(None).names)[:3]
    ['object', 'bytes', 'source']
    """
    return _filled(given, TRANSFERS)


def cpu_table(given: Columns | None) -> Table:
    """Return the table of setups and transfers by CPU cores; by default an empty one.

    >>> list(cpu_table(None).names)
    ['core', 'task', 'what', 'start', 'end']
    """
    return _filled(given, CPU_USE)


def stopped_table(given: Columns | None) -> Table:
    """Return the table of stopped executions; by default an empty one.

    >>> stopped_table(None).names == STOPPED
    True
    """
    return _filled(given, STOPPED)


def completed(given: Columns) -> Table:
    """Return the table of tasks, with missing columns derived from others.

    Raises
    ------
    ValueError
        ``task``, ``processor``, ``start`` or ``end`` is missing

    >>> completed({"task": ["a"], "processor": ["cpu"], "start": [1.0], "end": [3.0]})["ready"]
    array([1.])
    """
    columns = {name: np.asarray(column) for name, column in given.items()}
    missing = [name for name in ("task", "processor", "start", "end") if name not in columns]
    if missing:
        raise ValueError(f"columns: missing {', '.join(missing)}")
    count = len(columns["task"])
    for name in ("processor", "setup_core", "family", "pool"):
        if name in columns and columns[name].dtype.kind != "U":
            columns[name] = np.array(["" if each is None else str(each) for each in columns[name]], dtype=str)
    later = columns["end"].astype(np.float64)
    for name in reversed(MOMENTS):
        found = columns[name].astype(np.float64) if name in columns else later
        if name == "submit" and name not in columns:
            found = np.zeros(count)
        later = columns[name] = np.where(np.isnan(found), later, found)
    ran = columns["end"] - columns["start"]
    defaults: dict[str, Any] = {
        "assigned": columns["taken"],
        "set": np.zeros(count, dtype=np.int64),
        "status": np.where(np.isfinite(columns["end"]), "done", np.where(np.isfinite(columns["start"]), "running", "")),
        "attempts": np.isfinite(columns["start"]).astype(np.int64),
        "expected_run": ran,
        "run_best": ran,
        "setup_core": np.full(count, ""),
        "family": np.full(count, ""),
        "pool": np.full(count, ""),
        "cores": np.ones(count),
    }
    known = {**defaults, **columns}
    order = dict.fromkeys((*FIRST_COLUMNS, "submit", "assigned", "taken", *defaults, *known))
    return Table({name: known[name] for name in order})


def positions(values: NDArray[np.generic], known: Sequence[str]) -> NDArray[np.int64]:
    """Return the position of each value among the known ones; -1 if unknown.

    >>> positions(np.array(["b", "x"]), ["a", "b"])
    array([ 1, -1])
    """
    names, of = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    rows = {name: i for i, name in enumerate(known)}
    found = np.array([rows.get(name, -1) for name in names.tolist()], dtype=np.int64)
    return found[of.reshape(-1)] if len(found) else np.zeros(0, dtype=np.int64)
