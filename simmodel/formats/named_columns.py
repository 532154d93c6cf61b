"""Jobs from a custom table: a pandas DataFrame, a mapping of columns or a CSV file with a header line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.tables import (
    AMBIGUOUS,
    csv_rows,
    duration,
    in_order,
    limit,
    moments,
    names,
    of_nodes,
    repeated,
    whole,
    zone,
)
from simmodel.foundation.errors import BadLine, InputError, NoJobs, shown, unknown
from simmodel.foundation.loading import Source, is_strict, read_lines, reader, title_of
from simmodel.foundation.units import parse_quantity
from simmodel.work.measured import power_cell, power_column
from simmodel.work.node_chunks import chunk_text, chunks_of
from simmodel.work.outcomes import ACCEPTED, STATUS_OF, leave_queue, outcome_in
from simmodel.work.table import Columns, Table, cell_text
from simmodel.work.task import SHARE
from simmodel.work.workload import COLUMNS, Report, Workload

if TYPE_CHECKING:
    from datetime import tzinfo

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

__all__ = ["read_columns"]

Cell = float | str | datetime | timedelta | None
_ENDS = ("status", "outcome")
_INSTANTS = frozenset({"submit", "start", "end", "cancel"})
_SAVES = ("checkpoint_interval", "checkpoint_cost", "checkpoint_restart")
_DURATIONS = frozenset({"wait", "run", "requested", "cpu_time", "think_time", "slack", *_SAVES})
_BYTES = frozenset({"used_memory", "requested_memory", "memory_per_node", "checkpoint_size"})
_NAMES = frozenset({"job", "user", "group", "executable", "queue", "partition", "preceding", "checkpoint_to", "gpu"})
_KNOWN = (*COLUMNS, "start", "end", "gpus")


@reader
def read_columns(
    source: pd.DataFrame | Columns | Source,
    names: Mapping[str, str] | None = None,
    *,
    processors: int | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    timezone: str | None = None,
    strict: bool | None = None,
) -> Workload:
    """Read jobs from columns with custom names.

    Columns named as in :data:`simmodel.work.workload.COLUMNS`, in any case, are used as they are; ``names`` maps the
    others. Required
    are ``submit``, and ``run`` or both ``start`` and ``end`` (from which ``run`` and ``wait`` are computed);
    ``processors`` defaults to 1. Instants are seconds or timestamps; durations are seconds, ``H:MM:SS`` or time deltas.
    ``gpus`` is the GPUs of a job in all, on its ``nodes``, of which there is one by default; ``gpus_per_node`` may be a
    share of one. Empty cells are unknown values; ``requested`` may be ``UNLIMITED``. Other columns are ignored.

    Parameters
    ----------
    source
        a DataFrame, a mapping of names to columns, or a CSV file (a path, also of a gzip file, or an open file)
    names
        simmodel's name to the column's name
    processors
        the size of the machine, if known
    name
        the workload's name; default: that of the file
    delimiter
        the separator of a CSV file; default: the most frequent of ``, ; | tab`` in its first line
    timezone
        the zone of timestamps without one, such as ``"Europe/Paris"``; default: that of
        :func:`~simmodel.foundation.loading.reading`, or UTC. Of two instants that a change of the clock shows alike,
        those are taken by which a job starts after its submission and ends after its start; where both do, the earlier,
        which the report counts
    strict
        reject a bad line of a file; ``False``: skip it and count it in ``report.skipped``; ``None``: as
        :func:`~simmodel.foundation.loading.reading` says

    Raises
    ------
    InputError
        the file cannot be read, a required column is missing, a name is unknown, or a cell is invalid

    >>> import io
    >>> file = io.StringIO("when,cores,secs\\n2024-05-01 12:00:00,4,90\\n2024-05-01 12:00:30,2,\\n")
    >>> log = read_columns(file, {"submit": "when", "processors": "cores", "run": "secs"})
    >>> log["submit"] - log["submit"][0], log["run"], log["processors"]
    (array([ 0., 30.]), array([90., nan]), array([4, 2]))
    """
    origin = "the table"
    report = Report()
    lines: Sequence[int] | None = None
    if isinstance(source, Mapping | Table):
        table: Mapping[str, Any] = dict(source.items())
    elif not isinstance(source, str | Path) and hasattr(source, "columns"):
        frame: Any = source
        table = {str(key): frame[key] for key in frame.columns}
    else:
        table, lines, origin = _read_csv(source, delimiter, report, strict)
    chosen = _choose(table, names or {}, origin)
    cells = _Cells(origin, lines, zone(timezone), strict=lines is None or is_strict(strict))
    columns = {column: cells.convert(column, table[theirs], theirs) for column, theirs in chosen.items()}
    _settle(columns, cells.later, report)
    if cells.bad:
        report.skipped["bad lines"] += len(cells.bad)
        kept = ~np.isin(np.arange(len(lines or ())), list(cells.bad))
        columns = {column: values[kept] for column, values in columns.items()}
    if "status" in columns and columns["status"].dtype.kind == "U":  # words
        columns.setdefault("outcome", columns["status"])
        columns["status"] = np.array([STATUS_OF.get(word, 0) for word in columns["status"].tolist()])
    start, end, left = columns.pop("start", None), columns.pop("end", None), None
    if start is not None:
        columns.setdefault("wait", start - columns["submit"])
        if end is not None:
            columns.setdefault("run", end - start)
            left = np.where(np.isnan(start), end, start)
    if "submit" not in columns or "run" not in columns:
        lacking = "submit" if "submit" not in columns else "run (or start and end)"
        raise InputError(f"missing column {lacking}; columns: {', '.join(table) or 'none'}", source=origin)
    leave_queue(columns, left)
    columns.setdefault("processors", np.ones(len(columns["submit"]), np.int64))
    if "gpus" in columns:
        _share_out(columns)
    if not len(columns["submit"]):
        raise NoJobs("no jobs", origin, report=report)
    title = name or (title_of(origin, ".csv") if lines is not None else "table")
    order = [column for column in (*COLUMNS, *columns) if column in columns]
    return Workload({column: columns[column] for column in order}, name=title, processors=processors, report=report)


def _share_out(columns: dict[str, NDArray[Any]]) -> None:
    """Give each node of a job its part of the GPUs of the whole job."""
    gpus, count = columns.pop("gpus"), len(columns["submit"])
    nodes, cores = columns.get("nodes", np.full(count, -1)), columns["processors"]
    memory = np.nan_to_num(columns.get("memory_per_node", np.zeros(count)))
    asked = np.flatnonzero(gpus > 0).tolist()
    found = [of_nodes(int(gpus[i]), max(int(nodes[i]), 1), max(int(cores[i]), 1), float(memory[i])) for i in asked]
    for name in ("nodes", "gpus_per_node", "chunks"):
        usual = np.full(count, "", dtype="U1") if name == "chunks" else np.full(count, -1)
        given = columns.get(name, usual).tolist()
        for i, each in zip(asked, found, strict=True):
            given[i] = each[name]
        if name != "chunks" or any(given):
            columns[name] = np.array(given)


def _settle(columns: dict[str, NDArray[Any]], later: Mapping[str, Mapping[int, float]], report: Report) -> None:
    """Choose among instants that the clock showed twice: ``later`` has the second ones, by column and row."""
    ordered = [name for name in ("submit", "start", "end") if name in columns]
    for row in sorted({row for name in ordered for row in later.get(name, ())}):
        cells = []
        for name in ordered:
            first = float(columns[name][row])
            second = later.get(name, {}).get(row)
            cells.append(() if first != first else (first,) if second is None else (first, second))
        lasted = float(columns["run"][row]) if "run" in columns and ordered[-1] == "end" else float("nan")
        found, ambiguous = in_order(cells, lasted)
        for name, instant in zip(ordered, found, strict=True):
            columns[name][row] = instant
        if ambiguous:
            report.repaired[AMBIGUOUS] += 1


def _choose(table: Collection[str], names: Mapping[str, str], origin: str) -> dict[str, str]:
    """Return the used columns, as simmodel's names mapped to theirs."""
    for ours, theirs in names.items():
        if ours not in _KNOWN and not ours.startswith(SHARE):
            raise InputError(unknown("column", ours, _KNOWN).message, place="names")
        if theirs not in table:
            close = difflib.get_close_matches(theirs, list(table), 1)
            hint = f"; did you mean {shown(close[0])}?" if close else ""
            message = f"missing column {shown(theirs)} (for {ours}){hint}; columns: {', '.join(table)}"
            raise InputError(message, source=origin)
    cased = {theirs.lower(): theirs for theirs in table} | {theirs: theirs for theirs in table}
    chosen = {ours: cased[ours] for ours in _KNOWN if ours in cased and cased[ours] not in names.values()}
    chosen |= {name: name for name in table if name.startswith(SHARE)}
    chosen.update(names)
    if "start" in chosen and "submit" not in chosen:
        raise InputError(f"missing column submit; columns: {', '.join(table)}", source=origin)
    return chosen


