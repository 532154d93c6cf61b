"""Writing of results: SQLite, CSV, Parquet, JSON; the files of a folder replace their predecessors together."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from simmodel.foundation.errors import InputError, WrongType, optional_imports
from simmodel.foundation.loading import parse_json, read_bytes
from simmodel.foundation.writing import check_ending, check_output, replacing, write_text
from simmodel.work.table import Table, Words

if TYPE_CHECKING:
    from sqlite3 import Connection

    from numpy.typing import NDArray

__all__ = [
    "LISTS",
    "SQLITE_TYPES",
    "UnfinishedFile",
    "fill",
    "flat",
    "folder_of",
    "json_text",
    "plain",
    "pyarrow",
    "uniform",
    "write_csv",
    "write_parquet",
    "write_sqlite",
]

LISTS = (
    "nodes",
    "down",
    "until",
    "cores",
    "gpus",
    "memory",
    "devices",
    "levels",
)  # columns of tuples; stored as JSON text
Tables: TypeAlias = Mapping[str, Table]
Meta: TypeAlias = Mapping[str, Any]
SQLITE_TYPES = {"f": "REAL", "i": "INTEGER", "u": "INTEGER", "b": "INTEGER"}


def plain(value: Any) -> Any:
    """Return a value in the types of JSON: numpy values as Python's, numbers that are not finite as ``None``.

    Raises :class:`~simmodel.foundation.errors.WrongType` if a part cannot be stored.

    >>> plain({"a": np.float64("nan"), "b": np.arange(2), "c": (1, "x")})
    {'a': None, 'b': [0, 1], 'c': [1, 'x']}
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (np.ndarray, np.generic, Words)):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Path):
        return str(value)
    raise WrongType(f"{type(value).__name__} cannot be stored as JSON: {value!r}")


def write_csv(tables: Tables, meta: Meta, folder: str | Path) -> None:
    """Write one CSV file per table, and ``meta.json``, into a folder."""
    with folder_of(folder, meta, [f"{name}.csv" for name in tables]) as part_of:
        for name, table in flat(tables).items():
            with open(part_of(f"{name}.csv"), "w", encoding="utf-8", newline="") as file:
                table.to_csv(file)


def write_parquet(tables: Tables, meta: Meta, folder: str | Path) -> None:
    """Write one Parquet file per table, and ``meta.json``, into a folder."""
    arrow, parquet = pyarrow()
    with folder_of(folder, meta, [f"{name}.parquet" for name in tables]) as part_of:
        for name, table in flat(tables).items():
            columns = {key: arrow.array(uniform(np.asarray(column))) for key, column in table.items()}
            parquet.write_table(arrow.table(columns), part_of(f"{name}.parquet"), compression="zstd")


def flat(tables: Tables) -> dict[str, Table]:
    """Return the tables with columns of tuples as JSON text."""
    return {name: _with_texts(table) for name, table in tables.items()}


@contextmanager
def folder_of(folder: str | Path, meta: Meta, files: Sequence[str]) -> Iterator[Callable[[str], Path]]:
    """Make a folder; yield a function of file names that returns new files, which replace the old ones at the end.

    ``meta.json`` is one of them, and lists the others; the files that its predecessor lists are removed.
    """
    target = Path(folder)
    check_ending(target, ".csv", ".parquet")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", source=str(folder)) from None
    before = _listed_files(target)
    with ExitStack() as new:
        part = new.enter_context(replacing(target / "meta.json"))
        part.write_text(json.dumps({**meta, "files": list(files)}, indent=2) + "\n", encoding="utf-8")
        yield lambda name: new.enter_context(replacing(target / name))
    for name in before - set(files):
        (target / name).unlink(missing_ok=True)


def _listed_files(folder: Path) -> set[str]:
    """Return the tables that the ``meta.json`` of a folder lists."""
    try:
        document = parse_json(*read_bytes(folder / "meta.json"))
    except InputError:  # none, or of another program
        return set()
    listed = document.get("files") if isinstance(document, dict) and "simmodel" in document else None
    names = listed if isinstance(listed, list) else ()
    return {name for name in names if isinstance(name, str) and re.fullmatch(r"[a-z_]+\.(csv|parquet)", name)}


def _with_texts(table: Table) -> Table:
    columns = {}
    for name, column in table.items():
        if name in LISTS and column.dtype == object:
            texts = np.empty(len(column), dtype=object)
            texts[:] = [None if value is None else json.dumps(list(value)) for value in column]
            columns[name] = texts
        else:
            columns[name] = column
    return Table(columns)


