"""WfFormat of WfCommons, versions 1.5 and 1.6: read and write workflows and their recorded executions as JSON.

Source: Coleman et al., "WfCommons: a framework for enabling scientific workflow research and development", Future
Generation Computer Systems 128, 2022, and the schema of WfFormat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from simmodel.formats.documents import Value, read_json
from simmodel.foundation.errors import InputError, Plain, shown
from simmodel.foundation.loading import Source, reader
from simmodel.foundation.writing import write_text
from simmodel.work.task import DataObject, RecordedMachine, Task
from simmodel.work.workflow import TaskId, Workflow
from simmodel.work.workload import Report

__all__ = ["VERSIONS", "read_wfformat", "write_wfformat"]

VERSIONS = ("1.5", "1.6")
"""The supported versions; earlier ones have a different layout."""

_TASK = ("id", "runtimeInSeconds", "executedAt", "coreCount", "memoryInBytes", "priority", "machines")


@reader
def read_wfformat(source: Source) -> Workflow:
    """Read a WfFormat workflow with its recorded run times, machines and makespan.

    A task's family is the program of its command, else its name. Its ``started`` is in seconds after the workflow's
    ``executedAt`` (after the start of the first task, if that is missing or later), and its ``ended`` is ``started``
    plus the run time. In a document that lists no parents and children, tasks wait for the writers of their inputs, and
    ``report.repaired`` counts these edges. A task without a recorded execution has no run time and is counted in the
    report. All other contents of the file are kept under the file's keys: in ``details`` of tasks and machines, and in
    ``header``.

    Raises
    ------
    InputError
        the file cannot be read, is not WfFormat of these versions, or has an invalid value (the message has its path)

    >>> import io, json
    >>> tasks = [{"id": "a", "name": "a", "parents": [], "children": ["b"], "outputFiles": ["f"]},
    ...          {"id": "b", "name": "b", "parents": ["a"], "children": [], "inputFiles": ["f"]}]
    >>> flow = {"specification": {"tasks": tasks, "files": [{"id": "f", "sizeInBytes": 100}]}}
    >>> read_wfformat(io.StringIO(json.dumps({"name": "two", "schemaVersion": "1.5", "workflow": flow}))).edges
    (Edge(parent='a', child='b', data=('f',), size=100),)
    """
    document = read_json(source)
    version = document["schemaVersion"] if "schemaVersion" in document.table() else None
    if version is None or "workflow" not in document.table():
        raise document.wrong("must be a WfFormat document with 'schemaVersion' and 'workflow'")
    if version.data not in VERSIONS:
        raise version.wrong(f"must be {' or '.join(VERSIONS)}, got {shown(version.data)}")
    flow = document["workflow"]
    specification, execution = flow["specification"], flow.get("execution")
    report = Report()
    recorded = _recorded(execution, report) if execution else {}
    tasks: dict[str, Task] = {}
    places: dict[str, Value] = {}
    for value in specification["tasks"].list():
        task = _task(value, recorded.get(value["id"].text()))
        if task.id in tasks:
            raise value["id"].wrong(f"duplicate task id {shown(task.id)}")
        tasks[str(task.id)], places[str(task.id)] = task, value
    if not tasks:
        raise specification["tasks"].wrong("must not be empty")
    for id_, (value, _) in recorded.items():
        if id_ not in tasks:
            raise value["id"].wrong(f"unknown task {shown(id_)}")
    unknown = sum(task.run is None for task in tasks.values())
    if unknown:
        report.skipped["run time of a task, not in the file"] = unknown
    edges = _edges(places, report)
    try:
        return Workflow(
            tasks.values(),
            edges,
            _files(specification, tasks, report),
            name=document["name"].text(),
            header=_header(document),
            report=report,
            machines=_machines(execution) if execution else (),
            makespan=execution["makespanInSeconds"].number()
            if execution and "makespanInSeconds" in execution
            else None,
            cpu_only=True,
            complete=not edges,
        )
    except InputError as error:
        raise InputError(error.message, source=error.source or document.source, place=error.place) from None


def _task(value: Value, found: tuple[Value, float | None] | None) -> Task:
    id_ = value["id"].text()
    name = value["name"].text() if "name" in value else None
    inputs, outputs = (value[key].texts() if key in value else () for key in ("inputFiles", "outputFiles"))
    if found is None:
        return Task(id=id_, name=name, family=name, inputs=inputs, outputs=outputs)
    ran, started = found
    run = ran["runtimeInSeconds"].number()
    cores = ran["coreCount"].number() if "coreCount" in ran else 1
    command = ran.get("command")
    program = command.get("program") if command else None
    if cores == 0:
        raise ran["coreCount"].wrong("must be a number > 0, got 0")
    return Task(
        id=id_,
        name=name,
        run=run,
        family=program.text() if program and program.data else name,
        cores=cores,
        memory=ran["memoryInBytes"].number() if "memoryInBytes" in ran else 0.0,
        inputs=inputs,
        outputs=outputs,
        priority=ran["priority"].number(least=None) if "priority" in ran else 0.0,
        started=started,
        ended=None if started is None else started + run,
        machines=ran["machines"].texts() if "machines" in ran else (),
        details={key: each for key, each in ran.table().items() if key not in _TASK},
    )


def _recorded(execution: Value, report: Report) -> dict[str, tuple[Value, float | None]]:
    """Return the recorded execution of each task, and its start in seconds after the workflow's."""
    found: dict[str, Value] = {}
    times: dict[str, datetime] = {}
    for value in execution["tasks"].list():
        id_ = value["id"].text()
        if id_ in found:
            raise value["id"].wrong(f"duplicate task id {shown(id_)}")
        found[id_] = value
        if "executedAt" in value:
            at = _date(value["executedAt"].text())
            if at is None:
                report.skipped["start of a task that is no date"] += 1
            else:
                times[id_] = at
    origin = _date(execution["executedAt"].text()) if "executedAt" in execution else None
    if times and (origin is None or min(times.values()) < origin):
        origin = min(times.values())
        report.repaired["start of the workflow missing or late: that of its first task taken"] += 1
    starts = {id_: (at - origin).total_seconds() for id_, at in times.items()} if origin else {}
    return {id_: (value, starts.get(id_)) for id_, value in found.items()}


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _edges(places: Mapping[str, Value], report: Report) -> list[tuple[str, str]]:
    """Return the edges of all ``parents`` and ``children`` lists; count those that only one of the two lists has."""
    listed: dict[tuple[str, str], set[str]] = {}
    for id_, value in places.items():
        for key in ("parents", "children"):
            for other in value[key].list() if key in value else ():
                end = other.text()
                if end not in places:
                    raise other.wrong(f"unknown task {shown(end)}")
                pair = (end, id_) if key == "parents" else (id_, end)
                known = listed.setdefault(pair, set())
                if key in known:
                    report.repaired["edge given twice"] += 1
                known.add(key)
    for known in listed.values():
        if len(known) == 1:
            report.repaired[f"edge that only {next(iter(known))} say"] += 1
    return list(listed)


