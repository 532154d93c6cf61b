"""Files that are written and read back, and small files of each format that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lock import api, documents, work
from tests.lock.cases import case
from tests.lock.digests import columns, digest, exact, of_jobs, of_tasks

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
    for name, kind in (
        ("dirty.swf", "swf"),
        ("one.swf", "swf"),
        ("a.gwf", "gwf"),
        ("a.sacct", "sacct"),
        ("a.pbs", "pbs"),
        ("a.csv", "csv"),
    ):
        case("formats", f"{name} read", lambda name=name, kind=kind: of_log(_document(name, kind)))
        case("formats", f"{name} run", lambda name=name: of_jobs(_run_log(name)))
    for name, kind in (("a.dax", "dax"), ("a.daggen", "daggen"), ("sst.json", "sst"), ("wf.json", "wfformat")):
        case("formats", f"{name} read", lambda name=name, kind=kind: of_flow(_document(name, kind)))
    for name in ("a.dax", "wf.json"):
        case("formats", f"{name} run", lambda name=name: of_tasks(_run_flow(name)))
    for kind in ("schedule_csv", "perfetto"):
        for name, make in (("jobs", _jobs), ("tasks", _tasks), ("brokered", _brokered)):
            case("formats", f"{name} in {kind}", lambda kind=kind, make=make: _as_file(kind, make()))
    for name in api.names_of("platforms"):
        if not api.is_cluster(api.platform(name)) and name.startswith("hetsim"):
            case("formats", f"hetsim of {name}", lambda name=name: _written("hetsim", api.platform(name), "m.xml"))
    for kind in ("csv", "sqlite", "json", "parquet"):
        case("formats", f"jobs in {kind}", lambda kind=kind: of_jobs(_kept(kind, _jobs(), "r")))
        case("formats", f"tasks in {kind}", lambda kind=kind: of_tasks(_kept(kind, _tasks(), "r")))
        case("formats", f"brokered in {kind}", lambda kind=kind: of_jobs(_kept(kind, _brokered(), "r")))


def _document(name: str, kind: str) -> Any:
    Path(name).write_text(documents.files()[name], "utf-8")
    return api.read(kind, name)


def _run_log(name: str) -> Any:
    Path(name).write_text(documents.files()[name], "utf-8")
    return api.run_batch(128, name, "easy")


def _run_flow(name: str) -> Any:
    Path(name).write_text(documents.files()[name], "utf-8")
    return api.run_machine(api.platform("multicore-2x10" if name == "wf.json" else "xeon-2s"), name, "heft")


def _as_file(kind: str, result: Any) -> dict[str, Any]:
    api.store(result, kind, "out")
    text = Path("out").read_text("utf-8")
    return {"characters": len(text), "text": digest([text])}


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
