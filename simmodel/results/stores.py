"""Stores of results: SQLite in one transaction, CSV, Parquet, JSON; and reading them back."""

from __future__ import annotations

import csv
import gzip
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from simmodel import __version__
from simmodel.errors import InputError
from simmodel.work.table import Table
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult
    from simmodel.results.result import Result

__all__ = [
    "json_text",
    "load_result",
    "meta",
    "plain",
    "read_scenario",
    "write_csv",
    "write_parquet",
    "write_sqlite",
    "write_text",
]

_MACHINE_TABLES = ("tasks", "transfers", "memory", "cpu_phases", "stopped", "sets", "edges", "runs", "plan", "recorded")
_TABLES = ("jobs", "runs", "events", "places", "changes", "choices", "nodes")
_LISTS = ("nodes", "down")  # columns of tuples; stored as JSON text
_SQLITE_TYPES = {"f": "REAL", "i": "INTEGER", "u": "INTEGER", "b": "INTEGER"}


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: numpy numbers and arrays as Python's, what is not a number as ``None``.

    Raises ``TypeError`` where a part of it cannot be stored.

    >>> plain({"a": np.float64("nan"), "b": np.arange(2), "c": (1, "x")})
    {'a': None, 'b': [0, 1], 'c': [1, 'x']}
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON: {value!r}")


def meta(result: Result | MachineResult) -> dict[str, Any]:
    """Return what a stored result keeps beside its tables, ready for JSON; ``scenario`` repeats the run."""
    own = result.stored_meta() if _of_machine(result) else {"processors": result.processors}
    document: dict[str, Any] = plain(
        {
            "simmodel": __version__,
            "name": result.name,
            **own,
            "started": result.started,
            "ended": result.ended,
            "report": {
                "skipped": result.report.skipped,
                "repaired": result.report.repaired,
                "rejected": result.report.rejected,
            },
            "decisions": result.decisions,
            "scenario": result.scenario,
        }
    )
    return document


def _of_machine(result: Result | MachineResult) -> TypeGuard[MachineResult]:
    return hasattr(result, "stored_tables")


def _tables(result: Result | MachineResult) -> dict[str, Table]:
    """Return the tables that exist, with columns of tuples as JSON text."""
    found = result.stored_tables() if _of_machine(result) else {name: getattr(result, name) for name in _TABLES}
    return {name: _with_texts(table) for name, table in found.items() if table is not None}


def _with_texts(table: Table) -> Table:
    columns = {}
    for name, column in table.items():
        if name in _LISTS and column.dtype == object:
            texts = np.empty(len(column), dtype=object)
            texts[:] = [None if value is None else json.dumps(list(value)) for value in column]
            columns[name] = texts
        else:
            columns[name] = column
    return Table(columns)


def write_text(path: str | Path, text: str) -> None:
    """Write text to a file, compressed where the path ends in ``.gz``."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)


def json_text(document: Mapping[str, Any], path: str | Path | None = None, *, compact: bool = False) -> str:
    """Return a document as JSON, what is not a number as ``null``; where there is a path, write it there too.

    Raises ``TypeError`` where a part of it cannot be stored. ``compact``: on one line.

    >>> json_text({"wait": np.float64("nan")}, compact=True)
    '{"wait": null}'
    """
    text = json.dumps(plain(document), indent=None if compact else 2, allow_nan=False)
    if path is not None:
        write_text(path, text + "\n")
    return text


def write_sqlite(result: Result | MachineResult, path: str | Path) -> None:
    """Write the tables jobs, runs, events, places, changes, choices and meta to an SQLite file, in one transaction.

    A file that exists is replaced. The table meta has a row a key, with JSON as its value. Raises ``InputError`` where
    something that is not a file has this name.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise InputError("a file to write expected, found a folder or a device", source=str(path))
    target.unlink(missing_ok=True)
    connection = sqlite3.connect(target)
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        with connection:
            connection.execute("BEGIN")
            for name, table in _tables(result).items():
                kinds = [_SQLITE_TYPES.get(column.dtype.kind, "") for column in table.values()]
                columns = ", ".join(f'"{key}" {kind}'.rstrip() for key, kind in zip(table, kinds, strict=True))
                connection.execute(f'CREATE TABLE "{name}" ({columns})')
                marks = ", ".join("?" * len(kinds))
                rows = zip(*(column.tolist() for column in table.values()), strict=True)
                connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
            connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
            pairs = [(key, json.dumps(value)) for key, value in meta(result).items()]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", pairs)
    finally:
        connection.close()


