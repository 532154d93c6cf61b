"""Slices of a row never overlap in traces of clusters, brokers, grids and machines, for a reader of the JSON."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simmodel import Cluster, Environment, Job, Task, Workflow, Workload, simulate, start
from simmodel.formats.perfetto import write_trace
from simmodel.metrics.packing import pack
from simmodel.platform import BrokerSpec, ClusterSpec, GridSpec, NodeSpec, PartitionSpec, SiteSpec
from simmodel.results import Result
from tests.helpers.small_machines import small_machine
from tests.helpers.unkind_grids import unkind


def overlaps(path: Path) -> list[Any]:
    """Return the slices of a trace that begin before the one ahead on their row ends."""
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    rows = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    return [(a, b) for spans in rows.values() for a, b in pairwise(sorted(spans)) if b[0] < a[1]]


def odd(rng: np.random.Generator, count: int) -> Any:
    """Draw times (s) with odd fractions, at times far below a microsecond, or 0."""
    scale = rng.choice([1e-7, 1e-6, 0.3, 50.0, 4000.0])
    values = rng.exponential(scale, count)
    values[rng.random(count) < 0.1] = 0.0
    return values


def jobs_of(rng: np.random.Generator, most: int, count: int = 60) -> list[Job]:
    submits, runs = np.cumsum(odd(rng, count)) * rng.choice([0.2, 1.0]), odd(rng, count)
    return [
        Job(
            id=i + 1,
            submit=float(submits[i]),
            run=float(runs[i]),
            requested=float(runs[i] * rng.choice([1.0, 1.7]) + 1e-7),
            processors=int(rng.integers(1, most + 1)),
        )
        for i in range(count)
    ]


def batch(rng: np.random.Generator) -> Any:
    """Run a cluster of counted processors, or of nodes that jobs share; with claims."""
    counted = PartitionSpec(name="p", processors=16)
    nodes = PartitionSpec(name="p", nodes=[NodeSpec(count=4, cores=4)], exclusive=bool(rng.integers(2)))
    env = Environment()
    spec = ClusterSpec(partitions=[counted if rng.integers(2) else nodes])
    cluster = Cluster(env, spec, str(rng.choice(["easy", "fcfs", "conservative"])))

    def user(wait: float, hold: float, width: int) -> Any:
        yield env.timeout(wait)
        with cluster.places[0].claim(width) as grant:
            yield grant
            yield env.timeout(hold)

    for wait, hold in zip(odd(rng, 5), odd(rng, 5), strict=True):
        env.process(user(float(wait), float(hold), int(rng.integers(1, 9))))
    cluster.replay(Workload.from_jobs(jobs_of(rng, 16)))
    env.run()
    return cluster.result()


def broker(rng: np.random.Generator) -> Any:
    """Run two clusters under a broker, one of them under a broker of its own or with nodes that jobs share."""
    nodes = ClusterSpec(name="b", partitions=[PartitionSpec(name="p", nodes=[NodeSpec(count=2, cores=6)])])
    below = BrokerSpec(name="b", places={"one": nodes, "two": nodes})
    spec = {"a": 9, "b": nodes if rng.integers(2) else below}
    return simulate(spec, jobs_of(rng, 8), str(rng.choice(["round-robin", "least-loaded", "shortest-wait"])))


def grid(rng: np.random.Generator) -> Any:
    """Run two sites, one of hosts that jobs share; or an unkind grid for a while."""
    if rng.integers(2):
        sites = [SiteSpec(name="a", cores=12), SiteSpec(name="b", hosts=[NodeSpec(count=2, cores=8)])]
        return simulate(GridSpec(sites=sites), jobs_of(rng, 8), "round-robin")
    spec, jobs, options, _ = unkind(int(rng.integers(10_000)))
    simulation = start(spec, jobs, **options)
    simulation.run(until=float(rng.uniform(100, 500)))
    return simulation.result()


def machine(rng: np.random.Generator) -> Any:
    """Run a workflow on a machine with setups by its CPU cores, transfers and processors of several cores."""
    gpu = {
        "name": "gpu0",
        "setup": float(odd(rng, 1)[0]),
        "dma": bool(rng.integers(2)),
        "cores": int(rng.integers(1, 4)),
    }
    spec = small_machine(gpu, {"name": "gpu1", "setup": float(odd(rng, 1)[0])}, cores=2)
    runs, sizes = odd(rng, 40), odd(rng, 40) * 1e6
    pairs = [(int(rng.integers(0, i)), i, float(sizes[i])) for i in range(1, 40) if rng.random() < 0.6]
    return simulate(spec, Workflow([Task(id=i, run=run) for i, run in enumerate(runs.tolist())], pairs), "heft")


@pytest.mark.few(24)
@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("run", [batch, broker, grid, machine], ids=lambda run: run.__name__)
def test_no_slice_begins_before_the_one_ahead_on_its_row_ends(run: Any, seed: int, tmp_path: Path) -> None:
    result = run(np.random.default_rng(seed))
    result.to_perfetto(tmp_path / "trace.json")
    assert overlaps(tmp_path / "trace.json") == []


def test_a_duration_is_the_difference_of_the_rounded_ends(tmp_path: Path) -> None:
    jobs = {"submit": [0, 0], "start": [0.2e-6, 1.4e-6], "end": [1.4e-6, 3.0e-6], "processors": [1, 1]}
    write_trace(Result(jobs=jobs, processors=1), tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert [(each["ts"], each["dur"]) for each in events if each["ph"] == "X"] == [(0, 1), (1, 2)]


def test_jobs_that_share_a_node_have_rows_of_their_own_with_names(tmp_path: Path) -> None:
    spec = ClusterSpec(partitions=[PartitionSpec(name="p", nodes=[NodeSpec(count=2, cores=2)])])
    result = simulate(spec, [Job(run=5.0, processors=n) for n in (1, 1, 2)], "fcfs")
    result.to_perfetto(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert [names[each["tid"]] for each in events if each["ph"] == "X"] == ["node 0", "node 0 (2)", "node 1"]


def test_jobs_of_no_duration_lie_on_rows_that_are_free() -> None:
    # the first begins and ends at 5, when the last is already on its processors
    table = pack([5, 0, 5], [5, 9, 9], [2, 2, 2], rows=4)
    assert list(zip(table["index"].tolist(), table["low"].tolist(), strict=True)) == [(1, 0), (0, 2), (2, 2)]
    table = pack([5, 0, 5], [9, 9, 5], [2, 2, 2], rows=4)
    assert list(zip(table["index"].tolist(), table["low"].tolist(), strict=True)) == [(1, 0), (2, 2), (0, 2)]
