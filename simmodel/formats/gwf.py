"""The Grid Workloads Format (GWF) of the Grid Workloads Archive: read logs of grids.

Source: Iosup et al., "The Grid Workloads Archive", Future Generation Computer Systems 24(7), 2008.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.numbers import parse
from simmodel.formats.swf import FIELDS as BATCH, WHOLE, as_column, wrong_number
from simmodel.formats.tables import names, taken
from simmodel.foundation.errors import InputError, NoJobs
from simmodel.foundation.loading import Source, read_lines, reader, title_of
from simmodel.work.outcomes import leave_queue
from simmodel.work.workload import Report, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FIELDS", "read_gwf"]

FIELDS = (
    *BATCH[:16],
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
"""The names of the 29 columns of a line, in order: the first 16 of SWF, and more."""

_AFTER_SITES = FIELDS.index("structure")
_NUMBERS = FIELDS[1:11]
_NAMES = ("job", "user", "group", "executable", "queue", "partition", "submit_site", "run_site")
_KEY = re.compile(r"([A-Z]\w*)\s*:(?:\s+|$)(.*)")


@reader
def read_gwf(source: Source, *, strict: bool | None = None) -> Workload:
    """Read a log in the Grid Workloads Format.

    Users, groups, queues, partitions and sites are text, or integers if all of a column are. Memory is in bytes (KB in
    the format); the unknown value -1 becomes nan in columns of times and memory; a cancelled job has no run time, and
    a ``cancel`` time if its wait is known. Submit times are Unix seconds. Columns that SWF lacks are kept as text if
    any job has a value (``submit_site``, ``run_site``, ``structure`` and so on). A line may lack the last column, or
    have an unnamed one after the two sites.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        reject a bad line; ``False``: skip it and count it in ``report.skipped``; ``None``: as
        :func:`~simmodel.foundation.loading.reading` says

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

    def take(line: str) -> list[str] | None:
        stripped = line.strip()
        if not stripped:
            return None
        if not stripped.startswith("#"):
            return _fields(line)
        found = _KEY.fullmatch(stripped.lstrip("# \t"))
        key, value = (found[1], found[2]) if found else ("Note", stripped.lstrip("# \t"))
        header.setdefault(key, []).append(value)
        return None

    skipped = f"lines that are not {len(FIELDS)} fields"
    rows = list(taken(lines, take, name, report, strict=strict, skipped=skipped, log="Grid Workloads Format"))
    if not rows:
        raise NoJobs("no jobs: must have lines of 29 fields (Grid Workloads Format)", name, report=report)
    columns: dict[str, NDArray[Any]] = {}
    for field, texts in zip(FIELDS, zip(*rows, strict=True), strict=True):
        column = _as_column(field, texts)
        if column is not None:
            columns[field] = column
    leave_queue(columns)
    return Workload(
        columns,
        name=title_of(name, ".gwf"),
        header={key: "\n".join(values) for key, values in header.items()},
        report=report,
    )


def _fields(line: str) -> list[str]:
    """Return the 29 fields of a line; raises ``ValueError``."""
    fields = [field.strip() for field in line.strip("\r\n").split("\t")] if "\t" in line else line.split()
    if len(fields) == len(FIELDS) + 1:
        del fields[-1 if not fields[-1] else _AFTER_SITES]
    if len(fields) == len(FIELDS) - 1:
        fields.append("-1")
    if len(fields) != len(FIELDS):
        raise InputError(f"must have {len(FIELDS)} fields, got {len(fields)}")
    for name, field in zip(_NUMBERS, fields[1:11], strict=True):
        if field not in ("", "-1") and (wrong := wrong_number(name, field)):
            raise InputError(wrong)
    return fields


def _as_column(field: str, texts: tuple[str, ...]) -> NDArray[Any] | None:
    if field in _NUMBERS:
        kind = np.int64 if field in WHOLE else np.float64
        return as_column(field, np.array([parse(text or "-1") for text in texts], dtype=kind))
    if field in _NAMES:
        return names(texts)
    return None if all(text in ("", "-1") for text in dict.fromkeys(texts)) else names(texts)
