"""What happened to the jobs of a broker, and in each of its clusters, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from simmodel.records.job_record import JobRecord
from simmodel.work.table import Rows, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BrokerRecord", "joined", "renamed"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class BrokerRecord(JobRecord):
    """What happened to all jobs of a broker, and in each of its clusters.

    Its ``places`` are the clusters. Its jobs have columns besides:

    ``job``
        its name; where several logs number their jobs alike, with the home before it, as ``home:5``
    ``origin``, ``destination``
        the home a job came with and the cluster it went to; empty where there is none
    ``asked``
        s, requested by the user; ``requested`` is what the cluster planned with, times the slowdown
    ``slowdown``
        what multiplied its run and requested times
    ``handed``
        s, the instant at which it was handed over
    ``expected_start``, ``expected_end``
        s, what the broker's estimate said, where its policy asked for one

    Parameters
    ----------
    clusters
        the record of each cluster, by name: the numbers as run there

    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> own = JobRecord(jobs=jobs, processors=4)
    >>> record = BrokerRecord(jobs={**jobs, "origin": ["", ""], "destination": ["a", "a"]}, clusters={"a": own})
    >>> record.only([0]).jobs["destination"].tolist()
    ['a']
    """

    clusters: Mapping[str, JobRecord] = attrs.field(factory=dict)

    def only(self, rows: Rows, *, name: str | None = None) -> Self:
        """Return the record of some of the jobs, with what they alone kept busy; the clusters' records stay whole.

        Parameters
        ----------
        rows
            a boolean mask, a slice, or row numbers
        name
            what tables and plots call it; default: as before
        """
        jobs = self.jobs.where(rows)
        runs = self.runs.where(np.isin(self.runs["job"], jobs["job"]))
        return attrs.evolve(self, jobs=jobs, name=name or self.name, runs=runs)

    def __repr__(self) -> str:
        moved = int((self.jobs["origin"] != self.jobs["destination"]).sum()) if "origin" in self.jobs else 0
        away = f", {moved} away from home" if (self.jobs["origin"] != "").any() else ""
        return f"<{type(self).__name__} {self.name}: {len(self.jobs)} jobs on {len(self.clusters)} clusters{away}>"


def renamed(record: JobRecord, cluster: str) -> dict[str, str]:
    """Return what the places of a cluster are called beside those of others: the cluster, where it has one place."""
    names = [str(name) for name in record.places["place"]]
    return {names[0]: cluster} if len(names) == 1 else {name: f"{cluster}/{name}" for name in names}


def joined(tables: list[Table]) -> Table:
    """Return tables one under the other; a column that one of them has not is missing there."""
    names = list(dict.fromkeys(name for table in tables for name in table.names))
    columns = {}
    for name in names:
        parts = [table[name] if name in table else _missing(name, tables, len(table)) for table in tables]
        columns[name] = np.concatenate(parts) if len({part.dtype.kind for part in parts}) == 1 else _mixed(parts)
    return Table(columns)


def _missing(name: str, tables: list[Table], count: int) -> Any:
    kind = next(table[name].dtype.kind for table in tables if name in table)
    if kind == "O":
        return np.full(count, None, dtype=object)
    return np.full(count, np.nan if kind == "f" else -1 if kind in "iu" else "")


def _mixed(parts: list[NDArray[np.generic]]) -> NDArray[np.generic]:
    if all(part.dtype.kind in "iuf" for part in parts):
        return np.concatenate([part.astype(np.float64) for part in parts])
    return np.concatenate([part.astype(object) for part in parts])
