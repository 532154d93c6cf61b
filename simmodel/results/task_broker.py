"""Results of several systems of tasks under a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from simmodel.foundation.display import Cells, Shown
from simmodel.records.broker_record import joined
from simmodel.results.machine import MachineResult
from simmodel.work.table import Table

__all__ = ["TaskBrokerResult"]


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

    >>> from simmodel import Environment
    >>> from simmodel import load_platform
    >>> from simmodel import Broker
    >>> from simmodel import Machine
    >>> from simmodel import TaskSet
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
        return {
            "submissions": len(self.submissions),
            "tasks": int(self.submissions["tasks"].sum()),
            "makespan": float(ends.max() - first) if len(ends) else 0.0,
        }

    def summary(self) -> str:
        """Return the metrics as text."""
        return "\n".join(f"{name:12} {value:g}" for name, value in self.metrics().items())

    def _cells(self) -> Cells:
        rows = [[f"tasks on {name}", f"{len(result.tasks):,}"] for name, result in self.places.items()]
        return [["", "value"], *([name, f"{value:g}"] for name, value in self.metrics().items()), *rows]

    def __repr__(self) -> str:
        return f"<TaskBrokerResult {self.name}: {len(self.submissions)} submissions on {', '.join(self.places)}>"
