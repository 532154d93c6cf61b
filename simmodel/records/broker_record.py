"""Records of brokers: their jobs, and the record of each cluster, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from simmodel.foundation.display import counted
from simmodel.records.job_record import JobRecord, runs_of
from simmodel.work.table import Rows, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FLOWS", "BrokerRecord", "GridRecord", "joined", "renamed"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class BrokerRecord(JobRecord):
    """The record of all jobs of a broker, with the record of each of its clusters.

    Its ``places`` are the clusters. Its jobs have these additional columns:

    ``job``
        its name; if several logs have the same job numbers, prefixed with its home, as ``home:5``
    ``origin``, ``destination``
        its home, and the cluster it was sent to; empty if none
    ``asked``
        the time requested by the user (s); ``requested`` is the time that the cluster planned with, after slowdown
    ``slowdown``
        slowdown factor on its run and requested times
    ``handed``
        instant at which it was sent to the cluster (s)
    ``expected_start``, ``expected_end``
        start and end estimated by the broker (s), if its policy requested an estimate

    Parameters
    ----------
    clusters
        the record of each cluster by name, with times as run there

    >>> jobs = {"submit": [0, 0], "start": [0, 10], "end": [10, 30], "processors": [4, 2]}
    >>> own = JobRecord(jobs=jobs, processors=4)
    >>> record = BrokerRecord(jobs={**jobs, "origin": ["", ""], "destination": ["a", "a"]}, clusters={"a": own})
    >>> record.only([0]).jobs["destination"].tolist()
    ['a']
    """

    clusters: Mapping[str, JobRecord] = attrs.field(factory=dict)

    def only(self, rows: Rows, *, name: str | None = None) -> Self:
        """Return the record of a selection of jobs and their executions; the records of the clusters stay complete.

        Parameters
        ----------
        rows
            a boolean mask, a slice, or row numbers
        name
            its name in tables and plots; default: unchanged
        """
        jobs = self.jobs.where(rows)
        runs = self.runs.where(np.isin(self.runs["job"], jobs["job"]))
        return attrs.evolve(self, jobs=jobs, name=name or self.name, runs=runs)

    def __repr__(self) -> str:
        moved = int((self.jobs["origin"] != self.jobs["destination"]).sum()) if "origin" in self.jobs else 0
        away = f", {moved} away from home" if (self.jobs["origin"] != "").any() else ""
        jobs, clusters = counted(len(self.jobs), "job"), counted(len(self.clusters), "cluster")
        rejected = int((self.jobs["status"] == "rejected").sum())
        lost = f", {rejected} rejected" if rejected else ""
        return f"<{type(self).__name__} {self.name}: {jobs} on {clusters}{away}{lost}>"


def renamed(places: Table, cluster: str) -> dict[str, str]:
    """Return names of the places of a cluster that are unique among clusters: its own name if it has one place."""
    names = [str(name) for name in places["place"]]
    return {names[0]: cluster} if len(names) == 1 else {name: f"{cluster}/{name}" for name in names}


def joined(tables: list[Table]) -> Table:
    """Return the concatenation of tables; columns that a table lacks have missing values there."""
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


# ---------------------------------------------------------------------- grids


FLOWS: Mapping[str, Any] = {"source": "<U1", "destination": "<U1", "files": int, "bytes": float, "failed": int}
"""The columns of the table of flows, and their types."""


def _no_flows() -> Table:
    return Table({name: np.array([], dtype=kind) for name, kind in FLOWS.items()})


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class GridRecord(JobRecord):
    """The record of a grid: the columns of :class:`~simmodel.records.job_record.JobRecord`, whose places are the sites.

    ``start`` and ``end`` are those of holding cores. Its jobs have these additional columns:

    ``site``, ``origin``
        the site that it was assigned to last, and its home; empty if none
    ``state``
        created, pending, staging in, queued, running, staging out, finished, failed, rejected or cancelled
    ``assigned``, ``queued``, ``executing``, ``finished``
        instants (s): assigned to the site, in its queue, its inputs read, ended with its outputs in place
    ``bytes_in``, ``bytes_out``
        bytes moved between sites for it, whoever began that (see :attr:`flows`); bytes that it wrote
    ``reason``
        why it failed or was rejected

    Its places have a ``tier`` (-1: none) and the ``speed`` of their fastest hosts.

    Parameters
    ----------
    flows
        one row per pair of sites with transfers: ``source, destination``, the ``files`` that arrived, their ``bytes``,
        and the number of transfers that ``failed`` or were broken off

    >>> jobs = {"submit": [0], "start": [0], "end": [10], "processors": [2], "site": ["a"]}
    >>> len(GridRecord(jobs=jobs, processors=4).flows)
    0
    """

    flows: Table = attrs.field(factory=_no_flows)

    @cached_property
    def runs(self) -> Table:
        """One row per execution: ``job, attempt, start, end, place, processors, status, nodes``."""
        return runs_of(self.jobs, self.jobs["site"], self.jobs["attempts"]) if self._runs is None else self._runs

    @property
    def one_run_each(self) -> bool:
        """Whether each started job ran once, at the only site."""
        return self._runs is None and len(self.places) == 1

    __repr__ = JobRecord.__repr__
