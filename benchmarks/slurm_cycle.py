"""What a cycle of Slurm's backfill loop costs: 1,000 nodes, 1,000 waiting jobs, bf_max_job_test=500.

    python benchmarks/slurm_cycle.py [--nodes N] [--jobs N] [--cores N]
    python benchmarks/slurm_cycle.py --site

With ``--site``: what whole runs on 40 nodes of 16 cores cost, with both schedulers: 800 jobs in 5.6 days, and 600 that
come within 7 hours, so that about 500 wait.

CPU times in y, that of ``sum(i*i for i in range(10**7))`` measured beside.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from simmodel import Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.backfill import BackfillCycle
from simmodel_site.policy.board import Board, Held, Pending, Site
from simmodel_site.policy.policy import Slurm
from simmodel_site.policy.settings import SlurmConf, SlurmPartition

NOW = 1_000_000


def sizes(rng: np.random.Generator, count: int, most: int) -> list[int]:
    """Return numbers of nodes, of which small ones are common."""
    return [int(each) for each in np.ceil(2 ** rng.uniform(0, np.log2(most), count))]


def cycle(nodes: int, jobs: int, cores: int, seed: int = 1) -> tuple[float, int, int]:
    """Return the CPU time of a cycle (s), and the numbers of jobs that run and of plans."""
    rng = np.random.default_rng(seed)
    settings = SlurmConf(bf_max_job_test=500)
    table = NodeTable(np.array([[float(cores)], [0.0], [2.0**40]]).repeat(nodes, axis=1))
    board = Board(table, settings)
    running: list[Held] = []
    free = rng.permutation(nodes).tolist()
    while free:
        count = min(sizes(rng, 1, 16)[0], len(free))
        mine, free = sorted(free[:count]), free[count:]
        allocation = Allocation.alike(tuple(mine), cores)
        table.take(allocation)
        running.append(Held.of(NOW + int(rng.integers(60, 24 * 3600)), len(running), allocation))
    board.renew(NOW, running)
    site = Site(SlurmPartition(name="batch", default=True), (1 << nodes) - 1)
    queue = []
    for number, count in enumerate(sizes(rng, jobs, 128)):
        job: Any = SimpleNamespace(state="waiting")
        limit = int(rng.integers(1, 24 * 60)) * 60
        parts = cores > 1 and number % 3 == 0  # a third asks for cores anywhere
        request = Request(count) if parts else Request(count * cores, nodes=count, cores_per_node=cores)
        queue.append(Pending(job, request, board, site, limit, float(jobs - number), 0.0, number))
    begun = process_time()
    found = BackfillCycle(queue, settings, NOW)
    for job, allocation in found.starts():
        table.take(allocation)
        board.started(Held.of(NOW + job.limit, len(running) + job.number, allocation))
    return process_time() - begun, len(running), len(found.planned)


def site_jobs(count: int, days: float, load: float, seed: int = 1) -> list[Job]:
    """Return jobs of a site: two of five ask for cores with memory, the others for whole nodes."""
    rng = np.random.default_rng(seed)
    submits = np.sort(rng.uniform(0, days * 86400, count))
    limits = 60.0 * rng.choice([30, 60, 120, 240, 480, 720, 1440], count)
    parts, cores, nodes = rng.random(count) < 0.4, rng.integers(1, 16, count), sizes(rng, count, 16)
    runs = limits * rng.uniform(0.05, 1, count)
    scale = load * days * 86400 * 640 / (np.where(parts, cores, np.array(nodes) * 16) * runs).sum()
    jobs = []
    for i in range(count):
        wide: dict[str, Any] = {"nodes": nodes[i], "cores_per_node": 16}
        if parts[i]:
            wide = {"processors": int(cores[i]), "options": "--mem-per-cpu=2000"}
        run, limit = min(float(runs[i] * scale), limits[i]), float(limits[i])
        jobs.append(Job(id=i, submit=float(submits[i]), run=run, requested=limit, **wide))
    return jobs


def sites() -> None:
    """Print what whole runs cost."""
    nodes = NodeSpec(names="n[1-40]", cores=16, memory=64000 * 2.0**20)
    spec = ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[nodes])])
    for count, days, load in ((800, 5.6, 0.95), (600, 0.3, 6.0)):
        jobs = site_jobs(count, days, load)
        for backfill in (True, False):
            begun = process_time()
            found = simulate(spec, jobs, Slurm(SlurmConf(backfill=backfill, memory=True)))
            seconds = process_time() - begun
            wait = float(np.mean(found.jobs["start"] - found.jobs["submit"]))
            name = "backfill" if backfill else "builtin"
            print(f"{count} jobs in {days} days, {name}: {seconds / yardstick():.1f} y, mean wait {wait:.0f} s")


def yardstick() -> float:
    """Return the CPU time of y (s)."""
    begun = process_time()
    sum(i * i for i in range(10**7))
    return process_time() - begun


def main() -> None:
    """Print the CPU times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", action="store_true")
    for name, value in (("--nodes", 1000), ("--jobs", 1000), ("--cores", 1)):
        parser.add_argument(name, type=int, default=value)
    given = parser.parse_args()
    if given.site:
        sites()
        return
    least = min(cycle(given.nodes, given.jobs, given.cores) for _ in range(3))
    y = yardstick()
    seconds, running, planned = least
    print(f"{given.nodes} nodes, {running} running, {given.jobs} waiting, {planned} planned: {seconds / y:.3f} y")


if __name__ == "__main__":
    main()
