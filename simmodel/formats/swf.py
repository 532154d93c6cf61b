"""The Standard Workload Format (SWF) of the Parallel Workloads Archive: read and write logs of batch systems.

Source: Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999;
Feitelson, Tsafrir, Krakov, "Experience with using the Parallel Workloads Archive", JPDC 74(10), 2014.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.numbers import parse, read_columns_of_numbers
from simmodel.foundation.errors import BadLine, InputError, clipped, shown
from simmodel.foundation.loading import (
    Source,
    decode,
    is_strict,
    peek,
    read_blocks,
    read_bytes,
    reader,
    source_name,
    title_of,
)
from simmodel.foundation.writing import write_text
from simmodel.work.chunks import ChunkedWorkload
from simmodel.work.outcomes import OUTCOMES, STATUS_OF, leave_queue, outcomes_in
from simmodel.work.workload import Report, Workload, cancelled_waiting

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FIELDS", "WHOLE", "as_column", "read_swf", "swf_in_chunks", "write_swf", "wrong_number"]

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
    "preceding",
    "think_time",
)
"""The names of the 18 columns of a line, in order; as in :data:`simmodel.work.workload.COLUMNS`."""

_TIMES = frozenset({"wait", "run", "cpu_time", "requested", "think_time"})
_MEMORY = frozenset({"used_memory", "requested_memory"})
WHOLE = frozenset(FIELDS) - _TIMES - _MEMORY - {"submit"}
"""The columns of whole numbers."""

_COMMENT = re.compile(rb"^[ \t]*;[^\n]*", re.MULTILINE)
_KEY = re.compile(r"\s*([A-Z]\w*)\s*:(?:\s+|$)(.*)")
_NO_JOBS = "no jobs: must have lines of 18 numbers (Standard Workload Format)"
_LOST = "promised by the header, not in the file"
_NAMES = {"queue": "Queue", "partition": "Partition", "user": "User", "group": "Group"}


@reader
def read_swf(source: Source, *, strict: bool | None = None) -> Workload:
    """Read a log in the Standard Workload Format.

    Memory is in bytes (KB in the format); the unknown value -1 becomes nan in columns of times and memory, and stays -1
    in columns of whole numbers. Times are those of the log. Comments ``; Key: value`` become the workload's ``header``
    in their order; the values of a repeated key are joined as lines. The machine's size is ``MaxProcs``, else
    ``MaxNodes``.

    A job with status 5, a wait and a run time of 0 or none was cancelled while it waited: it gets a ``cancel`` time in
    place of these.

    A truncated last line (too few fields and no line break) is skipped and counted in the report, and so are jobs
    counted by the header but missing from the file.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    strict
        reject a line that is not 18 numbers; ``False``: skip it and count it in ``report.skipped``; ``None``: as
        :func:`~simmodel.foundation.loading.reading` says

    Raises
    ------
    InputError
        the file cannot be read, is not SWF, has no jobs, or has a bad line (the message has its number)

    >>> import io
    >>> log = read_swf(io.StringIO("; MaxProcs: 12\\n1 0 -1 100 5 -1 -1 5 120 -1 1 7 -1 -1 -1 -1 -1 -1\\n"))
    >>> log.processors, log["requested"], log["user"]
    (12, array([120.]), array([7]))
    """
    data, name = read_bytes(source)
    report = Report()
    columns = _columns(data, name, is_strict(strict), report)
    jobs = len(columns["job"])
    if not jobs:
        raise InputError(_NO_JOBS, source=name)
    header = _header(data)
    promised = _promised(header) - jobs - report.skipped.total()
    if promised > 0:
        report.skipped[_LOST] = promised
    return Workload(
        columns,
        name=title_of(name, ".swf"),
        processors=_machine_size(header),
        header=header,
        report=report,
    )


def swf_in_chunks(file: Path | IO[bytes], *, strict: bool | None = None) -> ChunkedWorkload:
    """Return a log in the Standard Workload Format that is read in chunks, block by block of the file.

    Comments after the first job are ignored; otherwise as :func:`read_swf`.

    >>> import io
    >>> log = swf_in_chunks(io.BytesIO(b"; MaxProcs: 12\\n1 0 -1 100 5 -1 -1 5 120 -1 1 7 -1 -1 -1 -1 -1 -1\\n"))
    >>> log.processors, [len(chunk) for chunk in log]
    (12, [1])
    """
    name = source_name(file)
    header = _header(peek(file, 1 << 20))
    title = title_of(name, ".swf")
    refused = is_strict(strict)

    def chunks() -> Iterator[Workload]:
        jobs = skipped = lines = 0
        for block in read_blocks(file):
            report = Report()
            columns = _columns(block, name, refused, report, lines, begun=jobs > 0)
            lines += block.count(b"\n")
            jobs += len(columns["job"])
            skipped += report.skipped.total()
            yield Workload(columns, name=title, report=report)
        if not jobs:
            raise InputError(_NO_JOBS, source=name)
        if (promised := _promised(header) - jobs - skipped) > 0:
            report = Report()
            report.skipped[_LOST] = promised
            yield Workload(_columns(b"", name, refused, report), name=title, report=report)

    total = _promised(header)
    return ChunkedWorkload(
        chunks, name=title, processors=_machine_size(header), header=header, total=total if total > 0 else None
    )


def _columns(
    data: bytes, name: str, strict: bool, report: Report, before: int = 0, *, begun: bool = False
) -> dict[str, NDArray[Any]]:
    """Return the columns of a text; ``before``: lines, and perhaps jobs, came before."""
    body = data[_head_length(data) :]
    columns = read_columns_of_numbers(_COMMENT.sub(b"", body) if b";" in body else body, 18)
    if columns is None or not _all_whole(columns):
        columns = _line_by_line(data, name, strict, report, before, begun)
    found = {field: as_column(field, values) for field, values in zip(FIELDS, columns, strict=True)}
    leave_queue(found)
    return found


def _head_length(data: bytes) -> int:
    """Return the length of the comments and blank lines at the beginning."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        line = data[at:end].strip()
        if line and not line.startswith(b";"):
            break
        at = end
    return at


