"""Results of several clusters under a broker: the record with metrics, plots, files and exports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from simmodel.foundation.errors import unknown
from simmodel.metrics.names import TAU, Cut
from simmodel.records.broker_record import BrokerRecord
from simmodel.results.result import Result

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult
    from simmodel.view.broker_plots import BrokerPlots
    from simmodel.work.table import Table

__all__ = ["BrokerResult"]


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class BrokerResult(Result, BrokerRecord):
    """The result of all jobs of a broker, with the result of each cluster as ``clusters``.

    Its metrics are those of all jobs together. Fields and columns are those of
    :class:`~simmodel.records.broker_record.BrokerRecord`.

    >>> from simmodel import Environment
    >>> from simmodel import Broker
    >>> from simmodel import Cluster
    >>> from simmodel import Job
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

    clusters: Mapping[str, Result] = attrs.field(factory=dict)

    def of_cluster(self, name: str) -> Result:
        """Return the result of a cluster; raises ``KeyError`` if it is unknown."""
        if name not in self.clusters:
            raise KeyError(str(unknown("cluster", name, self.clusters)))
        return self.clusters[name]

    def workflow_of(self, job: int | str) -> MachineResult:
        """Return the result of the workflow that a job ran inside its nodes; raises ``InputError`` if it ran none."""
        where = (result for result in self.clusters.values() if job in result.workflows)
        return Result.workflow_of(next(where, self), job)

    @property
    def table(self) -> Table:
        """One row per cluster, and a last one of all; see :func:`simmodel.metrics.brokered.by_cluster`."""
        from simmodel.metrics.brokered import by_cluster

        return by_cluster(self)

    def summary(self, *, warmup: Cut = None, cooldown: Cut = None, tau: float = TAU) -> str:
        """Return the metrics of all jobs and a line per cluster as text; parameters as of :meth:`metrics`."""
        from simmodel.metrics.brokered import cluster_lines

        return "\n".join([super().summary(warmup=warmup, cooldown=cooldown, tau=tau), *cluster_lines(self.table)])

    @cached_property
    def plot(self) -> BrokerPlots:
        """Plots of the run: those of every result, and ``.weekly()``, ``.flows()`` and ``.clusters()``."""
        from simmodel.view.broker_plots import BrokerPlots

        return BrokerPlots(self)

    def _repr_html_(self) -> str:
        from simmodel.foundation.display import html_table
        from simmodel.metrics.brokered import cluster_cells

        return super()._repr_html_() + html_table(cluster_cells(self.table))

    __repr__ = BrokerRecord.__repr__
