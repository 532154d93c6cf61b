"""Results of several clusters under a broker: the record with metrics, plots, files and exports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown
from simmodel.foundation.errors import ByName
from simmodel.metrics.batch import TAU, Cut
from simmodel.records.broker_record import BrokerRecord, joined
from simmodel.results.machine import MachineResult
from simmodel.results.result import Result
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.platform.signals import GivenSignals
    from simmodel.results.machine import MachineResult
    from simmodel.view.broker_plots import BrokerPlots
    from simmodel.work.table import Table

__all__ = ["BrokerResult", "TaskBrokerResult"]


def _by_name(clusters: Mapping[str, Result]) -> Mapping[str, Result]:
    return ByName("cluster", clusters)


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class BrokerResult(Result, BrokerRecord):
    """The result of all jobs of a broker, with the result of each cluster as ``clusters``.

    Its metrics are those of all jobs together. Fields and columns are those of
    :class:`~simmodel.records.broker_record.BrokerRecord`.

    >>> from simmodel import Broker, Cluster, Environment, Job
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

    clusters: Mapping[str, Result] = attrs.field(factory=dict, converter=_by_name)

    def of_cluster(self, name: str) -> Result:
        """Return the result of a cluster; raises ``KeyError`` if it is unknown."""
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

    def summary(
        self,
        *,
        warmup: Cut = None,
        cooldown: Cut = None,
        tau: float = TAU,
        signals: GivenSignals | None = None,
    ) -> str:
        """Return the metrics of all jobs and a line per cluster as text; parameters as of :meth:`metrics`."""
        from simmodel.metrics.brokered import cluster_lines

        return "\n".join(
            [super().summary(warmup=warmup, cooldown=cooldown, tau=tau, signals=signals), *cluster_lines(self.table)]
        )

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


# ---------------------------------------------------------------------- brokers of machines


@attrs.define(kw_only=True, eq=False, repr=False)
class TaskBrokerResult(Shown):
    """The result of the task sets of a broker, with the result of each of its systems.

    Parameters
    ----------
    name
        the name of the run in tables and plots
    submissions
        one row per set: ``submission, tasks`` (their number), the instants ``submit, handed, end`` (s), ``status,
        origin, destination``, and ``expected_end`` (s) if the policy asked for an estimate
    places
        the result of each system, by name
    decisions, scenario
        number and seconds of the policy's decisions; the stored scenario, which repeats the run

    >>> from simmodel import Broker, Environment, Machine, TaskSet, load_platform
    >>> env = Environment()
    >>> machines = [Machine(env, load_platform("hetsim-slow"), name=name) for name in ("a", "b")]
    >>> broker = Broker(env, machines, "round-robin")
    >>> _ = broker.submit(TaskSet([3.0, 4.0])), broker.submit(TaskSet([5.0]))
    >>> env.run()
    >>> result = broker.result()
    >>> result.submissions["destination"].tolist(), result.submissions["end"].tolist()
    (['a', 'b'], [4.0, 5.0])
    >>> result.metrics()
    {'submissions': 2, 'tasks': 3, 'makespan': 5.0}
    """

    name: str = "run"
    submissions: Table
    places: Mapping[str, MachineResult | TaskBrokerResult]
    decisions: Mapping[str, float] = attrs.field(factory=dict)
    scenario: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def tasks(self) -> Table:
        """The tasks of all systems, with the ``place`` of each: the name of its system, or its path."""
        tables = []
        for name, result in self.places.items():
            tasks = result.tasks
            below = tasks["place"].tolist() if isinstance(result, TaskBrokerResult) else []
            paths = [f"{name}/{each}" for each in below] if below else [name] * len(tasks)
            tables.append(tasks.with_columns(place=np.array(paths, dtype=object)))
        return joined(tables)

    def outcomes(self) -> Table:
        """Return one row per task of all systems, as :meth:`TaskRecord.outcomes
        <simmodel.records.task_record.TaskRecord.outcomes>` of each."""
        return joined([result.outcomes() for result in self.places.values()])

    def executions(self) -> Table:
        """Return one row per task with a processor: ``work, place`` (the path of the processor), ``start``."""
        tables = []
        for name, result in self.places.items():
            table = result.executions()
            paths = [f"{name}/{place}" for place in table["place"].tolist()]
            tables.append(table.with_columns(place=np.array(paths, dtype=object)))
        return joined(tables)

    def used(self, begin: float, end: float) -> float:
        """Return the processor time of executions between two instants, in all systems."""
        return sum(result.used(begin, end) for result in self.places.values())

    def room(self, begin: float, end: float) -> float:
        """Return the available processor time between two instants, in all systems."""
        return sum(result.room(begin, end) for result in self.places.values())

    def metrics(self) -> dict[str, Any]:
        """Return the numbers of submissions and tasks, and the makespan: first submission to last end, s.

        For the metrics of a system: ``result.places[name].metrics()``.
        """
        ends = self.submissions["end"][np.isfinite(self.submissions["end"])]
        first = self.submissions["submit"].min() if len(self.submissions) else 0.0
        found = {
            "submissions": len(self.submissions),
            "tasks": int(self.submissions["tasks"].sum()),
            "makespan": float(ends.max() - first) if len(ends) else 0.0,
        }
        return ByName("metric", found)

    def summary(self) -> str:
        return "\n".join(f"{name:12} {value:g}" for name, value in self.metrics().items())

    def _cells(self) -> Cells:
        rows = [[f"tasks on {name}", f"{len(result.tasks):,}"] for name, result in self.places.items()]
        return [["", "value"], *([name, f"{value:g}"] for name, value in self.metrics().items()), *rows]

    def __repr__(self) -> str:
        return f"<TaskBrokerResult {self.name}: {len(self.submissions)} submissions on {', '.join(self.places)}>"
