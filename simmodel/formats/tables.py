"""Tables of logs: their lines and rows, the cells in them (numbers, instants, durations, memory), and the columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from simmodel.foundation.errors import BadLine, InputError, shown
from simmodel.foundation.loading import Source, current_reading, is_strict, read_lines
from simmodel.work.node_chunks import chunk_text, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.work.workload import Report

__all__ = [
    "AMBIGUOUS",
    "columns_of",
    "csv_rows",
    "duration",
    "in_order",
    "instant",
    "limit",
    "memory",
    "moments",
    "named_rows",
    "names",
    "of_nodes",
    "passed_over",
    "repeated",
    "taken",
    "whole",
    "zone",
]

AMBIGUOUS = "local times that the clock showed twice: the earlier taken"
"""The reason of a repair: which of the two is meant, does not follow from the order of a job's instants."""
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)I?B?", re.IGNORECASE)
_ENDLESS = frozenset(("unlimited", "partition_limit", "infinite"))
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}


# ---------------------------------------------------------------------- rows


def taken(
    rows: Iterable[tuple[object, _Given]],
    take: Callable[[_Given], _Found | None],
    name: str,
    report: Report,
    *,
    strict: bool | None,
    place: str = "line",
    skipped: str = "bad lines",
    log: str | None = None,
) -> Iterator[_Found]:
    """Yield the result of ``take`` for each numbered row of a file, except ``None``.

    A row for which it raises ``ValueError`` is an ``InputError`` with ``place`` and number if ``strict``, else counted
    in the report as ``skipped``; ``None``: as :func:`~simmodel.foundation.loading.reading` says. ``log``: the format
    that the file does not have if it begins with a bad row.

    >>> from simmodel.work.workload import Report
    >>> report = Report()
    >>> list(taken(enumerate(["1", "one", "2"], 1), int, "log", report, strict=False)), report.skipped
    ([1, 2], Counter({'bad lines': 1}))
    """
    strict = is_strict(strict)
    for number, row in rows:
        try:
            found = take(row)
        except ValueError as error:
            if strict:
                wrong = str(error) if log is None else f"not a log in the {log}: {error}"
                raise BadLine(wrong, source=name, place=f"{place} {number}") from None
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


def named_rows(source: Source, needed: tuple[str, ...]) -> tuple[str, Iterator[tuple[int, dict[str, str]]]]:
    """Return the name of a CSV file, and its rows with their line, by column.

    Raises
    ------
    InputError
        the file cannot be read, or lacks a column that is needed

    >>> import io
    >>> list(named_rows(io.StringIO("b,a\\n1,2\\n"), ("a",))[1])
    [(2, {'b': '1', 'a': '2'})]
    """
    lines, name = read_lines(source)
    rows = csv_rows((text for _, text in lines), name)
    at, cells = next(((at, cells) for at, cells in rows if any(cells)), (1, list[str]()))
    head = [cell.strip() for cell in cells]
    missing = [column for column in needed if column not in head]
    if missing:
        raise InputError(f"missing column {missing[0]}", source=name, place=f"line {at}")
    twice = next((column for column in head if column and head.count(column) > 1), None)
    if twice is not None:
        raise InputError(f"duplicate column {shown(twice)}", source=name, place=f"line {at}")
    return name, ((line, dict(zip(head, cells, strict=False))) for line, cells in rows if any(cells))


def passed_over(report: Report, found: Mapping[str, int], known: Mapping[str, str], what: str) -> None:
    """Note in a report what is not read although it may change the result, and what is not known.

    Parameters
    ----------
    report
        of the reader
    found
        how many jobs have it, by name, without what is read or harmless
    known
        what may change the result, and in which way
    what
        the kind of names

    >>> from simmodel.work.workload import Report
    >>> report = Report()
    >>> passed_over(report, {"Licenses": 2, "Foo": 1}, {"Licenses": "licences"}, "field"); print(report)
    field Licenses is not read (licences; 2 jobs); field Foo is not known, and is not read (1 job)
    """
    for name, count in sorted(found.items(), key=lambda each: (each[0] not in known, each[0])):
        jobs = f"{count:,} job{'' if count == 1 else 's'}"
        if name in known:
            report.note(f"{what} {name} is not read ({known[name]}; {jobs})")
        else:
            report.note(f"{what} {name} is not known, and is not read ({jobs})")


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
        raise InputError(f"must be a whole number, got {shown(text)}")
    return int(number)


