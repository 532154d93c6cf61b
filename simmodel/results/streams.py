"""Files that are filled while a run goes on: its record in SQLite or Parquet, and data sets of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from simmodel.foundation.writing import holds_parquet
from simmodel.records.job_record import STOPS, derived
from simmodel.results.stores import (
    SQLITE_TYPES,
    UnfinishedFile,
    fill,
    flat,
    folder_of,
    pyarrow,
)
from simmodel.work.table import Table

if TYPE_CHECKING:
    from sqlite3 import Connection

    from numpy.typing import NDArray

__all__ = ["DataSet", "RecordStream"]


_RUNS_OF_JOBS = (
    'INSERT INTO runs ("row", job, attempt, start, "end", place, processors, status{more}) '
    'SELECT rowid - 1, job, {attempt}, start, "end", {place}, processors, status{same} FROM jobs '
    'WHERE start IS NOT NULL AND rowid - 1 NOT IN (SELECT "row" FROM runs)'
)


_UNLESS_KNOWN = {"eligible": "submit", **dict.fromkeys(STOPS, "0")}
"""The columns of jobs that parts without such jobs do not have, and the values there."""


class RecordStream:
    """Takes the tables of a run in parts, and becomes a stored result when it is closed.

    Until then, and if the run fails, its name ends in ``.unfinished``; such a file is readable up to its last part.

    Parameters
    ----------
    path
        an SQLite file; or a folder of Parquet files, if it is one or its name ends in ``.parquet``
    force
        whether to replace a database of another program

    Raises
    ------
    InputError
        if the file cannot be written
    """

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        self.path = Path(path)
        self._folder = holds_parquet(self.path)
        if self._folder:
            pyarrow()
        self._file = UnfinishedFile(self.path, folder=self._folder, force=force)
        self._columns: dict[str, dict[str, str]] = {}
        self._ended = 0.0
        self._by_site = False  # whether jobs run at the places that their column ``site`` names

    def begin(self, meta: Mapping[str, Any], tables: Mapping[str, Table]) -> None:
        """Write the parts known before the run: the document of the result, and its small tables."""
        self._by_site = meta.get("kind") == "grid"
        self._file.put_meta({**meta, "unfinished": True})
        with self._file.writing() as connection:
            fill(connection, tables)

    # ------------------------------------------------------------------ rows

    def write(self, name: str, rows: NDArray[np.int64], table: Table) -> None:
        """Write a part of the table of jobs or runs, given the rows of the jobs in the log."""
        if name == "jobs":
            table = table.with_columns(**derived(dict(table.items())))
        key = "rowid" if name == "jobs" else "row"
        table = Table({key: rows + 1 if name == "jobs" else rows, **flat({name: table})[name]})
        self._ended = max(self._ended, float(table["end"][np.isfinite(table["end"])].max(initial=0.0)))
        with self._file.writing() as connection:
            self._insert(name, table)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'ended'", (json.dumps(self._ended),))

    def _insert(self, name: str, table: Table) -> None:
        connection, known = self._file.connection, self._columns.setdefault(name, {})
        new = {key: SQLITE_TYPES.get(column.dtype.kind, "") for key, column in table.items() if key not in known}
        stored = {key: kind for key, kind in new.items() if key != "rowid"}
        listed = [f'"{key}" {kind}'.rstrip() for key, kind in stored.items()]
        if not known:
            connection.execute(f'CREATE TABLE "{name}" ({", ".join(listed)})')
        else:
            for each in listed:
                connection.execute(f'ALTER TABLE "{name}" ADD COLUMN {each}')
        known.update(new)
        names = ", ".join(f'"{key}"' for key in table.names)
        marks = ", ".join("?" * len(table.names))
        cells = zip(*(column.tolist() for column in table.values()), strict=True)
        connection.executemany(f'INSERT INTO "{name}" ({names}) VALUES ({marks})', cells)

    # ------------------------------------------------------------------ the end

    def leave(self) -> None:
        """Close the file as it is: unfinished. A file without jobs is removed."""
        if "jobs" in self._columns:
            self._file.leave()
        else:
            self._file.drop()

    def close(self, meta: Mapping[str, Any], tables: Mapping[str, Table], jobs: Table) -> None:
        """Write the rest of the result and give the file its name; ``jobs``: the columns of a run without jobs."""
        with self._file.writing() as connection:
            if "jobs" not in self._columns:
                self._insert("jobs", Table({"rowid": np.zeros(0, dtype=np.int64), **jobs}))
            for name, value in _UNLESS_KNOWN.items():
                if name in self._columns["jobs"]:
                    connection.execute(f"UPDATE jobs SET {name} = {value} WHERE {name} IS NULL")
            if "runs" in self._columns:
                self._complete_runs(tables["places"]["place"].tolist())
            for name in tables:
                connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        with self._file.writing() as connection:
            fill(connection, tables)
        self._file.put_meta(meta)
        if self._folder:
            self._file.leave()
            self._to_parquet(meta, (*tables, *self._columns))
        else:
            self._file.complete()

    def _complete_runs(self, places: list[str]) -> None:
        """Add the executions that follow from the table of jobs: at the site of a job, or else at the only place."""
        place, attempt = ("site", "attempts") if self._by_site else ("?", "1")
        more = {"allocated": "processors"} | dict.fromkeys(("nodes", "cores", "gpus", "memory", "devices"), "NULL")
        extra = {key: value for key, value in more.items() if key in self._columns["runs"]}
        names = "".join(f", {key}" for key in extra)
        values = "".join(f", {value}" for value in extra.values())
        statement = _RUNS_OF_JOBS.format(more=names, same=values, place=place, attempt=attempt)
        self._file.connection.execute(statement, () if self._by_site else (*places, "")[:1])

    def _to_parquet(self, meta: Mapping[str, Any], names: tuple[str, ...]) -> None:
        from simmodel.results.loading import parts_of, write_parquet_parts  # imports the readers of all results

        with folder_of(self.path, meta, [f"{name}.parquet" for name in names]) as part_of:
            for name in names:
                write_parquet_parts(part_of(f"{name}.parquet"), parts_of(self._file.spool, name), str(self.path))
        self._file.drop()


_MOST_VALUES = 999  # of a statement; what every SQLite takes


class DataSet:
    """Takes rows of tables and writes them to an SQLite file in batches; at the end also to CSV or Parquet.

    Until it is closed the file's name ends in ``.unfinished``, and its table ``meta`` says so; what a process that died
    leaves is readable up to its last batch.

    Parameters
    ----------
    path
        the SQLite file
    tables
        the columns of each table
    meta
        a description of the tables, as plain values
    batch
        rows of each table that are kept in memory at most
    folders
        folders for the tables as CSV (``"csv"``) or Parquet (``"parquet"``) at the end
    keep
        whether the SQLite file stays; otherwise only the folders do
    force
        whether to replace a database of another program

    Raises
    ------
    InputError
        if the file cannot be written

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with DataSet(f"{folder}/events.sqlite", {"events": ["time", "job"]}) as data:
    ...         data.add("events", (1.5, "a"))
    ...     data.path.name, data.written
    ('events.sqlite', {'events': 1})
    """

    def __init__(
        self,
        path: str | Path,
        tables: Mapping[str, Sequence[str]],
        meta: Mapping[str, Any] | None = None,
        *,
        batch: int = 5000,
        folders: Mapping[str, str | Path] | None = None,
        keep: bool = True,
        force: bool = False,
    ) -> None:
        self.path = Path(path)
        if "parquet" in (folders or {}):
            pyarrow()
        self._folders = dict(folders or {})
        self._keep = keep
        self._tables = {name: tuple(columns) for name, columns in tables.items()}
        self._batch = batch
        self._forms = {name: _Form(name, name, columns, {}) for name, columns in self._tables.items()}
        self._kept: dict[str, list[tuple[_Form, list[Any]]]] = {name: [] for name in tables}
        self._before = dict.fromkeys(tables, 0)  # rows kept before the last ones, which are of one form
        self._open: dict[str, list[Any]] = {}  # the values of these last ones, by the name of their form
        self._full: dict[str, int] = {}
        self.written = dict.fromkeys(tables, 0)
        self._meta = {"simmodel": "data set", **(meta or {})}
        self._file = UnfinishedFile(self.path, force=force)
        with self._file.writing() as connection:
            for name, columns in self._tables.items():
                listed = ", ".join(f'"{column}"' for column in columns)
                connection.execute(f'CREATE TABLE "{name}" (_ID INTEGER PRIMARY KEY, {listed})')
        self._file.put_meta({**self._meta, "unfinished": True})

    def shorten(self, form: str, table: str, values: Mapping[str, str | float]) -> None:
        """Take rows of a table from now on also under the name ``form``, without columns that then have these values.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, DataSet(f"{folder}/rows.db", {"events": ["time", "file"]}) as data:
        ...     data.shorten("no file", "events", {"file": ""})
        ...     data.add("no file", (1.5,)); data.add("events", (2.5, "a")); data.flush()
        ...     data.written
        {'events': 2}
        """
        self._forms[form] = _Form(form, table, self._tables[table], values)

    def add(self, form: str, row: tuple[Any, ...]) -> None:
        """Take a row of a table, or of a form of it; every ``batch`` rows they are written."""
        try:
            values = self._open[form]
        except KeyError:
            values = self._turn_to(form)
        values.extend(row)
        if len(values) >= self._full[form]:
            self.flush()

    def _turn_to(self, name: str) -> list[Any]:
        """Go on with rows of another form of a table, after those that it has."""
        form = self._forms[name]
        table, kept = form.table, self._kept[form.table]
        if kept:
            last, values = kept[-1]
            self._before[table] += len(values) // last.width
            del self._open[last.name]
        values = self._open[name] = []
        kept.append((form, values))
        self._full[name] = (self._batch - self._before[table]) * form.width
        return values

    def flush(self) -> None:
        """Write the rows taken so far."""
        with self._file.writing() as connection:
            for name, kept in self._kept.items():
                for form, values in kept:
                    self.written[name] += form.write(connection, values)
                kept.clear()
                self._before[name] = 0
        self._open.clear()

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Write the rest, say that it is complete, and give the files their names."""
        from simmodel.results.loading import (
            parts_of,
            write_csv_parts,
            write_parquet_parts,
        )  # the readers of all results

        self.flush()
        meta = {**self._meta, "rows": self.written}
        self._file.put_meta(meta)
        self._file.leave()
        for kind, folder in self._folders.items():
            with folder_of(folder, meta, [f"{name}.{kind}" for name in self._tables]) as part_of:
                for name, columns in self._tables.items():
                    parts = parts_of(self._file.spool, name, columns)
                    if kind == "csv":
                        write_csv_parts(part_of(f"{name}.csv"), parts)
                    else:
                        write_parquet_parts(part_of(f"{name}.parquet"), parts, str(folder))
        if self._keep:
            self._file.complete()
        else:
            self._file.drop()

    def leave(self) -> None:
        """Write the rest and leave the file as it is: unfinished."""
        self.flush()
        self._file.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.leave()


class _Form:
    """Rows of a table, without columns that have the same values in all of them."""

    __slots__ = ("_one", "_several", "_several_width", "name", "table", "width")

    def __init__(self, name: str, table: str, columns: Sequence[str], values: Mapping[str, str | float]) -> None:
        self.name, self.table = name, table
        self.width = len(columns) - len(values)
        several = max(_MOST_VALUES // self.width, 1)
        listed = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join(_literal(values[column]) if column in values else "?" for column in columns)
        insert = f'INSERT INTO "{table}" ({listed}) VALUES '
        self._one = f"{insert}({marks})"
        self._several = insert + ", ".join([f"({marks})"] * several)
        self._several_width = several * self.width

    def write(self, connection: Connection, values: list[Any]) -> int:
        """Write the values of row after row and return the number of rows; each costs less in a statement of many."""
        width, step = self.width, self._several_width
        most = len(values) // step * step
        for begin in range(0, most, step):
            connection.execute(self._several, values[begin : begin + step])
        for begin in range(most, len(values), width):
            connection.execute(self._one, values[begin : begin + width])
        return len(values) // width


def _literal(value: str | float) -> str:
    return repr(value) if isinstance(value, (int, float)) else "'" + value.replace("'", "''") + "'"