def as_column(field: str, values: NDArray[np.number]) -> NDArray[np.number]:
    """Return the numbers of a column of the file as simmodel has them: in bytes, unknown ones nan (see above)."""
    if field in WHOLE:
        return values.astype(np.int64, copy=False)
    values = values.astype(np.float64, copy=False)
    if field != "submit":
        values[values == -1] = np.nan
    if field in _MEMORY:
        values *= 1024
    return values


def _all_whole(columns: list[NDArray[np.number]]) -> bool:
    """Return whether all columns of whole numbers have only such values."""
    return all(
        values.dtype == np.int64 or bool(((values == np.floor(values)) & (np.abs(values) < 2**63)).all())
        for field, values in zip(FIELDS, columns, strict=True)
        if field in WHOLE
    )


def _line_by_line(data: bytes, name: str, strict: bool, report: Report, before: int, begun: bool) -> list[NDArray[Any]]:
    """Read the lines one by one, to report or skip the bad ones."""
    rows: list[list[int | float]] = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith(b";"):
            continue
        wrong = _wrong_field(fields)
        if len(fields) != 18:
            wrong = f"must have 18 numbers, got {len(fields)} field{'s' * (len(fields) != 1)}"
        if wrong is None:
            rows.append([parse(field) for field in fields])
        elif (rows or begun) and number == len(lines) and _is_cut_off(fields):
            report.skipped["last line, cut off"] += 1
        elif strict:
            if not (rows or begun):
                wrong = f"not a log in the Standard Workload Format: {wrong}"
            excerpt = clipped(decode(line).strip(), 80)
            raise BadLine(f"{wrong}: {excerpt!r}", source=name, place=f"line {before + number}")
        else:
            report.skipped["lines that are not 18 numbers"] += 1
    return [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.empty(0)] * 18


def _is_cut_off(fields: list[bytes]) -> bool:
    """Return whether this is the beginning of a valid line, possibly up to the sign of a number."""
    return len(fields) <= 18 and _wrong_field(fields[:-1] if fields[-1] == b"-" else fields) is None


def _wrong_field(fields: list[bytes]) -> str | None:
    return next(filter(None, map(wrong_number, FIELDS, fields)), None)


def wrong_number(name: str, field: bytes | str) -> str | None:
    """Return the error of a number in a column, ``None`` if it is valid.

    >>> wrong_number("processors", "1.5")
    "column 5 (processors): must be a whole number, got '1.5'"
    """
    try:
        number = parse(field)
        if isfinite(number) and (name not in WHOLE or (number == int(number) and abs(number) < 2**63)):
            return None
        kind = "a whole number" if name in WHOLE else "a finite number"
    except ValueError:
        kind = "a number"
    found = decode(field) if isinstance(field, bytes) else field
    return f"column {FIELDS.index(name) + 1} ({name}): must be {kind}, got {shown(found)}"


def _header(data: bytes) -> dict[str, str]:
    """Collect the comments; indented text without a key continues the previous value, other text is a ``Note``."""
    header: dict[str, list[str]] = {}
    key, head = "Note", _head_length(data)
    for comment in _COMMENT.findall(data if data.find(b";", head) >= 0 else data[:head]):
        text = decode(comment).strip()[1:].rstrip()
        if not text:
            continue
        found = _KEY.fullmatch(text)
        if found:
            key, value = found[1], found[2]
        else:
            key, value = (key if text.startswith("   ") and header else "Note"), text.strip()
        header.setdefault(key, []).append(value)
    return {key: "\n".join(values) for key, values in header.items()}


def _whole(header: Mapping[str, str], key: str) -> int | None:
    found = re.match(r"\s*(\d+)", header.get(key, ""))
    return int(found[1]) if found and int(found[1]) > 0 else None


def _machine_size(header: Mapping[str, str]) -> int | None:
    return _whole(header, "MaxProcs") or _whole(header, "MaxNodes")


def _promised(header: Mapping[str, str]) -> int:
    """Return the number of jobs that the header implies: a cleaned log still counts the removed ones."""
    return (_whole(header, "MaxRecords") or _whole(header, "MaxJobs") or 0) - _removed(header)


