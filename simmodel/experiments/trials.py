"""Studies: the trials of a search or of a design, in an SQLite file that survives the processes that share it.

A trial has the values of the parameters, a state, and an outcome: named numbers. A process claims queued trials, runs
them and stores their outcomes, each in one transaction. Trials of a process that died are queued again when another
claims; the outcome of a claim that was lost meanwhile is dropped, so that no trial is lost or counted twice.
"""

from __future__ import annotations

import json
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import nan
from pathlib import Path
from platform import node
from time import time
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Fields, Shown, counted, texts
from simmodel.foundation.errors import InputError, clipped
from simmodel.foundation.writing import is_database
from simmodel.results.stores import plain
from simmodel.work.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STATES", "Study", "Trial"]

STATES = ("queued", "running", "finished", "failed")
"""The states of a trial."""
_APPLICATION = 0x53494D54  # of the database: "SIMT"
_BUSY = 60.0  # seconds that a process waits for another's transaction
_LOST = 86_400.0  # seconds after which a claim from another host is taken for lost
_ATTEMPTS = 5  # processes that may die with a trial
_TABLES = """
CREATE TABLE study (document TEXT NOT NULL, settings TEXT NOT NULL DEFAULT '{}');
CREATE TABLE trials (
    number INTEGER PRIMARY KEY, state TEXT NOT NULL, given TEXT NOT NULL, outcome TEXT, error TEXT,
    holder TEXT, token TEXT, claimed REAL, ended REAL, attempts INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX states ON trials (state, number);
"""


@attrs.frozen(kw_only=True, repr=False)
class Trial(Fields):
    """One trial of a study.

    Attributes
    ----------
    number
        its place in the order of the trials, from 0
    values
        the value of each parameter
    state
        one of :data:`STATES`
    outcome
        the numbers that it gave, by name, if it has finished: losses, objectives, outputs
    error
        why it failed, in one sentence
    token
        the claim of the process that runs it
    """

    number: int
    values: Mapping[str, Any]
    state: str = "queued"
    outcome: Mapping[str, float] = attrs.field(factory=dict)
    error: str = ""
    token: str = ""


