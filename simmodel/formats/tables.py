"""Tables of logs: their lines and rows, the cells in them (numbers, instants, durations, memory), and the columns.

Tables of numbers are parsed by whole arrays: NumPy's own text readers take 1 to 4 us for a line of 18 numbers. Here,
the text is an array of bytes: the limits of all fields are found together, and the up to 16 digits of a field become
a number by a few operations on 64-bit words, eight digits in each. Fields that are not whole numbers are rare in logs
and are parsed one by one.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from simmodel.foundation.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.workload import Report

__all__ = [
    "columns_of",
    "csv_rows",
    "duration",
    "instant",
    "memory",
    "names",
    "parse",
    "read_columns_of_numbers",
    "taken",
    "whole",
    "zone",
]


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)I?B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}


# ---------------------------------------------------------------------- rows


def taken(
    rows: Iterable[tuple[object, _Given]],
    take: Callable[[_Given], _Found | None],
    name: str,
    report: Report,
    *,
    strict: bool,
    place: str = "line",
    skipped: str = "bad lines",
    log: str | None = None,
) -> Iterator[_Found]:
    """Yield the result of ``take`` for each numbered row of a file, except ``None``.

    A row for which it raises ``ValueError`` is an ``InputError`` with ``place`` and number if ``strict``, else counted
    in the report as ``skipped``. ``log``: the format that the file does not have if it begins with a bad row.

    >>> from simmodel.work.workload import Report
    >>> report = Report()
    >>> list(taken(enumerate(["1", "one", "2"], 1), int, "log", report, strict=False)), report.skipped
    ([1, 2], Counter({'bad lines': 1}))
    """
    for number, row in rows:
        try:
            found = take(row)
        except ValueError as error:
            if strict:
                wrong = str(error) if log is None else f"not a log in the {log}: {error}"
                raise InputError(wrong, source=name, place=f"{place} {number}") from None
            report.skipped[skipped] += 1
            continue
        if found is not None:
            log = None
            yield found


def csv_rows(lines: Iterable[str], name: str, delimiter: str = ",", first: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV text, each with the number of its last line, counted from ``first``.

    >>> list(csv_rows(["a,b", '"1,5",2'], "table.csv"))
    [(1, ['a', 'b']), (2, ['1,5', '2'])]
    """
    rows = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in rows:
            yield rows.line_num + first - 1, cells
    except csv.Error as error:
        place = f"line {rows.line_num + first - 1}"
        raise InputError(f"invalid CSV: {error}", source=name, place=place) from None


# ---------------------------------------------------------------------- cells


def whole(text: str) -> int:
    """Return the whole number in a cell, -1 for an empty cell; raises ``ValueError``.

    >>> whole("12"), whole("12.0"), whole("")
    (12, 12, -1)
    """
    if not text:
        return -1
    number = float(text)
    if not abs(number) < 2**63 or number != int(number):
        raise ValueError(text)
    return int(number)


def zone(name: str | None) -> tzinfo:
    """Return the time zone with this name (``"Europe/Paris"``); ``None`` is UTC.

    Raises
    ------
    InputError
        the zone is unknown
    """
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InputError(f"must be a time zone such as 'Europe/Paris', got {shown(name)}", place="timezone") from None


def instant(text: str, local: tzinfo = UTC) -> float:
    """Return an instant, ISO 8601 text or Unix seconds, as Unix seconds; nan if unknown.

    Parameters
    ----------
    text
        ``2024-05-01T12:00:00``, ``1714564800``, or ``Unknown``, ``None`` and the like
    local
        the zone of times without one

    >>> instant("1970-01-01T01:00:00"), instant("90"), instant("Unknown")
    (3600.0, 90.0, nan)
    """
    if text in ("", "Unknown", "None", "N/A", "NaT", "nan"):
        return float("nan")
    try:
        return float(text)
    except ValueError:
        when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=local)).timestamp()