def _files(specification: Value, tasks: Mapping[str, Task], report: Report) -> list[DataObject]:
    found: dict[str, DataObject] = {}
    for value in specification["files"].list() if "files" in specification else ():
        file = DataObject(value["id"].text(), value["sizeInBytes"].number())
        if found.setdefault(file.name, file) != file:
            raise value["id"].wrong(f"duplicate file {shown(file.name)}, of different size")
    for task in tasks.values():
        for name in (*task.inputs, *task.outputs):
            if name not in found:
                found[name] = DataObject(name)
                report.repaired["size of a file missing: 0 bytes taken"] += 1
    return list(found.values())


def _machines(execution: Value) -> list[RecordedMachine]:
    machines = []
    for value in execution["machines"].list() if "machines" in execution else ():
        cpu = value.get("cpu")
        details = {key: each for key, each in value.table().items() if key not in ("nodeName", "memoryInBytes", "cpu")}
        if cpu and "vendor" in cpu:
            details["vendor"] = cpu["vendor"].data
        machines.append(
            RecordedMachine(
                name=value["nodeName"].text(),
                cores=int(cpu["coreCount"].number()) if cpu and "coreCount" in cpu else None,
                speed=_speed(cpu["speedInMHz"]) if cpu and "speedInMHz" in cpu else None,
                memory=value["memoryInBytes"].number() if "memoryInBytes" in value else None,
                details=details,
            )
        )
    return machines


