"""Jobs from a custom table: a pandas DataFrame, a mapping of columns or a CSV file with a header line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.tables import csv_rows, duration, instant, names, whole, zone
from simmodel.foundation.errors import InputError, shown, unknown
from simmodel.foundation.loading import Source, read_lines, reader, title_of
from simmodel.foundation.units import parse_quantity
from simmodel.work.outcomes import ACCEPTED, STATUS_OF, leave_queue, outcome_in
from simmodel.work.table import Columns, Table, cell_text
from simmodel.work.task import SHARE
from simmodel.work.workload import COLUMNS, Workload

if TYPE_CHECKING:
    from datetime import tzinfo

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

__all__ = ["read_columns"]

Cell = float | str | datetime | timedelta | None
_ENDS = ("status", "outcome")
_INSTANTS = frozenset({"submit", "start", "end", "cancel"})
_SAVES = ("checkpoint_interval", "checkpoint_cost", "checkpoint_restart")
_DURATIONS = frozenset({"wait", "run", "requested", "cpu_time", "think_time", *_SAVES})
_BYTES = frozenset({"used_memory", "requested_memory", "memory_per_node", "checkpoint_size"})
_NAMES = frozenset({"job", "user", "group", "executable", "queue", "partition", "preceding", "checkpoint_to"})
_KNOWN = (*COLUMNS, "start", "end")


@reader
def read_columns(
    source: pd.DataFrame | Columns | Source,
    names: Mapping[str, str] | None = None,
    *,
    processors: int | None = None,
    name: str | None = None,
    delimiter: str | None = None,
    timezone: str | None = None,
) -> Workload:
    """Read jobs from columns with custom names.

    Columns named as in :data:`simmodel.work.workload.COLUMNS` are used as they are; ``names`` maps the others. Required
    are ``submit``, and ``run`` or both ``start`` and ``end`` (from which ``run`` and ``wait`` are computed);
    ``processors`` defaults to 1. Instants are seconds or timestamps; durations are seconds, ``H:MM:SS`` or time deltas.
    Empty cells are unknown values. Other columns are ignored.

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
        the zone of timestamps without one, such as ``"Europe/Paris"``; default UTC

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
    lines: Sequence[int] | None = None
    if isinstance(source, Mapping | Table):
        table: Mapping[str, Any] = dict(source.items())
    elif not isinstance(source, str | Path) and hasattr(source, "columns"):
        frame: Any = source
        table = {str(key): frame[key] for key in frame.columns}
    else:
        table, lines, origin = _read_csv(source, delimiter)
    chosen = _choose(table, names or {}, origin)
    local = zone(timezone)
    columns = {
        column: _convert(column, table[theirs], origin, theirs, lines, local) for column, theirs in chosen.items()
    }
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
    if not len(columns["submit"]):
        raise InputError("no jobs", source=origin)
    title = name or (title_of(origin, ".csv") if lines is not None else "table")
    order = [column for column in (*COLUMNS, *columns) if column in columns]
    return Workload({column: columns[column] for column in order}, name=title, processors=processors)


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
    chosen = {ours: ours for ours in _KNOWN if ours in table and ours not in names.values()}
    chosen |= {name: name for name in table if name.startswith(SHARE)}
    chosen.update(names)
    if "start" in chosen and "submit" not in chosen:
        raise InputError(f"missing column submit; columns: {', '.join(table)}", source=origin)
    return chosen


def _read_csv(source: Source, delimiter: str | None) -> tuple[dict[str, list[str]], list[int], str]:
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
            message = f"must have {len(header)} cells, got {len(row)}"
            raise InputError(message, source=origin, place=f"line {number}")
        else:
            rows.append(row)
            numbers.append(number)
    if not header:
        raise InputError("must start with a line of column names, got an empty file", source=origin)
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {key: list(column) for key, column in zip(header, columns, strict=True)}, numbers, origin


def _convert(
    column: str, values: ArrayLike, origin: str, theirs: str, lines: Sequence[int] | None, local: tzinfo
) -> NDArray[Any]:
    array = np.asarray(values)
    times = column in _INSTANTS or column in _DURATIONS
    if array.dtype.kind in "Mm" and times:
        dates: Any = getattr(values, "dt", None)  # of a pandas series
        if dates is not None and array.dtype.kind == "M" and dates.tz is None and column in _INSTANTS:
            array = np.asarray(dates.tz_localize(local).dt.tz_convert("UTC").dt.tz_localize(None))
        unknown = np.isnat(array)
        unit = array.astype("datetime64[ns]" if array.dtype.kind == "M" else "timedelta64[ns]").astype(np.int64)
        return np.where(unknown, np.nan, unit / 1e9)
    if array.dtype.kind in "iufb" and (times or column in _BYTES or column.startswith(SHARE)):
        return array.astype(np.float64)
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and column not in _NAMES:
        array = np.where(np.isnan(array), -1, array)
        if (array == np.floor(array)).all():
            return array.astype(np.int64)
    return _cell_by_cell(column, array.tolist(), origin, theirs, lines, local)


def _cell_by_cell(
    column: str, cells: list[Cell], origin: str, theirs: str, lines: Sequence[int] | None, local: tzinfo
) -> NDArray[Any]:
    texts = ["" if _missing(cell) else str(cell).strip() for cell in cells]
    if column in _NAMES:
        return names([(text if lines is None else cell_text(text)).removesuffix(".0") for text in texts])
    accepted, read = _kind(column, local)
    if column == "status" and all(map(_is_number, dict.fromkeys(texts))):
        accepted, read = _A_NUMBER, lambda _, text: whole(text)
    found: list[float | str] = []
    for row, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        try:
            found.append(read(cell if text else None, text))
        except (ValueError, OverflowError, InputError):
            place = f"line {lines[row]}" if lines else f"row {row + 1}"
            raise InputError(f"column {shown(theirs)}: must be {accepted}, got {shown(text)}", origin, place) from None
    return np.array(found, dtype=_TYPES.get(accepted, np.float64))


_A_NUMBER = "a whole number"
_TYPES: Mapping[str, type] = {_A_NUMBER: np.int64, ACCEPTED: str}


def _is_number(text: str) -> bool:
    return not text or text.removeprefix("-").removesuffix(".0").isdecimal()


def _kind(column: str, local: tzinfo) -> tuple[str, Callable[[Cell, str], float | str]]:
    """Return the kind of cells of a column, in words, and a function that reads one, given also as text."""

    def when(cell: Cell, text: str) -> float:
        if isinstance(cell, datetime):
            return (cell if cell.tzinfo else cell.replace(tzinfo=local)).timestamp()
        return instant(text, local)

    if column in _INSTANTS:
        return "an instant (seconds or a timestamp)", when
    if column in _DURATIONS:
        return "seconds", lambda cell, text: cell.total_seconds() if isinstance(cell, timedelta) else duration(text)
    if column in _BYTES:
        return "bytes", lambda _, text: float(text) if text else float("nan")
    if column.startswith(SHARE):
        accepted = "a quantity in B/s such as '2GB/s'"
        return accepted, lambda _, text: parse_quantity(text, "B/s") if text else float("nan")
    if column in _ENDS:
        return ACCEPTED, lambda _, text: outcome_in(text) if text else ""
    return _A_NUMBER, lambda _, text: whole(text)


def _missing(cell: Cell) -> bool:
    return cell is None or cell != cell or str(cell) in ("NaT", "<NA>")
