"""The rows of a log: which can never run, and the job that each of the others is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.work.checkpoint import CHECKPOINT_COLUMNS, checkpoint_of
from simmodel.work.elastic import Amdahl, Elastic
from simmodel.work.job import Dependency, Job, partitions_in
from simmodel.work.task import SHARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.table import Table

__all__ = [
    "distinct_ids",
    "elastics_of",
    "jobs_of_rows",
    "never_run",
    "processors_of",
    "runnable_jobs",
    "shares_in",
]

_DETAILS = ("preceding", "priority", "cancel")
_SHAPES = ("nodes", "cores_per_node", "gpus_per_node", "memory_per_node")
_ELASTIC = ("minimum", "maximum", "serial")
_USED = {
    *("job", "requested", "think_time", "user", "group", "queue", "partition"),
    *(*_DETAILS, *_SHAPES, *_ELASTIC, *CHECKPOINT_COLUMNS),
}
_CHUNK = 1 << 20


def processors_of(table: Table) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the processors of each job, and for which the requested ones are missing and the allocated ones used."""
    allocated = np.asarray(table["processors"], dtype=np.int64)
    if "requested_processors" not in table:
        return allocated, np.zeros(len(allocated), dtype=bool)
    asked = np.asarray(table["requested_processors"], dtype=np.int64)
    return np.where(asked > 0, asked, allocated), (asked <= 0) & (allocated > 0)


def shares_in(table: Table) -> list[str]:
    """Return the names of the storages and links of which jobs of a log hold shares: those of ``bandwidth_NAME``."""
    return [name.removeprefix(SHARE) for name in table.names if name.startswith(SHARE)]


def never_run(
    table: Table, processors: NDArray[np.int64], *, linked: bool = True
) -> tuple[tuple[str, NDArray[np.bool_]], ...]:
    """Return the reasons for which jobs can never run on any machine, each with the rows that it holds for.

    ``linked``: whether the column of preceding jobs counts.
    """
    return (
        ("run time missing", ~(table["run"] >= 0)),
        ("submission time missing", ~np.isfinite(table["submit"])),
        ("no processors", processors <= 0),
        ("circular preceding jobs", _circular(table) if linked else np.zeros(len(table), dtype=bool)),
    )


def distinct_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return job ids of which none occurs twice, and how many of them are new.

    >>> distinct_ids(np.array([7, 8, 7]))
    (array([7, 8, 9]), 1)
    """
    again = _repeated(ids)
    count = len(again)
    if not count:
        return ids, 0
    renamed = ids.copy()
    if ids.dtype.kind in "iu":
        renamed[again] = int(ids.max()) + 1 + np.arange(count)
    else:
        taken = set(ids.tolist())
        renamed = renamed.astype(object)
        for row in again.tolist():
            number = 2
            while (name := f"{ids[row]}.{number}") in taken:
                number += 1
            taken.add(name)
            renamed[row] = name
    return renamed, count


def _circular(table: Table) -> NDArray[np.bool_]:
    """Return whether each job of a log precedes itself, directly or through the jobs that precede it.

    >>> from simmodel.work.table import Table
    >>> _circular(Table({"job": np.array([1, 2, 3]), "preceding": np.array([2, 1, 1])}))
    array([ True,  True, False])
    """
    circular = np.zeros(len(table), dtype=bool)
    if "preceding" not in table or "job" not in table:
        return circular
    if table["preceding"].dtype.kind in "iu" and (table["preceding"] == -1).all():
        return circular  # as in most logs
    jobs, before = table["job"].tolist(), table["preceding"].tolist()
    row_of = {job: row for row, job in enumerate(jobs)}
    ahead = {
        row: row_of[other] for row, other in enumerate(before) if other not in (-1, "", jobs[row]) and other in row_of
    }
    seen: set[int] = set()
    for first in ahead:
        path: dict[int, int] = {}
        row: int | None = first
        while row is not None and row not in seen:
            seen.add(row)
            path[row] = len(path)
            row = ahead.get(row)
        if row in path:
            circular[list(path)[path[row] :]] = True
    return circular


def _repeated(ids: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the rows whose id occurred in an earlier row."""
    if ids.dtype.kind not in "iu":
        seen: set[object] = set()
        found_again = []
        for row, name in enumerate(ids.tolist()):
            if name in seen:
                found_again.append(row)
            seen.add(name)
        return np.array(found_again, dtype=np.intp)
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):  # type: ignore[operator]
        return np.zeros(0, dtype=np.intp)
    least, most = int(ids.min()), int(ids.max())
    if most - least > 64 * len(ids) + 1024:  # too sparse for a bit per number
        _, first = np.unique(ids, return_index=True)
        return np.setdiff1d(np.arange(len(ids)), first)
    met = np.zeros(most - least + 1, dtype=bool)
    found = []
    for begin in range(0, len(ids), _CHUNK):
        part = ids[begin : begin + _CHUNK].astype(np.int64) - least
        _, first = np.unique(part, return_index=True)
        new = np.zeros(len(part), dtype=bool)
        new[first] = ~met[part[first]]
        met[part] = True
        found.append(np.flatnonzero(~new) + begin)
    return np.concatenate(found)


