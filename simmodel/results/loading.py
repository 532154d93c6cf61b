"""Reading of stored results."""

from __future__ import annotations

import csv
import gzip
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.errors import InputError, Plain
from simmodel.results.machine import MachineResult
from simmodel.results.result import Result
from simmodel.results.stored import Common
from simmodel.results.stores import LISTS, pyarrow
from simmodel.work.table import Table, cell_text
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["load_result", "read_scenario"]


def read_scenario(path: str | Path) -> dict[str, Any]:
    """Return the scenario of a stored result: platform, workload, policy, options, seed and versions.

    Parameters
    ----------
    path
        an SQLite file, a JSON file (``.gz`` or not), or a folder of CSV or Parquet files

    Raises
    ------
    InputError
        if the path is none of these, or has no scenario
    """
    source = str(path)
    document = _read_meta(Path(path))
    scenario = document.get("scenario")
    if not isinstance(scenario, dict) or not scenario:
        raise InputError("missing scenario in the stored result", source=source)
    return scenario


def load_result(path: str | Path) -> Result | MachineResult:
    """Return a stored result: an SQLite file, a JSON file with its tables, or a folder of CSV or Parquet files.

    The result is a :class:`~simmodel.results.result.Result` or a :class:`~simmodel.results.machine.MachineResult`.

    Raises
    ------
    InputError
        if the path is none of these, or has no table of jobs or tasks
    """
    source = Path(path)
    document = _read_meta(source)
    kind: type[Result] | type[MachineResult] = MachineResult if document.get("kind") == "machine" else Result
    tables = _read_tables(source, document, kind.TABLES)
    main = kind.TABLES[0]
    if main not in tables:
        raise InputError(f"missing table of {main}", source=str(path))
    counts = document.get("report", {})
    skipped, repaired, rejected = (Counter(counts.get(kind, {})) for kind in ("skipped", "repaired", "rejected"))
    report = Report(skipped, repaired, rejected, tuple(counts.get("notes", ())))
    common = Common(
        name=document["name"],
        started=document["started"],
        ended=document["ended"],
        report=report,
        decisions=document["decisions"],
        scenario=document["scenario"],
    )
    return kind.from_stored(tables, document, common)


def _read_tables(source: Path, document: Mapping[str, Plain], names: Sequence[str]) -> dict[str, Table]:
    """Return the stored tables of a folder, of JSON or of a database."""
    tables: dict[str, Table] = {}
    if source.is_dir():
        for name in names:
            if (file := source / f"{name}.parquet").exists():
                tables[name] = _read_parquet(file)
            elif (file := source / f"{name}.csv").exists():
                tables[name] = _read_csv(file)
    elif "jobs" in document or "tables" in document:
        stored: Any = document["tables"] if "tables" in document else {"jobs": document["jobs"]}
        for name, columns in stored.items():
            tables[name] = Table({key: _column(key, values) for key, values in columns.items()})
    elif _is_sqlite(source):
        tables = _read_sqlite(source, names)
    return tables


def _is_sqlite(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def _read_meta(path: Path) -> dict[str, Any]:
    source = str(path)
    if not path.exists():
        raise InputError("no such file or folder", source=source)
    if path.is_dir():
        if not (path / "meta.json").exists():
            raise InputError("missing meta.json in the folder", source=source)
        path = path / "meta.json"
    elif _is_sqlite(path):
        connection = sqlite3.connect(path)
        try:
            return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
        except sqlite3.DatabaseError as error:
            raise InputError(f"must be a stored result, got another database ({error})", source=source) from None
        finally:
            connection.close()
    opener = gzip.open if source.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            document = json.load(file)
    except (ValueError, OSError) as error:
        raise InputError(f"must be SQLite, JSON or a folder of tables: {error}", source=source) from None
    if not isinstance(document, dict) or "simmodel" not in document:
        raise InputError("must be a stored result, got other JSON", source=source)
    return document


def _column(name: str, values: Sequence[Plain]) -> NDArray[Any]:
    """Return stored values as a column: numbers (nan if empty) if all are numbers, else text."""
    column: NDArray[np.object_]
    if name in LISTS and not all(isinstance(value, (int, float)) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = [None if value in (None, "") else tuple(json.loads(str(value))) for value in values]
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
    names, columns = [cell_text(name) for name in rows[0]], list(zip(*rows[1:], strict=True)) or [()] * len(rows[0])
    return Table({name: _column(name, _numbers(list(c), name)) for name, c in zip(names, columns, strict=True)})


def _numbers(texts: list[str], name: str) -> list[Any]:
    """Return texts as numbers if all texts that are not empty are numbers."""
    if name in LISTS and any(text.startswith("[") for text in texts):
        return texts
    for kind in (int, float):
        try:
            return [kind(text) if text != "" else "" for text in texts]
        except ValueError:
            continue
    return [cell_text(text) for text in texts]


def _read_parquet(path: Path) -> Table:
    _, parquet = pyarrow()
    table = parquet.read_table(path)
    return Table({name: _column(name, table.column(name).to_pylist()) for name in table.column_names})
