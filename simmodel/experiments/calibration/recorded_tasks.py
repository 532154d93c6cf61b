"""A workflow that was recorded on machines, as a model whose parameters are the speeds of these machines."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from simmodel.catalogue import load_workflow
from simmodel.experiments.calibration.observations import Observations
from simmodel.experiments.parameters import Parameter
from simmodel.foundation.display import Cells, Shown, counted
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform.machine import ArchitectureSpec, MachineSpec
from simmodel.runs.scenario import simulate
from simmodel.systems.machine.recorded import recorded_machine
from simmodel.work.table import Table

if TYPE_CHECKING:
    from simmodel.results.machine import MachineResult
    from simmodel.work.task import Task
    from simmodel.work.workflow import Workflow

__all__ = ["RecordedTasks"]


@attrs.frozen(kw_only=True, eq=False, repr=False, slots=False)
class RecordedTasks(Shown):
    """A recorded workflow as a model for :func:`~simmodel.experiments.calibration.calibrating.calibrate`.

    Each task runs on the machine of its record, for the usual time of its family over the speed of the machine. The
    usual time is the median of the family's tasks that are not held out, on all machines: a speed is relative to them.
    Speeds of one machine move the run times of no other: calibrate them with ``separable=True``.

    Parameters
    ----------
    workflow
        tasks with recorded run times and machines
    by_family
        whether a machine has a speed for each family of tasks; default: one for all
    holdout
        as that of the calibration: the last tasks of each machine and family do not count in the usual times
    least
        the tasks of a family that a machine must have run at least. A family counts if two machines have: others do
        not show speeds, and run as recorded

    Raises
    ------
    InputError
        no family counts

    >>> from simmodel import Task, Workflow
    >>> from simmodel.experiments import calibrate
    >>> from simmodel.work.task import RecordedMachine
    >>> runs = {"old": [20.0, 20.0, 40.0], "new": [10.0, 10.0, 10.0, 10.0]}
    >>> tasks = [Task(id=f"{name}{i}", run=run, family="fft", machines=[name])
    ...          for name, several in runs.items() for i, run in enumerate(several)]
    >>> model = RecordedTasks(workflow=Workflow(tasks, machines=[RecordedMachine(name=name, cores=8) for name in runs]))
    >>> found = calibrate(model, model.record, model.parameters(), budget=20, separable=True)
    >>> {name: round(value, 2) for name, value in found.values.items()}
    {'new': 1.0, 'old': 0.5}
    """

    workflow: Workflow
    by_family: bool = False
    holdout: float = 0
    least: int = 3

    def __attrs_post_init__(self) -> None:
        if not self._timed:
            wanted = f"a family with run times of {self.least} tasks or more on each of two machines"
            raise InputError(f"must have {wanted}, got none in {self.workflow.name}", place="workflow")

    @classmethod
    def read(cls, path: str | Path, *, by_family: bool = False, holdout: float = 0, least: int = 3) -> RecordedTasks:
        """Read a workflow, such as an instance of WfCommons.

        Parameters
        ----------
        path
            a file, or the name of a workflow
        by_family, holdout, least
            as of the class
        """
        return cls(workflow=load_workflow(path), by_family=by_family, holdout=holdout, least=least)

    @cached_property
    def _timed(self) -> list[Task]:
        """The tasks that count: those of a family come in the order of their starts, evenly among those of others."""
        cells: dict[str, dict[str, list[Task]]] = {}
        for task in self.workflow:
            if task.run and task.machines:
                cells.setdefault(task.family or "", {}).setdefault(task.machines[0], []).append(task)
        ranked: list[tuple[float, int, Task]] = []
        for machines in cells.values():
            known = [tasks for tasks in machines.values() if len(tasks) >= self.least]
            for tasks in known if len(known) > 1 else ():
                tasks.sort(key=lambda task: task.started or 0.0)
                ranked += [((i + 0.5) / len(tasks), len(ranked) + i, task) for i, task in enumerate(tasks)]
        return [task for _, _, task in sorted(ranked, key=lambda each: each[:2])]

    @cached_property
    def record(self) -> Table:
        """The recorded run times: ``task, site`` (the machine), ``class`` (the family), ``walltime``."""
        return Table(
            {
                "task": np.array([task.id for task in self._timed]),
                "site": np.array([task.machines[0] for task in self._timed], dtype=str),
                "class": np.array([task.family or "" for task in self._timed], dtype=str),
                "walltime": np.array([task.run for task in self._timed], dtype=np.float64),
            }
        )

    @cached_property
    def usual(self) -> dict[str, float]:
        """The usual run time of each family, s."""
        held = Observations.of(self.record, ["walltime"], self.holdout).held_out
        families, runs = self.record["class"], self.record["walltime"]
        found = {}
        for family in dict.fromkeys(families.tolist()):
            here = families == family
            found[family] = float(np.median(runs[here & ~held]))
        return found

    @cached_property
    def platform(self) -> MachineSpec:
        """The machine of the record, with an architecture for each of its machines."""
        spec = recorded_machine(self.workflow)
        return attrs.evolve(
            spec,
            architectures=[ArchitectureSpec(name=each.name) for each in spec.processors],
            processors=[attrs.evolve(each, architecture=each.name) for each in spec.processors],
        )

    def parameters(self, low: float = 0.125, high: float = 8.0) -> list[Parameter]:
        """Return the speeds as parameters, on a logarithmic scale: ``machine``, or ``machine family``."""
        found = {}
        for task in self._timed:
            name = self._speed_of[task.id]
            found[name] = Parameter(name=name, low=low, high=high, scale="log", group=task.machines[0])
        return list(found.values())

    @cached_property
    def _speed_of(self) -> dict[int | str, str]:
        if not self.by_family:
            return {task.id: task.machines[0] for task in self._timed}
        return {task.id: f"{task.machines[0]} {task.family or ''}".strip() for task in self._timed}

    def __call__(self, **speeds: float) -> MachineResult:
        """Simulate the workflow with these speeds; the others are 1.

        Raises
        ------
        InputError
            there is no such machine, or it ran no task of the family
        """
        names = set(self._speed_of.values())
        for name in speeds:
            if name not in names:
                raise InputError(unknown("speed", name, sorted(names)).message, place="parameters")

        def placed(task: Task) -> Task:
            if task.id not in self._speed_of:
                return task
            seconds = self.usual[task.family or ""] / speeds.get(self._speed_of[task.id], 1.0)
            return attrs.evolve(task, run=None, run_on={task.machines[0]: seconds})

        return simulate(self.platform, self.workflow.map(placed), "earliest-finish")

    def _cells(self) -> Cells:
        return ()

    def __repr__(self) -> str:
        machines = len(dict.fromkeys(self.record["site"].tolist()))
        return f"<RecordedTasks of {self.workflow.name}: {counted(len(self._timed), 'task')} on {machines} machines>"
