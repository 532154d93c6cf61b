"""SQLite files that take rows while a run goes on, and have their names only when they are complete."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from simmodel.foundation.errors import InputError
from simmodel.foundation.writing import check_output, replacing

__all__ = ["UnfinishedFile"]


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
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for one transaction; raises ``InputError`` if it cannot be written."""
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
        """Close the file and remove it."""
        self.connection.close()
        self.spool.unlink(missing_ok=True)

    def complete(self) -> None:
        """Close the file and give it its name."""
        self.connection.close()
        with replacing(self.path, force=self._force, unfinished=self.spool):
            pass
