"""Small valid files of every format that simmodel reads, and the use of each: read, and simulated if it is work."""

# ruff: noqa: E501 (records are lines)

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from simmodel import Cluster, Environment, Job, Machine, Network, Scenario, Snapshot, load_result, simulate, start
from simmodel.catalogue import load_platform, load_tasks, load_workflow, load_workload
from simmodel.catalogue.bundled import bundled_file
from simmodel.formats.hetsim_config import read_hetsim_config
from simmodel.formats.simgrid import read_simgrid
from simmodel.formats.sst import read_sst_scenario
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.referee import verify
from simmodel.results.loading import read_scenario
from simmodel.work.workload import Workload
from tests.helpers.paths import TESTS
from tests.helpers.usual_policy import usual_policy
from tests.helpers.workflow_documents import TEXT, wfformat

__all__ = ["READERS", "Reader"]


class Reader(NamedTuple):
    """A reader: the name of its file, a valid file, and what is done with it, which returns numbers to check."""

    file: str
    valid: Callable[[], bytes]
    use: Callable[[Path], dict[str, Any]]


MACHINE = "hetsim-fast"


def replayed(log: Workload) -> dict[str, Any]:
    """Return the waits of the first jobs of a log, on the machine that it names."""
    assert len(log) < 100_000
    part = log.where(slice(30))
    return checked_result(simulate(None if part.processors else 64, part, "easy"))


def checked(jobs: Any) -> dict[str, Any]:
    """Return the columns whose values must make sense; suspicious ones are told by name."""
    done = np.isin(jobs["status"], ["completed"])
    wait = jobs["start"][done] - jobs["submit"][done]
    return {
        "negative wait": bool((wait < 0).any()),
        "nan": bool(np.isnan(wait).any() or np.isnan(jobs["end"][done]).any()),
    }


def on_machine(work: Any, machine: Any = "xeon-2s") -> dict[str, Any]:
    """Run tasks on a small machine."""
    return checked_tasks(simulate(machine, work, "hrr").tasks)


def checked_tasks(tasks: Any) -> dict[str, Any]:
    """Return what is suspicious of a table of tasks, as :func:`checked`."""
    done = tasks["status"] == "done"
    return {
        "negative wait": bool((tasks["start"][done] < tasks["submit"][done]).any()),
        "nan": bool(np.isnan(tasks["start"][done]).any() or np.isnan(tasks["end"][done]).any()),
    }


def checked_result(result: Any) -> dict[str, Any]:
    """Return what is suspicious of a result of jobs or of tasks, with its metrics."""
    found = checked(result.jobs) if hasattr(result, "jobs") else checked_tasks(result.tasks)
    numbers = result.numbers()
    if hasattr(result, "jobs") and result.metrics()["counted"]:
        found["metrics nan"] = bool(np.isnan([numbers["wait_mean"], numbers["turnaround_mean"]]).any())
    result.summary()
    return found


def any_platform(path: Path) -> dict[str, Any]:
    """Run a job or a task on a platform."""
    from simmodel.systems.kinds import work_of

    spec = load_platform(path)
    if work_of(spec) == "tasks":
        return checked_result(simulate(spec, "random:tasks=4", "hrr"))
    jobs = [Job(id=i, submit=float(i), processors=1, run=10) for i in range(3)]
    return checked_result(simulate(spec, jobs, usual_policy(spec), until=1e5))


def simgrid(name: str) -> Callable[[], bytes]:
    """Return a maker of a platform of SimGrid."""
    return (TESTS / "formats" / f"simgrid-{name}.xml").read_bytes


def routed(path: Path) -> dict[str, Any]:
    """Move bytes between the hosts of a platform of SimGrid."""
    platform = read_simgrid(path)
    network = Network(Environment(), topology=platform.topology, model="simgrid")
    hosts = [host.name for host in platform.hosts]
    return {
        "nan": bool(np.isnan([network.seconds(1e6, a, b) for a, b in zip(hosts, hosts[::-1], strict=True)][:60]).any())
    }


