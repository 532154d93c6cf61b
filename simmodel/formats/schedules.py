"""Schedules that other simulators wrote: CQSim, Batsim, ElastiSim, AccaSim, our own CSV, and logs with waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from simmodel.formats.tables import csv_rows, taken
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, check_count, read_lines, reader
from simmodel.platform.node_lists import node_names
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_schedule"]

_Row: TypeAlias = "tuple[int, list[str]]"
"""The number of a line, and its cells."""
_RST = 9  # cells: job; processors; processors; requested; run; wait; submit; start; end
_NAMES: Mapping[str, tuple[str, ...]] = {
    "job": ("job", "job_id", "jobid", "job_number", "id"),
    "start": ("start", "starting_time", "start_time", "started"),
    "end": ("end", "finish_time", "end_time", "completion_time", "ended"),
    "submit": ("submit", "submission_time", "submit_time", "queued_time"),
    "wait": ("wait", "waiting_time", "wait_time"),
    "run": ("run", "execution_time", "run_time", "runtime", "makespan"),
    "place": ("place",),
    "nodes": ("nodes", "allocated_resources", "allocated_processors", "node_list", "nodelist", "assigned_nodes"),
    "cores": ("cores",),
    "gpus": ("gpus",),
    "memory": ("memory",),
    "status": ("status", "final_state", "state", "success"),
}
"""Our column, and its names: here, in Batsim's ``jobs.csv``, in ElastiSim's job statistics; _ stands for a space."""
_TIMES = ("start", "end", "submit", "wait", "run")
_PARTS = ("cores", "gpus", "memory")
_DATE = r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
_ACCASIM = re.compile(rf"([^;]+);.*?;?{_DATE}__([\d;.#]*)__{_DATE};{_DATE};.*")
"""A line of AccaSim: job; ...; submission, nodes with their resources, start; end; ..., in local time."""
_NUMBERS = re.compile(r"\d{1,9}(-\d{1,9})?")


@reader
def read_schedule(
    source: Source, names: Mapping[str, str] | None = None, *, strict: bool | None = None, report: Report | None = None
) -> Table:
    """Read the starts and ends of jobs from a file that any simulator wrote.

    A CSV file with a header needs the job and its start (or submission and wait); its end (or run time) and its nodes
    are optional. Known names of columns are those of results here (``jobs.csv`` and ``runs.csv``), of Batsim's
    ``jobs.csv`` and of ElastiSim's job statistics; case does not matter; ``names`` maps others. Nodes are written
    ``[0, 1]``, ``0-3 5`` or ``n[1-4],login``; a column ``nodes`` of plain numbers is a count, and ignored.

    A file of nine numbers a line, separated by ``;``, is CQSim's ``.rst``. Lines with ``__`` between submission, nodes
    and start are AccaSim's: their nodes are not read, and their dates are taken as UTC. A log in SWF is a schedule by
    its recorded waits.

    Parameters
    ----------
    source
        a path, also of a gzip file, or an open file
    names
        ``job``, ``start``, ``end``, ``submit``, ``wait``, ``run``, ``nodes`` or ``place`` to the column's name in the
        file
    strict
        whether a line that cannot be read is an error, or else passed over and counted in ``report`` (default: as
        :func:`~simmodel.foundation.loading.reading` says)
    report
        where what is passed over is counted

    Returns
    -------
    Table
        columns ``job``, ``start`` (s, nan: none), ``end`` (s, nan: unknown) and, if the file has them, ``submit`` (s),
        ``status``, which says why a job has no start, ``place``,
        ``nodes`` (tuples of numbers or names), and the ``cores, gpus, memory`` held of each

    Raises
    ------
    InputError
        the file cannot be read, is of none of these formats, or has a cell that is not a number

    >>> import io
    >>> read_schedule(io.StringIO("5;128;128;2400.0;2359.0;10.0;1775.0;1785.0;4144.0\\n"))["start"]
    array([1785.])
    >>> file = io.StringIO("job_id,starting_time,finish_time,allocated_resources\\nw0!1,5,15,0-2 5\\n")
    >>> read_schedule(file)["nodes"][0]
    (0, 1, 2, 5)
    """
    found, origin = read_lines(source)
    lines = list(found)
    rows = [(number, line) for number, line in lines if line.strip() and not line.startswith(";")]
    if not rows:
        raise InputError("must have jobs, got an empty file", source=origin)
    first = rows[0][1]
    bad = _Bad(origin, strict, Report() if report is None else report)
    if any(line.startswith(";") for _, line in lines[:1]) or len(first.split()) == 18:
        return _of_swf(rows, bad)
    if _ACCASIM.fullmatch(first.strip()):
        return _of_accasim(rows, bad)
    if first.count(";") == _RST - 1 and not any(each.isalpha() for each in first):
        cells = [(number, line.split(";")) for number, line in rows]
        where = {"job": 0, "submit": 6, "start": 7, "end": 8}
        return _table(where, bad.sound(cells, where, _RST), origin)
    return _of_csv(rows, names or {}, bad)


class _Bad(NamedTuple):
    """What becomes of the lines of a file that cannot be read."""

    origin: str
    strict: bool | None
    report: Report

    def read(self, rows: Iterable[_Row], take: Callable[[_Row], _Row]) -> list[_Row]:
        """Return what ``take`` makes of the rows; those for which it raises ``ValueError`` are refused or counted."""
        return list(taken(((row[0], row) for row in rows), take, self.origin, self.report, strict=self.strict))

    def sound(self, rows: Iterable[_Row], where: Mapping[str, int], width: int) -> list[_Row]:
        """Return the rows of this many cells whose times are numbers."""

        def take(row: _Row) -> _Row:
            if len(row[1]) != width:
                raise InputError(f"must have {width} cells, got {len(row[1])}")
            for name in where.keys() - {"job"}:
                _seconds(row[1][where[name]], name)
            return row

        return self.read(rows, take)


def _of_swf(rows: list[tuple[int, str]], bad: _Bad) -> Table:
    where = {"job": 0, "submit": 1, "wait": 2, "run": 3}
    cells = bad.sound([(number, line.split()) for number, line in rows], where, 18)
    found = _table(where, cells, bad.origin)
    status = np.array([line[10] for _, line in cells])
    gone = (status == "5") & ~(found["end"] > found["start"])  # cancelled while they waited
    start, end = np.where(gone, np.nan, found["start"]), np.where(gone, found["start"], found["end"])
    words = np.where(gone, "cancelled", "")
    return found.with_columns(start=start, end=end, status=words).where(gone | ~np.isnan(start))


def _of_accasim(rows: list[tuple[int, str]], bad: _Bad) -> Table:
    def take(row: _Row) -> _Row:
        number, (line,) = row
        found = _ACCASIM.fullmatch(line.strip())
        if found is None:
            raise InputError(f"must be job;...;submission__nodes__start;end;..., got {shown(line)}")
        job, submit, _, start, end = found.groups()
        try:
            seconds = [
                str(datetime.fromisoformat(each).replace(tzinfo=UTC).timestamp()) for each in (submit, start, end)
            ]
        except ValueError as error:
            raise InputError(f"invalid date: {error}") from None
        return number, [job, *seconds]

    cells = bad.read([(number, [line]) for number, line in rows], take)
    return _table({"job": 0, "submit": 1, "start": 2, "end": 3}, cells, bad.origin)


def _of_csv(rows: list[tuple[int, str]], names: Mapping[str, str], bad: _Bad) -> Table:
    origin = bad.origin
    delimiter = max(",;|\t", key=rows[0][1].count)
    lines = [(n, cells) for n, line in rows for _, cells in csv_rows([line], origin, delimiter, n)]
    header, cells = [cell.strip() for cell in lines[0][1]], lines[1:]
    lower = [cell.lower().replace(" ", "_") for cell in header]
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
    is_count = "nodes" not in names and "nodes" in where and lower[where["nodes"]] == "nodes"
    basic = {name: place for name, place in where.items() if name in ("job", *_TIMES)}
    cells = bad.sound(cells, basic, len(header))
    texts = [row[where["nodes"]].strip() for _, row in cells] if "nodes" in where else []
    on_nodes = any(texts) and not (is_count and all(text.isdigit() or not text for text in texts))

    nodes: list[tuple[int | str, ...]] = []

    def take(row: _Row) -> _Row:
        nodes.append(_nodes(row[1][where["nodes"]].strip()))
        return row

    if on_nodes:
        cells = bad.read(cells, take)
    return _table(basic, cells, origin).with_columns(**_on_nodes(where, cells, nodes if on_nodes else None))


def _on_nodes(where: Mapping[str, int], rows: list[_Row], nodes: list[tuple[int | str, ...]] | None) -> dict[str, Any]:
    """Return the columns that say where jobs run; ``nodes``: of each row, if they are named."""
    columns: dict[str, Any] = {}
    if "status" in where:
        columns["status"] = _objects([cells[where["status"]].strip() for _, cells in rows])
    if "place" in where:
        columns["place"] = _objects([cells[where["place"]].strip() or None for _, cells in rows])
    if nodes is None:
        return columns
    columns["nodes"] = _objects(nodes)
    if all(name in where for name in _PARTS):
        for name in _PARTS:
            columns[name] = _objects([_amounts(cells[where[name]]) for _, cells in rows])
    return columns


def _objects(values: list[Any]) -> NDArray[Any]:
    column = np.full(len(values), None, dtype=object)
    column[:] = values
    return column


def _nodes(text: str) -> tuple[int | str, ...]:
    """Return the nodes of a cell: numbers and ranges of numbers, or names in short."""
    if text in ("", "[]"):
        return ()
    parts = text.removeprefix("[").removesuffix("]").replace(",", " ").split()
    try:
        if not all(_NUMBERS.fullmatch(part) for part in parts):
            return tuple(node_names(text))
        ends = [tuple(map(int, part.split("-"))) for part in parts]
        check_count("nodes", sum(last[-1] - last[0] + 1 for last in ends))
        return tuple(node for last in ends for node in range(last[0], last[-1] + 1))
    except InputError as error:
        raise InputError(f"nodes: {error.message}") from None


def _amounts(text: str) -> tuple[float, ...] | None:
    """Return numbers such as ``[2, 1]``; ``None``: the cell is something else."""
    try:
        return tuple(
            float(part) for part in text.strip().removeprefix("[").removesuffix("]").split(",") if part.strip()
        )
    except ValueError:
        return None


def _table(where: Mapping[str, int], rows: list[_Row], origin: str) -> Table:
    """Return the table of a schedule from the cells of its rows."""
    if not rows:
        raise InputError("must have jobs, got none", source=origin)
    columns: dict[str, list[float]] = {name: [] for name in where if name != "job"}
    jobs: list[str] = []
    for _, cells in rows:
        jobs.append(cells[where["job"]].strip())
        for name, into in columns.items():
            into.append(_seconds(cells[where[name]], name))
    found = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    for name in ("start", "end", "wait", "run"):  # -1: unknown
        if name in found:
            found[name] = np.where(found[name] == -1, np.nan, found[name])
    start = found["start"] if "start" in found else found["submit"] + np.where(found["wait"] < 0, np.nan, found["wait"])
    end = found.get("end", start + found["run"] if "run" in found else np.full(len(jobs), np.nan))
    columns_found = {"job": _jobs(jobs), "start": start, "end": end}
    return Table(columns_found | {name: found[name] for name in ("submit",) if name in found})


def _seconds(cell: str, name: str) -> float:
    text = cell.strip()
    try:
        value = float(text) if text else float("nan")
    except ValueError:
        value = float("inf")
    if value in (float("inf"), float("-inf")):
        raise InputError(f"{name}: must be seconds, got {shown(cell)}")
    return value


def _jobs(names: list[str]) -> NDArray[np.generic]:
    if all(name.isascii() and name.isdigit() and len(name) <= 18 for name in names):
        return np.array([int(name) for name in names])
    return np.array(names)
