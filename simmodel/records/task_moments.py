"""The columns of a run of tasks: the instants of each task in their order, the phases between them, what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.resources.services import STAMPS
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
"""The instants of a task in their order; its phases lie between each two of them."""
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
waiting for setup: it is taken, and the CPU core that sets up is busy; waiting for memory: for room in the pool, or for
the CPU core that moves the data; waiting for core: a CPU core that is busy with others again."""
HELD = PHASES[2:]
"""The phases in which the task has its processor."""

TRANSFERS = ("object", "bytes", "source", "destination", "start", "end", "task", "cause", "count")
CPU_USE = ("core", "task", "what", "start", "end")
STOPPED = ("task", "processor", *STAMPS, "cores")
"""The columns of executions that were stopped: as of tasks, from when the processor was the task's own."""
_EMPTY_TYPES = {"bytes": float, "count": np.int64, "cores": float, **dict.fromkeys(MOMENTS, float)}


def _filled(given: Columns | None, names: Sequence[str]) -> Table:
    table = Table(given or {})
    if len(table):
        return table
    return Table({name: np.zeros(0, dtype=_EMPTY_TYPES.get(name, "U1")) for name in names})


def transfer_table(given: Columns | None) -> Table:
    """Return the table of transfers; where nothing is given, one without rows.

    >>> list(transfer_table(None).names)[:3]
    ['object', 'bytes', 'source']
    """
    return _filled(given, TRANSFERS)


def cpu_table(given: Columns | None) -> Table:
    """Return the table of what CPU cores did for tasks; where nothing is given, one without rows.

    >>> list(cpu_table(None).names)
    ['core', 'task', 'what', 'start', 'end']
    """
    return _filled(given, CPU_USE)


def stopped_table(given: Columns | None) -> Table:
    """Return the table of executions that were stopped; where nothing is given, one without rows.

    >>> stopped_table(None).names == STOPPED
    True
    """
    return _filled(given, STOPPED)


def completed(given: Columns) -> Table:
    """Return the table of tasks with the columns that follow from others, where they are missing.

    Raises
    ------
    ValueError
        where there is no ``task``, ``processor``, ``start`` or ``end``

    >>> completed({"task": ["a"], "processor": ["cpu"], "start": [1.0], "end": [3.0]})["ready"]
    array([1.])
    """
    columns = {name: np.asarray(column) for name, column in given.items()}
    missing = [name for name in ("task", "processor", "start", "end") if name not in columns]
    if missing:
        raise ValueError(f"columns task, processor, start and end expected, {', '.join(missing)} missing")
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
    """Return of each value its position among the known ones; -1 where it is none of them.

    >>> positions(np.array(["b", "x"]), ["a", "b"])
    array([ 1, -1])
    """
    names, of = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    rows = {name: i for i, name in enumerate(known)}
    found = np.array([rows.get(name, -1) for name in names.tolist()], dtype=np.int64)
    return found[of.reshape(-1)] if len(found) else np.zeros(0, dtype=np.int64)