def _speed(megahertz: Value) -> float:
    if not megahertz.number():
        raise megahertz.wrong("must be a number > 0, got 0")
    return megahertz.number(scale=1e6)


def _header(document: Value) -> dict[str, Any]:
    """Return everything except tasks, files and machines, and figures derived from those."""
    header = {key: value for key, value in document.table().items() if key not in ("name", "workflow", "schemaVersion")}
    flow = document["workflow"].table()
    parts = {
        "workflow": {key: value for key, value in flow.items() if key not in ("specification", "execution")},
        "specification": _beyond(flow["specification"], ("tasks", "files", "metrics")),
        "execution": _beyond(flow.get("execution") or {}, ("tasks", "machines", "makespanInSeconds", "metrics")),
    }
    return header | {key: value for key, value in parts.items() if value}


def _beyond(table: Mapping[str, Plain], known: tuple[str, ...]) -> dict[str, Plain]:
    return {key: value for key, value in table.items() if key not in known}


def write_wfformat(workflow: Workflow, path: str | Path, *, version: str = "1.5") -> Report:
    """Write a workflow as WfFormat; a path that ends in ``.gz`` is compressed.

    Reading the file gives the same tasks, edges, files, recorded times and machines. The execution is written only if
    every task has a run time. Characters that the format does not allow in ids (other than letters, digits and
    ``_ . # : / -``) become ``_``, and the report counts the changed names.

    Parameters
    ----------
    workflow
        the tasks; without a recorded makespan, the end of the last recorded task or the critical path is written
    path
        the file to write
    version
        one of :data:`VERSIONS`; 1.6 adds metrics

    Raises
    ------
    InputError
        the version is unknown, or the workflow has no tasks

    >>> import tempfile, pathlib
    >>> flow = Workflow([Task(id="a", run=1), Task(id="b", run=2, machines=["node-1"])], [("a", "b", 100)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_wfformat(flow, pathlib.Path(folder, "two.json"))
    ...     read_wfformat(pathlib.Path(folder, "two.json"))["b"].machines
    ('node-1',)
    """
    if version not in VERSIONS:
        raise InputError(f"version: must be {' or '.join(VERSIONS)}, got {shown(version)}")
    if not len(workflow):
        raise InputError("workflow: must have at least one task, got none")
    report = Report()
    ids = _plain_ids(workflow.tasks, report)
    names = _plain_ids(workflow.files, report)
    header = dict(workflow.header)
    beyond = {key: dict(header.pop(key, {})) for key in ("workflow", "specification", "execution")}
    specification = {
        "tasks": [
            {
                "name": task.name or ids[task.id],
                "id": ids[task.id],
                "children": [ids[child] for child in workflow.children(task.id)],
                "inputFiles": [names[file] for file in task.inputs],
                "outputFiles": [names[file] for file in task.outputs],
                "parents": [ids[parent] for parent in workflow.parents(task.id)],
            }
            for task in workflow
        ],
        "files": [{"id": names[file.name], "sizeInBytes": _whole(file.size)} for file in workflow.files.values()],
        **beyond["specification"],
    }
    if version == "1.6":
        specification["metrics"] = _metrics(workflow)
    flow = {**beyond["workflow"], "specification": specification}
    unknown = sum(task.run is None for task in workflow)
    if not unknown:
        flow["execution"] = _execution(workflow, ids, beyond["execution"], version)
    elif unknown < len(workflow):
        report.skipped["run time of a task: WfFormat has those of all tasks or none"] = len(workflow) - unknown
    for reason, lost in (
        ("flop of a task", sum(task.flop is not None for task in workflow)),
        ("run times by architecture, types or alpha of a task", sum(map(_has_more, workflow))),
    ):
        if lost:
            report.skipped[f"{reason}: no place for it in WfFormat"] = lost
    document = {"name": workflow.name, **header, "schemaVersion": version, "workflow": flow}
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n", ".json")
    return report


