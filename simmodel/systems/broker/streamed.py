"""The record of a broker that is written while the run goes on, in parts that its systems write."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.records.broker_record import joined, renamed
from simmodel.records.streamed_recorder import EVERY, Extent
from simmodel.systems.broker.record import delivered, direct, prefixed, result_of, tidy, undelivered
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.streamed_recorder import Write
    from simmodel.results.broker import BrokerResult
    from simmodel.systems.broker.core import BrokerCore
    from simmodel.systems.destination import Destination

__all__ = ["BrokerStream"]

_LEAST = 256  # jobs of a system after which it writes the rows of those that have ended
_DIRECT = 1 << 40  # the first row of jobs that were submitted to a system directly


class BrokerStream:
    """Writes the rows of a broker's jobs when its systems write theirs.

    Parameters
    ----------
    broker
        a broker that runs jobs, before the first of them
    write
        the function that writes tables
    every
        after how many jobs rows are written

    Attributes
    ----------
    extent
        of the rows written so far
    """

    def __init__(self, broker: BrokerCore, write: Write, every: int = EVERY) -> None:
        self.extent = Extent()
        self._broker = broker
        self._write = write
        self._known: dict[str, NDArray[Any]] = {}
        self._parts = (0, 0)
        self._repeats = False
        self._written = np.zeros(0, dtype=bool)
        self._places = {place.name: _Place(i, place) for i, place in enumerate(broker.places)}
        for each in self._places.values():
            own = max(_LEAST, every // len(self._places))
            each.place.system.stream_record(partial(self._take, each), every=own)

    def _take(self, place: _Place, name: str, rows: NDArray[np.int64], table: Table) -> None:
        """Take a table of a place, and write it with the rows and the names that its jobs have here."""
        if name == "jobs":
            self._complete(place)
            self._take_jobs(place, rows, table)
        elif place.rows is not None:
            here = np.array([place.rows[row] for row in rows.tolist()], dtype=np.int64)
            called = dict(zip(place.here.tolist(), place.jobs["job"].tolist(), strict=True))
            ids = np.array([called[row] for row in here.tolist()], dtype=place.jobs["job"].dtype)
            names = place.names()
            places = np.array([names[str(each)] for each in table["place"].tolist()], dtype=object)
            self._write("runs", here, table.with_columns(job=ids, place=places))
            place.rows = None

    def _take_jobs(self, place: _Place, rows: NDArray[np.int64], table: Table) -> None:
        known = self._columns()
        handed = dict(place.place.handed)
        first = _DIRECT + (place.number << 32)
        here = np.array([handed.pop(row, first + row) for row in rows.tolist()], dtype=np.int64)
        place.place.handed[:] = handed.items()
        ours = here < _DIRECT
        self._written[here[ours]] = True
        parts = [delivered(self._broker, known, here[ours], place.place, table.where(ours))]
        parts.append(direct(place.place, table.where(~ours)))
        place.rows = dict(zip(rows.tolist(), here.tolist(), strict=True))
        place.here = np.append(here[ours], here[~ours])
        place.jobs = joined(
            [self._put(each, jobs) for each, jobs in zip((here[ours], here[~ours]), parts, strict=True)]
        )
        ledger = self._broker.ledger
        for kept in (ledger.expected, ledger.eligible):
            for row in here.tolist() if kept else ():
                kept.pop(row, None)

    def _complete(self, place: _Place) -> None:
        """Write the executions of the last jobs of a place that wrote none: those of jobs that ran once."""
        if place.rows is None:
            return
        place.rows = None
        ran = np.isfinite(place.jobs["start"])
        if ran.any():
            jobs, count = place.jobs.where(ran), int(ran.sum())
            nodes = np.full(count, None, dtype=object)
            name = np.full(count, next(iter(place.names().values())), dtype=object)
            runs = jobs.with_columns(attempt=np.ones(count, dtype=np.int32), place=name, nodes=nodes)
            self._write("runs", place.here[ran], runs)

    def result(self, name: str) -> BrokerResult:
        """Write the rows that are left, and return the result without jobs."""
        broker = self._broker
        below = {place.name: place.system.result(place.name) for place in broker.places}
        self._finish()
        none = tidy(undelivered(broker, self._columns(), np.zeros(0, dtype=np.int64)))
        return result_of(broker, name, below, none, **self.extent.span(broker.env.now))

    def _finish(self) -> None:
        """Write the rows that the systems have not written: those of jobs that were never handed over."""
        for place in self._places.values():
            self._complete(place)
        known = self._columns()
        rest = np.flatnonzero(~self._written)
        self._written[rest] = True
        for begin in range(0, len(rest), EVERY):
            rows = rest[begin : begin + EVERY]
            self._put(rows, undelivered(self._broker, known, rows))

    # ------------------------------------------------------------------ rows

    def _put(self, rows: NDArray[np.int64], jobs: Table) -> Table:
        """Write rows of jobs; return the columns that their executions have, too."""
        if self._repeats:
            jobs = jobs.with_columns(job=prefixed(jobs["job"], jobs["origin"]))
        if len(jobs):
            self.extent.add(jobs)
            self._write("jobs", rows, tidy(jobs) if "reason" in jobs else jobs)
        return Table({name: np.asarray(jobs[name]) for name in ("job", "start", "end", "processors", "status")})

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns known at submission of all jobs so far."""
        ledger = self._broker.ledger
        parts = (len(ledger.tables), len(ledger.alone))
        if parts != self._parts or not self._known:
            self._parts, self._known = parts, ledger.submitted()
            names = self._known["job"]
            self._repeats = self._repeats or len(set(names.tolist())) < len(names)
            more = np.zeros(self._broker.submitted - len(self._written), dtype=bool)
            self._written = np.append(self._written, more)
        return self._known


class _Place:
    """A place of the broker, and the last jobs that it wrote."""

    def __init__(self, number: int, place: Destination) -> None:
        self.number, self.place = number, place
        self.rows: dict[int, int] | None = None  # there, here: of jobs whose executions have not been written
        self.here = np.zeros(0, dtype=np.int64)
        self.jobs = Table({})

    def names(self) -> dict[str, str]:
        """Return the names of the places below in the record, by their names there."""
        return renamed(self.place.system.place_table(), self.place.name)
