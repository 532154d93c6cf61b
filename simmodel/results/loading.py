"""Reading of stored results, and their tables part by part."""

from __future__ import annotations

import csv
import io
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.formats.documents import Value
from simmodel.foundation.errors import InputError, Plain, clipped, shown
from simmodel.foundation.loading import decode, one_sentence, parse_json, read_bytes
from simmodel.foundation.writing import is_database
from simmodel.results.checks import has_numbers
from simmodel.results.grid import GridResult
from simmodel.results.machine import MachineResult
from simmodel.results.result import Result
from simmodel.results.stored import Common
from simmodel.results.stores import LISTS, pyarrow, uniform
from simmodel.work.table import Table, cell_text
from simmodel.work.workload import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "UNFINISHED",
    "common_of",
    "database",
    "has_table",
    "load_result",
    "ordered",
    "parts_of",
    "quoted",
    "read_document",
    "read_scenario",
    "read_tables",
    "table_of",
    "write_csv_parts",
    "write_parquet_parts",
]


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
    document = read_document(Path(path))
    scenario = document.get("scenario")
    if not isinstance(scenario, dict) or not scenario:
        raise InputError("missing scenario in the stored result", source=source)
    return scenario


def load_result(path: str | Path) -> Result | MachineResult:
    """Return a stored result: an SQLite file, a JSON file with its tables, or a folder of CSV or Parquet files.

    The result is a :class:`~simmodel.results.result.Result`, of a grid a :class:`~simmodel.results.grid.GridResult`, of
    a machine a :class:`~simmodel.results.machine.MachineResult`.

    Raises
    ------
    InputError
        if the path is none of these, or has no table of jobs or tasks
    """
    with one_sentence(str(path)):
        return _load(Path(path))


def _load(path: Path) -> Result | MachineResult:
    source = str(path)
    document = read_document(path)
    kinds: dict[Any, type[Result] | type[MachineResult]] = {"machine": MachineResult, "grid": GridResult}
    kind = kinds.get(document.get("kind"), Result)
    common = common_of(Value(document, source))
    if document.get("unfinished"):
        common["report"].note(UNFINISHED)
    tables = read_tables(path, document, kind.TABLES)
    main = kind.TABLES[0]
    if main not in tables:
        raise InputError(f"missing table of {main}", source=source)
    try:
        result = kind.from_stored(tables, document, common)
    except InputError as error:
        raise InputError(error.message, error.source or source, error.place) from None
    except KeyError as error:
        raise InputError(f"missing {clipped(error.args[0])}", source) from None
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"must be a complete stored result: {clipped(error, 200)}", source) from None
    return result


def common_of(document: Value) -> Common:
    """Return the fields that all results have, each checked."""
    counts = document.get("report")
    found = {}
    for name in ("skipped", "repaired", "rejected"):
        each = counts.get(name) if counts is not None else None
        found[name] = Counter() if each is None else Counter({key: int(each[key].number()) for key in each.table()})
    notes = counts.get("notes") if counts is not None else None
    report = Report(found["skipped"], found["repaired"], found["rejected"], notes.texts() if notes is not None else ())
    timing = document.get("timing")  # up to version 0.2 the times stood among the decisions
    decisions = [document["decisions"], *([] if timing is None else [timing["decisions"]])]
    started, ended = _instant(document["started"]), _instant(document["ended"])
    if ended < started:
        raise document["ended"].wrong(f"must be >= started, {started}, got {ended}")
    return Common(
        name=document["name"].text(),
        started=started,
        ended=ended,
        report=report,
        decisions={key: _instant(part[key]) for part in decisions for key in part.table()},
        scenario=document["scenario"].table(),
    )


UNFINISHED = "unfinished: the run was stopped before its end; jobs that had not ended by then are missing"


def _instant(value: Value) -> float:
    """Return a number of s; null is nan, as in the results of runs without events."""
    return math.nan if value.data is None else value.number(least=None)


def read_tables(source: Path, document: Mapping[str, Plain], names: Sequence[str]) -> dict[str, Table]:
    """Return the stored tables of a folder, of JSON or of a database."""
    tables: dict[str, Table] = {}
    if source.is_dir():
        files = Value(document["files"], str(source)).texts() if "files" in document else None
        for name in names:
            for kind, read in (("parquet", _read_parquet), ("csv", _read_csv)):
                file = source / f"{name}.{kind}"
                if name not in tables and file.exists() and (files is None or file.name in files):
                    tables[name] = read(file)
    elif "jobs" in document or "tables" in document:
        stored: Any = document["tables"] if "tables" in document else {"jobs": document["jobs"]}
        for name, columns in Value(stored, str(source)).table().items():
            if not isinstance(columns, dict) or not all(isinstance(values, list) for values in columns.values()):
                raise InputError("must be a mapping of columns", str(source), f"tables.{clipped(name)}")
            if name in names:
                tables[name] = table_of(columns, str(source), name)
    elif is_database(source):
        tables = _read_sqlite(source, names)
    return tables