def json_text(document: Mapping[str, object], path: str | Path | None = None, *, compact: bool = False) -> str:
    """Return a document as JSON, with ``null`` for numbers that are not finite, and write it to ``path`` if given.

    Raises :class:`~simmodel.foundation.errors.WrongType` if a part cannot be stored. ``compact``: on one line.

    >>> json_text({"wait": np.float64("nan")}, compact=True)
    '{"wait": null}'
    """
    text = json.dumps(plain(document), indent=None if compact else 2, allow_nan=False)
    if path is not None:
        write_text(path, text + "\n", ".json")
    return text


def write_sqlite(tables: Tables, meta: Meta, path: str | Path, *, force: bool = False) -> None:
    """Write an SQLite database of the tables and a table ``meta``.

    ``force``: replace a database of another program, too.
    """
    import sqlite3

    with replacing(path, ".sqlite", force=force) as part, closing(sqlite3.connect(part)) as connection:
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            with connection:
                fill(connection, tables)
                connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
                pairs = [(key, json.dumps(value)) for key, value in meta.items()]
                connection.executemany("INSERT INTO meta VALUES (?, ?)", pairs)
        except sqlite3.OperationalError as error:
            raise InputError(f"cannot be written: {error}", source=str(path)) from None


def fill(connection: Connection, tables: Tables) -> None:
    """Create these tables in a database."""
    connection.execute("BEGIN")
    for name, table in flat(tables).items():
        kinds = [SQLITE_TYPES.get(column.dtype.kind, "") for column in table.values()]
        columns = ", ".join(f'"{key}" {kind}'.rstrip() for key, kind in zip(table.names, kinds, strict=True))
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        marks = ", ".join("?" * len(kinds))
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)


def uniform(column: NDArray[np.generic]) -> NDArray[np.generic] | list[str | None]:
    """Return a column of one type; mixed types become text."""
    values = column.tolist() if column.dtype == object else []
    if len({type(value) for value in values if value is not None}) < 2:
        return column
    return [None if value is None else str(value) for value in values]


def pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its module of Parquet; raises ``MissingExtra`` if pyarrow is not installed."""
    with optional_imports():
        import pyarrow as arrow
        from pyarrow import parquet
    return arrow, parquet


# ---------------------------------------------------------------------- rows while a run goes on


class UnfinishedFile:
    """An SQLite file whose name ends in ``.unfinished``, as its table ``meta`` says, until it is complete.

    Rows are written in transactions: the file of a process that died is readable up to the last one.

    Parameters
    ----------
    path
        the file, or a folder that is made of it at the end
    folder
        whether it is a folder
    force
        whether to replace a database of another program

    Attributes
    ----------
    path, spool
        as given; the unfinished file
    connection
        the open database

    Raises
    ------
    InputError
        if the file cannot be written

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = UnfinishedFile(Path(folder, "rows.sqlite")); file.put_meta({"unfinished": True})
    ...     print(file.spool.name); file.put_meta({}); file.complete(); print(file.path.exists())
    rows.sqlite.unfinished
    True
    """

    def __init__(self, path: Path, *, folder: bool = False, force: bool = False) -> None:
        import sqlite3

        self.path = path
        self._force = force
        if not folder and check_output(path, force=force) is None:
            raise InputError("must be a file, got a device or a pipe", source=str(path))
        self.spool = path.with_name(path.name + ".unfinished")
        check_output(self.spool)
        with suppress(FileNotFoundError):
            self.spool.unlink()
        self.connection = sqlite3.connect(self.spool)
        self.connection.execute("PRAGMA page_size = 16384")  # rows are only appended: fewer pages cost less
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the connection for one transaction; raises ``InputError`` if it cannot be written."""
        import sqlite3

        try:
            with self.connection:
                yield self.connection
        except sqlite3.OperationalError as error:
            raise InputError(f"cannot be written: {error}", source=str(self.path)) from None

    def put_meta(self, meta: Mapping[str, Any]) -> None:
        """Write the document of the file, instead of the one before."""
        with self.writing() as connection:
            connection.execute("DELETE FROM meta")
            pairs = [(key, json.dumps(value)) for key, value in meta.items()]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", pairs)

    def leave(self) -> None:
        """Close the file and leave it as it is: unfinished."""
        self.connection.close()

    def drop(self) -> None:
        self.connection.close()
        self.spool.unlink(missing_ok=True)

    def complete(self) -> None:
        self.connection.close()
        with replacing(self.path, force=self._force, unfinished=self.spool):
            pass