class Study(Shown):
    """The trials of a search, in an SQLite file.

    Parameters
    ----------
    path
        the file; it is made if it does not exist; default: in memory, for this process alone
    document
        the identity of the study, as plain values: parameters, method, seed; ``None``: whatever the file says
    force
        whether a file about something else is about this document from now on

    Raises
    ------
    InputError
        the file is not a study, or one about something else

    >>> with Study(document={"about": "squares"}) as study:
    ...     study.add([{"x": 2}, {"x": 3}])
    ...     [trial] = study.claim()
    ...     study.finish(trial, {"square": trial.values["x"] ** 2})
    ...     study, study.trials("finished")[0].outcome
    2
    True
    (<Study: 2 trials, 1 queued, 1 finished>, {'square': 4.0})
    """

    def __init__(
        self, path: str | Path | None = None, document: Mapping[str, Any] | None = None, *, force: bool = False
    ) -> None:
        self.path = None if path is None else Path(path)
        if self.path is not None and self.path.is_dir():
            raise InputError("must be a file, got a folder", source=str(path))
        if self.path is not None and self.path.exists() and self.path.stat().st_size and not is_database(self.path):
            raise InputError("must be a study, got a file that is no SQLite database", source=str(path))
        if document is None and (self.path is None or not self.path.exists()):
            raise InputError("no such study", source=str(path) if path else None)
        try:
            self._database = sqlite3.connect(":memory:" if path is None else str(path), _BUSY, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"cannot be opened: {error}", source=str(path)) from None
        self._closed = weakref.finalize(self, self._database.close)
        self.document: dict[str, Any] = self._opened(document, force)

    def _opened(self, document: Mapping[str, Any] | None, force: bool) -> dict[str, Any]:
        """Make the tables of a new study; return the document of the study."""
        with self._transaction() as database:
            (number,) = database.execute("PRAGMA application_id").fetchone()
            empty = not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if (not empty and number != _APPLICATION) or (empty and document is None):
                instead = "an empty file" if empty else "another database"
                raise InputError(f"must be a study, got {instead}", source=str(self.path))
            if empty:
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {_APPLICATION}")
                database.execute("INSERT INTO study (document) VALUES (?)", [json.dumps(plain(dict(document or {})))])
            found: dict[str, Any] = json.loads(database.execute("SELECT document FROM study").fetchone()[0])
        wanted = found if document is None else json.loads(json.dumps(plain(dict(document))))
        changed = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
        if changed and force:
            with self._transaction() as database:
                database.execute("UPDATE study SET document = ?", [json.dumps(wanted)])
        elif changed:
            first = f"{changed[0]}: {clipped(found.get(changed[0]))} instead of {clipped(wanted.get(changed[0]))}"
            others = f" (also another {', '.join(changed[1:])})" if len(changed) > 1 else ""
            message = f"is a study with another {first}{others}; force=True (--force) goes on with it"
            raise InputError(message, source=str(self.path))
        return wanted

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database in a transaction that no other process can come between."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise InputError(f"cannot be used: {error}", source=str(self.path or "study")) from None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Plain values that are stored with the study and may be replaced, such as the number of trials wanted."""
        found: dict[str, Any] = json.loads(self._database.execute("SELECT settings FROM study").fetchone()[0])
        return found

    @settings.setter
    def settings(self, settings: Mapping[str, Any]) -> None:
        with self._transaction() as database:
            database.execute("UPDATE study SET settings = ?", [json.dumps(plain(dict(settings)))])

    def close(self) -> None:
        """Close the file."""
        self._closed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ trials

    def add(self, values: Iterable[Mapping[str, Any]], first: int | None = None) -> int:
        """Queue trials with these values of the parameters, and return how many were added.

        Parameters
        ----------
        first
            the number of the first one; trials that exist are kept as they are, so that several processes can add the
            same ones; default: after the last trial
        """
        with self._transaction() as database:
            if first is None:
                (first,) = database.execute("SELECT coalesce(max(number) + 1, 0) FROM trials").fetchone()
            assert first is not None
            rows = [(first + i, json.dumps(plain(dict(each)))) for i, each in enumerate(values)]
            before = database.total_changes
            database.executemany("INSERT OR IGNORE INTO trials (number, state, given) VALUES (?, 'queued', ?)", rows)
            return database.total_changes - before

    def claim(self, most: int = 1) -> list[Trial]:
        """Claim queued trials for this process, the first ones first; those of dead processes are queued again."""
        token = uuid4().hex
        with self._transaction() as database:
            self._requeue(database)
            rows = database.execute(
                "UPDATE trials SET state = 'running', holder = ?, token = ?, claimed = ?, attempts = attempts + 1 "
                "WHERE number IN (SELECT number FROM trials WHERE state = 'queued' ORDER BY number LIMIT ?) "
                "RETURNING number, given",
                [_process(os.getpid()), token, time(), most],
            ).fetchall()
        return [
            Trial(number=number, values=json.loads(given), state="running", token=token)
            for number, given in sorted(rows)
        ]

    def _requeue(self, database: sqlite3.Connection) -> None:
        """Queue the running trials of dead processes again; one that has seen several of them die has failed."""
        holders = database.execute(
            "SELECT holder, max(claimed) FROM trials WHERE state = 'running' GROUP BY holder"
        ).fetchall()
        for holder, claimed in holders:
            if not _alive(holder, claimed):
                database.execute(
                    "UPDATE trials SET state = iif(attempts < ?, 'queued', 'failed'), token = NULL, "
                    "error = iif(attempts < ?, NULL, 'its process died ' || attempts || ' times') "
                    "WHERE state = 'running' AND holder = ?",
                    [_ATTEMPTS, _ATTEMPTS, holder],
                )

    def finish(self, trial: Trial, outcome: Mapping[str, float] | None = None, error: str = "") -> bool:
        """Store the outcome of a claimed trial, or why it failed; return whether it counts: the claim still holds."""
        state = "failed" if outcome is None else "finished"
        numbers = None if outcome is None else json.dumps({name: _stored(value) for name, value in outcome.items()})
        with self._transaction() as database:
            found = database.execute(
                "UPDATE trials SET state = ?, outcome = ?, error = ?, ended = ?, token = NULL "
                "WHERE number = ? AND token = ? AND state = 'running'",
                [state, numbers, error or None, time(), trial.number, trial.token],
            )
            return found.rowcount == 1

    def release(self, trials: Iterable[Trial]) -> None:
        """Queue claimed trials again that this process will not run."""
        with self._transaction() as database:
            database.executemany(
                "UPDATE trials SET state = 'queued', token = NULL WHERE number = ? AND token = ? AND state = 'running'",
                [(each.number, each.token) for each in trials],
            )

    def retry(self) -> int:
        """Queue the failed trials again, and return how many there are."""
        with self._transaction() as database:
            return database.execute(
                "UPDATE trials SET state = 'queued', error = NULL, attempts = 0 WHERE state = 'failed'"
            ).rowcount

    def trials(self, *states: str) -> list[Trial]:
        """Return the trials in these states, in order; default: all."""
        which = ", ".join("?" * len(states))
        rows = self._database.execute(
            "SELECT number, given, state, outcome, error FROM trials "
            f"{f'WHERE state IN ({which})' if states else ''} ORDER BY number",
            states,
        )
        return [
            Trial(
                number=number,
                values=json.loads(given),
                state=state,
                outcome={key: nan if value is None else value for key, value in json.loads(outcome or "{}").items()},
                error=error or "",
            )
            for number, given, state, outcome, error in rows
        ]

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        found = dict(self._database.execute("SELECT state, count(*) FROM trials GROUP BY state").fetchall())
        return {state: found.get(state, 0) for state in STATES}

    def __len__(self) -> int:
        """The number of trials."""
        return int(self._database.execute("SELECT count(*) FROM trials").fetchone()[0])

    # ------------------------------------------------------------------ views

    @property
    def table(self) -> Table:
        """One row per trial: ``number, state, error``, the values of the parameters and the outcome."""
        trials = self.trials()
        names = list(dict.fromkeys(name for each in trials for name in each.values))
        outcomes = list(dict.fromkeys(name for each in trials for name in each.outcome))
        columns: dict[str, Any] = {
            "number": np.array([each.number for each in trials], dtype=np.int64),
            "state": np.array([each.state for each in trials], dtype=str),
            "error": np.array([each.error for each in trials], dtype=str),
        }
        for name in names:
            columns[name] = np.array([each.values.get(name) for each in trials])
        for name in outcomes:
            label = name if name not in columns else f"{name} (outcome)"
            columns[label] = np.array([each.outcome.get(name, np.nan) for each in trials], dtype=np.float64)
        return Table(columns)

    def flatten(self) -> None:
        """Make a view ``runs`` in the database, for other programs: a row per trial, a column per value and outcome.

        >>> study = Study(document={})
        >>> _ = study.add([{"sites.a.speed": 2}])
        >>> study.flatten()
        """
        with self._transaction() as database:
            columns = []
            for source in ("given", "outcome"):
                rows = f"SELECT DISTINCT key FROM trials, json_each({source}) WHERE {source} IS NOT NULL"
                names = [name for (name,) in database.execute(rows) if '"' not in name]
                columns += [(f"""json_extract({source}, '$."{_quoted(name)}"')""", name) for name in names]
            labels = [name for _, name in columns]
            listed = [
                f'{value} AS "{name if labels.index(name) == i else f"{name} (outcome)"}"'
                for i, (value, name) in enumerate(columns)
            ]
            database.execute("DROP VIEW IF EXISTS runs")
            database.execute(
                f"CREATE VIEW runs AS SELECT {', '.join(['number', 'state', 'error', *listed])} FROM trials"
            )

    @property
    def is_flat(self) -> bool:
        """Whether the database has the view of :meth:`flatten`."""
        return self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone() is not None

    @property
    def frame(self) -> pd.DataFrame:
        """The :attr:`table` as a ``pandas.DataFrame``."""
        return self.table.to_pandas()

    def _cells(self) -> Cells:
        if not len(self):
            return ()
        table = self.table
        return [list(table.names), *(texts(row.values()) for row in table.rows())]

    def __repr__(self) -> str:
        parts = [f"{count:,} {state}" for state, count in self.counts.items() if count]
        return f"<Study: {', '.join([counted(len(self), 'trial'), *parts])}>"


# ---------------------------------------------------------------------- processes


def _stored(value: float) -> float | None:
    """Return a number as JSON has it: ``None`` for nan."""
    return float(value) if value == value else None


def _quoted(name: str) -> str:
    return name.replace("'", "''")


def _process(number: int) -> str:
    """Return a text that names a process of this host: its id and, since ids are used again, when it began."""
    return f"{node()} {number} {_begun(number)}"


def _begun(number: int) -> str:
    """Return when a process of this host began, in ticks of its kernel; empty if the system does not say."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "dead" if stat[0] in "ZX" else stat[19]
    return ""


def _alive(holder: str, claimed: float) -> bool:
    """Whether the process that claimed trials goes on; of another host: whether it claimed them within a day."""
    host, number, begun = holder.rsplit(" ", 2) if holder.count(" ") >= 2 else (holder, "0", "")
    if host != node():
        return time() - claimed < _LOST
    if begun:
        return _begun(int(number)) == begun
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