def continued(path: Path) -> dict[str, Any]:
    """Continue from a snapshot, for a while."""
    snapshot = Snapshot.from_json(path)
    return checked_result(simulate(snapshot, until=snapshot.now + 1e4))


def stored(path: Path) -> dict[str, Any]:
    """Load a result and its scenario."""
    found = checked_result(load_result(path))
    Scenario.from_document(read_scenario(path))
    return found


def result_file(kind: str) -> Callable[[], bytes]:
    """Return a maker of a stored result: JSON, SQLite, one table."""

    @cache
    def made() -> bytes:
        jobs = [Job(id=f"j{i}", submit=float(i), processors=1 + i % 3, run=10.0, user="ann") for i in range(6)]
        result = simulate(4, jobs, "easy")
        with TemporaryDirectory() as folder:
            if kind == "json":
                document = {**result.meta(), "tables": {}}
                from simmodel.results.stores import plain

                document["tables"] = plain({name: dict(t.items()) for name, t in result.stored_tables().items()})
                return json.dumps(document, indent=1).encode()
            if kind == "sqlite":
                result.to_sqlite(Path(folder, "r.db"))
                return Path(folder, "r.db").read_bytes()
            (result.to_csv if kind in ("csv", "meta") else result.to_parquet)(folder)
            name = "meta.json" if "meta" in kind else f"jobs.{kind}"
            return Path(folder, name).read_bytes()

    return made


def in_folder(kind: str) -> Callable[[Path], dict[str, Any]]:
    """Load a stored result in which this file replaces one of a folder."""

    def use(path: Path) -> dict[str, Any]:
        other = "csv" if kind in ("csv", "meta") else kind
        meta = "parquet meta" if kind == "parquet" else "meta"
        for name, text in (("meta.json", result_file(meta)), (f"jobs.{other}", result_file(other))):
            if name != path.name:
                (path.parent / name).write_bytes(text())
        return stored(path.parent)

    return use


@cache
def machine_result() -> bytes:
    """Return a stored result of tasks."""
    from simmodel.results.stores import plain

    result = simulate(MACHINE, "random:tasks=6,objects=1-2", "hrr")
    tables = plain({name: dict(t.items()) for name, t in result.stored_tables().items()})
    return json.dumps({**result.meta(), "tables": tables}, indent=1).encode()


@cache
def cluster_snapshot() -> bytes:
    """Return a snapshot of a cluster with queues, nodes, dependencies and failures."""
    spec = {
        "kind": "cluster",
        "partitions": [{"name": "batch", "nodes": [{"count": 4, "cores": 2}]}],
        "queues": [{"name": "day", "max_running": 2}],
    }
    from simmodel.platform import from_dict

    env = Environment(seed=1)
    cluster = Cluster(env, from_dict(spec), "easy")
    jobs = [
        Job(id=i, submit=float(i), processors=1 + i % 4, run=20.0 + i, user=f"u{i % 2}", queue="day") for i in range(9)
    ]
    for each in jobs[:6]:
        cluster.submit(each)
    env.run(until=12)
    return json.dumps(json.loads(cluster.snapshot().to_json()), indent=1).encode()


@cache
def replay_snapshot() -> bytes:
    """Return a snapshot of a cluster with running and waiting jobs and arrivals."""
    env = Environment(seed=1)
    cluster = Cluster(env, 8, "easy")
    rng = np.random.default_rng(3)
    n = 12
    cluster.replay(
        Workload(
            {
                "submit": np.arange(n) * 5.0,
                "run": rng.integers(5, 90, n).astype(float),
                "requested": np.full(n, 100.0),
                "processors": rng.integers(1, 8, n),
                "user": rng.integers(1, 3, n),
            }
        )
    )
    env.run(until=27)
    return cluster.snapshot().to_json().encode()


@cache
def broker_snapshot() -> bytes:
    """Return a snapshot of a broker of two clusters."""
    jobs = [Job(id=i, submit=float(i), processors=1 + i % 4, run=20.0 + i, user=f"u{i % 2}") for i in range(12)]
    simulation = start([4, 8], Workload.from_jobs(jobs), "sgs-t")
    simulation.run(until=9)
    return simulation.system.snapshot().to_json().encode()