def duration(text: str) -> float:
    """Return the seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or a number; nan if unknown.

    >>> duration("1-02:03:04"), duration("05:06.500"), duration("90"), duration("UNLIMITED")
    (93784.0, 306.5, 90.0, nan)
    """
    if text in ("", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "N/A", "nan"):
        return float("nan")
    days, dash, clock = text.rpartition("-")
    parts = [float(part) for part in clock.split(":")]
    if len(parts) > 3 or (dash and not re.fullmatch(r"\d{1,9}", days)) or any(part < 0 for part in parts):
        raise ValueError(text)
    if dash:  # D-HH, D-HH:MM, D-HH:MM:SS
        parts += [0.0] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds + 86400 * int(days or 0)


def memory(text: str) -> float:
    """Return the bytes of an amount with a binary unit; nan for an empty cell.

    >>> memory("4G"), memory("512kb"), memory("1.5M"), memory("100")
    (4294967296.0, 524288.0, 1572864.0, 100.0)
    """
    if not text:
        return float("nan")
    found = _MEMORY.fullmatch(text)
    if not found:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2].upper()]


# ---------------------------------------------------------------------- columns


def names(texts: Sequence[str]) -> NDArray[Any]:
    """Return a column of users, queues or jobs: integers if all cells are, else text; unknown is -1 or empty text.

    >>> names(["3", "-1"]), names(["ann", "-1"])
    (array([ 3, -1]), array(['ann', ''], dtype='<U3'))
    """
    import numpy as np

    unknown = ("", "-1")
    if all(_WHOLE.fullmatch(text) or not text for text in dict.fromkeys(texts)):
        return np.array([int(text or -1) for text in texts], dtype=np.int64)
    return np.array(["" if text in unknown else text for text in texts])


def columns_of(rows: Sequence[Mapping[str, float | str]], always: Container[str]) -> dict[str, NDArray[Any]]:
    """Turn rows with the same keys into columns; omit columns without any known value, except those in ``always``.

    >>> columns_of([{"run": 1.0, "user": "ann", "nodes": -1}], ())
    {'run': array([1.]), 'user': array(['ann'], dtype='<U3')}
    """
    import numpy as np

    columns = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        column = names([str(value) for value in values]) if isinstance(values[0], str) else np.array(values)
        if column.dtype == object:
            raise OverflowError(f"{name}: must be numbers of 64 bits")
        nothing = ("",) if column.dtype.kind == "U" else (0, -1) if name == "gpus_per_node" else (-1,)
        empty = np.isnan(column).all() if column.dtype.kind == "f" else np.isin(column, nothing).all()
        if name in always or not empty:
            columns[name] = column
    return columns


_BLOCK = 1 << 20
_PAD = 16
_ZEROS = np.uint64(0x3030303030303030)


def read_columns_of_numbers(text: bytes, columns: int) -> list[NDArray[Any]] | None:
    """Return the columns of a text in which each non-blank line has a fixed number of numbers.

    A column of whole numbers is an array of ``int64``, any other one of ``float64``.

    Parameters
    ----------
    text
        lines of fields separated by spaces or tabs
    columns
        the number of fields on each line

    Returns
    -------
    The columns, or ``None`` if a line has another number of fields or a field is not a finite number; the caller then
    parses line by line to find it.

    >>> read_columns_of_numbers(b"1 2.5\\n-3 4\\n", 2)
    [array([ 1, -3]), array([2.5, 4. ])]
    >>> read_columns_of_numbers(b"1 2\\n3\\n", 2) is None
    True
    """
    parts: list[list[NDArray[Any]]] = []
    at = 0
    while at < len(text):
        cut = at + _BLOCK
        cut = len(text) if cut >= len(text) else text.find(b"\n", cut) + 1 or len(text)
        part = _block(text[at:cut], columns)
        if part is None:
            return None
        if len(part[0]):
            parts.append(part)
        at = cut
    if not parts:
        return [np.empty(0, np.int64) for _ in range(columns)]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _block(text: bytes, columns: int) -> list[NDArray[Any]] | None:
    padded = b" " * _PAD + text + b" "
    characters = np.frombuffer(padded, np.uint8)
    blank = characters <= 32
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    if len(starts) % columns or not _one_row_a_line(characters, starts, columns):
        return None
    words = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    result = []
    for column in range(columns):
        values = _column(padded, characters, words, starts[column::columns], ends[column::columns])
        if values is None:
            return None
        result.append(values)
    return result


