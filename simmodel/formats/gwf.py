"""The Grid Workloads Format (GWF) of the Grid Workloads Archive: read logs of grids.

Source: Iosup et al., "The Grid Workloads Archive", Future Generation Computer Systems 24(7), 2008.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.errors import InputError, shown
from simmodel.formats.cell_columns import names
from simmodel.formats.numbers import parse
from simmodel.loading import Source, read_lines, reader
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FIELDS", "read_gwf"]

FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "processors",
    "cpu_time",
    "used_memory",
    "requested_processors",
    "requested",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "submit_site",
    "run_site",
    "structure",
    "structure_parameters",
    "used_network",
    "used_disk",
    "used_resources",
    "platform",
    "requested_network",
    "requested_disk",
    "requested_resources",
    "virtual_organisation",
    "project",
)
"""The names of the 29 columns of a line, in order; SWF lacks the last ones."""

_AFTER_SITES = FIELDS.index("structure")
_TIMES = ("wait", "run", "cpu_time", "requested")
_MEMORY = ("used_memory", "requested_memory")
_NUMBERS = frozenset({"submit", *_TIMES, *_MEMORY})
_COUNTS = frozenset({"processors", "requested_processors", "status"})
_NAMES = ("job", "user", "group", "executable", "queue", "partition", "submit_site", "run_site")
_KEY = re.compile(r"([A-Z]\w*)\s*:(?:\s+|$)(.*)")


@reader
def read_gwf(source: Source, *, strict: bool = True) -> Workload:
    """Read a log in the Grid Workloads Format.

    Users, groups, queues, partitions and sites are text, or integers if all of a column are. Memory is in bytes (KB in
    the format); the unknown value -1 becomes nan in columns of times and memory; a cancelled job has no run time.
    Submit times are Unix seconds. Columns that SWF lacks are kept as text if any job has a value (``submit_site``,
    ``run_site``, ``structure`` and so on). A line may lack the last column, or have an unnamed one after the two sites.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        reject a bad line; otherwise skip it and count it in ``report.skipped``

    Raises
    ------
    InputError
        the file cannot be read, is not GWF, has no jobs, or has a bad line (the message has its number)

    >>> import io
    >>> fields = ["7", "1132444805", "-1", "83", "1"] + ["-1"] * 5 + ["1", "U1", "G1"] + ["-1"] * 16
    >>> log = read_gwf(io.StringIO("# JobID ...\\n" + "\\t".join(fields)))
    >>> log["run"], log["user"]
    (array([83.]), array(['U1'], dtype='<U2'))
    """
    lines, name = read_lines(source)
    report = Report()
    header: dict[str, list[str]] = {}
    rows: list[list[str]] = []
    for number, line in lines:
        stripped = line.strip()
        if not stripped:
            continue
        if stripped.startswith("#"):
            found = _KEY.fullmatch(stripped.lstrip("# \t"))
            key, value = (found[1], found[2]) if found else ("Note", stripped.lstrip("# \t"))
            header.setdefault(key, []).append(value)
            continue
        fields = _fields(line)
        wrong = _error_in(fields)
        if wrong is None:
            rows.append(fields)
        elif strict:
            wrong = wrong if rows else f"not a log in the Grid Workloads Format: {wrong}"
            raise InputError(wrong, source=name, place=f"line {number}")
        else:
            report.skipped["lines that are not 29 fields"] += 1
    if not rows:
        raise InputError("no jobs: must have lines of 29 fields (Grid Workloads Format)", source=name)
    columns: dict[str, NDArray[Any]] = {}
    for field, texts in zip(FIELDS, zip(*rows, strict=True), strict=True):
        column = _as_column(field, texts)
        if column is not None:
            columns[field] = column
    return Workload(
        columns,
        name=Path(name).name.removesuffix(".gz").removesuffix(".gwf"),
        header={key: "\n".join(values) for key, values in header.items()},
        report=report,
    )


def _fields(line: str) -> list[str]:
    """Return the 29 fields of a line, or all its fields if it has no known form."""
    fields = [field.strip() for field in line.strip("\r\n").split("\t")] if "\t" in line else line.split()
    if len(fields) == len(FIELDS) + 1:
        del fields[-1 if not fields[-1] else _AFTER_SITES]
    if len(fields) == len(FIELDS) - 1:
        fields.append("-1")
    return fields


def _error_in(fields: list[str]) -> str | None:
    if len(fields) != len(FIELDS):
        return f"must have 29 fields, got {len(fields)}"
    for position, (name, field) in enumerate(zip(FIELDS[:11], fields, strict=False), 1):
        if name not in _NAMES and field not in ("", "-1"):
            try:
                number = parse(field)
            except ValueError:
                return f"column {position} ({name}): must be a number, got {shown(field)}"
            if not np.isfinite(number) or (name in _COUNTS and (number != int(number) or abs(number) >= 2**63)):
                kind = "whole" if name in _COUNTS else "finite"
                return f"column {position} ({name}): must be a {kind} number, got {shown(field)}"
    return None


def _as_column(field: str, texts: tuple[str, ...]) -> NDArray[Any] | None:
    if field in _NUMBERS:
        values = np.array([parse(text or "-1") for text in texts], dtype=np.float64)
        if field != "submit":
            values[values == -1] = np.nan
        return values * 1024 if field in _MEMORY else values
    if field in _COUNTS:
        return np.array([int(parse(text or "-1")) for text in texts], dtype=np.int64)
    if field in _NAMES:
        return names(texts)
    return None if all(text in ("", "-1") for text in dict.fromkeys(texts)) else names(texts)