def read_document(path: Path) -> dict[str, Any]:
    """Return the document of a stored result, without its tables; raises ``InputError`` if it is not a result."""
    source = str(path)
    if not path.exists():
        raise InputError("no such file or folder", source=source)
    if path.is_dir():
        if not (path / "meta.json").exists():
            raise InputError("missing meta.json in the folder", source=source)
        path = path / "meta.json"
    try:
        stored = is_database(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source) from None
    document: Plain = _database_meta(path) if stored else parse_json(*read_bytes(path))
    if not isinstance(document, dict) or "simmodel" not in document:
        raise InputError("must be a stored result, got other JSON", source=source)
    return document


def _database_meta(path: Path) -> Plain:
    with database(path) as connection:
        rows = connection.execute("SELECT key, value FROM meta").fetchall()
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in rows):
        raise InputError("must be texts", str(path), "table meta")
    return {key: parse_json(value, str(path)) for key, value in rows}


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; its errors are one sentence."""
    connection = None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        yield connection
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        raise InputError(
            f"must be a stored result, got another database ({clipped(error, 200)})", source=str(path)
        ) from None
    finally:
        if connection is not None:
            connection.close()


def table_of(columns: Mapping[str, Sequence[Any]], source: str, name: str) -> Table:
    """Return a table of stored columns."""
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        short = min(lengths, key=lengths.__getitem__)
        message = f"must have {max(lengths.values())} rows as other columns, got {lengths[short]}"
        raise InputError(message, source, f"{name}.{clipped(short)}")
    found = {}
    for key, values in columns.items():
        try:
            found[key] = _column(key, values)
        except (InputError, TypeError, ValueError) as error:
            reason = error.message if isinstance(error, InputError) else f"cannot be read: {clipped(error)}"
            raise InputError(reason, source, f"{name}.{clipped(key)}") from None
    return Table(found)


def _column(name: str, values: Sequence[Plain]) -> NDArray[Any]:
    """Return stored values as a column: numbers (nan if empty) if all are numbers, else text."""
    column: NDArray[np.object_]
    if name in LISTS and not all(isinstance(value, (int, float)) for value in values):
        column = np.empty(len(values), dtype=object)
        column[:] = [_listed(value) for value in values]
        return column
    known: list[Any] = [value for value in values if value is not None and value != ""]
    if has_numbers(name):
        wrong = [value for value in known if not isinstance(value, (int, float))]
        if wrong:
            raise InputError(f"must be numbers, got {shown(wrong[0])}")
        if not known:
            return np.full(len(values), math.nan)
        if max(map(abs, known)) >= 2**63:
            return np.array([math.nan if value is None or value == "" else float(str(value)) for value in values])
    if all(isinstance(value, (int, float)) for value in known) and known:
        return np.array([math.nan if value is None or value == "" else value for value in values])
    return np.array(
        ["" if value is None else str(value) for value in values], dtype=object if name == "reason" else None
    )


def _listed(value: Any) -> tuple[Any, ...] | None:
    """Return the list in a cell."""
    if value is None or value == "":
        return None
    found = value if isinstance(value, list) else json.loads(str(value))
    if not isinstance(found, list):
        raise InputError(f"must be a list, got {shown(found)}")
    return _as_tuple(found)


def _as_tuple(value: list[Any]) -> tuple[Any, ...]:
    return tuple(_as_tuple(each) if isinstance(each, list) else each for each in value)


def _read_sqlite(path: Path, names: Sequence[str]) -> dict[str, Table]:
    tables = {}
    with database(path) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in names:
            if name in present:
                keys, order = ordered(connection, name)
                cursor = connection.execute(f'SELECT {", ".join(map(quoted, keys))} FROM "{name}"{order}')
                columns = list(zip(*cursor, strict=True)) or [()] * len(keys)
                tables[name] = table_of({key: list(c) for key, c in zip(keys, columns, strict=True)}, str(path), name)
    return tables


def ordered(connection: sqlite3.Connection, name: str) -> tuple[list[str], str]:
    """Return the columns of a table to read, and the order of its rows: executions that were streamed need one."""
    keys = [key for _, key, *_ in connection.execute(f"PRAGMA table_info({quoted(name)})")]
    if "row" not in keys:
        return keys, ""
    return [key for key in keys if key != "row"], ' ORDER BY start, "row"'


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_csv(path: Path) -> Table:
    source = str(path)
    data, _ = read_bytes(path)
    reader = csv.reader(io.StringIO(decode(data), newline=""))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", source, f"line {reader.line_num}") from None
    if not rows:
        raise InputError("must start with a line of column names, got an empty file", source)
    names = [cell_text(name) for name in rows[0]]
    if len(set(names)) < len(names):
        raise InputError(f"duplicate column {shown(max(names, key=names.count))}", source, "line 1")
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise InputError(f"must have {len(names)} cells, got {len(row)}", source, f"line {number}")
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(names)
    cells = {name: _numbers(list(column), name) for name, column in zip(names, columns, strict=True)}
    return table_of(cells, source, path.stem)


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
    arrow, parquet = pyarrow()
    try:
        table = parquet.read_table(path)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
    except (arrow.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"invalid Parquet: {clipped(reason, 120)}", source=str(path)) from None
    return table_of(columns, str(path), path.stem)


_ROWS = 1 << 15


def parts_of(
    path: Path, name: str, columns: Collection[str] | None = None, *, by: str | None = None
) -> Iterator[Table]:
    """Yield the rows of a table in order, in parts of some ten thousand, at least one.

    Parameters
    ----------
    path
        an SQLite file, or a folder of Parquet files
    name
        the name of the table
    columns
        those to read, as far as there are any; default: all
    by
        the column to sort an SQLite table by; default: the order of the rows

    Raises
    ------
    InputError
        if the path is neither, or has no such table
    """
    file = path / f"{name}.parquet"
    if path.is_dir() and file.exists() and by is None:
        yield from _of_parquet(file, name, columns)
    elif path.is_file() and is_database(path):
        yield from _of_database(path, name, columns, by)
    else:
        message = "must be an SQLite file or a folder of Parquet files to be read in parts; load_result() reads others"
        raise InputError(message, source=str(path))


def has_table(path: Path, name: str) -> bool:
    """Whether an SQLite file, or a folder of Parquet files, has a table."""
    if path.is_dir():
        return (path / f"{name}.parquet").exists()
    with database(path) as connection:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
        return found.fetchone() is not None


def _of_database(path: Path, name: str, columns: Collection[str] | None, by: str | None) -> Iterator[Table]:
    with database(path) as connection:
        known, order = ordered(connection, name)
        order = order if by is None else f" ORDER BY {quoted(by)}, rowid"
        if not known:
            raise InputError(f"missing table of {name}", source=str(path))
        keys = [key for key in known if columns is None or key in columns]
        cursor = connection.execute(f'SELECT {", ".join(map(quoted, keys))} FROM "{name}"{order}')
        first = True
        while (rows := cursor.fetchmany(_ROWS)) or first:
            first = False
            cells: list[Any] = list(zip(*rows, strict=True)) or [()] * len(keys)
            yield table_of(dict(zip(keys, map(list, cells), strict=True)), str(path), name)


def _of_parquet(file: Path, name: str, columns: Collection[str] | None) -> Iterator[Table]:
    arrow, parquet = pyarrow()
    try:
        with parquet.ParquetFile(file) as opened:
            keys = [key for key in opened.schema_arrow.names if columns is None or key in columns]
            first = True
            for batch in opened.iter_batches(batch_size=_ROWS, columns=keys):
                first = False
                yield table_of({key: batch.column(key).to_pylist() for key in keys}, str(file), name)
            if first:
                yield table_of({key: [] for key in keys}, str(file), name)
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"invalid Parquet: {error}", source=str(file)) from None


def write_csv_parts(file: Path, parts: Iterable[Table]) -> None:
    with open(file, "w", encoding="utf-8", newline="") as opened:
        for number, table in enumerate(parts):
            table.to_csv(opened, head=not number)


def write_parquet_parts(file: Path, parts: Iterable[Table], source: str) -> None:
    """Write a table that comes in parts as Parquet; ``source`` names it in errors.

    Raises
    ------
    InputError
        if a column has another type in one part than in another
    """
    arrow, parquet = pyarrow()
    with ExitStack() as files:
        writer: Any = None
        for table in parts:
            batch = arrow.table({key: arrow.array(uniform(np.asarray(column))) for key, column in table.items()})
            if writer is None:
                writer = files.enter_context(parquet.ParquetWriter(file, batch.schema, compression="zstd"))
            try:
                batch = batch.cast(writer.schema)
            except ValueError as error:
                message = f"must have columns of one type to be written as Parquet ({error}): an SQLite file takes them"
                raise InputError(message, source=source) from None
            writer.write_table(batch)