def _read_csv(
    source: Source, delimiter: str | None, report: Report, strict: bool | None
) -> tuple[dict[str, list[str]], list[int], str]:
    """Return the columns of a CSV file as texts, the line number of each row, and the name of the file."""
    lines, origin = read_lines(source)
    texts = [line for _, line in lines]
    head = next((line for line in texts if line.strip()), "")
    header: list[str] = []
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, row in csv_rows(texts, origin, delimiter or max(",;|\t", key=head.count)):
        if not row or row == [""]:
            continue
        if not header:
            header = [cell.strip() for cell in row]
            twice = next((name for name in header if name and header.count(name) > 1), None)
            if twice is not None:
                raise InputError(f"duplicate column {shown(twice)}", source=origin, place=f"line {number}")
        elif len(row) != len(header):
            if is_strict(strict):
                message = f"must have {len(header)} cells, got {len(row)}"
                raise BadLine(message, source=origin, place=f"line {number}")
            report.skipped["bad lines"] += 1
        else:
            rows.append(row)
            numbers.append(number)
    if not header:
        raise InputError("must start with a line of column names, got an empty file", source=origin)
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {key: list(column) for key, column in zip(header, columns, strict=True)}, numbers, origin


class _Cells:
    """Turns columns of cells into arrays.

    Attributes
    ----------
    bad
        the rows with a cell that cannot be read
    later
        by column and row, the second instant of a time that the clock showed twice
    """

    def __init__(self, origin: str, lines: Sequence[int] | None, local: tzinfo, *, strict: bool) -> None:
        self.origin = origin
        self.lines = lines
        self.local = local
        self.strict = strict
        self.bad: set[int] = set()
        self.later: dict[str, dict[int, float]] = {}

    def convert(self, column: str, values: ArrayLike, theirs: str) -> NDArray[Any]:
        """Return a column; ``theirs``: its name in the file."""
        array = np.asarray(values)
        times = column in _INSTANTS or column in _DURATIONS
        if array.dtype.kind in "Mm" and times:
            dates: Any = getattr(values, "dt", None)  # of a pandas series
            if dates is not None and array.dtype.kind == "M" and dates.tz is None and column in _INSTANTS:
                first, second = (
                    dates.tz_localize(self.local, ambiguous=np.full(len(array), earlier), nonexistent="shift_forward")
                    for earlier in (True, False)
                )
                first, second = (_seconds(np.asarray(each.dt.tz_convert(None))) for each in (first, second))
                self.later[column] = {int(row): second[row] for row in np.flatnonzero(second > first)}
                return first
            return _seconds(array)
        if array.dtype.kind in "iufb" and (times or column in _BYTES or column == "power" or column.startswith(SHARE)):
            return array.astype(np.float64)
        if array.dtype.kind in "iub" and column != "frequency_sensitivity":
            return array.astype(np.int64)
        if array.dtype.kind == "f" and column not in _NAMES:
            array = np.where(np.isnan(array), -1, array)
            if (array == np.floor(array)).all():
                return array.astype(np.int64)
            array = np.where(array == -1, np.nan, array) if column == "gpus_per_node" else array
        return self._cell_by_cell(column, array.tolist(), theirs)

    def _cell_by_cell(self, column: str, cells: list[Cell], theirs: str) -> NDArray[Any]:
        texts = ["" if _missing(cell) else str(cell).strip() for cell in cells]
        if column in _NAMES:
            return names([(text if self.lines is None else cell_text(text)).removesuffix(".0") for text in texts])
        if column == "power":
            return power_column([self._power(row, text, theirs) for row, text in enumerate(texts)])
        accepted, read = _kind(column)
        if column == "status" and all(map(_is_number, dict.fromkeys(texts))):
            accepted, read = _A_NUMBER, lambda _, text: whole(text)
        found: list[float | str] = []
        for row, (cell, text) in enumerate(zip(cells, texts, strict=True)):
            try:
                if column in _INSTANTS:
                    found.append(self._instant(column, row, cell, text))
                else:
                    found.append(read(cell if text else None, text))
            except (ValueError, OverflowError, InputError):
                if self.strict:
                    place = f"line {self.lines[row]}" if self.lines else f"row {row + 1}"
                    message = f"column {shown(theirs)}: must be {accepted}, got {shown(text)}"
                    raise BadLine(message, self.origin, place) from None
                self.bad.add(row)
                found.append(-1)
        cells_found: NDArray[Any] = np.array(found, dtype=_TYPES.get(accepted, np.float64))
        whole_ones = accepted == _SHARES and bool((cells_found == np.floor(cells_found)).all())
        return cells_found.astype(np.int64) if whole_ones else cells_found

    def _power(self, row: int, text: str, theirs: str) -> float | str | None:
        try:
            return power_cell(text)
        except InputError as error:
            if self.strict:
                place = f"line {self.lines[row]}" if self.lines else f"row {row + 1}"
                raise BadLine(f"column {shown(theirs)}: {error.message}", self.origin, place) from None
            self.bad.add(row)
            return None

    def _instant(self, column: str, row: int, cell: Cell, text: str) -> float:
        """Return an instant, the first of two; the second one is kept."""
        dated = isinstance(cell, datetime) and bool(text)  # no NaT of pandas
        meant = repeated(cell, self.local) if dated else moments(text, self.local)  # type: ignore[arg-type]
        if len(meant) > 1:
            self.later.setdefault(column, {})[row] = meant[1]
        return meant[0] if meant else float("nan")


