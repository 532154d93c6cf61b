"""Event-level data sets: tables whose rows are written in batches while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from simmodel.results.parts import parts_of, write_csv_parts, write_parquet_parts
from simmodel.results.stores import folder_of, pyarrow
from simmodel.results.unfinished import UnfinishedFile

__all__ = ["DataSet"]

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
        what the tables are about, as plain values
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
        self._values: dict[str, list[Any]] = {name: [] for name in tables}  # the values of row after row
        self._full = {name: batch * len(columns) for name, columns in tables.items()}
        self._insert: dict[str, str] = {}
        self.written = dict.fromkeys(tables, 0)
        self._meta = {"simmodel": "data set", **(meta or {})}
        self._file = UnfinishedFile(self.path, force=force)
        with self._file.writing() as connection:
            for name, columns in self._tables.items():
                listed = ", ".join(f'"{column}"' for column in columns)
                connection.execute(f'CREATE TABLE "{name}" (_ID INTEGER PRIMARY KEY, {listed})')
                self._insert[name] = f'INSERT INTO "{name}" ({listed}) VALUES'
        self._file.put_meta({**self._meta, "unfinished": True})

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Take a row; every so many rows they are written."""
        values = self._values[table]
        values.extend(row)
        if len(values) >= self._full[table]:
            self.flush()

    def flush(self) -> None:
        """Write the rows taken so far."""
        with self._file.writing() as connection:
            for name, values in self._values.items():
                insert, width = self._insert[name], len(self._tables[name])
                marks, many = f"({', '.join('?' * width)})", max(_MOST_VALUES // width, 1)
                most = len(values) // width // many * many * width
                statement = f"{insert} {', '.join([marks] * many)}"  # in which a row costs less than in its own
                for begin in range(0, most, many * width):
                    connection.execute(statement, values[begin : begin + many * width])
                for begin in range(most, len(values), width):
                    connection.execute(f"{insert} {marks}", values[begin : begin + width])
                self.written[name] += len(values) // width
                values.clear()

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Write the rest, say that it is complete, and give the files their names."""
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
