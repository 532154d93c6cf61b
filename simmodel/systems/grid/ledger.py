"""The ledger of a grid: what happened to each of its jobs, by row."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.systems.broker.ledger import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INSTANTS", "GridLedger"]

NAN = float("nan")

INSTANTS = ("assigned", "queued", "start", "executing", "end", "finished")
"""Instants (s) of a job: assigned to a site, in its queue, start and end of holding cores, of executing, the end."""


class GridLedger(Ledger):
    """Data about the jobs of a grid, by row.

    Attributes
    ----------
    assigned, queued, start, executing, end, finished
        the instants of :data:`INSTANTS` of the latest attempt
    site
        the number of the site, -1: none
    status, attempts
        the final state, a number of :attr:`words`, -1: none yet; how often it was assigned
    bytes_in, bytes_out
        bytes that were moved for it to and from the site
    errors
        the reason of a failure, by row
    tries
        the executions that were not the last: row, attempt, start, end, site, status
    """

    def __init__(self) -> None:
        super().__init__()
        for name in INSTANTS:
            setattr(self, name, array("d"))
        self.bytes_in, self.bytes_out = array("d"), array("d")
        self.site, self.status, self.attempts = array("h"), array("b"), array("h")
        self.words: dict[str, int] = {}
        self.errors: dict[int, str] = {}
        self.tries: list[tuple[int, int, float, float, int, str]] = []
        self.rows = 0

    assigned: array[float]
    queued: array[float]
    start: array[float]
    executing: array[float]
    end: array[float]
    finished: array[float]

    def grow(self, rows: int) -> None:
        """Have so many rows more."""
        for name in INSTANTS:
            getattr(self, name).extend(array("d", (NAN,)) * rows)
        for column in (self.bytes_in, self.bytes_out):
            column.extend(array("d", (0.0,)) * rows)
        self.site.extend(array("h", (-1,)) * rows)
        self.status.extend(array("b", (-1,)) * rows)
        self.attempts.extend(array("h", (0,)) * rows)
        self.rows += rows

    def word(self, status: str) -> int:
        """Return the number of a final state."""
        return self.words.setdefault(status, len(self.words))

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as an array, a copy."""
        values: array[Any] = getattr(self, name)
        kinds = {"d": np.float64, "h": np.int16, "b": np.int8}
        return np.array(values, dtype=kinds[values.typecode])