@cache
def machine_snapshot() -> bytes:
    """Return a snapshot of a machine in the middle of a workflow."""
    env = Environment(seed=1)
    machine = Machine(env, load_platform(MACHINE), "hrr")
    machine.submit(load_tasks("random:tasks=12,families=2,objects=1-2,size=4MB-30MB", seed=1))
    env.run(until=300)
    return machine.snapshot().to_json().encode()


SWF = "\n".join(
    [
        "; Version: 2.2",
        "; MaxProcs: 16",
        "; UnixStartTime: 1000",
        *(
            f"{i} {i * 7} -1 {20 + i % 5} {1 + i % 4} -1 -1 {1 + i % 4} 60 -1 1 {1 + i % 3} 1 1 1 1 {i - 3 if i > 3 else -1} {5 if i > 3 else -1}"
            for i in range(1, 21)
        ),
    ]
)
_GWF = ["-1"] * 29


def gwf() -> str:
    """Return a small log of a grid."""
    from simmodel.formats.gwf import FIELDS

    rows = []
    for i in range(1, 13):
        known = {
            "job": str(i),
            "submit": str(1000 + i * 5),
            "wait": "1",
            "run": str(10 + i),
            "processors": str(1 + i % 3),
            "user": f"U{i % 3}",
        }
        rows.append("\t".join(known.get(name, "-1") for name in FIELDS))
    return "\n".join(["# comment", *rows]) + "\n"


SACCT = """\
JobID|JobName|Submit|Start|End|Elapsed|Timelimit|AllocCPUS|ReqCPUS|NNodes|State|User|Account|Partition|QOS|ReqTRES|Priority
10|a|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|01:00:00|1-00:00:00|64|64|2|COMPLETED|ann|phys|gpu|normal|cpu=64,gres/gpu=8,mem=512G,node=2|12
12_3|c|2024-05-01T12:00:30|2024-05-01T12:02:00|2024-05-01T12:02:30|00:00:30|UNLIMITED|1|1|1|TIMEOUT|bob|bio|cpu|normal|cpu=1,mem=4000M,node=1|13
15|f|2024-05-01T12:01:00|2024-05-01T12:10:00|2024-05-01T12:11:00|00:01:00|10:00|16|16|1|CANCELLED by 0|eve|bio|cpu|high|cpu=16,node=1|15
"""
PBS = """\
05/01/2024 12:00:00;E;1.server;user=ann group=g queue=q qtime=1714557600 etime=1714557600 start=1714557610 end=1714557700 Resource_List.ncpus=4 Resource_List.walltime=00:10:00 resources_used.walltime=00:01:30 resources_used.mem=100kb Exit_status=0
05/01/2024 12:01:00;E;2.server;user=bob group=g queue=q qtime=1714557660 etime=1714557660 start=1714557670 end=1714557700 Resource_List.nodect=2 Resource_List.select=2:ncpus=4:ngpus=1:mem=4gb Resource_List.walltime=01:00:00 resources_used.walltime=00:00:30 Exit_status=1
05/01/2024 12:02:00;Q;3.server;queue=q
05/01/2024 12:03:00;D;3.server;requestor=ann@server
"""
CSV = "job,submit,run,requested,processors,user,priority,queue,memory_per_node\n" + "".join(
    f"{i},2024-05-01T12:00:{i:02d},{10 + i},0:01:00,{1 + i % 4},u{i % 3},{i},q,{i}000\n" for i in range(1, 13)
)
DAX = """<?xml version="1.0" encoding="UTF-8"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" jobCount="3">
<job id="ID0" namespace="N" name="split" runtime="13.5"><uses file="a" link="input" size="400"/><uses file="b" link="output" size="300"/></job>
<job id="ID1" namespace="N" name="work" runtime="3.5"><uses file="b" link="input" size="300"/><uses file="c" link="output" size="10"/></job>
<job id="ID2" namespace="N" name="work" runtime="7"><uses file="b" link="input" size="300"/></job>
<child ref="ID1"><parent ref="ID0"/></child>
<child ref="ID2"><parent ref="ID0"/></child>
</adag>
"""
DOT = 'digraph G {\n 1 [size="2e9", alpha="0.1"]\n 2 [size="3e9"]\n 3 [size="1e9"]\n 1 -> 2 [size="800"]\n 1 -> 3 [size="10"]\n}\n'
SST = {
    "tasks": [
        {"id": 1, "execution_time": 100, "resources": {"cpu": 2, "memory": 1024}, "dependencies": []},
        {"id": "two", "execution_time": 50.5, "resources": {"cpu": 1}, "dependencies": [1], "priority": 3},
    ],
    "resources_available": {"cpu": 10, "memory": 8192},
    "scheduling_policy": "Static",
    "preemption": True,
}
CONFIG = "".join(
    f"{line}\n" for line in ("min_task_runtime = 5  # s", "max_task_runtime = 50", "partial_task_families = yes")
)
BROKER = """kind = "broker"
name = "two"
[places.a]
kind = "cluster"
[[places.a.partitions]]
processors = 4
[places.b]
kind = "cluster"
[[places.b.partitions]]
nodes = [{ count = 2, cores = 4, memory = "8GB" }]
[[slowdowns]]
home = "a"
place = "b"
factor = 1.5
"""
LISTED = """generator = "synthetic"
description = "small"
seed = 1
[parameters]
jobs = 20
processors = 16
gap = { distribution = "exponential", mean = 10.0 }
run = { distribution = "uniform", low = 1, high = 20 }
[load]
to = 0.7
[estimates]
maximum = 3600
"""


