"""The record of a grid that is written while the run goes on: the rows of ended jobs leave memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simmodel.records.streamed_recorder import EVERY, Extent
from simmodel.systems.grid.ledger import StreamedLedger
from simmodel.systems.grid.record import job_table, result_of, run_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.records.streamed_recorder import Write
    from simmodel.results.grid import GridResult
    from simmodel.systems.grid.core import GridCore

__all__ = ["GridStream"]


class GridStream:
    """Writes the rows of the jobs of a grid that have ended, and forgets them.

    Parameters
    ----------
    grid
        the grid, before its first job
    write
        the function that writes tables
    every
        after how many jobs that come one by one rows are written

    Attributes
    ----------
    extent
        of the rows written so far
    """

    def __init__(self, grid: GridCore, write: Write, every: int = EVERY) -> None:
        self.extent = Extent()
        self._grid, self._write, self._every = grid, write, every
        self._came = 0
        self.ledger = grid.ledger = StreamedLedger()

    def came(self) -> None:
        """Count a job that comes by itself."""
        self._came += 1
        if self._came >= self._every:
            self.drain()

    def drain(self) -> None:
        """Write the rows of the jobs that have ended."""
        self._came = 0
        rows = self.ledger.ended()
        if len(rows):
            self._put(rows, over=True)

    def _put(self, rows: NDArray[np.int64], *, over: bool) -> None:
        """Write rows, and those of their executions if one had several; the others follow from the jobs."""
        grid, ledger = self._grid, self.ledger
        jobs = job_table(grid, ledger.take(rows), rows, over=over)
        self.extent.add(jobs)
        self._write("jobs", rows, jobs)
        ledger.forget(rows.tolist())
        again = {each[0] for each in ledger.tries}.intersection(rows.tolist()) if ledger.tries else ()
        if again:
            several = np.array(sorted(again))
            tries = [each for each in ledger.tries if each[0] in again]
            ledger.tries = [each for each in ledger.tries if each[0] not in again]
            self._write("runs", *run_table(grid, jobs.where(np.searchsorted(rows, several)), several, tries))

    def result(self, name: str) -> GridResult:
        """Write all rows that are left, and return the result without jobs."""
        grid, nothing = self._grid, np.zeros(0, dtype=np.int64)
        if grid.chunks is not None:
            grid.chunks.read_the_rest()
        self.drain()
        rows = self.ledger.open
        for begin in range(0, len(rows), EVERY):
            self._put(rows[begin : begin + EVERY], over=False)
        jobs = job_table(grid, self.ledger.submitted(), nothing)
        return result_of(grid, name, jobs, None, **self.extent.span(float(grid.env.now)))
