"""Everything that simmodel writes to files: each kind of file, with two contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from simmodel import Workload
from simmodel.commands.outputs import picture
from simmodel.formats.daggen import write_daggen
from simmodel.formats.hetsim import write_hetsim
from simmodel.formats.swf import write_swf
from simmodel.formats.wfformat import write_wfformat
from simmodel.platform import ArchitectureSpec, ClusterSpec, MachineSpec, MemoryPoolSpec, PartitionSpec, ProcessorSpec
from simmodel.platform.toml import write_toml
from simmodel.results import Result
from simmodel.work import Task, Workflow
from simmodel.work.table import Table
from tests.helpers.small_snapshots import small

Write = Callable[[Path], object]
JOBS = 1500


@cache
def result(number: int) -> Result:
    """Return one of two results."""
    rng = np.random.default_rng(number)
    submit = np.cumsum(rng.integers(0, 50, JOBS)).astype(float)
    start = submit + rng.integers(0, 5, JOBS)
    jobs = {
        "job": np.arange(1, JOBS + 1),
        "submit": submit,
        "start": start,
        "end": start + rng.integers(1, 100, JOBS),
        "processors": rng.integers(1, 8, JOBS),
        "status": np.full(JOBS, "completed"),
        "user": rng.choice(["ann", "bob", "=cmd()"], JOBS),
    }
    return Result(
        jobs=Table(jobs), name=f"run {number}", processors=10_000, scenario={"policy": "easy", "seed": number}
    )


@cache
def workload(number: int) -> Workload:
    """Return one of two workloads."""
    jobs = result(number).jobs
    return Workload({"submit": jobs["submit"], "run": jobs["end"], "processors": jobs["processors"]}, processors=10_000)


@cache
def workflow(number: int) -> Workflow:
    """Return one of two workflows."""
    tasks = [Task(id=f"t{i}", run=float(number + i)) for i in range(300)]
    return Workflow(tasks, [(f"t{i}", f"t{i + 1}") for i in range(299)])


@cache
def machine(number: int) -> MachineSpec:
    """Return one of two machines."""
    cores = ProcessorSpec(name="core", count=200 + number, type="CPU", architecture="x86", pool="ram")
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram", size=64e9)], architectures=[ArchitectureSpec(name="x86")], processors=[cores]
    )


def kinds(number: int) -> dict[str, Write]:
    """Return functions that write each kind of file, or folder, with one of two contents."""
    found, log, graph, spec = result(number), workload(number), workflow(number), machine(number)
    cluster = ClusterSpec(partitions=[PartitionSpec(name=f"p{i}", processors=number + 1) for i in range(100)])
    snapshot = small(*[(1, 10 + number)] * 200)
    return {
        "result.json": lambda path: found.to_json(path, jobs=True),
        "result.json.gz": lambda path: found.to_json(path, jobs=True),
        "result.sqlite": found.to_sqlite,
        "csv-folder": found.to_csv,
        "parquet-folder": found.to_parquet,
        "schedule.csv": found.schedule_csv,
        "schedule.csv.gz": found.schedule_csv,
        "trace.json": found.to_perfetto,
        "plot.png": picture(lambda: found.plot.utilisation().figure),
        "snapshot.json": snapshot.to_json,
        "cluster.toml": lambda path: write_toml(cluster, path),
        "log.swf": lambda path: write_swf(log, path),
        "graph.dot": lambda path: write_daggen(graph, path, speed=1.0),
        "graph.json": lambda path: write_wfformat(graph, path),
        "machine.xml": lambda path: write_hetsim(spec, path),
    }


def content(path: Path) -> dict[str, bytes]:
    """Return the contents of a file, or of each file in a folder, by name."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files if not file.name.startswith(".")}
