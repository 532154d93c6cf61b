"""The conversion of work that users give into a workload: from jobs, data frames, workflows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from simmodel.foundation.errors import InputError
from simmodel.work.job import Job
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report, Workload

__all__ = ["Frame", "JobsGiven", "as_workload", "repeatable"]


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


JobsGiven: TypeAlias = Workload | Workflow | Frame | Job | Iterable[Job]
"""A workload of jobs, or a value that is converted to one."""


def as_workload(
    given: JobsGiven, *, of_nodes: Collection[str] = (), name: str = "jobs", place: str = "workload", also: str = ""
) -> Workload:
    """Return a workload as it is, or the workload of a data frame, of jobs or of the tasks of a workflow.

    Parameters
    ----------
    given
        a workload, a data frame with its columns, one job or several, or a workflow, whose tasks become jobs
    of_nodes
        the requests of a workflow's tasks to nodes, if the platform has any: ``"cores"``, ``"memory"``
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
    if isinstance(given, Workflow):
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


def _of_workflow(workflow: Workflow, of_nodes: Collection[str]) -> Workload:
    nodes, memory = "cores" in of_nodes, "memory" in of_nodes
    workload = Workload.from_jobs(workflow.jobs(nodes=nodes, memory=memory), name=workflow.name)
    workload.report = workflow.report + Report()
    left = ["the data objects"] if any(file.size for file in workflow.files.values()) else []
    left += ["the memory of tasks"] if not memory and any(task.memory for task in workflow) else []
    if left:
        workload.report.note(f"{workflow.name} is simulated as batch jobs, without {' and '.join(left)}")
    return workload