def text(given: str) -> Callable[[], bytes]:
    """Return a maker of the bytes of a text."""
    return lambda: given.encode()


def bundled(kind: str, name: str) -> Callable[[], bytes]:
    """Return a maker of the bytes of a bundled file."""
    found = bundled_file(kind, name)
    assert found is not None
    return found.read_bytes


def log(path: Path) -> dict[str, Any]:
    """Replay a log."""
    return replayed(load_workload(path))


def flow(path: Path) -> dict[str, Any]:
    """Run a workflow."""
    return on_machine(load_workflow(path))


def on_cores(path: Path) -> dict[str, Any]:
    """Run a workflow whose tasks need several cores."""
    return on_machine(load_workflow(path), "multicore-2x10")


def sst_scenario(path: Path) -> dict[str, Any]:
    """Run a workflow of SST on the machine of its file."""
    on_cores(path)
    found = read_sst_scenario(path)
    return on_machine(found.work, found.machine)


def configured(path: Path) -> dict[str, Any]:
    """Draw tasks with the settings of HetSim, and run them."""
    return on_machine(load_tasks("random:tasks=5,families=2", config=read_hetsim_config(path)))


CGSIM_JOBS = """pandaid,creationtime,starttime,endtime,cpuconsumptiontime,computingsite,corecount,outputfilebytes,files_info
1,1/27/2025 2:51,1/27/2025 3:10,1/27/2025 3:30,5886,BNL,8,199164530,"{""f"": 524288000}"
2,2025-01-27 02:52:00,,,100,CERN,1,0,
3,1737946400,,,60.5,BNL,1,,{}
"""
GRID = """kind = "grid"
retries = 1
[[sites]]
name = "a"
hosts = [{ count = 2, cores = 8, speed = 1.5 }]
storage = { capacity = "3TB", read_bandwidth = "2GBps" }
staging = "inside"
overhead = { distribution = "exponential", mean = 60 }
[[sites]]
name = "b"
cores = 4
[network]
model = "simgrid"
links = [{ name = "wan", bandwidth = "1Gbps", latency = "10ms", between = ["a", "b"] }]
[[files]]
name = "f"
size = "1GB"
sites = ["a"]
[[outages]]
site = "b"
at = 5
until = "1h"
"""

