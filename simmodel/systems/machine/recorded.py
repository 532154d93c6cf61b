"""The machine that a workflow was recorded on, and the assumptions of a run about recorded workflows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simmodel.foundation.errors import InputError
from simmodel.work.task import CPU_CORES
from simmodel.work.taskset import TaskSet
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.platform.machine import MachineSpec

__all__ = ["assumed", "recorded_machine", "recorded_workflow"]


def recorded_machine(workflow: Workflow) -> MachineSpec:
    """Return the machine of the recorded machines of a workflow, as WfFormat describes them.

    Each recorded machine is one CPU with its cores (unknown: as many as the widest of its tasks). Recorded run times
    contain the access to data, and hold on each of them whatever its clock: so all share one memory pool without limit,
    and are equally fast.

    Raises
    ------
    InputError
        if the workflow records no machines

    >>> from simmodel import Task
    >>> from simmodel.work.task import RecordedMachine
    >>> flow = Workflow([Task(id="a", run=2)], machines=[RecordedMachine(name="node-1", cores=48)])
    >>> recorded_machine(flow).processors[0].cores
    48
    """
    from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec

    if not workflow.machines:
        message = f"{workflow.name} records no machines: pass a machine, or a number of processors"
        raise InputError(message, place="platform")
    widest: dict[str, float] = {}
    for task in workflow:
        for name in task.machines:
            widest[name] = max(widest.get(name, 1), task.cores)
    return MachineSpec(
        name=f"{workflow.name} as recorded",
        pools=[MemoryPoolSpec(name="storage")],
        architectures=[ArchitectureSpec(name="recorded")],
        processors=[
            ProcessorSpec(
                name=each.name,
                type=CPU_CORES[1],
                architecture="recorded",
                pool="storage",
                cores=each.cores or -int(-widest.get(each.name, 1) // 1),
            )
            for each in workflow.machines
        ],
    )


def recorded_workflow(given: object) -> Workflow | None:
    """Return the workflow of some work if it is one: given itself, as its task set, or as a JSON file."""
    if isinstance(given, TaskSet):
        return given.known_workflow
    if isinstance(given, (str, Path)) and str(given).lower().endswith((".json", ".json.gz")):
        from simmodel.catalogue import load_workflow
        from simmodel.catalogue.formats import is_workflow

        return load_workflow(given) if not (path := Path(given)).exists() or is_workflow(path) else None
    return given if isinstance(given, Workflow) else None


def assumed(tasks: TaskSet, spec: MachineSpec, makespan: float | None = None) -> list[str]:
    """Return sentences on the assumptions of a run about a recorded workflow, and on its recorded makespan.

    Parameters
    ----------
    tasks, spec
        the tasks; the machine that runs them
    makespan
        that of the run (in the machine's unit of time), if it has ended
    """
    flow = tasks.known_workflow
    if flow is None:
        return []
    found = []
    others = [each for each in spec.types if each not in CPU_CORES]
    silent = sum(task.implementations is None and not task.run_on for task in flow)
    if flow.cpu_only and others and silent:
        found.append(
            f"{silent:,} of {len(flow):,} tasks of {flow.name} say nothing about accelerators: "
            f"none of them may run on {', '.join(others)} (Workflow.offloaded sends families or names there)"
        )
    if flow.makespan is not None and makespan is not None:
        found.append(f"makespan of {flow.name}: {makespan:,.6g} s, recorded {flow.makespan:,.6g} s")
    return found