def _one_row_a_line(characters: NDArray[np.uint8], starts: NDArray[np.intp], columns: int) -> bool:
    """Return whether each row of fields is on its own line."""
    breaks = np.flatnonzero(characters == 10)
    first = np.searchsorted(breaks, starts[::columns])  # the lines of the first and of the last field of each row
    last = np.searchsorted(breaks, starts[columns - 1 :: columns])
    return bool((first == last).all() and (first[1:] > first[:-1]).all())


def _column(
    padded: bytes,
    characters: NDArray[np.uint8],
    words: NDArray[np.uint64],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
) -> NDArray[Any] | None:
    first = characters[starts]
    lengths = ends - starts
    negative = first == 45
    some_negative = negative.any()
    if some_negative:
        if negative.all() and (lengths == 2).all() and (characters[starts + 1] == 49).all():
            return np.full(len(starts), -1, np.int64)  # the most frequent column
        lengths = lengths - negative
    longest = int(lengths.max(initial=0))
    if longest == 1:
        digits = characters[ends - 1] - np.uint8(48)
        odd = digits > 9
        values = digits.astype(np.int64)
    else:
        values, odd = _eight_digits(words, ends, lengths)
        if longest > 8:
            upper, odd_upper = _eight_digits(words, ends - 8, lengths - 8)
            values += upper * 100_000_000
            odd |= odd_upper | (lengths > 16)
        odd |= lengths < 1
    if some_negative:
        np.negative(values, out=values, where=negative)
    if not odd.any():
        return values
    return _one_by_one(padded, starts, ends, values, np.flatnonzero(odd))


def _eight_digits(
    words: NDArray[np.uint64], ends: NDArray[np.intp], lengths: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the numbers spelled by the last eight characters before ``ends``, and a mask of those with non-digits.

    The word's highest byte is the last character (little-endian); the bytes before the field are shifted out.
    """
    word = words[ends - 8] ^ _ZEROS
    shift = ((8 - np.clip(lengths, 0, 8)) << 3).astype(np.uint64)
    nothing = shift == 64
    shift[nothing] = 0
    word = (word >> shift) << shift
    word[nothing] = 0
    # A byte above 9 sets bits in its upper half, directly or after adding 6.
    odd = ((word | (word + np.uint64(0x0606060606060606))) & np.uint64(0xF0F0F0F0F0F0F0F0)) != 0
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0x00000000FFFFFFFF)
    return word.astype(np.int64), odd


def _one_by_one(
    padded: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp], values: NDArray[np.int64], rows: NDArray[np.intp]
) -> NDArray[Any] | None:
    """Parse the fields of these rows as Python numbers; the column becomes floats if one of them is not whole."""
    try:
        numbers = [
            parse(padded[start:end]) for start, end in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)
        ]
    except ValueError:
        return None
    if all(isinstance(number, int) for number in numbers):
        values[rows] = numbers
        return values
    floats = values.astype(np.float64)
    floats[rows] = numbers
    return floats if np.isfinite(floats).all() else None


def parse(field: bytes | str) -> int | float:
    """Return the number in a field; raises ``ValueError`` if it is not a number.

    >>> parse("3"), parse("-2.5"), parse("1e3")
    (3, -2.5, 1000.0)
    """
    if (b"_" if isinstance(field, bytes) else "_") in field:  # type: ignore[operator]
        raise ValueError("must be digits")
    try:
        number = int(field)
    except ValueError:
        return float(field)
    if abs(number) < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
