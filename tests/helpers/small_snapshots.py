"""Small snapshots, for tests of snapshots and of what-ifs."""

from functools import cache
from typing import Any

import numpy as np

from simmodel import Cluster, Environment, Job, Workload, load_workload
from simmodel.futures import Outcome
from simmodel.generators.arrivals import synthetic
from simmodel.snapshots import ClusterSnapshot

QUEUE = ((3, 100), (4, 50), (1, 20), (1, 200))  # the first runs


@cache
def week() -> ClusterSnapshot:
    """Return a snapshot of a busy cluster, with running and waiting jobs and pending submissions."""
    env = Environment()
    cluster = Cluster(env, 128, "easy")
    cluster.replay(load_workload("lublin-128-week"))
    env.run(until=300_000)
    return cluster.snapshot()


def small(*sizes: tuple[int, int], policy: str = "fcfs", at: float = 1.0, processors: int = 4) -> ClusterSnapshot:
    """Return a snapshot of a cluster to which jobs (processors, seconds) were submitted at 0."""
    env = Environment()
    cluster = Cluster(env, processors, policy)
    for size, run in sizes:
        cluster.submit(Job(processors=size, run=run))
    env.run(until=at)
    return cluster.snapshot()


def starts(outcome: Outcome) -> dict[object, float]:
    """Return the start of each job."""
    return {each.job: each.at for each in outcome.starts}


def drawn(rng: np.random.Generator, jobs: int = 10) -> Workload:
    """Draw jobs that arrive every 30 s on average."""
    return synthetic(jobs, gap={"distribution": "exponential", "mean": 30.0}, run=20.0, processors=2, rng=rng)


def at(instant: float, jobs: list[Job], platform: Any = 4, policy: Any = "fcfs", **options: Any) -> Cluster:
    """Replay jobs until an instant."""
    env = Environment()
    cluster = Cluster(env, platform, policy, **options)
    cluster.replay(Workload.from_jobs(jobs))
    env.run(until=instant)
    return cluster
