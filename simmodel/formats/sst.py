"""Workflows of the job scheduler of SST (the Structural Simulation Toolkit), as JSON: read."""

from __future__ import annotations

from simmodel.formats.documents import Value, read_json
from simmodel.foundation.errors import InputError, Plain, shown
from simmodel.foundation.loading import Source, reader, title_of
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

__all__ = ["read_sst"]


@reader
def read_sst(source: Source, *, memory_unit: float = 2**20) -> Workflow:
    """Read a workflow of SST's job scheduler: tasks with dependencies that request cores and memory.

    The header keeps the file's keys about the run: ``resources_available`` (``cpu``, and ``memory`` in bytes),
    ``scheduling_policy`` and ``preemption`` (whether later workflows may stop these tasks);
    :func:`~simmodel.formats.sst_machine.read_sst_scenario` derives a machine and priorities from them.

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
