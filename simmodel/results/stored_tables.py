"""The tables of a stored result, part by part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from simmodel.foundation.errors import InputError
from simmodel.foundation.writing import is_database
from simmodel.results.loading import database, ordered, quoted, table_of
from simmodel.results.stores import pyarrow, uniform
from simmodel.work.table import Table

__all__ = ["has_table", "parts_of", "write_csv_parts", "write_parquet_parts"]

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
    """Write a table that comes in parts as CSV."""
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
