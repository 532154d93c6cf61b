"""Checks of stored tables, which come from files: they have their columns, and do not contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.errors import InputError, clipped, shown
from simmodel.records.job_record import ENDED_WELL, is_number
from simmodel.records.tables import REASONS
from simmodel.results.stores import LISTS
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_flows", "check_jobs", "check_tasks", "has_numbers"]

_COLUMNS = {
    "jobs": ("submit", "start", "end", "processors"),
    "runs": ("job", "start", "end", "place", "processors", "status"),
    "claims": ("claim", "start", "end", "place", "processors", "status"),
    "events": ("time", "event", "job"),
    "places": ("place", "processors", "nodes", "idle_power", "load_power"),
    "changes": ("time", "place", "cause", "processors", "down"),
    "choices": ("time", "policy", "score", "chosen"),
    "nodes": ("place", "node", "processors", "idle_power", "load_power"),
    "reasons": REASONS,
}
_TASK_COLUMNS = {
    "tasks": ("task", "processor", "submit", "ready", "taken", "assigned", "start", "end", "set", "status", "cores"),
    "transfers": ("object", "bytes", "source", "destination", "start", "end", "task", "cause", "count"),
    "memory": ("pool", "time", "bytes"),
    "cpu_phases": ("core", "task", "what", "start", "end"),
    "stopped": ("task", "processor", "taken", "start", "end", "cores"),
    "sets": ("set", "tasks", "first"),
    "edges": ("parent", "child"),
    "plan": ("task", "processor", "start", "end"),
    "recorded": ("row", "start", "end"),
    "reasons": REASONS,
}
_NUMBERS = frozenset(
    {
        *("asked", "ready", "taken", "assigned"),
        *("time", "node", "idle_power", "load_power", "score", "bytes", "count", "row", "first", "parent", "child"),
        *("attempt", "expected_run", "run_best", "setup_start", "setup_end", "reconfiguration_end"),
        *("transfer_start", "transfer_end"),
    }
)
_ALSO_NUMBERS = {("tasks", "cores"), ("tasks", "set"), ("stopped", "cores"), ("sets", "tasks"), ("reasons", "at")}
_COUNTS = {"count", "cores", "tasks", "first", "bytes"}
_FINITE = {"submit", "start", "end", "ready", "taken", "assigned", "time", "eligible"}


def has_numbers(name: str) -> bool:
    """Whether a column has numbers in every table: those of jobs and others.

    >>> has_numbers("attempts"), has_numbers("idle_power"), has_numbers("user")
    (True, True, False)
    """
    return name in _NUMBERS or is_number(name)


# ---------------------------------------------------------------------- jobs


def check_jobs(tables: Mapping[str, Table], processors: float) -> None:
    """Check the stored tables of a run of jobs.

    Parameters
    ----------
    tables
        by name
    processors
        of all places

    Raises
    ------
    InputError
        a column is missing, a job ends before it starts or starts before it is submitted, or an execution is of an
        unknown job, on an unknown place, or wider than the place

    >>> jobs = {"submit": [0.0], "start": [5.0], "end": [3.0], "processors": [1]}
    >>> check_jobs({"jobs": Table(jobs)}, 4)
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: jobs.end, row 1: must be >= start, 5.0, got 3.0
    """
    _check_columns(tables, _COLUMNS)
    jobs = tables["jobs"]
    _check_order("jobs", jobs, "submit", "start")
    _check_order("jobs", jobs, "start", "end")
    _check_ended(jobs)
    widest = _widest(tables)
    begun = jobs.where(np.isfinite(jobs["start"].astype(np.float64)))
    _check_most("jobs", begun["processors"], max(processors, sum(widest.values())))
    for name in ("runs", "claims"):
        if name not in tables:
            continue
        runs = tables[name]
        _check_order(name, runs, "start", "end")
        if "job" in runs:
            if "job" not in jobs:
                raise InputError("missing column job", place="jobs")
            _check_known(name, "job", runs, jobs["job"].tolist())
        if widest:
            _check_known(name, "place", runs, widest)
            of_place = np.array([widest[str(place)] for place in runs["place"].tolist()], dtype=np.float64)
            _check_most(name, runs["processors"], of_place)
    for name in ("changes", "nodes"):
        if name in tables and widest:
            _check_known(name, "place", tables[name], widest)
    _check_nodes(tables)


def check_flows(tables: Mapping[str, Table]) -> None:
    """Check the stored table of transfers between the sites of a grid.

    Raises
    ------
    InputError
        a column is missing, a site is unknown, or a number is invalid
    """
    if "flows" not in tables or "places" not in tables:
        return
    flows = tables["flows"]
    for key in ("source", "destination", "files", "bytes", "failed"):
        if key not in flows:
            raise InputError(f"missing column {key}", place="flows")
    for key in ("source", "destination"):
        known = set(map(str, tables["places"]["place"].tolist()))
        for row, site in enumerate(map(str, flows[key].tolist())):
            if site not in known:
                raise _wrong("flows", key, row, f"must be one of {len(known)} sites", site)
    for key in ("files", "bytes", "failed"):
        values = _floats(flows[key])
        wrong = np.flatnonzero(~(values >= 0))
        if len(wrong):
            raise _wrong("flows", key, int(wrong[0]), "must be a number >= 0", float(values[wrong[0]]))


def _check_ended(jobs: Table) -> None:
    """Check that jobs that ended well have a start, an end, a wait and a run time."""
    ended = np.isin(jobs["status"], ENDED_WELL) if "status" in jobs else np.isfinite(_floats(jobs["end"]))
    for key in ("submit", "start", "end", "wait", "run"):
        values = _floats(jobs[key]) if key in jobs else np.zeros(len(jobs))
        accepted = "must be >= 0 where the status is completed or timeout" if key in ("wait", "run") else _KNOWN
        least = 0.0 if key in ("wait", "run") else -np.inf
        wrong = np.flatnonzero(ended & ~(values >= least))
        if len(wrong):
            raise _wrong("jobs", key, int(wrong[0]), accepted, float(values[wrong[0]]))


_KNOWN = "must be known where the status is completed or timeout"


def _widest(tables: Mapping[str, Table]) -> dict[str, float]:
    """Return the most processors that each place ever has."""
    found: dict[str, float] = {}
    for name in ("places", "changes"):
        if name in tables and "places" in tables:
            places, sizes = map(str, tables[name]["place"].tolist()), tables[name]["processors"].tolist()
            for place, size in zip(places, sizes, strict=True):
                if name == "places" or place in found:
                    found[place] = max(found.get(place, 0.0), size)
    return found


def _check_nodes(tables: Mapping[str, Table]) -> None:
    """Check that lists of nodes hold numbers of nodes, and other lists as many values as there are nodes."""
    for name in ("runs", "claims", "changes"):
        table = tables.get(name)
        for key in () if table is None else (key for key in LISTS if key in table):
            assert table is not None
            for row, values in enumerate(table[key].tolist()):
                if values is None or values == "":
                    continue
                amount = _is_devices if key == "devices" else _is_amount
                if not isinstance(values, tuple) or not all(map(amount, values)):
                    raise _wrong(name, key, row, "must be a list of numbers >= 0", values)
                if key in ("nodes", "down") and not all(isinstance(each, int) for each in values):
                    raise _wrong(name, key, row, "must be a list of whole numbers", values)
                if key not in ("nodes", "down") and len(values) != len(table["nodes"][row] or ()):
                    raise _wrong(name, key, row, "must be one number for each of the nodes", values)


def _is_devices(value: object) -> bool:
    """Whether it is the devices that are held of a node: (number, thousandths) of each."""
    if not isinstance(value, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return False
    return all(isinstance(each, int) and _is_amount(each) for pair in value for each in pair)


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63


# ---------------------------------------------------------------------- tasks


def check_tasks(tables: Mapping[str, Table], processors: Iterable[str], kinds: int) -> None:
    """Check the stored tables of a run of tasks.

    Parameters
    ----------
    tables
        by name
    processors
        the names of the processors of the machine
    kinds
        the number of the machine's kinds of processors

    Raises
    ------
    InputError
        a table or a column is missing, a task ends before it starts, a task runs on an unknown processor, or rows of
        other tables are of unknown tasks
    """
    needed = ("tasks", "memory", "sets", "edges", "runs")
    for name in needed:
        if name not in tables:
            raise InputError(f"missing table of {name}", place=name)
    _check_columns(tables, _TASK_COLUMNS)
    tasks = tables["tasks"]
    count = len(tasks)
    known = {"", *processors}
    for name in ("tasks", "stopped", "plan"):
        if name in tables:
            _check_order(name, tables[name], "start", "end")
            _check_known(name, "processor", tables[name], known)
    _check_order("tasks", tasks, "submit", "start")
    for name in ("transfers", "cpu_phases", "recorded"):
        if name in tables:
            _check_order(name, tables[name], "start", "end")
    for name, keys in (("edges", ("parent", "child")), ("recorded", ("row",)), ("sets", ("first",))):
        for key in keys if name in tables else ():
            _check_rows(name, key, tables[name][key], count)
    _check_rows("tasks", "set", tasks["set"], len(tables["sets"]))
    _check_sets(tables["sets"], count)
    if (len(tables["runs"]), len(tables["runs"].names)) != (count, kinds):
        found = f"{len(tables['runs'])} and {len(tables['runs'].names)}"
        raise InputError(f"must have {count} rows and {kinds} columns, got {found}", place="runs")


def _check_sets(sets: Table, tasks: int) -> None:
    ahead = 0
    for row, (first, count) in enumerate(zip(sets["first"].tolist(), sets["tasks"].tolist(), strict=True)):
        if first != ahead or not (isinstance(count, int) and count >= 0):
            raise _wrong("sets", "first", row, f"must be {ahead}, as the sets follow each other", first)
        ahead += count
    if len(sets) and ahead != tasks:
        raise InputError(f"must be {tasks} in all, got {ahead}", place="sets.tasks")


# ---------------------------------------------------------------------- one check each


def _check_columns(tables: Mapping[str, Table], columns: Mapping[str, tuple[str, ...]]) -> None:
    for name, needed in columns.items():
        for key in needed if name in tables else ():
            if key not in tables[name]:
                raise InputError(f"missing column {key}", place=name)
            if has_numbers(key) or (name, key) in _ALSO_NUMBERS:
                _check_numbers(name, key, tables[name][key])


def _check_numbers(name: str, key: str, column: NDArray[Any]) -> None:
    """Check that a column has numbers; none is infinite, and counts are whole numbers of 64 bits."""
    if column.dtype.kind not in "fiub":
        if not set(column.tolist()) <= {""}:
            raise InputError("must be numbers", place=f"{name}.{key}")
        return
    values = column.astype(np.float64)
    wrong = np.isinf(values) if key in _FINITE else np.zeros(len(values), dtype=bool)
    if key in _COUNTS:
        wrong |= ~((values >= 0) & (values < 2**63))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        accepted = "must be a number from 0 to 2^63" if key in _COUNTS else "must be a finite number"
        raise _wrong(name, key, row, accepted, float(values[row]))


def _check_order(name: str, table: Table, before: str, after: str) -> None:
    """Check that no row has an instant before another one; nan: not reached."""
    first, second = (_floats(table[key]) for key in (before, after))
    wrong = np.flatnonzero(second < first)
    if len(wrong):
        row = int(wrong[0])
        raise _wrong(name, after, row, f"must be >= {before}, {float(first[row])}", float(second[row]))


def _check_most(name: str, processors: NDArray[Any], most: float | NDArray[np.float64]) -> None:
    """Check numbers of processors: from 0 to the capacity."""
    given = _floats(processors)
    bound = np.broadcast_to(np.asarray(most, dtype=np.float64), given.shape)
    wrong = np.flatnonzero(~((given >= 0) & (given <= bound)))
    if len(wrong):
        row = int(wrong[0])
        raise _wrong(name, "processors", row, f"must be >= 0 and <= {bound[row]:g}, the capacity", float(given[row]))


def _check_known(name: str, key: str, table: Table, known: Iterable[object]) -> None:
    names = {str(each) for each in known}  # a CSV file has no types
    for row, value in enumerate(table[key].tolist()):
        if str(value) not in names:
            raise _wrong(name, key, row, f"must be a known {key}", value)


def _check_rows(name: str, key: str, rows: NDArray[Any], count: int) -> None:
    for row, value in enumerate(rows.tolist()):
        if value != value or not 0 <= value < count or value != int(value):
            raise _wrong(name, key, row, f"must be a row from 0 to {count - 1}", value)


def _floats(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as numbers; a column without values is read as text."""
    return column.astype(np.float64) if column.dtype.kind in "fiub" else np.full(len(column), np.nan)


def _wrong(name: str, key: str, row: int, accepted: str, found: object) -> InputError:
    return InputError(f"{accepted}, got {clipped(shown(found))}", place=f"{name}.{key}, row {row + 1}")
