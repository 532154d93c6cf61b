"""The jobs of CGSim: three dialects of CSV, and the table of its SQLite files.

Source: CGSim, https://github.com/REDWOOD24/CGSim; the columns are those of PanDA's job records.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite, nan
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import numpy as np

from simmodel.formats.tables import csv_rows, instant
from simmodel.foundation.errors import BadLine, InputError, shown
from simmodel.foundation.loading import Source, is_strict, read_bytes, read_lines, reader, title_of
from simmodel.work.job import Job
from simmodel.work.task import File
from simmodel.work.workload import Report, Workload

__all__ = ["read_cgsim_jobs"]

Record = Mapping[str, str]


@reader
def read_cgsim_jobs(
    source: Source,
    *,
    gflops: Mapping[str, float] | None = None,
    reference: float = 1.0,
    most: int | None = None,
    skip_bad_rows: bool = False,
) -> Workload:
    """Read jobs of PanDA as CGSim does, from CSV or the table ``JOBS`` of an SQLite file, also compressed.

    Three dialects are distinguished by their columns, in any case and order: the records of PanDA (``pandaid``,
    ``creationtime`` as a date, ``files_info``), the short form (``creationtime`` in seconds), and exported results
    (``job_id``, ``site``, ``cores``, ``cpu_consumption_time``; without submit times: all at 0).

    Times are relative to the first creation. The run time is ``cpuconsumptiontime`` on a core of the job's own site:
    times ``gflops`` of the site, divided by ``reference``. A site may be given by its number. Columns
    ``recorded_start`` and ``recorded_end`` hold the recorded instants, where the file has them.

    Parameters
    ----------
    source
        a path or an open file
    gflops
        flop/s that make work of the CPU time recorded at a site, by site; default: 1 for every site
    reference
        flop/s of a core of speed 1
    most
        the largest number of jobs to read
    skip_bad_rows
        skip bad rows, counted by reason in ``report.skipped``; otherwise they are errors, unless
        :func:`~simmodel.foundation.loading.reading` says that bad lines are skipped

    Raises
    ------
    InputError
        the file cannot be read, has other columns, or has a bad row: with its line and column

    >>> import io
    >>> text = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount,inputfilebytes,outputfilebytes\\n"
    >>> jobs = read_cgsim_jobs(io.StringIO(text + "7,10,100,BNL,8,0,50\\n8,25,300,BNL,1,0,0\\n"))
    >>> jobs["submit"], jobs["run"], jobs["processors"], jobs["site"].tolist()
    (array([ 0., 15.]), array([100., 300.]), array([8, 1]), ['BNL', 'BNL'])
    """
    name, columns, rows = _table(source)
    dialect = _dialect(columns, name)
    report = Report()
    found: list[_Row] = []
    for place, cells in rows:
        if most is not None and len(found) == most:
            break
        try:
            if len(cells) != len(columns):
                raise InputError(f"must have {len(columns)} cells, got {len(cells)}", place="cells")
            found.append(dialect(dict(zip(columns, cells, strict=True)), gflops))
        except InputError as bad:
            if not skip_bad_rows and is_strict(None):
                raise BadLine(f"{bad.place}: {bad.message}", source=name, place=place) from None
            report.skipped[f"bad {bad.place}"] += 1
    if not found:
        raise InputError("no jobs", source=name)
    return _workload(found, gflops, reference, name, report)


class _Row(NamedTuple):
    job: int | str
    submit: float
    start: float
    end: float
    site: str
    cores: int
    seconds: float
    inputs: tuple[str, ...]
    sizes: Mapping[str, float]
    output: float
    outcome: str


# ---------------------------------------------------------------------- tables


def _table(source: Source) -> tuple[str, list[str], Iterator[tuple[str, Sequence[str]]]]:
    """Return the name, the columns in lower case, and the rows with their places."""
    data, name = read_bytes(source, binary=True)
    if data[:16] == b"SQLite format 3\0":
        return name, *_sqlite(data, name)
    lines, _ = read_lines(io.BytesIO(data))
    rows = csv_rows((text for _, text in lines), name)
    _, head = next(rows, (0, None))
    if head is None:
        raise InputError("must begin with a line of column names, got an empty file", source=name)
    cells = ((f"line {number}", [cell.strip() for cell in row]) for number, row in rows if row)
    return name, [cell.strip().lower() for cell in head], cells


def _sqlite(data: bytes, name: str) -> tuple[list[str], Iterator[tuple[str, Sequence[str]]]]:
    with NamedTemporaryFile(suffix=".sqlite") as file:
        Path(file.name).write_bytes(data)
        database = sqlite3.connect(f"file:{file.name}?mode=ro", uri=True)
        try:
            cursor = database.execute("SELECT * FROM JOBS")
            columns = [each[0].lower() for each in cursor.description]
            found = [["" if cell is None else str(cell) for cell in row] for row in cursor]
        except sqlite3.Error as error:
            raise InputError(f"must have a table JOBS: {error}", source=name) from None
        finally:
            database.close()
    kept = [i for i, column in enumerate(columns) if column != "_id"]
    rows = ((f"row {number}", [row[i] for i in kept]) for number, row in enumerate(found, 1))
    return [columns[i] for i in kept], rows


# ---------------------------------------------------------------------- dialects

_OUTCOMES = {"failed": "failed", "cancelled": "cancelled", "closed": "cancelled"}
"""Final states of PanDA in which a job did not complete."""

Dialect = Callable[[Record, Mapping[str, float] | None], _Row]


def _dialect(columns: list[str], name: str) -> Dialect:
    """Return the function that reads a row of a table with these columns."""
    if len(set(columns)) < len(columns):
        twice = next(column for i, column in enumerate(columns) if column in columns[:i])
        raise InputError(f"duplicate column {twice!r}", source=name, place="line 1")
    needed: tuple[str, ...]
    if "pandaid" in columns:
        needed, dialect = ("creationtime", "cpuconsumptiontime", "computingsite", "corecount"), _panda
    elif "job_id" in columns:
        needed, dialect = ("site", "cores", "cpu_consumption_time"), _exported
    else:
        found = ", ".join(columns[:8])
        raise InputError(f"must have a column pandaid or job_id, got {shown(found)}", source=name, place="line 1")
    for column in needed:
        if column not in columns:
            raise InputError(f"missing column {column}", source=name, place="line 1")
    return dialect


def _number(record: Record, column: str, *, least: float = 0.0, default: float | None = None) -> float:
    text = record.get(column, "")
    if not text and default is not None:
        return default
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"must be a number, got {shown(text)}", place=column) from None
    if not (isfinite(number) and number >= least):
        raise InputError(f"must be a finite number >= {least:g}, got {shown(text)}", place=column)
    return number


def _cores(record: Record, column: str) -> int:
    cores = _number(record, column, least=1)
    if cores != int(cores) or cores >= 2**31:
        raise InputError(f"must be a whole number >= 1, got {shown(record[column])}", place=column)
    return int(cores)


def _time(record: Record, column: str) -> float:
    """Return an instant in seconds: a number, an ISO date, or month/day/year hour:minute; nan if it is empty."""
    text = record.get(column, "")
    if not text:
        return nan
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        if isfinite(number):
            return number
        raise InputError(f"must be an instant, got {shown(text)}", place=column)
    for form in ("%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    try:
        return instant(text)
    except ValueError:
        raise InputError(f"must be an instant, got {shown(text)}", place=column) from None


def _name(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def _panda(record: Record, gflops: Mapping[str, float] | None) -> _Row:
    job = record["pandaid"]
    if not job:
        raise InputError("must not be empty", place="pandaid")
    created = _time(record, "creationtime")
    if created != created:
        raise InputError("must not be empty", place="creationtime")
    sizes = _listed(record.get("files_info", ""))
    return _Row(
        _name(job),
        created,
        _time(record, "starttime"),
        _time(record, "endtime"),
        _site(record, "computingsite", gflops),
        _cores(record, "corecount"),
        _number(record, "cpuconsumptiontime"),
        tuple(sizes),
        sizes,
        _number(record, "outputfilebytes", default=0.0),
        _OUTCOMES.get(record.get("jobstatus", ""), "completed"),
    )


def _exported(record: Record, gflops: Mapping[str, float] | None) -> _Row:
    job = record["job_id"]
    if not job:
        raise InputError("must not be empty", place="job_id")
    seconds = _number(record, "cpu_consumption_time")
    outcome = _OUTCOMES.get(record.get("status", ""), "completed")
    site, cores = _site(record, "site", gflops), _cores(record, "cores")
    return _Row(_name(job), 0.0, nan, nan, site, cores, seconds, (), {}, 0.0, outcome)


def _site(record: Record, column: str, gflops: Mapping[str, float] | None) -> str:
    """Return the name of a site, which may be given by its number."""
    text = record[column]
    if not text:
        raise InputError("must not be empty", place=column)
    if gflops is not None and text not in gflops and text.isascii() and text.isdigit():
        if len(text) > 18 or int(text) >= len(gflops):
            raise InputError(
                f"must be the number of one of {len(gflops)} sites, from 0 on, got {shown(text)}", place=column
            )
        return list(gflops)[int(text)]
    return text


def _listed(text: str) -> Mapping[str, float]:
    """Return the sizes of the input files by name."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        raise InputError(f"must be JSON, got {shown(text)}", place="files_info") from None
    if not isinstance(found, dict):
        raise InputError(f"must be names of files with their bytes, got {shown(text)}", place="files_info")
    for file, size in found.items():
        if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < 1e300:
            raise InputError(f"file {file!r}: must be a number of bytes >= 0, got {shown(size)}", place="files_info")
    return found


# ---------------------------------------------------------------------- the workload


def _workload(
    rows: list[_Row], gflops: Mapping[str, float] | None, reference: float, name: str, report: Report
) -> Workload:
    first = min(row.submit for row in rows)
    known = gflops or {}
    jobs = [
        Job(
            id=row.job,
            submit=row.submit - first,
            processors=row.cores,
            run=row.seconds * known.get(row.site, reference) / reference,
            site=row.site,
            inputs=row.inputs,
            outputs=[File(f"user.output.{row.job}.00001.root", row.output)] if row.output else (),
            outcome=row.outcome,
        )
        for row in rows
    ]
    plain = not any(job.inputs or job.outputs for job in jobs)
    workload = Workload.from_jobs(jobs, name=title_of(name))
    columns: dict[str, Any] = {}
    if any(row.start == row.start for row in rows):
        columns["recorded_start"] = np.array([row.start - first for row in rows])
        columns["recorded_end"] = np.array([row.end - first for row in rows])
    table = {key: workload[key] for key in workload.table.names if key != "requested"} | columns
    made = Workload(table, name=workload.name, report=report)
    made.specs = None if plain else jobs
    return made
