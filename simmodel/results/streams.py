"""Files that take the record of a run while it runs: SQLite, or a folder of Parquet files made of it at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.writing import holds_parquet
from simmodel.results.stores import SQLITE_TYPES, UnfinishedFile, fill, flat, folder_of, pyarrow
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RecordStream"]

_RUNS_OF_JOBS = (
    'INSERT INTO runs ("row", job, attempt, start, "end", place, processors, status{more}) '
    'SELECT rowid - 1, job, {attempt}, start, "end", {place}, processors, status{same} FROM jobs '
    'WHERE start IS NOT NULL AND rowid - 1 NOT IN (SELECT "row" FROM runs)'
)


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
            if "eligible" in self._columns["jobs"]:
                connection.execute("UPDATE jobs SET eligible = submit WHERE eligible IS NULL")
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
        more = {"nodes": "NULL", "allocated": "processors", "cores": "NULL", "gpus": "NULL", "memory": "NULL"}
        extra = {key: value for key, value in more.items() if key in self._columns["runs"]}
        names = "".join(f", {key}" for key in extra)
        values = "".join(f", {value}" for value in extra.values())
        statement = _RUNS_OF_JOBS.format(more=names, same=values, place=place, attempt=attempt)
        self._file.connection.execute(statement, () if self._by_site else (*places, "")[:1])

    def _to_parquet(self, meta: Mapping[str, Any], names: tuple[str, ...]) -> None:
        from simmodel.results.stored_tables import parts_of, write_parquet_parts  # imports the readers of all results

        with folder_of(self.path, meta, [f"{name}.parquet" for name in names]) as part_of:
            for name in names:
                write_parquet_parts(part_of(f"{name}.parquet"), parts_of(self._file.spool, name), str(self.path))
        self._file.drop()