def _has_more(task: Task) -> bool:
    return bool(task.run_on) or task.implementations is not None or task.serial is not None


def _whole(size: float) -> float:
    return int(size) if size == int(size) else size


def _plain_ids(ids: Iterable[TaskId], report: Report) -> dict[TaskId, str]:
    """Return unique ids made only of characters that the format allows."""
    plain = {id_: re.sub(r"[^0-9a-zA-Z_.#:/-]", "_", str(id_)) for id_ in ids}
    taken = {text for id_, text in plain.items() if text == id_}
    for id_, text in plain.items():
        if text == id_:
            continue
        free, number = text, 1
        while free in taken or not free:
            number += 1
            free = f"{text}_{number}"
        taken.add(free)
        plain[id_] = free
        if not isinstance(id_, int) or free != str(id_):
            report.repaired["name with characters that WfFormat has not"] += 1
    return plain


def _metrics(workflow: Workflow) -> dict[str, float]:
    widths = [len(level) for level in workflow.levels]
    return {
        "numberOfTasks": len(workflow),
        "numberOfFiles": len(workflow.files),
        "sumOfFileSizesInBytes": _whole(sum(file.size for file in workflow.files.values())),
        "numberOfLevels": len(widths),
        "minimumWidth": min(widths),
        "maximumWidth": max(widths),
    }


def _execution(
    workflow: Workflow, ids: Mapping[TaskId, str], beyond: Mapping[str, Plain], version: str
) -> dict[str, Any]:
    origin = _date(str(beyond.get("executedAt", ""))) or datetime(1970, 1, 1, tzinfo=UTC)
    makespan = workflow.makespan
    if makespan is None:
        makespan = max((task.ended for task in workflow if task.ended is not None), default=None)
    found: dict[str, Any] = {
        "makespanInSeconds": workflow.critical_path_length() if makespan is None else makespan,
        "executedAt": origin.isoformat(),
        **beyond,
        "tasks": [_ran(task, ids, origin) for task in workflow],
    }
    if workflow.machines:
        found["machines"] = [_machine(machine) for machine in workflow.machines]
    if version == "1.6":
        found["metrics"] = {"sumTaskRuntimesInSeconds": workflow.total_work()}
        for key, of in (("readBytes", "totalNumBytesRead"), ("writtenBytes", "totalNumBytesWritten")):
            amounts = [task.details[key] for task in workflow if key in task.details]
            found["metrics"] |= {of: sum(amounts)} if amounts else {}
    return found


def _ran(task: Task, ids: Mapping[TaskId, str], origin: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {"id": ids[task.id], "runtimeInSeconds": task.run, **task.details}
    if task.started is not None:
        found["executedAt"] = (origin + timedelta(seconds=task.started)).isoformat()
    if task.family is not None and task.family != task.name and not (task.details.get("command") or {}).get("program"):
        found["command"] = {**(task.details.get("command") or {}), "program": task.family}
    if task.cores != 1:
        found["coreCount"] = task.cores
    if task.memory:
        found["memoryInBytes"] = _whole(task.memory)
    if task.priority:
        found["priority"] = _whole(task.priority)
    if task.machines:
        found["machines"] = list(task.machines)
    return found


def _machine(machine: RecordedMachine) -> dict[str, Any]:
    details = dict(machine.details)
    vendor = details.pop("vendor", None)
    speed = None if machine.speed is None else round(machine.speed / 1e6)
    cpu = {"coreCount": machine.cores, "speedInMHz": speed, "vendor": vendor}
    cpu = {key: value for key, value in cpu.items() if value is not None}
    memory = {} if machine.memory is None else {"memoryInBytes": _whole(machine.memory)}
    return {"nodeName": machine.name, **details, **memory, **({"cpu": cpu} if cpu else {})}
