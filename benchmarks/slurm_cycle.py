"""What a cycle of Slurm's backfill loop costs: 1,000 nodes, 1,000 waiting jobs, bf_max_job_test=500.

    python benchmarks/slurm_cycle.py [--nodes N] [--jobs N] [--cores N]

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

from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel_site.policy.backfill import BackfillCycle
from simmodel_site.policy.board import Board, Held, Pending, Site
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


def main() -> None:
    """Print the CPU times."""
    parser = argparse.ArgumentParser()
    for name, value in (("--nodes", 1000), ("--jobs", 1000), ("--cores", 1)):
        parser.add_argument(name, type=int, default=value)
    given = parser.parse_args()
    least = min(cycle(given.nodes, given.jobs, given.cores) for _ in range(3))
    begun = process_time()
    sum(i * i for i in range(10**7))
    y = process_time() - begun
    seconds, running, planned = least
    print(f"{given.nodes} nodes, {running} running, {given.jobs} waiting, {planned} planned: {seconds / y:.3f} y")


if __name__ == "__main__":
    main()