def zone(name: str | None) -> tzinfo:
    """Return the time zone with this name (``"Europe/Paris"``); ``None``: that of ``reading``, or else UTC.

    Raises
    ------
    InputError
        the zone is unknown
    """
    name = current_reading().timezone if name is None else name
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
    return next(iter(moments(text, local)), float("nan"))


def moments(text: str, local: tzinfo = UTC) -> tuple[float, ...]:
    """Return the instants (Unix seconds) that a text may mean: none if unknown, two in an hour that the clock repeats.

    >>> moments("2024-10-27T02:30:00", zone("Europe/Berlin")), moments("Unknown")
    ((1729989000.0, 1729992600.0), ())
    """
    if text in ("", "Unknown", "None", "N/A", "NaT", "nan"):
        return ()
    try:
        return (float(text),)
    except ValueError:
        when = datetime.fromisoformat(text)
    return repeated(when, local)


def repeated(when: datetime, local: tzinfo) -> tuple[float, ...]:
    """Return the instants (Unix seconds) of a time: two if it has no zone and the clock of ``local`` shows it twice."""
    if when.tzinfo:
        return (when.timestamp(),)
    first, second = (when.replace(tzinfo=local, fold=fold).timestamp() for fold in (0, 1))
    return (first, second) if first < second else (first,)


def in_order(cells: Sequence[tuple[float, ...]], lasted: float = float("nan")) -> tuple[list[float], bool]:
    """Return one instant of each cell, nan of an empty one, and whether others would do as well.

    Those are taken that follow each other, and of which the last two are ``lasted`` seconds apart; if several do, the
    earliest.

    >>> in_order([(5.0, 65.0), (60.0,)]), in_order([(5.0, 65.0), (30.0, 90.0)], 85.0)
    (([5.0, 60.0], False), ([5.0, 90.0], False))
    """
    known = [cell or (float("nan"),) for cell in cells]
    if max(map(len, known)) == 1:
        return [cell[0] for cell in known], False

    def faults(chosen: tuple[float, ...]) -> int:
        there = [each for each in chosen if each == each]
        return sum(a > b for a, b in pairwise(there)) + (abs(chosen[-1] - chosen[-2] - lasted) > 1)

    tried = [(faults(chosen), chosen) for chosen in product(*known)]
    least = min(count for count, _ in tried)
    best = [chosen for count, chosen in tried if count == least]
    return list(best[0]), len(best) > 1


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
        raise InputError(f"must be [days-]hours:minutes:seconds, got {shown(text)}")
    if dash:  # D-HH, D-HH:MM, D-HH:MM:SS
        parts += [0.0] * (3 - len(parts))
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + part
    return seconds + 86400 * int(days or 0)


def limit(text: str) -> float:
    """Return the seconds of a time limit; infinite if there is none, or that of a partition which is not told.

    >>> limit("UNLIMITED"), limit("Partition_Limit"), limit("01:00:00"), limit("")
    (inf, inf, 3600.0, nan)
    """
    return float("inf") if text.lower() in _ENDLESS else duration(text)


def memory(text: str) -> float:
    """Return the bytes of an amount with a binary unit; nan for an empty cell.

    >>> memory("4G"), memory("512kb"), memory("1.5M"), memory("100")
    (4294967296.0, 524288.0, 1572864.0, 100.0)
    """
    if not text:
        return float("nan")
    found = _MEMORY.fullmatch(text)
    if not found:
        raise InputError(f"must be an amount such as 4G, got {shown(text)}")
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
            raise InputError(f"{name}: must be numbers of 64 bits")
        nothing = ("",) if column.dtype.kind == "U" else (0, -1) if name == "gpus_per_node" else (-1,)
        empty = np.isnan(column).all() if column.dtype.kind == "f" else np.isin(column, nothing).all()
        if name in always or not empty:
            columns[name] = column
    return columns


def of_nodes(gpus: int, nodes: int, processors: int, memory: float = 0.0) -> dict[str, Any]:
    """Return the columns of a job with so many GPUs and processors in all, on so many nodes with so many bytes each.

    If they are not the same on all nodes, ``chunks`` says which has how many; empty: they are.

    >>> of_nodes(16, 2, 64)["gpus_per_node"], of_nodes(9, 2, 64)["chunks"]
    (8, '32:gpus=5+32:gpus=4')
    """
    processors = max(processors, nodes)
    uneven = gpus % nodes or processors % nodes
    return {
        "processors": processors,
        "nodes": nodes,
        "cores_per_node": -(-processors // nodes),
        "gpus_per_node": -(-gpus // nodes),
        "memory_per_node": memory or float("nan"),
        "chunks": chunk_text(spread(processors, nodes, gpus, memory)) if uneven else "",
    }
