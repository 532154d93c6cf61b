"""The ledger of a broker: data about its jobs that only the broker has, for the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simmodel.records.broker_record import joined
from simmodel.records.job_record import OF_REQUESTS, job_columns
from simmodel.work.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simmodel.scheduling.protocol import Estimate
    from simmodel.systems.destination import BrokeredJob
    from simmodel.work.prepare import Prepared
    from simmodel.work.workload import Workload

__all__ = ["CARRIED", "Fate", "Ledger"]

CARRIED = ("recorded_start", "recorded_end", "outcome", "exit_code")
"""The columns of a workload that are copied to the record, besides those of requests."""


class Fate(NamedTuple):
    """The final state of a job that was never handed over, the instant (s) and the reason."""

    state: str
    at: float
    reason: str = ""


class Ledger:
    """Data about the jobs of a broker that its systems do not record, by row.

    Attributes
    ----------
    tables
        for each workload: its first row, and the columns of its jobs
    alone
        jobs submitted one by one
    fates
        of jobs that were never handed over
    eligible
        the instant (s) at which all dependencies of a job were satisfied
    expected
        the estimate of the destination of a job, if the policy asked for one
    """

    def __init__(self) -> None:
        self.tables: list[tuple[int, Table]] = []
        self.alone: list[BrokeredJob] = []
        self.fates: dict[int, Fate] = {}
        self.eligible: dict[int, float] = {}
        self.expected: dict[int, Estimate] = {}

    def expect(self, first: int, workload: Workload, prepared: Prepared, home: str) -> None:
        """Register the jobs of a workload, which take the rows from ``first`` on."""
        for row, reason in prepared.rejected.items():
            self.fates[first + row] = Fate("rejected", float("nan"), reason)
        columns = {"job": workload["job"], "submit": workload["submit"], "processors": prepared.processors}
        columns |= {"asked": prepared.asked, "origin": np.full(len(workload), home)}
        if not home and "site" in workload:
            columns["origin"] = workload["site"].astype(str)
        columns |= {key: workload[key] for key in (*OF_REQUESTS, *CARRIED) if key in workload}
        if prepared.outcomes is not None:
            columns["outcome"] = np.asarray(prepared.outcomes)
        self.tables.append((first, Table(columns)))

    def submitted(self) -> dict[str, NDArray[Any]]:
        """Return the columns known at submission of all jobs, in the order of the rows."""
        parts = list(self.tables)
        for job in self.alone:
            columns = job_columns({}, 0, [job])
            columns["submit"], columns["asked"] = np.array([job.came]), columns.pop("requested")
            columns["origin"] = np.array(["" if job.home is None else job.home.name])
            parts.append((job.row, Table(columns)))
        if not parts:
            names = ("job", "submit", "processors", "asked")
            return {**{name: np.zeros(0) for name in names}, "origin": np.zeros(0, dtype=str)}
        table = joined([part for _, part in sorted(parts, key=lambda part: part[0])])
        return dict(table.items())