def _seconds(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return times of numpy in seconds."""
    unit = array.astype("datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
    return np.where(np.isnat(array), np.nan, unit / 1e9)


_A_NUMBER = "a whole number"
_TYPES: Mapping[str, type] = {_A_NUMBER: np.int64, ACCEPTED: str}


_SHARES = "a whole number, or a share of one GPU below 1"


def _gpus(text: str) -> float:
    """Return whole GPUs, or a share of one."""
    share = float(text or "-1")
    return share if 0 < share < 1 else whole(text)


def _is_number(text: str) -> bool:
    return not text or text.removeprefix("-").removesuffix(".0").isdecimal()


def _kind(column: str) -> tuple[str, Callable[[Cell, str], float | str]]:
    """Return the kind of cells of a column, in words, and a function that reads one, given also as text."""
    if column in _INSTANTS:
        return "an instant (seconds or a timestamp)", lambda _, text: float(text)
    if column in _DURATIONS:
        seconds = limit if column == "requested" else duration
        return "seconds", lambda cell, text: cell.total_seconds() if isinstance(cell, timedelta) else seconds(text)
    if column == "chunks":
        return "cores of each node such as '8+2' or '2*8:gpus=1+4'", lambda _, text: chunk_text(chunks_of(text))
    if column == "gpus_per_node":
        return _SHARES, lambda _, text: _gpus(text)
    if column in _BYTES:
        return "bytes", lambda _, text: float(text) if text else float("nan")
    if column.startswith(SHARE):
        accepted = "a quantity in B/s such as '2GB/s'"
        return accepted, lambda _, text: parse_quantity(text, "B/s") if text else float("nan")
    if column == "frequency_sensitivity":
        return "a number from 0 to 1", lambda _, text: _share(text)
    if column in _ENDS:
        return ACCEPTED, lambda _, text: outcome_in(text) if text else ""
    return _A_NUMBER, lambda _, text: whole(text)


def _share(text: str) -> float:
    value = float(text) if text else -1.0
    if not (0 <= value <= 1 or value == -1):
        raise InputError(f"must be a number from 0 to 1, got {shown(text)}")
    return value if value >= 0 else float("nan")


def _missing(cell: Cell) -> bool:
    return cell is None or cell != cell or str(cell) in ("NaT", "<NA>")
