"""Schedules that other simulators wrote: CQSim's ``.rst``, Batsim's ``jobs.csv``, our own CSV, and logs with waits."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from simmodel.errors import InputError, shown
from simmodel.loading import Source, read_lines, reader
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_schedule"]

_RST = 9  # cells: job; processors; processors; requested; run; wait; submit; start; end
_NAMES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "job_id", "jobid", "job_number", "id"),
    "start": ("start", "starting_time", "start_time", "started"),
    "end": ("end", "finish_time", "end_time", "completion_time", "ended"),
    "submit": ("submit", "submission_time", "submit_time", "queued_time"),
    "wait": ("wait", "waiting_time", "wait_time"),
    "run": ("run", "execution_time", "run_time", "runtime"),
}
"""Our column, and its names: here, in Batsim's ``jobs.csv``, and in other tables."""


@reader
def read_schedule(source: Source, names: Mapping[str, str] | None = None) -> Table:
    """Read the starts and ends of jobs from a file that any simulator wrote.

    A CSV file with a header needs the job and its start (or submission and wait); its end (or run time) is optional.
    Known names of columns are those of results here and of Batsim's ``jobs.csv``, case does not matter; ``names`` maps
    others. A file of nine numbers a line, separated by ``;``, is CQSim's ``.rst``. A log in SWF is a schedule by its
    recorded waits.

    Parameters
    ----------
    source
        a path, also of a gzip file, or an open file
    names
        ``job``, ``start``, ``end``, ``submit``, ``wait`` or ``run`` to the column's name in the file

    Returns
    -------
    Table
        columns ``job``, ``start`` (s), ``end`` (s, nan: unknown) and, if the file has it, ``submit`` (s)

    Raises
    ------
    InputError
        the file cannot be read, is of none of these formats, or has a cell that is no number

    >>> import io
    >>> read_schedule(io.StringIO("5;128;128;2400.0;2359.0;10.0;1775.0;1785.0;4144.0\\n"))["start"]
    array([1785.])
    >>> file = io.StringIO("job_id,submission_time,starting_time,finish_time\\nw0!1,0,5,15\\n")
    >>> read_schedule(file)["job"]
    array(['w0!1'], dtype='<U4')
    """
    found, origin = read_lines(source)
    lines = list(found)
    rows = [(number, line) for number, line in lines if line.strip() and not line.startswith(";")]
    if not rows:
        raise InputError("must have jobs, got an empty file", source=origin)
    first = rows[0][1]
    if any(line.startswith(";") for _, line in lines[:1]) or len(first.split()) == 18:
        return _of_swf(rows, origin)
    if first.count(";") == _RST - 1 and not any(each.isalpha() for each in first):
        cells = [(number, line.split(";")) for number, line in rows]
        return _table({"job": 0, "submit": 6, "start": 7, "end": 8}, cells, _RST, origin)
    return _of_csv(rows, names or {}, origin)


def _of_swf(rows: list[tuple[int, str]], origin: str) -> Table:
    found = _table({"job": 0, "submit": 1, "wait": 2, "run": 3}, [(n, line.split()) for n, line in rows], 18, origin)
    return found.where(~np.isnan(found["start"]))


def _of_csv(rows: list[tuple[int, str]], names: Mapping[str, str], origin: str) -> Table:
    delimiter = max(",;|\t", key=rows[0][1].count)
    header = [cell.strip() for cell in next(csv.reader([rows[0][1]], delimiter=delimiter))]
    lower = [cell.lower() for cell in header]
    where: dict[str, int] = {}
    for column, usual in _NAMES.items():
        named = names.get(column)
        if named is not None and named not in header:
            raise InputError(f"missing column {shown(named)}; columns: {', '.join(header)}", source=origin)
        candidates = [header.index(named)] if named is not None else [lower.index(n) for n in usual if n in lower]
        if candidates:
            where[column] = candidates[0]
    if "job" not in where or not ("start" in where or {"submit", "wait"} <= where.keys()):
        lacking = "job" if "job" not in where else "start (or submit and wait)"
        raise InputError(f"missing column {lacking}; columns: {', '.join(map(shown, header[:20]))}", source=origin)
    try:
        cells = [(n, row) for n, line in rows[1:] for row in csv.reader([line], delimiter=delimiter)]
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", source=origin) from None
    return _table(where, cells, len(header), origin)


def _table(where: Mapping[str, int], rows: list[tuple[int, list[str]]], width: int, origin: str) -> Table:
    """Return the table of a schedule from the cells of its rows."""
    if not rows:
        raise InputError("must have jobs, got none", source=origin)
    columns: dict[str, list[float]] = {name: [] for name in where if name != "job"}
    jobs: list[str] = []
    for number, cells in rows:
        if len(cells) != width:
            raise InputError(f"must have {width} cells, got {len(cells)}", source=origin, place=f"line {number}")
        jobs.append(cells[where["job"]].strip())
        for name, into in columns.items():
            into.append(_seconds(cells[where[name]], name, number, origin))
    found = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    start = found["start"] if "start" in found else found["submit"] + np.where(found["wait"] < 0, np.nan, found["wait"])
    end = found.get("end", start + found["run"] if "run" in found else np.full(len(jobs), np.nan))
    columns_found = {"job": _jobs(jobs), "start": start, "end": end}
    return Table(columns_found | {name: found[name] for name in ("submit",) if name in found})


def _seconds(cell: str, name: str, number: int, origin: str) -> float:
    text = cell.strip()
    try:
        value = float(text) if text else float("nan")
    except ValueError:
        value = float("inf")
    if value in (float("inf"), float("-inf")):
        raise InputError(f"{name}: must be seconds, got {shown(cell)}", source=origin, place=f"line {number}")
    return value


def _jobs(names: list[str]) -> NDArray[np.generic]:
    if all(name.isascii() and name.isdigit() for name in names):
        return np.array([int(name) for name in names])
    return np.array(names)
