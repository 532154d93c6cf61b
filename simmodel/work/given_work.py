"""The conversion of work that users give into a workload: from jobs, data frames, workflows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import attrs

from simmodel.foundation.errors import InputError
from simmodel.work.job import Job
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report, Workload

__all__ = ["Frame", "JobsGiven", "TimedWorkflow", "are_workflows", "as_workload", "repeatable", "told_apart"]


@runtime_checkable
class Frame(Protocol):
    """A table such as a ``pandas.DataFrame``, whose columns are those of a workload."""

    columns: Any

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return the columns with their names."""
        ...


def repeatable(given: Any) -> Any:
    """Return work that can be read again: an iterator, which can be read once, as a list.

    >>> repeatable(iter([1, 2])), repeatable("probe-4")
    ([1, 2], 'probe-4')
    """
    return list(given) if isinstance(given, Iterator) else given


TimedWorkflow: TypeAlias = "Workflow | tuple[float, Workflow]"
"""A workflow, alone or with the instant (s) of its submission."""

JobsGiven: TypeAlias = Workload | Workflow | tuple[float, Workflow] | Frame | Job | Iterable[Job]
"""A workload of jobs, or a value that is converted to one."""


def as_workload(
    given: JobsGiven, *, of_nodes: Collection[str] = (), name: str = "jobs", place: str = "workload", also: str = ""
) -> Workload:
    """Return a workload as it is, or the workload of a data frame, of jobs or of the tasks of a workflow.

    Parameters
    ----------
    given
        a workload, a data frame with its columns, one job or several, or a workflow (alone or with the instant of its
        submission), whose tasks become jobs
    of_nodes
        the requests of a workflow's tasks to nodes, if the platform has any: ``"cores"``, ``"memory"``; ``"files"``:
        they read and write the files of a grid
    name
        of the workload, if it is made of jobs
    place
        the argument that errors name
    also
        the other types that the argument may have, for its errors

    Raises
    ------
    InputError
        if it is anything else, columns are missing, or a task has no run time

    >>> as_workload([Job(run=5), Job(run=10)])
    <Workload jobs: 2 jobs>
    >>> as_workload([1, 2])
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: workload: must be a workload, a data frame, jobs or a workflow, got [1, 2]
    """
    if isinstance(given, Workload):
        return given
    if _is_workflow(given):
        return _of_workflow(given, of_nodes)
    frame: Any = given
    if isinstance(frame, Frame):
        try:
            return Workload(dict(frame.items()), name="data frame")
        except ValueError as error:
            raise InputError(str(error), place=place) from None
    found: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(job, Job) for job in found):
        rows = "; rows are Job(**row)" if all(isinstance(job, Mapping) for job in found) else ""
        message = f"must be a workload, a data frame, jobs or a workflow{also}, got {given!r}{rows}"
        raise InputError(message, place=place)
    return Workload.from_jobs(found, name=name)


def _is_workflow(given: object) -> TypeGuard[TimedWorkflow]:
    return isinstance(given[1] if isinstance(given, tuple) and len(given) == 2 else given, Workflow)


def are_workflows(given: object) -> TypeGuard[Sequence[TimedWorkflow]]:
    """Return whether work is several workflows, each alone or with the instant of its submission.

    >>> are_workflows([(5.0, Workflow([]))]), are_workflows((5.0, Workflow([])))
    (True, False)
    """
    if not isinstance(given, Sequence) or _is_workflow(given):
        return False
    return len(given) > 0 and all(_is_workflow(each) for each in given)


def told_apart(flows: Sequence[TimedWorkflow]) -> list[TimedWorkflow]:
    """Return several workflows whose tasks and files are labelled with the name of their workflow.

    A file that no task of its workflow writes keeps its name, unless another workflow has such a file of another size.

    >>> flow = Workflow([], name="montage")
    >>> [each.name for each in told_apart([flow, flow])]
    ['montage-1', 'montage-2']
    """
    if len(flows) < 2:
        return list(flows)
    alone = [given[1] if isinstance(given, tuple) else given for given in flows]
    inputs = [{file for file in flow.inputs if not flow.writers(file.name)} for flow in alone]
    sizes = Counter(file.name for file in set().union(*inputs))
    often, seen = Counter(flow.name for flow in alone), Counter[str]()
    found: list[TimedWorkflow] = []
    for given, flow, mine in zip(flows, alone, inputs, strict=True):
        seen[flow.name] += 1
        label = flow.name if often[flow.name] == 1 else f"{flow.name}-{seen[flow.name]}"
        labelled = flow.labelled(label, {file.name for file in mine if sizes[file.name] == 1})
        found.append((given[0], labelled) if isinstance(given, tuple) else labelled)
    return found


def _of_workflow(given: TimedWorkflow, of_nodes: Collection[str]) -> Workload:
    at, workflow = given if isinstance(given, tuple) else (0.0, given)
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < inf:
        raise InputError(f"must be an instant >= 0 s, got {at!r}", place=f"submission of {workflow.name}")
    nodes, memory, files = "cores" in of_nodes, "memory" in of_nodes, "files" in of_nodes
    jobs = workflow.jobs(nodes=nodes, memory=memory, files=files)
    workload = Workload.from_jobs([attrs.evolve(job, submit=at) for job in jobs] if at else jobs, name=workflow.name)
    workload.report = workflow.report + Report()
    workload.files = workflow.inputs if files else None
    left = ["the data objects"] if not files and any(file.size for file in workflow.files.values()) else []
    left += ["the memory of tasks"] if not memory and any(task.memory for task in workflow) else []
    if left:
        workload.report.note(f"{workflow.name} is simulated as batch jobs, without {' and '.join(left)}")
    return workload