def write_csv(result: Result | MachineResult, folder: str | Path) -> None:
    """Write ``jobs.csv``, ``runs.csv`` and so on, and ``meta.json``, into a folder."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, table in _tables(result).items():
        table.to_csv(target / f"{name}.csv")
    write_text(target / "meta.json", json.dumps(meta(result), indent=2) + "\n")


def write_parquet(result: Result | MachineResult, folder: str | Path) -> None:
    """Write ``jobs.parquet``, ``runs.parquet`` and so on, and ``meta.json``, into a folder.

    Raises ``ImportError`` with what to install where pyarrow is absent.
    """
    arrow, parquet = _pyarrow()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, table in _tables(result).items():
        columns = {key: arrow.array(_uniform(column)) for key, column in table.items()}
        parquet.write_table(arrow.table(columns), target / f"{name}.parquet", compression="zstd")
    write_text(target / "meta.json", json.dumps(meta(result), indent=2) + "\n")


def _uniform(column: np.ndarray[Any, Any]) -> Any:
    """Return a column of one kind of value: what mixes becomes text."""
    values = column.tolist() if column.dtype == object else []
    if len({type(value) for value in values if value is not None}) < 2:
        return column
    return [None if value is None else str(value) for value in values]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'simmodel[notebook]'") from None
    return pyarrow, pyarrow.parquet


# ---------------------------------------------------------------------- reading back


def read_scenario(path: str | Path) -> dict[str, Any]:
    """Return the scenario that a stored result carries: platform, workload, policy, options, seed and versions.

    Parameters
    ----------
    path
        an SQLite file, a JSON file (``.gz`` or not), or a folder of CSV or Parquet files

    Raises
    ------
    InputError
        where it is none of them, or holds no scenario
    """
    source = str(path)
    document = _read_meta(Path(path))
    scenario = document.get("scenario")
    if not isinstance(scenario, dict) or not scenario:
        raise InputError("a stored result with its scenario expected, found one without", source=source)
    return scenario


def load_result(path: str | Path) -> Any:
    """Return a stored result: an SQLite file, a JSON file with its tables, or a folder of CSV or Parquet files.

    It is a :class:`~simmodel.results.result.Result`, or a :class:`~simmodel.results.machine.MachineResult`.

    Raises
    ------
    InputError
        where it is none of them, or holds no table of jobs or tasks
    """
    from simmodel.results.result import Result

    source = Path(path)
    document = _read_meta(source)
    of_machine = document.get("kind") == "machine"
    main, names = ("tasks", _MACHINE_TABLES) if of_machine else ("jobs", _TABLES)
    tables: dict[str, Any] = {}
    if source.is_dir():
        for name in names:
            if (file := source / f"{name}.parquet").exists():
                tables[name] = _read_parquet(file)
            elif (file := source / f"{name}.csv").exists():
                tables[name] = _read_csv(file)
    elif "jobs" in document or "tables" in document:
        stored = document["tables"] if of_machine else {"jobs": document["jobs"]}
        tables = {
            name: Table({key: _column(key, values) for key, values in columns.items()})
            for name, columns in stored.items()
        }
    elif _is_sqlite(source):
        tables = _read_sqlite(source, names)
    if main not in tables:
        raise InputError(f"a table of {main} expected, found none", source=str(path))
    counts = document.get("report", {})
    report = Report(**{kind: Counter(counts.get(kind, {})) for kind in ("skipped", "repaired", "rejected")})
    known = {key: document[key] for key in ("name", "started", "ended", "decisions", "scenario")}
    if of_machine:
        from simmodel.records.task_columns import restored

        return restored(tables, document, report=report, **known)
    return Result(report=report, processors=document["processors"], **tables, **known)


def _is_sqlite(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def _read_meta(path: Path) -> dict[str, Any]:
    source = str(path)
    if not path.exists():
        raise InputError("no such file or folder", source=source)
    if path.is_dir():
        if not (path / "meta.json").exists():
            raise InputError("a folder with meta.json expected, found none in it", source=source)
        path = path / "meta.json"
    elif _is_sqlite(path):
        connection = sqlite3.connect(path)
        try:
            return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"a stored result expected, found a database without it ({error})", source=source
            ) from None
        finally:
            connection.close()
    opener = gzip.open if source.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            document = json.load(file)
    except (ValueError, OSError) as error:
        raise InputError(f"an SQLite file, JSON or a folder of tables expected, found {error}", source=source) from None
    if not isinstance(document, dict) or "simmodel" not in document:
        raise InputError("a stored result expected, found JSON of another kind", source=source)
    return document


def _column(name: str, values: list[Any]) -> np.ndarray[Any, Any]:
    """Make a column of what a store holds: numbers where all are, nan where nothing stands, else text."""
    column: np.ndarray[Any, Any]
    if name in _LISTS and not all(isinstance(value, (int, float)) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = [None if value in (None, "") else tuple(json.loads(value)) for value in values]
        return column
    known = [value for value in values if value is not None and value != ""]
    if all(isinstance(value, (int, float)) for value in known) and known:
        return np.array([math.nan if value is None or value == "" else value for value in values])
    return np.array(
        ["" if value is None else str(value) for value in values], dtype=object if name == "reason" else None
    )


def _read_sqlite(path: Path, names: Sequence[str]) -> dict[str, Table]:
    connection = sqlite3.connect(path)
    tables = {}
    try:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in names:
            if name in present:
                cursor = connection.execute(f'SELECT * FROM "{name}"')
                keys = [entry[0] for entry in cursor.description]
                columns = list(zip(*cursor, strict=True)) or [()] * len(keys)
                tables[name] = Table({key: _column(key, list(c)) for key, c in zip(keys, columns, strict=True)})
    finally:
        connection.close()
    return tables


def _read_csv(path: Path) -> Table:
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    names, columns = rows[0], list(zip(*rows[1:], strict=True)) or [()] * len(rows[0])
    return Table({name: _column(name, _numbers(list(c), name)) for name, c in zip(names, columns, strict=True)})


def _numbers(texts: list[str], name: str) -> list[Any]:
    """Return texts as numbers where all that is there is a number."""
    if name in _LISTS and any(text.startswith("[") for text in texts):
        return texts
    for kind in (int, float):
        try:
            return [kind(text) if text != "" else "" for text in texts]
        except ValueError:
            continue
    return texts


def _read_parquet(path: Path) -> Table:
    _, parquet = _pyarrow()
    table = parquet.read_table(path)
    return Table({name: _column(name, table.column(name).to_pylist()) for name in table.column_names})
