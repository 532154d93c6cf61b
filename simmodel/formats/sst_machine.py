"""What files of SST's job scheduler say of a run: the machine, and who goes before whom.

A file has a workflow, the resources of the machine, and two keys on how it is scheduled:

``scheduling_policy``
    in which order tasks that are ready get cores: ``"Static"`` (the default), those of higher ``priority`` first;
    ``"FCFS"``, those that are ready first; ``"SJF"`` and ``"LJF"``, the shortest and the longest first. Among equals
    those that are ready first
``preemption``
    whether workflows that arrive later may stop the workflow's tasks. They then have a higher priority, whatever the
    tasks have among themselves; and within the workflow tasks of higher priority stop those of lower. A workflow that
    does not allow it is never stopped: where others allow it, all its tasks have the highest priority of those that
    arrive later
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Literal

import attrs

from simmodel.errors import InputError
from simmodel.formats.source import Source
from simmodel.formats.sst import read_sst
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

Given = Workflow | Source

__all__ = ["SST_POLICIES", "SSTScenario", "machine_for", "read_sst_scenario"]

SST_POLICIES: Mapping[str, Callable[[Task], float]] = {
    "static": lambda task: task.priority,
    "fcfs": lambda task: 0.0,
    "sjf": lambda task: -(task.run or 0.0),
    "ljf": lambda task: task.run or 0.0,
}
"""The values of ``scheduling_policy``, in lower case: what a task goes by, the highest first."""


@attrs.frozen(kw_only=True)
class SSTScenario:
    """A machine, workflows with the instants (s) at which they are submitted, and what of their files was not used."""

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
    """Return the machine that files of SST's job scheduler ask for: one node with many cores.

    Parameters
    ----------
    files
        one or several files, or the workflows read from them
    cores, memory
        of the node, in place of what the files say: a whole number, and bytes
    stop
        what becomes of a task that is stopped, where a file allows that: it goes on later, or starts again
    name
        of the machine

    Raises
    ------
    InputError
        a file is wrong, says no number of cores, or another one than the others do

    >>> import io
    >>> text = '{"tasks": [{"id": 1, "execution_time": 5}], "resources_available": {"cpu": 10, "memory": 8192}}'
    >>> spec = machine_for(io.StringIO(text))
    >>> spec, spec.processors[0].cores, spec.pools[0].size / 2**20
    (<MachineSpec sst: 1 processors (1 CPU), 1 pool, 0 links>, 10, 8192.0)
    """
    flows = [_flow(each) for each in _listed(files)]
    found_cores = _agreed(flows, "cpu") if cores is None else cores
    size = _agreed(flows, "memory") if memory is None else memory
    if found_cores is None:
        raise InputError("a number of cores as resources_available.cpu expected, found none", source=flows[0].name)
    if found_cores != int(found_cores):
        raise InputError(f"a whole number of cores expected, found {found_cores:g}", place="resources_available.cpu")
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


def read_sst_scenario(
    files: Source | Workflow | Sequence[Source | Workflow],
    at: Sequence[float] | None = None,
    *,
    memory_unit: float = 2**20,
    **machine: Any,
) -> SSTScenario:
    """Read workflows of SST's job scheduler as a run: the machine, and what arrives when, with what priorities.

    Parameters
    ----------
    files
        one or several files, or the workflows read from them
    at
        s, when each is submitted; default: all at 0, one after another
    memory_unit
        bytes of one unit of memory
    machine
        handed to :func:`machine_for`

    Raises
    ------
    InputError
        a file is wrong, the files do not agree on the machine or the policy, or the policy is not known

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
        raise InputError(f"{len(flows)} instants expected, one for each workflow, found {len(instants)}", place="at")
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
    """Return a level for each workflow in order of arrival: below all later ones where it may be stopped by them."""
    if not any(stoppable):
        return [0] * len(stoppable)
    levels: list[int] = []
    for may in reversed(stoppable):
        levels.append(0 if not levels else min(levels) - 1 if may else max(levels))
    return levels[::-1]


def _with_priorities(flow: Workflow, priorities: Mapping[int | str, float]) -> Workflow:
    return flow.map(lambda task: attrs.evolve(task, priority=float(priorities[task.id])))


def _policy(flows: list[Workflow]) -> str:
    said = dict.fromkeys(str(flow.header.get("scheduling_policy", "Static")) for flow in flows)
    if len({each.lower() for each in said}) > 1:
        raise InputError(f"one scheduling_policy of all files expected, found {' and '.join(said)}")
    name = next(iter(said))
    if name.lower() not in SST_POLICIES:
        known = "Static, FCFS, SJF or LJF"
        raise InputError(f"{known} expected, found {name!r}", source=flows[0].name, place="scheduling_policy")
    return name.lower()


def _agreed(flows: list[Workflow], key: str) -> float | None:
    found = [flow.header.get("resources_available", {}).get(key) for flow in flows]
    said = list(dict.fromkeys(each for each in found if each is not None))
    if len(said) > 1:
        both = " and ".join(f"{each:g}" for each in said)
        raise InputError(f"one resources_available.{key} of all files expected, found {both}")
    return said[0] if said else None


def _listed(files: Given | Iterable[Given]) -> list[Given]:
    if isinstance(files, (str, Path, Workflow)):
        return [files]
    if hasattr(files, "read") or not isinstance(files, Iterable):
        return [files]  # type: ignore[list-item]
    found = list(files)
    if not found:
        raise InputError("at least one file expected, found none")
    return found


def _flow(given: Given, memory_unit: float = 2**20) -> Workflow:
    return given if isinstance(given, Workflow) else read_sst(given, memory_unit=memory_unit)