SCHEDULES = {
    "schedule": 'job,submit,start,end,nodes\n1,0,0,1000,[0]\n2,900,900,1400,"[0, 1]"\n3,950,1000,1100,[1]\n4,960,1100,1500,\n',
    "batsim schedule": "job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0,1000,0-1 3\n2,900,900,1400,2\n",
    "cqsim schedule": "1;5;5;1000.0;1000.0;0.0;0.0;0.0;1000.0\n2;5;5;500.0;500.0;0.0;900.0;900.0;1400.0\n",
    "accasim schedule": "1;7;2001-09-09 01:46:40__0;4;1024#__2001-09-09 01:46:40;2001-09-09 01:46:50;1;4;1024;20;\n"
    * 2,
}


def judged(path: Path) -> dict[str, Any]:
    """Hold a schedule against a log of four jobs."""
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=4)])])
    verdict = verify("probe-4", path, nodes, "easy", mistakes=False)
    verdict.report()
    jobs = verdict.judgement.jobs if verdict.judgement is not None else {}
    return {"nan": bool(np.isnan(jobs["start"]).any()), "kinds": verdict.judgement is None}


READERS: dict[str, Reader] = {
    **{name: Reader("jobs.csv", text(given), judged) for name, given in SCHEDULES.items()},
    "swf": Reader("log.swf", text(SWF + "\n"), log),
    "gwf": Reader("log.gwf", lambda: gwf().encode(), log),
    "sacct": Reader("log.sacct", text(SACCT), log),
    "pbs": Reader("log.pbs", text(PBS), log),
    "csv": Reader("log.csv", text(CSV), log),
    "cgsim jobs": Reader("log.csv", text(CGSIM_JOBS), log),
    "grid platform": Reader("p.toml", text(GRID), any_platform),
    "generator settings": Reader("log.toml", text(LISTED), log),
    "lublin settings": Reader("log.toml", bundled("workloads", "lublin-128-week"), log),
    "task settings": Reader("tasks.toml", bundled("workloads", "fork-join"), lambda path: on_machine(load_tasks(path))),
    "layered settings": Reader(
        "tasks.toml", bundled("workloads", "layered-100"), lambda path: on_machine(load_tasks(path))
    ),
    "cluster platform": Reader("p.toml", bundled("platforms", "gpu-cluster"), any_platform),
    "buffer platform": Reader("p.toml", bundled("platforms", "burst-buffer"), any_platform),
    "machine platform": Reader("p.toml", bundled("platforms", "fpga-server"), any_platform),
    "broker platform": Reader("p.toml", text(BROKER), any_platform),
    "hetsim platform": Reader("p.xml", bundled("platforms", "hetsim-sample"), any_platform),
    "simgrid cluster": Reader("p.xml", simgrid("clusters"), routed),
    "simgrid platform": Reader("p.xml", simgrid("zones"), any_platform),
    "hetsim config": Reader("h.cfg", text(CONFIG), configured),
    "dax": Reader("w.dax", text(DAX), flow),
    "daggen": Reader("w.daggen", text(TEXT), flow),
    "dot": Reader("w.dot", text(DOT), flow),
    "wfformat": Reader("w.json", lambda: json.dumps(wfformat(), indent=1).encode(), on_cores),
    "sst": Reader("w.json", lambda: json.dumps(SST, indent=1).encode(), sst_scenario),
    "cluster snapshot": Reader("s.json", cluster_snapshot, continued),
    "replay snapshot": Reader("s.json", replay_snapshot, continued),
    "broker snapshot": Reader("s.json", broker_snapshot, continued),
    "machine snapshot": Reader("s.json", machine_snapshot, continued),
    "stored result": Reader("r.json", result_file("json"), stored),
    "stored tasks": Reader("r.json", machine_result, stored),
    "stored database": Reader("r.db", result_file("sqlite"), stored),
    "stored csv": Reader("jobs.csv", result_file("csv"), in_folder("csv")),
    "stored meta": Reader("meta.json", result_file("meta"), in_folder("meta")),
    "stored parquet": Reader("jobs.parquet", result_file("parquet"), in_folder("parquet")),
}