def _removed(header: Mapping[str, str]) -> int:
    return sum(int(n) for n in re.findall(r"(\d+) jobs removed", header.get("Note", "")))


def write_swf(workload: Workload, path: str | Path) -> Report:
    """Write a workload in the Standard Workload Format; a path that ends in ``.gz`` is compressed.

    Reading the file gives the same 18 columns and the same header, except for a ``MaxRecords`` that counts more jobs.
    Users, groups, queues and partitions given as text are numbered from 1 in the order of their first jobs, and the
    header lists the numbers; job names are numbered likewise. The report lists the columns that the format lacks, and
    counts infinite requested times, which are written as missing.

    Parameters
    ----------
    workload
        the jobs, with the columns of :data:`simmodel.work.workload.COLUMNS`; missing ones are written as -1
    path
        the file to write

    >>> import tempfile, pathlib
    >>> log = Workload({"submit": [0, 5], "run": [10, 2.5], "processors": [1, 4], "user": ["ann", "bob"]}, processors=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_swf(log, pathlib.Path(folder, "two.swf"))
    ...     print(pathlib.Path(folder, "two.swf").read_text().strip())
    ; MaxRecords: 2
    ; MaxProcs: 4
    ; User: 1 ann
    ; User: 2 bob
    1 0 -1 10 1 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1
    2 5 -1 2.5 4 -1 -1 -1 -1 -1 -1 2 -1 -1 -1 -1 -1 -1
    """
    header = dict(workload.header)
    promised = _promised(header)
    if promised <= 0 or promised > len(workload):  # missing, or that of a log of which these jobs are a part
        header["MaxRecords"] = str(len(workload) + _removed(header))
    if workload.processors and _machine_size(header) != workload.processors:
        header["MaxProcs"] = str(workload.processors)
    columns = []
    jobs: dict[Any, int] = {}
    told = _told(workload)
    for field in FIELDS:
        if field not in told:
            columns.append(["-1"] * len(workload))
            continue
        values = told[field]
        if values.dtype.kind not in "iufb":
            numbers = _numbered(values)
            if field == "job":
                jobs = numbers
            elif field == "preceding":
                numbers = {text: jobs.get(text, -1) for text in numbers}
            elif field in _NAMES:
                lines = [header[_NAMES[field]]] if _NAMES[field] in header else []
                header[_NAMES[field]] = "\n".join(lines + [f"{n} {text}" for text, n in numbers.items() if n > 0])
            columns.append([str(numbers[text]) for text in values.tolist()])
        else:
            columns.append(_written(field, values))
    comments = [f"; {key}: {line}".rstrip() for key, value in header.items() for line in value.split("\n")]
    write_text(path, "\n".join([*comments, *map(" ".join, zip(*columns, strict=True))]) + "\n", ".swf")
    report = Report()
    endless = int(np.isinf(workload.get("requested")).sum())
    if endless:
        report.repaired["infinite requested time: written as missing"] += endless
    for name in workload.table.names:
        if name not in FIELDS and name not in _SAID:
            report.skipped[f"column {name}: no place for it in SWF"] += 1
    return report


_SAID = ("outcome", "cancel")  # columns that are told by status and wait


def _told(workload: Workload) -> dict[str, NDArray[Any]]:
    """Return the columns of a workload with the status of outcomes, and the waits of jobs cancelled in the queue."""
    columns = dict(workload.table.items())
    outcomes = outcomes_in(workload.table)
    if outcomes is not None and "outcome" in columns:
        numbers = np.array([STATUS_OF.get(word, 0) for word in OUTCOMES])[outcomes.codes]
        columns["status"] = np.where(np.asarray(columns["outcome"]) == "", workload.get("status"), numbers)
    if "cancel" in columns:
        gone = cancelled_waiting(workload.table)
        waited = columns["cancel"] - columns["submit"]
        columns["wait"] = np.where(gone, waited, workload.get("wait", np.nan))
        columns["status"] = np.where(gone, STATUS_OF["cancelled"], columns.get("status", workload.get("status")))
    return columns


def _numbered(values: NDArray[np.generic]) -> dict[Any, int]:
    """Number texts from 1 in order of appearance; a missing text stays -1."""
    texts = [text for text in dict.fromkeys(values.tolist()) if text not in ("", None)]
    return {"": -1, None: -1, **{text: number for number, text in enumerate(texts, 1)}}


def _written(field: str, values: NDArray[np.number]) -> list[str]:
    """Write numbers in the shortest form that reads back exactly: 3.0 as 3."""
    if values.dtype.kind == "f":
        values = values / 1024 if field in _MEMORY else values
        values = np.where(np.isfinite(values), values, -1)
        if not (np.abs(values) < 2**53).all() or (values != np.floor(values)).any():
            return [str(int(v)) if v == int(v) else repr(v) for v in values.tolist()]
    elif field in _MEMORY:
        return _written(field, values.astype(np.float64))
    return list(map(str, values.astype(np.int64).tolist()))