def jobs_of_rows(
    table: Table, rows: Iterable[int], given: NDArray[np.int64], repaired: Counter[str], on_nodes: bool = True
) -> Iterator[tuple[int, Job]]:
    """Yield (row, job) for rows that can run; requests of nodes only if ``on_nodes``.

    ``given``: the processors of each row; ``repaired``: counts of the repairs.
    """
    columns = [(name, table[name].tolist()) for name in table.names if name in _USED]
    shares = [(name, table[f"{SHARE}{name}"].tolist()) for name in shares_in(table)]
    names, run, submit = set(table["job"].tolist()), table["run"].tolist(), table["submit"].tolist()
    processors = given.tolist()
    saves = any(name in table for name in CHECKPOINT_COLUMNS)
    for row in rows:
        known: dict[str, Any] = {}
        for name, column in columns:
            value = column[row]
            if value is not None and value == value and value != -1:
                known[name] = value
        dependencies: tuple[Dependency, ...] = ()
        preceding = known.get("preceding")
        if preceding:
            if preceding in names and preceding != known.get("job"):
                dependencies = (Dependency(preceding, think_time=max(0.0, known.get("think_time", 0.0))),)
            else:
                repaired["preceding job not in the log: dependency ignored"] += 1
        requested = known.get("requested", 0.0)
        asked: dict[str, Any] = {name: known.get(name) for name in ("user", "group", "queue")}
        asked |= partitions_in(known.get("partition"))
        asked["processors"] = int(processors[row])
        if on_nodes:
            for name in ("nodes", "cores_per_node", "gpus_per_node"):
                if known.get(name, 0) > 0:
                    asked[name] = ceil(known[name])
                    if asked[name] != known[name]:
                        repaired[f"{name}: shares rounded up"] += 1
            if "nodes" in asked and "cores_per_node" not in asked:
                asked["cores_per_node"] = -(-asked["processors"] // asked["nodes"])
            asked["memory_per_node"] = max(0.0, known.get("memory_per_node", 0.0))
        if known.get("maximum", 0) > 0 and not (_ONE_SIZE & asked.keys() or asked.get("memory_per_node")):
            asked["elastic"] = _elastic(asked["processors"], *map(known.get, _ELASTIC))
        if shares:
            asked["bandwidth"] = {name: column[row] for name, column in shares if column[row] > 0}
        yield (
            row,
            Job(
                id=known["job"] if known.get("job", "") != "" else f"row {row + 1}",
                submit=max(0.0, submit[row]),
                run=run[row],
                requested=requested if requested > 0 else None,
                dependencies=dependencies,
                priority=known.get("priority", 0.0),
                cancel=known.get("cancel"),
                checkpoint=checkpoint_of(known) if saves else None,
                **asked,
            ),
        )


_ONE_SIZE = {"nodes", "gpus_per_node", "partitions"}  # requests beside which a job has one size


@lru_cache(maxsize=4096)
def _elastic(processors: int, minimum: float | None, maximum: float, serial: float | None) -> Elastic:
    """Return the sizes of a job of a log, which always include the one that it requests; equal ones are shared."""
    least = processors if minimum is None else min(processors, max(1, ceil(minimum)))
    most = max(processors, int(maximum))
    return Elastic(least, processors, most, speedup=Amdahl(0.0 if serial is None else float(serial)))


def elastics_of(table: Table, rows: NDArray[np.intp], processors: NDArray[np.int64]) -> list[Elastic | None]:
    """Return the sizes of the jobs in some rows of a log that request processors only; ``None``: it has one size.

    ``processors``: requested by each job of the log.
    """
    found: list[Elastic | None] = [None] * len(rows)
    if "maximum" not in table:
        return found
    most = np.nan_to_num(np.asarray(table["maximum"], dtype=np.float64)[rows], nan=-1.0)
    least, serial = (_values(table, name, rows) for name in ("minimum", "serial"))
    named = table["partition"][rows].tolist() if "partition" in table else None
    for i in np.flatnonzero(most > 0).tolist():
        if named is None or "partitions" not in partitions_in(named[i]):
            found[i] = _elastic(int(processors[rows[i]]), least[i], float(most[i]), serial[i])
    return found


def _values(table: Table, name: str, rows: NDArray[np.intp]) -> list[float | None]:
    """Return a column of numbers in some rows; ``None``: missing."""
    if name not in table:
        return [None] * len(rows)
    values = np.asarray(table[name], dtype=np.float64)[rows].tolist()
    return [None if value != value or value == -1 else value for value in values]


def _named(cell: Any) -> bool:
    return cell is not None and cell == cell and cell not in ("", -1)


def runnable_jobs(table: Table, name: str, *, on_nodes: bool, strict: bool) -> list[Job]:
    """Return the jobs of a log that can run, in order of its rows: see :meth:`Workload.jobs`."""
    ids, renamed = distinct_ids(table["job"])
    if renamed:
        table = table.with_columns(job=ids)
    processors, _ = processors_of(table)
    bad = np.zeros(len(table), dtype=bool)
    for reason, mask in never_run(table, processors):
        if strict and mask.any():
            first, count = ids[int(mask.argmax())], int(mask.sum())
            raise InputError(
                f"{reason}: such a job never runs ({count:,} in {name}; jobs(strict=False) leaves them out)",
                place=f"job {first}",
            )
        bad |= mask
    rows = np.flatnonzero(~bad).tolist()
    jobs = [job for _, job in jobs_of_rows(table, rows, processors, Counter(), on_nodes)]
    if "site" in table:
        sites = [str(site) if _named(site) else None for site in table["site"][rows].tolist()]
        jobs = [attrs.evolve(job, site=site) for job, site in zip(jobs, sites, strict=True)]
    if len(jobs) == len(table):
        return jobs
    kept = {job.id for job in jobs}
    return [
        attrs.evolve(job, dependencies=[each for each in job.dependencies if each.job in kept])
        if any(each.job not in kept for each in job.dependencies)
        else job
        for job in jobs
    ]
