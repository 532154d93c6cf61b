"""What identified nodes cost: exclusive nodes against counts; EASY and conservative on nodes that differ; a yardstick.

Run ``python benchmarks/nodes.py`` for all cases, or name some of them: whole, mixed, deep, large, planned. Figures are
ratios of CPU times, so that they can be compared between runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from simmodel import Workload, load_workload, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec

GB = 2**30
DAY = 86_400.0


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def cpu(run: Callable[..., object], *given: object) -> float:
    begin = time.process_time()
    run(*given)
    return time.process_time() - begin


def machine(count: int) -> ClusterSpec:
    """Nodes with 64 cores and 256 GB; a tenth of them with 4 GPUs besides."""
    thin = NodeSpec(name="thin", count=count - count // 10, cores=64, memory=256 * GB)
    gpus = NodeSpec(name="gpu", count=count // 10, cores=64, gpus=4, memory=256 * GB)
    return ClusterSpec(partitions=[PartitionSpec(nodes=[thin, gpus])])


def mixed_jobs(count: int, nodes: int, load: float, *, random_memory: bool, seed: int = 1) -> Workload:
    """Jobs for whole nodes, for parts with memory, and for GPUs; ``load`` is the share of the cores asked for."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, count, p=[0.4, 0.4, 0.2])
    asked = np.where(kind == 0, 2 ** rng.integers(0, 6, count), rng.integers(1, 5, count))
    asked = np.where(kind == 2, rng.integers(1, 3, count), asked) * max(1, nodes // 1000)
    cores = np.where(kind == 0, 64, np.where(kind == 1, rng.choice([8, 16, 32], count), 16))
    gpus = np.where(kind == 2, rng.choice([1, 4], count), 0)
    memory = np.where(kind == 1, rng.choice([16, 64], count), 0) * float(GB)
    if random_memory:
        memory = np.where(kind > 0, rng.integers(1, 128 * GB, count), 0).astype(float)
    run = np.minimum(np.exp(rng.normal(8, 1.2, count)), DAY)
    work = float((asked * cores * run).sum())
    submit = np.sort(rng.uniform(0, work / (64 * nodes * load), count))
    columns = {
        "submit": submit,
        "run": run,
        "requested": np.minimum(np.ceil(run * rng.uniform(1, 4, count) / 600) * 600, 2 * DAY),
        "processors": asked * cores,
        "nodes": asked,
        "cores_per_node": cores,
        "gpus_per_node": gpus,
        "memory_per_node": memory,
    }
    return Workload(columns, name="mixed")


def queue(result) -> float:
    """The mean number of waiting jobs while jobs arrive."""
    jobs = result.jobs
    last = jobs["submit"].max()
    return float((np.minimum(jobs["start"], last) - jobs["submit"]).sum() / last)


def whole(y: float) -> None:
    log = load_workload("lublin-256")
    nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=256, cores=4)], exclusive=True)])
    wide = Workload(
        {**{name: log[name] for name in ("submit", "run", "requested")}, "processors": log["processors"] * 4}
    )
    for policy in ("fcfs", "easy", "conservative"):
        counts = min(cpu(simulate, 1024, wide, policy) for _ in range(3))
        found = min(cpu(simulate, nodes, wide, policy) for _ in range(3))
        print(f"{policy} on 256 exclusive nodes: {found / counts:.2f} times counts", flush=True)


def mixed(y: float, nodes: int = 1000, load: float = 1.1, jobs: int = 10_000, policy: str = "easy") -> None:
    for random_memory in (False, True):
        log = mixed_jobs(jobs, nodes, load, random_memory=random_memory)
        begin = time.process_time()
        result = simulate(machine(nodes), log, policy)
        seconds = time.process_time() - begin
        what = "random memory" if random_memory else f"{len(shapes(log))} shapes"
        cost = f"{seconds / jobs * 1e3 / y:.3f} ms a job and y"
        print(f"{policy}, {nodes} nodes, {what}, {queue(result):.0f} waiting: {cost}", flush=True)


def shapes(log: Workload) -> set[tuple[float, ...]]:
    names = ("cores_per_node", "gpus_per_node", "memory_per_node")
    return set(zip(*(log[name].tolist() for name in names), strict=True))


def deep(y: float) -> None:
    mixed(y, load=1.3)


def large(y: float) -> None:
    mixed(y, nodes=5000, load=1.1)


def planned(y: float) -> None:
    mixed(y, load=1.2, jobs=3000, policy="conservative")
    mixed(y, nodes=5000, load=1.2, jobs=3000, policy="conservative")


CASES = {"whole": whole, "mixed": mixed, "deep": deep, "large": large, "planned": planned}

if __name__ == "__main__":
    measured = yardstick()
    print(f"yardstick: {measured:.3f} s of CPU time")
    for case in sys.argv[1:] or CASES:
        CASES[case](measured)
