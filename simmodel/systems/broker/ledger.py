"""What a broker keeps of its jobs for the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.records.broker_record import joined
from simmodel.records.job_columns import job_columns
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import Estimate
    from simmodel.systems.destination import BrokeredJob
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["CARRIED", "Fate", "Ledger"]

CARRIED = ("user", "group", "queue", "partition")
"""The columns of a workload that the record has too."""


class Fate(NamedTuple):
    """What became of a job that went nowhere: its state, the instant (s), and why."""

    state: str
    at: float
    reason: str = ""


class Ledger:
    """What a broker keeps of its jobs beside what happens to them in its systems, all by row.

    Attributes
    ----------
    tables
        first row, and what is known of the jobs of a workload from there on
    alone
        jobs submitted one by one
    fates
        of those that went nowhere
    eligible
        the instant (s) at which all had come that a job came after
    expected
        the estimate of the place that a job went to, where the policy asked
    """

    def __init__(self) -> None:
        self.tables: list[tuple[int, Table]] = []
        self.alone: list[BrokeredJob] = []
        self.fates: dict[int, Fate] = {}
        self.eligible: dict[int, float] = {}
        self.expected: dict[int, Estimate] = {}

    def expect(self, first: int, workload: Workload, prepared: Prepared, home: str) -> None:
        """Keep what is known of the jobs of a workload, which take the rows from ``first`` on."""
        for row, reason in prepared.rejected.items():
            self.fates[first + row] = Fate("rejected", float("nan"), reason)
        columns = {"job": workload["job"], "submit": workload["submit"], "processors": prepared.processors}
        columns |= {"asked": prepared.requested, "origin": np.full(len(workload), home)}
        columns |= {key: workload[key] for key in CARRIED if key in workload}
        self.tables.append((first, Table(columns)))

    def submitted(self) -> dict[str, NDArray[Any]]:
        """Return what is known of all jobs before anything happens to them, in the order of the rows."""
        parts = list(self.tables)
        for job in self.alone:
            columns = job_columns({}, 0, [job])
            columns["submit"], columns["asked"] = np.array([job.came]), np.array([job.limit])
            columns["origin"] = np.array(["" if job.home is None else job.home.name])
            del columns["requested"]
            parts.append((job.row, Table(columns)))
        if not parts:
            names = ("job", "submit", "processors", "asked")
            return {**{name: np.zeros(0) for name in names}, "origin": np.zeros(0, dtype=str)}
        table = joined([part for _, part in sorted(parts, key=lambda part: part[0])])
        return dict(table.items())
