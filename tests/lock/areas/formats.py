"""Files that are written and read back, and small files of each format that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import api, work
from ..cases import case
from ..digests import columns, digest, exact, of_jobs, of_tasks

LOG = [
    "job",
    "submit",
    "wait",
    "run",
    "processors",
    "requested_processors",
    "requested",
    "cpu_time",
    "used_memory",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think_time",
    "nodes",
    "cores_per_node",
    "gpus_per_node",
    "memory_per_node",
    "priority",
    "cancel",
    "state",
    "structure",
]


def of_log(log: Any) -> dict[str, Any]:
    return {"jobs": len(log), "columns": digest(columns(log, LOG)), "report": log.report.lines()}


def of_flow(flow: Any) -> dict[str, Any]:
    rows = [(task.id, task.run, task.cores, task.memory, task.priority, task.family) for task in flow]
    edges = [(edge.parent, edge.child, edge.data, edge.size) for edge in flow.edges]
    return {"tasks": len(rows), "edges": len(edges), "digest": digest(map(exact, [*rows, *edges]))}


def add() -> None:
    """Add the cases."""
    case("formats", "swf written", lambda: _written("swf", work.log(61, fractions=True), "log.swf"))
    case("formats", "swf read back", lambda: of_log(_back("swf", work.log(61, fractions=True), "log.swf")))
    case("formats", "hetsim written", lambda: _written("hetsim", api.platform("hetsim-slow-setup"), "m.xml"))
    case("formats", "hetsim read back", _hetsim)
    for kind, name in (("daggen", "w.daggen"), ("wfformat", "w.json")):
        options = {"speed": 1e9} if kind == "daggen" else {}
        case(
            "formats",
            f"{kind} written",
            lambda kind=kind, name=name, options=options: _written(kind, work.flow(1), name, **options),
        )
        case(
            "formats",
            f"{kind} read back",
            lambda kind=kind, name=name, options=options: of_flow(_back(kind, work.flow(1), name, **options)),
        )
    for kind in ("csv", "sqlite", "json", "parquet"):
        case("formats", f"jobs in {kind}", lambda kind=kind: of_jobs(_kept(kind, _jobs(), "r")))
        case("formats", f"tasks in {kind}", lambda kind=kind: of_tasks(_kept(kind, _tasks(), "r")))
        case("formats", f"brokered in {kind}", lambda kind=kind: of_jobs(_kept(kind, _brokered(), "r")))


def _jobs() -> Any:
    return api.run_batch(work.nodes(), list(work.jobs(1, 30)), "easy", events=True, until=5000)


def _tasks() -> Any:
    return api.run_machine(work.machine(), work.flow(1), "heft")


def _brokered() -> Any:
    return api.run_brokered([16, 16], work.log(62), "sgs-t")


def _written(kind: str, value: Any, name: str, **options: Any) -> dict[str, Any]:
    report = api.write(kind, value, name, **options)
    text = Path(name).read_text("utf-8")
    return {"lines": text.count("\n"), "text": digest([text]), "report": report.lines() if report else []}


def _back(kind: str, value: Any, name: str, **options: Any) -> Any:
    api.write(kind, value, name, **options)
    return api.read(kind, name)


def _hetsim() -> dict[str, Any]:
    return of_tasks(api.run_machine(_back("hetsim", api.platform("hetsim-slow-setup"), "m.xml"), work.flow(1), "hrr"))


def _kept(kind: str, result: Any, name: str) -> Any:
    path = {"sqlite": f"{name}.sqlite", "json": f"{name}.json"}.get(kind, name)
    api.store(result, kind, path)
    return api.stored(path)
