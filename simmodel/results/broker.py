"""What a run of several clusters under a broker returns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.results.result import Result
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.view.broker_plots import BrokerPlots

__all__ = ["BrokerResult"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class BrokerResult(Result):
    """What happened to all jobs of a broker, and in each of its clusters.

    It is a result as any other: its ``places`` are the clusters, its metrics are those of all jobs together. Its jobs
    have columns besides:

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
        the result of each cluster, by name: the numbers as run there

    >>> from simmodel.environment import Environment
    >>> from simmodel.systems.broker.system import Broker
    >>> from simmodel.systems.cluster.system import Cluster
    >>> from simmodel.work.job import Job
    >>> env = Environment()
    >>> broker = Broker(env, [Cluster(env, 4, name="a"), Cluster(env, 4, name="b")], "sgs-t")
    >>> for _ in range(3): _ = broker.submit(Job(processors=4, run=10), home="a")
    >>> env.run()
    >>> result = broker.result()
    >>> result.jobs["destination"].tolist(), result.jobs["wait"].tolist()
    (['a', 'b', 'a'], [0.0, 0.0, 10.0])
    >>> result.clusters["b"].jobs["job"].tolist()
    [2]
    """

    clusters: dict[str, Result] = attrs.field(factory=dict)

    def of_cluster(self, name: str) -> Result:
        """Return the result of one cluster; raises ``KeyError`` where there is none of this name."""
        if name not in self.clusters:
            raise KeyError(f"no cluster {name!r}; there are {', '.join(self.clusters)}")
        return self.clusters[name]

    def only(self, rows: Any, *, name: str | None = None) -> BrokerResult:
        """Return the result of some of the jobs, with what they alone kept busy; the clusters' results stay whole.

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

    @property
    def table(self) -> Table:
        """One row a cluster and a last one of all: jobs, mean wait and turnaround (s), utilisation and so on."""
        from simmodel.metrics.brokered import by_cluster

        return by_cluster(self)

    def summary(self, **options: Any) -> str:
        """Return the metrics of all jobs, then a line for each cluster, as text; options as of :meth:`metrics`."""
        from simmodel.metrics.brokered import cluster_lines

        return "\n".join([super().summary(**options), *cluster_lines(self)])

    @cached_property
    def plot(self) -> BrokerPlots:
        """Pictures of the run: those of every result, and ``.weekly()``, ``.flows()`` and so on."""
        from simmodel.view.broker_plots import BrokerPlots

        return BrokerPlots(self)

    def _repr_html_(self) -> str:
        from simmodel.metrics.brokered import cluster_cells
        from simmodel.metrics.tables import html_table

        return super()._repr_html_() + html_table(cluster_cells(self))

    def __repr__(self) -> str:
        moved = int((self.jobs["origin"] != self.jobs["destination"]).sum()) if "origin" in self.jobs else 0
        away = f", {moved} away from home" if (self.jobs["origin"] != "").any() else ""
        return f"<BrokerResult {self.name}: {len(self.jobs)} jobs on {len(self.clusters)} clusters{away}>"


def renamed(result: Result, cluster: str) -> dict[str, str]:
    """Return what the places of a cluster are called beside those of others: the cluster, where it has one place."""
    names = [str(name) for name in result.places["place"]]
    return {names[0]: cluster} if len(names) == 1 else {name: f"{cluster}/{name}" for name in names}


def joined(tables: list[Table]) -> Table:
    """Return tables one under the other; a column that one of them has not is missing there."""
    names = list(dict.fromkeys(name for table in tables for name in table))
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


def _mixed(parts: list[Any]) -> Any:
    if all(part.dtype.kind in "iuf" for part in parts):
        return np.concatenate([part.astype(np.float64) for part in parts])
    return np.concatenate([part.astype(object) for part in parts])
