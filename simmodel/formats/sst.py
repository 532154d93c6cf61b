"""Files of the job scheduler of SST (the Structural Simulation Toolkit), as JSON: workflows, machine and priorities.

A file holds a workflow, the resources of the machine, and two scheduling keys:

``scheduling_policy``
    the order in which ready tasks get cores: ``"Static"`` (the default), by decreasing ``priority``; ``"FCFS"``, in the
    order in which they become ready; ``"SJF"`` and ``"LJF"``, shortest and longest first. Ties go to the task that
    became ready first
``preemption``
    whether workflows that arrive later may stop this workflow's tasks. If true, later workflows rank above it, whatever
    the priorities of single tasks, and within the workflow tasks of higher priority stop those of lower priority. A
    workflow without preemption is never stopped: if others allow it, all its tasks get the highest priority among the
    workflows that arrive later
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Literal

import attrs

from simmodel.formats.documents import Value, read_json
from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError, Plain, shown
from simmodel.foundation.loading import Source, reader, title_of
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

Given = Workflow | Source

__all__ = ["SST_POLICIES", "SSTScenario", "machine_for", "read_sst", "read_sst_scenario"]


@reader
def read_sst(source: Source, *, memory_unit: float = 2**20) -> Workflow:
    """Read a workflow of SST's job scheduler: tasks with dependencies that request cores and memory.

    The header keeps the file's keys about the run: ``resources_available`` (``cpu``, and ``memory`` in bytes),
    ``scheduling_policy`` and ``preemption`` (whether later workflows may stop these tasks);
    :func:`~simmodel.formats.sst.read_sst_scenario` derives a machine and priorities from them.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    memory_unit
        bytes of one unit of memory; the format specifies none

    Raises
    ------
    InputError
        the file cannot be read, is not such JSON, or has an invalid value (the message has its path)

    >>> import io
    >>> text = '''{"tasks": [{"id": 1, "execution_time": 100, "resources": {"cpu": 2, "memory": 1}, "dependencies": []},
    ...   {"id": 2, "execution_time": 50, "dependencies": [1]}], "preemption": false}'''
    >>> flow = read_sst(io.StringIO(text))
    >>> flow.critical_path_length(), flow[1].cores, flow[1].memory, flow.header
    (150, 2, 1048576, {'preemption': False})
    """
    document = read_json(source)
    if "tasks" not in document:
        raise document.wrong("must be a workflow of SST's job scheduler: missing key 'tasks'")
    document.only("tasks", "resources_available", "scheduling_policy", "preemption", "name", "description")
    tasks: dict[int | str, Task] = {}
    waits: dict[int | str, Value] = {}
    for value in document["tasks"].list():
        value.only("id", "name", "execution_time", "resources", "dependencies", "priority")
        id_ = value["id"].key()
        if id_ in tasks:
            raise value["id"].wrong(f"duplicate task id {shown(id_)}")
        cores, memory = _resources(value.get("resources"), memory_unit)
        tasks[id_] = Task(
            id=id_,
            name=value["name"].text() if "name" in value else None,
            run=value["execution_time"].number(),
            cores=1 if cores is None else cores,
            memory=memory or 0.0,
            priority=value["priority"].number(least=None) if "priority" in value else 0.0,
        )
        waits[id_] = value
    if not tasks:
        raise document["tasks"].wrong("must not be empty")
    edges: dict[tuple[int | str, int | str], None] = {}
    for id_, value in waits.items():
        for each in value["dependencies"].list() if "dependencies" in value else ():
            parent = each.key()
            if parent not in tasks:
                raise each.wrong(f"unknown task {shown(parent)}")
            if (parent, id_) in edges:
                raise each.wrong(f"duplicate dependency {shown(parent)}")
            edges[parent, id_] = None
    try:
        name = document["name"].text() if "name" in document else title_of(document.source, ".json")
        return Workflow(tasks.values(), edges, name=name, header=_header(document, memory_unit))
    except InputError as error:
        raise InputError(error.message, source=document.source, place=error.place) from None


def _resources(value: Value | None, memory_unit: float) -> tuple[float | None, float | None]:
    """Return the cores and the bytes of memory in a table of resources, ``None`` for missing ones."""
    if value is None:
        return None, None
    value.only("cpu", "memory")
    cores = value["cpu"].number() if "cpu" in value else None
    if cores == 0:
        raise value["cpu"].wrong("must be a number > 0, got 0")
    return cores, value["memory"].number(scale=memory_unit) if "memory" in value else None


def _header(document: Value, memory_unit: float) -> dict[str, Plain]:
    header: dict[str, Plain] = {}
    if "resources_available" in document:
        found = dict(zip(("cpu", "memory"), _resources(document["resources_available"], memory_unit), strict=True))
        header["resources_available"] = {key: amount for key, amount in found.items() if amount is not None}
    for key in ("scheduling_policy", "description"):
        if key in document:
            header[key] = document[key].text()
    if "preemption" in document:
        value = document["preemption"]
        if not isinstance(value.data, bool):
            raise value.wrong(f"must be true or false, got {shown(value.data)}")
        header["preemption"] = value.data
    return header


SST_POLICIES: Mapping[str, Callable[[Task], float]] = {
    "static": lambda task: task.priority,
    "fcfs": lambda task: 0.0,
    "sjf": lambda task: -(task.run or 0.0),
    "ljf": lambda task: task.run or 0.0,
}
"""The values of ``scheduling_policy`` in lower case, each with its sort key; the highest goes first."""


@attrs.frozen(kw_only=True, repr=False)
class SSTScenario(Fields):
    """A machine, workflows with their submission instants (s), and a report of unused parts of their files."""

    machine: MachineSpec
    work: tuple[tuple[float, Workflow], ...]
    report: Report


def machine_for(
    files: Source | Workflow | Sequence[Source | Workflow],
    *,
    cores: int | None = None,
    memory: float | None = None,
    stop: Literal["suspend", "requeue"] = "suspend",
    name: str = "sst",
) -> MachineSpec:
    """Return the machine that files of SST's job scheduler request: one node with many cores.

    Parameters
    ----------
    files
        one or several files, or the workflows read from them
    cores, memory
        of the node, overriding the files: a whole number, and bytes
    stop
        the fate of a stopped task, if a file allows preemption: it is suspended, or requeued and starts again
    name
        of the machine

    Raises
    ------
    InputError
        a file is invalid or has no number of cores, or the files disagree on the resources

    >>> import io
    >>> text = '{"tasks": [{"id": 1, "execution_time": 5}], "resources_available": {"cpu": 10, "memory": 8192}}'
    >>> spec = machine_for(io.StringIO(text))
    >>> spec, spec.processors[0].cores, spec.pools[0].size / 2**20
    (<MachineSpec sst: 1 processor (1 CPU), 1 pool, 0 links>, 10, 8192.0)
    """
    flows = [_flow(each) for each in _listed(files)]
    found_cores = _agreed(flows, "cpu") if cores is None else cores
    size = _agreed(flows, "memory") if memory is None else memory
    if found_cores is None:
        raise InputError("missing key 'cpu'", source=flows[0].name, place="resources_available")
    if found_cores != int(found_cores):
        raise InputError(f"must be a whole number, got {found_cores:g}", place="resources_available.cpu")
    allowed = any(flow.header.get("preemption") for flow in flows)
    ordered = allowed or _policy(flows) != "fcfs"
    return MachineSpec(
        name=name,
        description="a node of the job scheduler of SST",
        source=", ".join(flow.name for flow in flows),
        pools=[MemoryPoolSpec(name="memory", size=inf if size is None else size)],
        architectures=[ArchitectureSpec(name="core")],
        processors=[
            ProcessorSpec(
                name="node",
                type="CPU",
                architecture="core",
                pool="memory",
                cores=int(found_cores),
                queue="priority" if ordered else "fifo",
                preemption=stop if allowed else "no",
            )
        ],
    )


@reader
def read_sst_scenario(
    files: Source | Workflow | Sequence[Source | Workflow],
    at: Sequence[float] | None = None,
    *,
    memory_unit: float = 2**20,
    **machine: Any,
) -> SSTScenario:
    """Read files of SST's job scheduler as a run: the machine, and workflows with submission instants and priorities.

    Parameters
    ----------
    files
        one or several files, or the workflows read from them
    at
        the submission instant of each, s; default: all at 0, in the given order
    memory_unit
        bytes of one unit of memory
    machine
        passed to :func:`machine_for`

    Raises
    ------
    InputError
        a file is invalid, the files disagree on the machine or the policy, or the policy is unknown

    >>> import io
    >>> text = '''{"tasks": [{"id": 1, "execution_time": 100, "resources": {"cpu": 8}}], "preemption": true,
    ...            "resources_available": {"cpu": 10}, "scheduling_policy": "Static"}'''
    >>> found = read_sst_scenario([io.StringIO(text), io.StringIO(text)], at=[0, 30])
    >>> [(at, flow[1].priority) for at, flow in found.work], found.machine.processors[0].preemption
    ([(0, -1.0), (30, 0.0)], 'suspend')
    >>> from simmodel import simulate
    >>> result = simulate(found.machine, found.work, "earliest-finish")
    >>> result.tasks["end"]
    array([200., 130.])
    """
    flows = [_flow(each, memory_unit) for each in _listed(files)]
    instants = [0.0] * len(flows) if at is None else list(at)
    if len(instants) != len(flows):
        raise InputError(f"must be one instant per workflow ({len(flows)}), got {len(instants)}", place="at")
    spec = machine_for(flows, **machine)
    policy = _policy(flows)
    goes_by = SST_POLICIES[policy]
    order = sorted(range(len(flows)), key=lambda k: (instants[k], k))
    stoppable = [bool(flows[k].header.get("preemption")) for k in order]
    rank = {value: i for i, value in enumerate(sorted({goes_by(task) for flow in flows for task in flow}))}
    report = sum((flow.report for flow in flows), Report())
    work = []
    for k, level, may in zip(order, _levels(stoppable), stoppable, strict=True):
        ranks = {task.id: rank[goes_by(task)] for task in flows[k]}
        if any(stoppable) and not may:
            if len(dict.fromkeys(ranks.values())) > 1:
                report.skipped["order among the tasks of a workflow that may not be stopped: others may be"] += 1
            ranks = dict.fromkeys(ranks, len(rank) - 1)
        if policy != "static":
            unused = sum(bool(task.priority) for task in flows[k])
            if unused:
                report.skipped[f"priority of a task: the scheduling_policy is {policy.upper()}"] += unused
        work.append((instants[k], _with_priorities(flows[k], {id_: level * len(rank) + i for id_, i in ranks.items()})))
    return SSTScenario(machine=spec, work=tuple(work), report=report)


def _levels(stoppable: list[bool]) -> list[int]:
    """Return a level for each workflow in order of arrival; a preemptible one is below all later ones."""
    if not any(stoppable):
        return [0] * len(stoppable)
    levels: list[int] = []
    for may in reversed(stoppable):
        levels.append(0 if not levels else min(levels) - 1 if may else max(levels))
    return levels[::-1]


def _with_priorities(flow: Workflow, priorities: Mapping[int | str, float]) -> Workflow:
    return flow.map(lambda task: attrs.evolve(task, priority=float(priorities[task.id])))


def _policy(flows: list[Workflow]) -> str:
    found = dict.fromkeys(str(flow.header.get("scheduling_policy", "Static")) for flow in flows)
    if len({each.lower() for each in found}) > 1:
        raise InputError(f"must be the same in all files, got {' and '.join(found)}", place="scheduling_policy")
    name = next(iter(found))
    if name.lower() not in SST_POLICIES:
        known = "Static, FCFS, SJF or LJF"
        raise InputError(f"must be {known}, got {shown(name)}", source=flows[0].name, place="scheduling_policy")
    return name.lower()


def _agreed(flows: list[Workflow], key: str) -> float | None:
    amounts = [flow.header.get("resources_available", {}).get(key) for flow in flows]
    distinct = list(dict.fromkeys(each for each in amounts if each is not None))
    if len(distinct) > 1:
        both = " and ".join(f"{each:g}" for each in distinct)
        raise InputError(f"must be the same in all files, got {both}", place=f"resources_available.{key}")
    return distinct[0] if distinct else None


def _listed(files: Given | Iterable[Given]) -> list[Given]:
    if isinstance(files, (str, Path, Workflow)):
        return [files]
    if hasattr(files, "read") or not isinstance(files, Iterable):
        return [files]  # type: ignore[list-item]
    found = list(files)
    if not found:
        raise InputError("must be at least one file, got none", place="files")
    return found


def _flow(given: Given, memory_unit: float = 2**20) -> Workflow:
    return given if isinstance(given, Workflow) else read_sst(given, memory_unit=memory_unit)
